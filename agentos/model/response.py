"""What is answered to a user, on its way through response processors."""

from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from agentos.model.field_checks import frozen_mapping


def _tuple(value: Iterable[Any]) -> tuple[Any, ...]:
    return tuple(value)


@attrs.frozen
class Response:
    """A text for a user, with what goes along with it."""

    text: str = attrs.field(validator=attrs.validators.instance_of(str))
    format: str = "markdown"
    attachments: tuple[Any, ...] = attrs.field(default=(), converter=_tuple)
    metadata: Mapping[str, Any] = attrs.field(factory=dict, converter=frozen_mapping)

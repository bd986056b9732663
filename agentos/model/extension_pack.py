"""A pack: descriptors that come and go together."""

from collections.abc import Iterable
from typing import Any

import attrs

from agentos.errors import DescriptorError
from agentos.model.descriptor import Descriptor, Hook
from agentos.model.field_checks import fault_of_owner
from agentos.model.kind import as_descriptors


def _descriptors(value: Iterable[object]) -> tuple[Descriptor[Any], ...]:
    return tuple(descriptor for item in value for descriptor in as_descriptors(item))


@attrs.frozen(eq=False)
class ExtensionPack:
    """What `create_extension_pack` returns: descriptors under one name, loaded whole or not at all.

    `descriptors` takes descriptors and tools alike.
    """

    name: str
    version: str | None = None
    descriptors: tuple[Descriptor[Any], ...] = attrs.field(default=(), converter=_descriptors)
    description: str = ""
    requires_agentos: str | None = None
    on_activate: Hook | None = attrs.field(default=None, repr=False)
    on_deactivate: Hook | None = attrs.field(default=None, repr=False)

    def __attrs_post_init__(self) -> None:
        if fault := fault_of_owner(self.name):
            raise DescriptorError(f"ExtensionPack.name: {fault}")
        if self.version is not None and not isinstance(self.version, str):
            raise DescriptorError(
                f"ExtensionPack({self.name!r}).version: expected a string, got {type(self.version).__name__}"
            )

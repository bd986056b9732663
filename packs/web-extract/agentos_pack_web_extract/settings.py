"""The options of the pack."""

from pathlib import Path
from typing import Any

import attrs
from agentos_pack_common import Root, WebOptions

MAX_BYTES = 10_000_000
"""What a process can be given."""


def _fits(instance: Any, attribute: "attrs.Attribute[Any]", value: int) -> None:
    validator = attrs.fields(WebOptions).max_bytes.validator
    if validator is not None:
        validator(instance, attribute, value)
    if value > MAX_BYTES:
        raise ValueError(f"expected at most {MAX_BYTES:,}")


def _is_folder(_: Any, __: Any, value: Path | None) -> None:
    if value is not None:
        Root(value, writable=False)


@attrs.frozen(kw_only=True)
class Options(WebOptions):
    """What a manifest may say. Without a `root` no file of this machine is read."""

    max_bytes: int = attrs.field(default=MAX_BYTES, validator=_fits)
    extract_seconds: float = attrs.field(default=20.0, validator=[attrs.validators.gt(0), attrs.validators.le(120)])
    root: Path | None = attrs.field(default=None, validator=_is_folder)

"""A pack: descriptors that come and go together."""

from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from agentos.errors import DescriptorError
from agentos.model.declared_options import fault_of_options
from agentos.model.descriptor import Descriptor, Hook
from agentos.model.field_checks import fault_of_owner
from agentos.model.kind import as_descriptors
from agentos.model.trouble import SelfCheck


def _descriptors(value: Iterable[object]) -> tuple[Descriptor[Any], ...]:
    return tuple(descriptor for item in value for descriptor in as_descriptors(item))


@attrs.frozen(eq=False)
class ExtensionPack:
    """What `create_extension_pack` returns: descriptors under one name, loaded whole or not at all.

    `descriptors` takes descriptors and tools alike. `options` declares what a manifest may say in its options: an attrs
    class or a JSON Schema. Then unknown and wrong ones fail the load, and `context.options` has defaults filled in from
    the first hook on; in the factory, `read_options(MyOptions, context.options)` reads them.
    """

    name: str
    version: str | None = None
    descriptors: tuple[Descriptor[Any], ...] = attrs.field(default=(), converter=_descriptors)
    description: str = ""
    requires_agentos: str | None = None
    options: type[Any] | Mapping[str, Any] | None = attrs.field(default=None, repr=False)
    on_activate: Hook | None = attrs.field(default=None, repr=False)
    on_deactivate: Hook | None = attrs.field(default=None, repr=False)
    check: SelfCheck | None = attrs.field(default=None, repr=False)
    """Says what is wrong with it though it is loaded, for the load report, `host.check()` and `agentos doctor`."""

    def __attrs_post_init__(self) -> None:
        if fault := fault_of_owner(self.name):
            raise DescriptorError(f"ExtensionPack.name: {fault}")
        if fault := fault_of_options(self.options):
            raise DescriptorError(f"ExtensionPack({self.name!r}).options: {fault}")
        if self.version is not None and not isinstance(self.version, str):
            raise DescriptorError(
                f"ExtensionPack({self.name!r}).version: expected a string, got {type(self.version).__name__}"
            )
        if self.check is not None and not callable(self.check):
            raise DescriptorError(
                f"ExtensionPack({self.name!r}).check: expected a function, got {type(self.check).__name__}"
            )

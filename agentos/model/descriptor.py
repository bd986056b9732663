"""What a pack offers."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Generic, TypeVar

import attrs

from agentos.errors import DescriptorError
from agentos.model.field_checks import fault_of_name, fault_of_priority, frozen_mapping

P = TypeVar("P")
Hook = Callable[..., Any]


@attrs.frozen
class SecretRequirement:
    """A secret that a descriptor needs, or can use. The name only, never a value."""

    id: str
    optional: bool = False
    description: str = ""

    def __attrs_post_init__(self) -> None:
        if fault := fault_of_name(self.id):
            raise DescriptorError(f"SecretRequirement.id: {fault}")


def _requirements(value: Iterable[SecretRequirement | str]) -> tuple[SecretRequirement, ...]:
    if isinstance(value, str):
        raise DescriptorError(f"required_secrets: expected a sequence, got the string {value!r}; write [{value!r}]")
    return tuple(item if isinstance(item, SecretRequirement) else SecretRequirement(item) for item in value)


@attrs.frozen(eq=False)
class Descriptor(Generic[P]):
    """What a pack offers. Says nothing about whether it is in force.

    Two descriptors are the same only if they are one object: payloads need not be comparable.
    """

    kind: str
    id: str
    payload: P = attrs.field(repr=False)
    priority: int | None = None
    required_secrets: tuple[SecretRequirement, ...] = attrs.field(default=(), converter=_requirements)
    enabled_by_default: bool = True
    wraps: bool = False
    metadata: Mapping[str, Any] = attrs.field(factory=dict, converter=frozen_mapping, repr=False)
    on_activate: Hook | None = attrs.field(default=None, repr=False)
    on_deactivate: Hook | None = attrs.field(default=None, repr=False)
    gate: Callable[[], str | None] | None = attrs.field(default=None, repr=False)
    """Says why it can't be used right now, or None; whoever gave it says when to ask again."""

    def __attrs_post_init__(self) -> None:
        for name, fault in self._faults():
            raise DescriptorError(f"Descriptor({self.kind!r}, {self.id!r}).{name}: {fault}")

    def _faults(self) -> Iterator[tuple[str, str]]:
        for name in ("kind", "id"):
            if fault := fault_of_name(getattr(self, name)):
                yield name, fault
        if fault := fault_of_priority(self.priority):
            yield "priority", fault
        for name in ("on_activate", "on_deactivate", "gate"):
            if (hook := getattr(self, name)) is not None and not callable(hook):
                yield name, f"expected a function, got {type(hook).__name__}"

    @property
    def key(self) -> tuple[str, str]:
        """Name the stack this goes on."""
        return (self.kind, self.id)

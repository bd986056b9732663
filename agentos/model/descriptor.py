"""What a pack offers."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Generic, TypeVar

import attrs

from agentos.errors import DescriptorError
from agentos.model.field_checks import fault_of_name, fault_of_priority, frozen_mapping
from agentos.model.trouble import SelfCheck

P = TypeVar("P")
Hook = Callable[..., Any]

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ADDRESS = re.compile(r"https?://\S+")


@attrs.frozen
class SecretRequirement:
    """A secret that a descriptor needs, or can use. The name only, never a value.

    `env` is the environment variable that holds it, `url` where to get one: enough to be found and told of without
    an entry in any catalog.
    """

    id: str
    optional: bool = False
    description: str = ""
    env: str | None = None
    url: str | None = None

    def __attrs_post_init__(self) -> None:
        for name, fault in self._faults():
            raise DescriptorError(f"SecretRequirement({self.id!r}).{name}: {fault}")

    def _faults(self) -> Iterator[tuple[str, str]]:
        if fault := fault_of_name(self.id):
            yield "id", fault
        if self.env is not None and not (isinstance(self.env, str) and _VARIABLE.fullmatch(self.env)):
            yield "env", f"expected the name of an environment variable such as GEO_API_KEY, got {self.env!r}"
        if self.url is not None and not (isinstance(self.url, str) and _ADDRESS.fullmatch(self.url)):
            yield "url", f"expected an address such as https://example.com/keys, got {self.url!r}"


def as_requirements(value: Iterable[SecretRequirement | str]) -> tuple[SecretRequirement, ...]:
    """Return *value* as requirements; a name alone is one that is needed."""
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
    required_secrets: tuple[SecretRequirement, ...] = attrs.field(default=(), converter=as_requirements)
    enabled_by_default: bool = True
    wraps: bool = False
    metadata: Mapping[str, Any] = attrs.field(factory=dict, converter=frozen_mapping, repr=False)
    on_activate: Hook | None = attrs.field(default=None, repr=False)
    on_deactivate: Hook | None = attrs.field(default=None, repr=False)
    gate: Callable[[], str | None] | None = attrs.field(default=None, repr=False)
    """Says why it can't be used right now, or None; whoever gave it says when to ask again."""
    check: SelfCheck | None = attrs.field(default=None, repr=False)
    """Says what is wrong with it though it is in force; `explain`, `host.check()` and `agentos doctor` ask."""

    def __attrs_post_init__(self) -> None:
        faults = (
            ("kind", fault_of_name(self.kind)),
            ("id", fault_of_name(self.id)),
            ("priority", fault_of_priority(self.priority)),
            ("on_activate", _fault_of_function(self.on_activate)),
            ("on_deactivate", _fault_of_function(self.on_deactivate)),
            ("gate", _fault_of_function(self.gate)),
            ("check", _fault_of_function(self.check)),
        )
        for name, fault in faults:
            if fault is not None:
                raise DescriptorError(f"Descriptor({self.kind!r}, {self.id!r}).{name}: {fault}")

    @property
    def key(self) -> tuple[str, str]:
        """Name the stack this goes on."""
        return (self.kind, self.id)


def _fault_of_function(value: object) -> str | None:
    return None if value is None or callable(value) else f"expected a function, got {type(value).__name__}"

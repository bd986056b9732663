"""What is special about a kind, said by the kind's own module.

A kind is a word of the vocabulary, known to the whole process like a codec. The core asks this table and
never compares a kind's name. A kind that nobody declared takes any payload.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import attrs

from agentos.base.spelling import is_one_letter_away
from agentos.errors import DescriptorError, KindError
from agentos.model.crossing import Crossing
from agentos.model.descriptor import Descriptor


def _any_descriptor(descriptor: Descriptor[Any]) -> None:
    """Refuse nothing."""


def _always_bound(payload: Any) -> bool:  # noqa: ARG001 - the signature is the contract
    return True


def _adapts_nothing(offered: object) -> Sequence[Descriptor[Any]]:  # noqa: ARG001 - the signature is the contract
    return ()


def _as_it_is(descriptor: Descriptor[Any]) -> Descriptor[Any]:
    return descriptor


def _no_definition(payload: Any) -> None:
    """Pin nothing."""


def _no_permission(descriptor: Descriptor[Any]) -> str | None:  # noqa: ARG001 - the signature is the contract
    return None


_AS_MOST = Crossing()


@attrs.frozen
class Kind:
    """The contract of one kind: its check, when a payload can be in force, what becomes a descriptor, its service."""

    name: str
    check: Callable[[Descriptor[Any]], None] = _any_descriptor
    is_bound: Callable[[Any], bool] = _always_bound
    adapt: Callable[[object], Sequence[Descriptor[Any]]] = _adapts_nothing
    complete: Callable[[Descriptor[Any]], Descriptor[Any]] = _as_it_is
    """Returns a descriptor with what its payload says of it."""
    definition: Callable[[Any], Mapping[str, Any] | None] = _no_definition
    """What of a payload a person accepts once and is asked about again when it changes; None: nothing."""
    service: Callable[[Any], Any] | None = None
    """Makes what running code registers things of this kind with, from its owner's `Port`."""
    permission: Callable[[Descriptor[Any]], str | None] = _no_permission
    """Which permission a descriptor asks for; one that its pack lacks is told as a trouble."""
    reader: str | None = None
    """Who reads what is active, in words that follow "read by"."""
    crossing: Crossing = _AS_MOST
    """How a payload crosses to a host from a pack that runs in a process of its own."""

    @property
    def has_definitions(self) -> bool:
        """Tell whether anything of this kind is pinned."""
        return self.definition is not _no_definition

    @property
    def asks_permission(self) -> bool:
        """Tell whether a descriptor of this kind may ask for a permission."""
        return self.permission is not _no_permission


_declared: dict[str, Kind] = {}
_own: set[str] = set()
"""The names of the kinds that agentos itself reads."""
UNREAD = "active, but nothing reads this kind here"


def declare_kind(kind: Kind) -> Kind:
    """Make a host's own *kind* known. Declaring a name again replaces it; a kind of agentos can't be declared again."""
    if kind.name in _own:
        raise KindError(f"the kind {kind.name!r} is one of agentos itself", hint="declare one of another name")
    _declared[kind.name] = kind
    return kind


def declare_own_kind(kind: Kind) -> Kind:
    """Make a kind of agentos itself known: for its own modules."""
    _declared[kind.name] = kind
    _own.add(kind.name)
    _meant.cache_clear()
    return kind


def reader_of(name: str) -> str | None:
    """Say who reads what is active of a kind; None if nothing does, as far as is known here."""
    kind = _declared.get(name)
    return None if kind is None else kind.reader or "the host, which declared this kind"


def _refuse_misspelled(descriptor: Descriptor[Any]) -> None:
    """Refuse a descriptor whose kind nobody declared and is one letter away from one that agentos reads."""
    if (meant := _meant(descriptor.kind)) is not None:
        message = f"the kind {descriptor.kind!r} of {descriptor.id!r} is unknown; did you mean {meant!r}?"
        raise KindError(f"{message} A kind of your own is made known with declare_kind")


@lru_cache(1024)
def _meant(name: str) -> str | None:
    """Return the kind of agentos that is one letter away from *name*."""
    return next((own for own in sorted(_own) if is_one_letter_away(name, own)), None)


_undeclared = Kind("", check=_refuse_misspelled)


def kind_of(name: str) -> Kind:
    """Return the contract of the kind called *name*; one without conditions if nobody declared it."""
    return _declared.get(name, _undeclared)


def is_offered(value: object) -> bool:
    """Tell whether a declared kind makes descriptors of *value*: a tool, a function with @guardrail, and so on."""
    return any(kind.adapt(value) for kind in _declared.values())


def as_descriptors(offered: object) -> Sequence[Descriptor[Any]]:
    """Return *offered* as descriptors: itself, or what a declared kind makes of it."""
    if isinstance(offered, Descriptor):
        return (kind_of(offered.kind).complete(offered),)
    for kind in _declared.values():
        if descriptors := kind.adapt(offered):
            return descriptors
    expected = "expected a Descriptor, a Tool, or a function with @guardrail or @middleware"
    raise DescriptorError(f"{expected}, got {type(offered).__name__}")

"""What is special about a kind, said by the kind's own module.

A kind is a word of the vocabulary, known to the whole process like a codec. The core asks this table and
never compares a kind's name. A kind that nobody declared takes any payload.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

from agentos.errors import DescriptorError
from agentos.model.descriptor import Descriptor


def _any_descriptor(descriptor: Descriptor[Any]) -> None:
    """Refuse nothing."""


def _always_bound(payload: Any) -> bool:  # noqa: ARG001 - the signature is the contract
    return True


def _adapts_nothing(offered: object) -> Sequence[Descriptor[Any]]:  # noqa: ARG001 - the signature is the contract
    return ()


def _no_definition(payload: Any) -> None:
    """Pin nothing."""


@attrs.frozen
class Kind:
    """The contract of one kind: its check, when a payload can be in force, what becomes a descriptor, its service."""

    name: str
    check: Callable[[Descriptor[Any]], None] = _any_descriptor
    is_bound: Callable[[Any], bool] = _always_bound
    adapt: Callable[[object], Sequence[Descriptor[Any]]] = _adapts_nothing
    definition: Callable[[Any], Mapping[str, Any] | None] = _no_definition
    """What of a payload a person accepts once and is asked about again when it changes; None: nothing."""
    service: Callable[[Any], Any] | None = None
    """Makes what running code registers things of this kind with, from its owner's `Port`."""

    @property
    def has_definitions(self) -> bool:
        """Tell whether anything of this kind is pinned."""
        return self.definition is not _no_definition


_declared: dict[str, Kind] = {}
_undeclared = Kind("")


def declare_kind(kind: Kind) -> Kind:
    """Make *kind* known. Declaring a name again replaces it."""
    _declared[kind.name] = kind
    return kind


def kind_of(name: str) -> Kind:
    """Return the contract of the kind called *name*; one without conditions if nobody declared it."""
    return _declared.get(name, _undeclared)


def as_descriptors(offered: object) -> Sequence[Descriptor[Any]]:
    """Return *offered* as descriptors: itself, or what a declared kind makes of it."""
    if isinstance(offered, Descriptor):
        return (offered,)
    for kind in _declared.values():
        if descriptors := kind.adapt(offered):
            return descriptors
    raise DescriptorError(f"expected a Descriptor or a Tool, got {type(offered).__name__}")

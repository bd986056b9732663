"""Where a type was found, where the names in it are looked up, and what was derived of it."""

import builtins
import inspect
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from agentos.schema.build import Builder, Json

MISSING: Any = inspect.Parameter.empty


class DerivedType(NamedTuple):
    """What was derived of a type: its schema, and what makes its values (None: JSON is the value)."""

    schema: Json
    build: Builder | None = None


class Scope(NamedTuple):
    """Where the names in an annotation are looked up, and what type variables stand for."""

    names: dict[str, Any]
    local: Mapping[str, Any] = MappingProxyType({})
    variables: Mapping[Any, Any] = MappingProxyType({})
    owner: type | None = None
    itself: tuple[type, tuple[Any, ...]] | None = None

    def find(self, text: str) -> Any:
        """Return what *text* stands for; NameError if it stands for nothing here."""
        for names in (self.local, self.names, vars(builtins)):
            if text in names:
                return names[text]
        try:
            return eval(text, self.names, self.local)  # noqa: S307 - an annotation, as typing does
        except NameError:
            if self.owner is None:
                raise
            return eval(text, self.names, {**vars(self.owner), **self.local})  # noqa: S307


class TypePlace(NamedTuple):
    """Where in a signature a type was found."""

    scope: Scope
    path: tuple[str, ...] = ()

    def inside(self, part: str) -> "TypePlace":
        """Return the place of a part: a member's name, `[]` or `*`."""
        return TypePlace(self.scope, (*self.path, part))

    def __str__(self) -> str:
        return ".".join(self.path).replace(".[", "[")


class Field(NamedTuple):
    """One parameter of a function, or one field of a class."""

    name: str
    type: Any
    scope: Scope
    required: bool = True
    default: Any = MISSING
    validator: Any = None
    documented_as: str = ""

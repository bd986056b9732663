"""The fields of classes: attrs, dataclasses, TypedDict and NamedTuple, with where each annotation was written."""

import dataclasses
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar, get_args, get_origin

import attrs

from agentos.schema.scopes import MISSING, Field, Scope, TypePlace


class Origins:
    """Says of each field of a class where it was written, and what type variables stand for there."""

    def __init__(self, cls: type, arguments: tuple[Any, ...], outer: Scope) -> None:
        self.cls = cls
        self._annotations = {base: inspect.get_annotations(base) for base in cls.__mro__ if base is not object}
        self._variables = _bindings(cls, arguments)
        self._itself = (cls, arguments)
        self._outer = outer

    def annotation(self, name: str) -> Any:
        """Return the annotation of a field as it was written."""
        return next((known[name] for known in self._annotations.values() if name in known), MISSING)

    def scope(self, name: str) -> Scope:
        """Return where the names in the annotation of a field are looked up."""
        base = next((base for base, known in self._annotations.items() if name in known), self.cls)
        module = sys.modules.get(base.__module__)
        outer = self._outer.local if "<locals>" in base.__qualname__ else {}
        return Scope(
            vars(module) if module else {},
            {**outer, base.__name__: self.cls if base is self.cls else base},
            self._variables.get(base, {}),
            base,
            self._itself,
        )


def _bindings(cls: type, arguments: tuple[Any, ...]) -> dict[Any, dict[Any, Any]]:
    """Say of *cls* and each of its bases what their type variables stand for."""
    found: dict[Any, dict[Any, Any]] = {cls: dict(zip(getattr(cls, "__parameters__", ()), arguments, strict=False))}
    for base in cls.__mro__:
        for alias in vars(base).get("__orig_bases__", ()):
            origin, args = get_origin(alias), get_args(alias)
            if isinstance(origin, type) and origin not in found:
                given = [substituted(arg, found.get(base, {})) for arg in args]
                found[origin] = dict(zip(getattr(origin, "__parameters__", ()), given, strict=False))
    return found


def substituted(tp: Any, variables: Mapping[Any, Any]) -> Any:
    """Return *tp* with what its type variables stand for."""
    if isinstance(tp, TypeVar):
        return variables.get(tp, tp)
    free = () if isinstance(tp, type) and not get_args(tp) else getattr(tp, "__parameters__", ())
    return tp[tuple(variables.get(variable, variable) for variable in free)] if free else tp


# Fields of classes: each takes the deriver, the class, its origins and its place


def _attrs_members(deriver: Any, cls: Any, origins: Origins, place: TypePlace) -> Iterator[Field]:  # noqa: ARG001
    for field in cls.__attrs_attrs__:
        if field.init:
            yield Field(
                name=field.alias,
                type=_type_of(field.type, origins.annotation(field.name)),
                scope=origins.scope(field.name),
                required=field.default is attrs.NOTHING,
                default=_attrs_default(field.default),
                validator=field.validator,
                documented_as=field.name,
            )


def _attrs_default(default: Any) -> Any:
    if isinstance(default, attrs.Factory):  # type: ignore[arg-type]  # a class at run time
        return _made(None if default.takes_self else default.factory)
    return MISSING if default is attrs.NOTHING else default


def _dataclass_members(deriver: Any, cls: Any, origins: Origins, place: TypePlace) -> Iterator[Field]:  # noqa: ARG001
    for field in cls.__dataclass_fields__.values():
        if field.init and str(field._field_type) != "_FIELD_CLASSVAR":  # noqa: SLF001 - InitVars are in no public list
            has_default = field.default is not dataclasses.MISSING
            has_factory = field.default_factory is not dataclasses.MISSING
            yield Field(
                name=field.name,
                type=_type_of(field.type, origins.annotation(field.name)),
                scope=origins.scope(field.name),
                required=not has_default and not has_factory,
                default=field.default if has_default else _made(field.default_factory),
            )


def _named_tuple_members(deriver: Any, cls: Any, origins: Origins, place: TypePlace) -> Iterator[Field]:  # noqa: ARG001
    for name in cls._fields:
        default = cls._field_defaults.get(name, MISSING)
        yield Field(name, origins.annotation(name), origins.scope(name), default is MISSING, default)


def typed_dict_members(deriver: Any, cls: Any, origins: Origins, place: TypePlace) -> Iterator[Field]:
    """Yield the members of a TypedDict."""
    for name, annotation in cls.__annotations__.items():
        scope = origins.scope(name)
        tp = deriver.resolve(annotation, TypePlace(scope, (*place.path, name)))
        required = _said_required(tp)
        yield Field(name, tp, scope, name in cls.__required_keys__ if required is None else required)


def _said_required(tp: Any) -> bool | None:
    """Tell what Required or NotRequired says around a type; None if neither is there."""
    while True:
        word = getattr(get_origin(tp), "_name", None)
        if word in {"Required", "NotRequired"}:
            return bool(word == "Required")
        if word != "ReadOnly" and not hasattr(tp, "__metadata__"):
            return None
        tp = get_args(tp)[0]


def _type_of(declared: Any, annotation: Any) -> Any:
    """Return the type that a field carries, unless that is only the text of its annotation."""
    return annotation if declared is None or isinstance(declared, str) else declared


def _made(factory: Any) -> Any:
    """Return what a factory makes, if calling it can't have an effect."""
    return factory() if factory in (list, dict, set, frozenset, tuple) else MISSING


CLASSES: tuple[tuple[Callable[[type], bool], Any], ...] = (
    (lambda cls: hasattr(cls, "__required_keys__"), typed_dict_members),
    (lambda cls: issubclass(cls, tuple) and hasattr(cls, "_fields"), _named_tuple_members),
    (lambda cls: hasattr(cls, "__attrs_attrs__"), _attrs_members),
    (lambda cls: hasattr(cls, "__dataclass_fields__"), _dataclass_members),
)

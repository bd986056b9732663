"""Types into JSON Schema 2020-12, each with the builder of its values.

A class is derived once for a signature and stands as a reference until the end; one that is used again, or that
contains itself, then becomes a definition, and any other is put where it is used.
"""

import dataclasses
import datetime as dt
import enum
import inspect
import sys
import types
import typing
import uuid
from collections import Counter, abc
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path, PurePath
from typing import Any, ClassVar, ForwardRef, NoReturn, TypeVar, get_args, get_origin

import attrs

from agentos.errors import ToolDefinitionError
from agentos.schema import build as structure
from agentos.schema.build import Json
from agentos.schema.definitions import ANNOTATIONS, adopted, distinct_names, mapped, name_of, subschemas
from agentos.schema.docs import KEYWORDS, Schema, checks_of, limits_of, read_class, text_of
from agentos.schema.fields import CLASSES, Origins, substituted, typed_dict_members
from agentos.schema.scopes import MISSING, DerivedType, Field, Scope, TypePlace
from agentos.schema.validation import check_of

DEPTH_LIMIT = 64
TYPES_LIMIT = 20_000
"""How many types the signature of one function may be made of, written out."""
_QUOTES = 3  # `from __future__ import annotations` puts quotes around the author's own

_DEFINITIONS = "#/$defs/"
_EVERY_TYPE = frozenset({"string", "integer", "number", "boolean", "null", "array", "object"})
_DECIMAL = r"^[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?$"


_JSON_TYPES: Mapping[type, str] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    type(None): "null",
}

# What a list is made into; None: it stays one, being whatever these promise.
_COLLECTIONS: Mapping[Any, Any] = {
    list: None,
    abc.Sequence: None,
    abc.MutableSequence: None,
    abc.Collection: None,
    abc.Iterable: None,
    abc.Container: None,
    abc.Reversible: None,
    set: set,
    abc.Set: set,
    abc.MutableSet: set,
    frozenset: frozenset,
}


@attrs.define(eq=False)
class NamedType:
    """A class or alias while it is derived, and after."""

    name: str
    ref: str
    depth: int
    is_class: bool
    is_built: bool
    node: DerivedType | None = None
    is_recursive: bool = False

    def build(self, value: Any) -> Any:
        """Make a value of a class that contains itself."""
        convert = self.node and self.node.build
        return convert(value) if convert else value


class Deriver:
    """Derives the types of one signature."""

    def __init__(self, function: str, *, is_output: bool = False) -> None:
        self.function = function
        self.is_output = is_output
        self.bodies: dict[str, Json] = {}
        self._entries: dict[Any, NamedType] = {}
        self._known_to_build: set[Any] = set()
        self._misjudged: set[Any] = set()
        self._types_left = TYPES_LIMIT

    def run(self, derive: Callable[[], DerivedType]) -> DerivedType:
        """Derive, and again as long as a type that contains itself was wrongly taken for plain JSON."""
        node = derive()
        while self._misjudged:
            self._types_left = TYPES_LIMIT
            self._known_to_build |= self._misjudged
            for kept in (self._misjudged, self._entries, self.bodies):
                kept.clear()
            node = derive()
        return DerivedType(self._assembled(node.schema), node.build)

    def fail(self, place: TypePlace, message: str) -> NoReturn:
        """Refuse the definition, naming the function and the parameter."""
        raise ToolDefinitionError(self.function, str(place), message)

    def _count_type(self) -> None:
        self._types_left -= 1
        if self._types_left < 0:
            message = f"is made of more than {TYPES_LIMIT:,} types; write a class for what is used again"
            raise ToolDefinitionError(self.function, "", message)

    # Types

    def node(self, tp: Any, place: TypePlace) -> DerivedType:
        """Derive one type."""
        simple = SIMPLE.get(tp) if type(tp) is type else None
        if simple is not None:
            return DerivedType({**simple.schema}, simple.build)
        self._count_type()
        if len(place.path) > DEPTH_LIMIT:
            short = TypePlace(place.scope, place.path[:4])
            self.fail(short, f"nested deeper than {DEPTH_LIMIT} levels; write a type that contains itself by its name")
        if isinstance(tp, str | ForwardRef):
            return self._quoted(tp, place)
        if hasattr(tp, "__metadata__"):
            return self._annotated(tp, place)
        if hasattr(tp, "__supertype__"):
            return self.node(tp.__supertype__, place)
        if isinstance(tp, TypeVar):
            return self._variable(tp, place)
        if isinstance(tp, dataclasses.InitVar):
            return self.node(tp.type, place)
        return self._composed(tp, place)

    def _composed(self, tp: Any, place: TypePlace) -> DerivedType:
        origin, args = get_origin(tp) or tp, get_args(tp)
        derive = self._composites.get(origin) if isinstance(origin, abc.Hashable) else None
        if derive is not None:
            return derive(self, tp, args, place)
        if getattr(origin, "_name", None) in _QUALIFIERS and args:
            return self.node(args[0], place)
        if type(origin).__name__ == "TypeAliasType":
            return self._alias(origin, args, place)
        if isinstance(origin, type):
            return self._class(origin, args, place)
        return self._refuse(tp, place)

    def _refuse(self, tp: Any, place: TypePlace) -> NoReturn:
        found = f"the class {tp.__qualname__!r}" if isinstance(tp, type) else repr(tp)
        origin = get_origin(tp) or tp
        for kinds, instead in _INSTEAD:
            if origin in kinds or (type(tp) in kinds and type(tp) is not type):
                self.fail(place, f"found {found}, which can't come from JSON; write {instead}")
        self.fail(
            place,
            f"found {found}, which has no JSON form; write an attrs class, a dataclass or a TypedDict, "
            "or Annotated[Any, Schema(...)]",
        )

    def resolve(self, tp: Any, place: TypePlace) -> Any:
        """Return what a name in quotes stands for; anything else is returned as it is."""
        scope = place.scope
        if isinstance(tp, ForwardRef):
            module = sys.modules.get(str(getattr(tp, "__forward_module__", None)))
            scope = scope._replace(names=vars(module)) if module else scope
            tp = tp.__forward_arg__
        for _ in range(_QUOTES):
            tp = self._found(tp, scope, place) if isinstance(tp, str) else tp
        if isinstance(tp, str):
            self.fail(place, f"found the text {tp!r}; write a type")
        return tp

    def _quoted(self, tp: Any, place: TypePlace) -> DerivedType:
        """Derive what a name stands for; one that stands for a union or the like may be used in itself."""
        found = self.resolve(tp, place)
        name = tp if isinstance(tp, str) else tp.__forward_arg__
        if get_origin(found) is None or not name.isidentifier():
            return self.node(found, place)
        return self._named((name, id(place.scope.names)), name, place, lambda: self.node(found, place))

    def _found(self, text: str, scope: Scope, place: TypePlace) -> Any:
        try:
            return scope.find(text)
        except Exception as error:  # noqa: BLE001 - an annotation is an expression and may raise anything
            self.fail(
                place,
                f"the annotation {text!r} can't be resolved ({error}); define or import its names at the top of the "
                "module, and not only for type checking",
            )

    def _argument(self, tp: Any, place: TypePlace) -> Any:
        """Return an argument of a generic class with nothing in it that depends on where it was written."""
        tp = self.resolve(tp, place)
        if isinstance(tp, type) and not get_args(tp):
            return tp
        holder = types.SimpleNamespace(__annotations__={"it": tp})
        try:
            hints = typing.get_type_hints(holder, place.scope.names, dict(place.scope.local), include_extras=True)
        except (NameError, TypeError, SyntaxError) as error:
            self.fail(place, f"{tp!r} can't be resolved ({error}); define its names at the top of the module")
        return substituted(hints["it"], place.scope.variables)

    def _variable(self, tp: Any, place: TypePlace) -> DerivedType:
        if tp in place.scope.variables:
            # It was resolved where it was written: nothing in it depends on this scope.
            return self.node(place.scope.variables[tp], TypePlace(place.scope._replace(variables={}), place.path))
        if getattr(tp, "has_default", bool)():
            return self.node(tp.__default__, place)
        if tp.__constraints__:
            return self._union(tp, tp.__constraints__, place)
        if tp.__bound__ is None:
            self.fail(place, f"found the type variable {tp.__name__}; write a type in its place, as in Page[int]")
        return self.node(tp.__bound__, place)

    def _alias(self, alias: Any, args: tuple[Any, ...], place: TypePlace) -> DerivedType:
        arguments = tuple(self._argument(arg, place) for arg in args)
        module = sys.modules.get(alias.__module__)
        variables = dict(zip(alias.__type_params__, arguments, strict=False))
        scope = Scope(vars(module) if module else {}, {alias.__name__: alias}, variables)

        def derive() -> DerivedType:
            return self.node(alias.__value__, TypePlace(scope, place.path))

        return self._named((alias, arguments), alias.__name__, place, derive)

    # Composites: each takes the type, its arguments and its place

    def _self(self, tp: Any, args: tuple[Any, ...], place: TypePlace) -> DerivedType:  # noqa: ARG002 - as the others
        if place.scope.itself is None:
            self.fail(place, "found Self outside of a class; write the name of the class")
        return self._class(*place.scope.itself, place)

    def _union(self, tp: Any, args: Sequence[Any], place: TypePlace) -> DerivedType:
        if not args:
            self.fail(place, f"found {tp!r} without types; write them: int | str")
        options = [self.node(arg, place) for arg in args]
        schemas: list[Json] = []
        for option in options:
            if option.schema not in schemas:
                schemas.append(option.schema)
        build = structure.build_union(options, self._check)
        return DerivedType(schemas[0] if len(schemas) == 1 else {"anyOf": schemas}, build)

    def _literal(self, tp: Any, args: tuple[Any, ...], place: TypePlace) -> DerivedType:
        for value in args:
            if not isinstance(value, str | int | enum.Enum | None):
                self.fail(place, f"found {tp!r}; {value!r} has no JSON form, write strings or numbers")
        return self._choice([(value, value) for value in args], place)

    def _choice(self, choices: Iterable[tuple[Any, Any]], place: TypePlace) -> DerivedType:
        """Derive one of some values, each given with what it stands for."""
        plain = [(self._scalar(value, place), member) for value, member in choices]
        values = [value for value, _ in plain]
        kinds = {_JSON_TYPES[type(value)] for value in values}
        schema: Json = {"type": kinds.pop()} if len(kinds) == 1 else {}
        schema |= {"const": values[0]} if len(values) == 1 else {"enum": values}
        is_plain = all(value is member for value, member in plain)
        return DerivedType(schema, None if is_plain else structure.build_choice(plain))

    def _scalar(self, value: Any, place: TypePlace) -> Any:
        try:
            plain = structure.to_plain(value)
        except (TypeError, ValueError):
            plain = ()
        if type(plain) not in _JSON_TYPES:
            self.fail(place, f"found {value!r}, which has no JSON form; give each a string or a number as its value")
        return plain

    def _array(self, tp: Any, args: tuple[Any, ...], place: TypePlace) -> DerivedType:
        make = _COLLECTIONS[get_origin(tp) or tp]
        schema: Json = {"type": "array"}
        item = self.node(args[0], place.inside("[]")) if args else DerivedType({})
        if item.schema:
            schema["items"] = item.schema
        if make is not None:
            schema["uniqueItems"] = True
        return DerivedType(schema, structure.build_items(make, item.build))

    def _tuple(self, tp: Any, args: tuple[Any, ...], place: TypePlace) -> DerivedType:
        if len(args) == 2 and args[1] is Ellipsis:  # noqa: PLR2004 - tuple[int, ...]
            item = self.node(args[0], place.inside("[]"))
            return DerivedType({"type": "array", "items": item.schema}, structure.build_items(tuple, item.build))
        if not args and not isinstance(tp, types.GenericAlias):
            return DerivedType({"type": "array"}, tuple)
        if any(getattr(arg, "__unpacked__", False) for arg in args):
            self.fail(place, f"found {tp!r}; write a tuple of one length, or tuple[..., ...] of one type")
        items = [self.node(arg, place.inside(f"[{index}]")) for index, arg in enumerate(args)]
        schema: Json = {"type": "array"}
        if items:
            schema["prefixItems"] = [item.schema for item in items]
        schema |= {"minItems": len(items), "maxItems": len(items)}
        return DerivedType(schema, structure.build_row([item.build for item in items]))

    def _mapping(self, tp: Any, args: tuple[Any, ...], place: TypePlace) -> DerivedType:
        schema: Json = {"type": "object", "additionalProperties": True}
        if not args:
            return DerivedType(schema)
        key, value = self.node(args[0], place), self.node(args[1], place.inside("*"))
        if key.build is not None or self._types(key.schema) != {"string"}:
            self.fail(place, f"found {tp!r}; a key of JSON is a string, write dict[str, ...]")
        if key.schema != {"type": "string"}:
            schema["propertyNames"] = key.schema
        if value.schema:
            schema["additionalProperties"] = value.schema
        return DerivedType(schema, structure.build_values(value.build))

    _composites: ClassVar[Mapping[Any, Callable[[Any, Any, tuple[Any, ...], TypePlace], DerivedType]]] = {
        **dict.fromkeys(_COLLECTIONS, _array),
        **dict.fromkeys((dict, abc.Mapping, abc.MutableMapping), _mapping),
        **dict.fromkeys((typing.Union, typing.Optional, types.UnionType), _union),
        tuple: _tuple,
        typing.Literal: _literal,
        typing.Any: lambda *_: DerivedType({}),
        typing.LiteralString: lambda *_: DerivedType({"type": "string"}),
        typing.Self: _self,
        None: lambda *_: DerivedType({"type": "null"}),
    }

    # Annotated, and the validators of attrs

    def _annotated(self, tp: Any, place: TypePlace) -> DerivedType:
        schema, build = self.node(tp.__origin__, place)
        for item in tp.__metadata__:
            for word, limit in limits_of(item):
                if not self._narrow(schema, word, limit):
                    self.fail(place, f"found {item!r}, which says nothing about {tp.__origin__!r}; write Schema(...)")
        if text := text_of(tp.__metadata__):
            schema["description"] = text
        for item in tp.__metadata__:
            if isinstance(item, Schema):
                schema |= self._raw(item, place)
        return DerivedType(schema, build)

    def _raw(self, item: Schema, place: TypePlace) -> Json:
        try:
            return {word: structure.to_plain(value) for word, value in item.keywords.items()}
        except (TypeError, ValueError) as error:
            self.fail(place, f"found {item!r}, but {error}; write keywords of JSON Schema")

    def _narrow(self, schema: Json, word: str, limit: Any) -> bool:
        """Put a limit into *schema*; tell whether JSON Schema can say it of this type."""
        kinds = self._types(schema)
        keywords = [keyword for kind, keyword in KEYWORDS[word] if kind in kinds]
        if not keywords or not _is_number(limit):
            return False
        known = {**self.bodies.get(schema.get("$ref", ""), {}), **schema}
        for keyword in keywords:
            tighter = max if "min" in keyword.lower() else min
            schema[keyword] = tighter(known.get(keyword, limit), limit)
        return True

    def _types(self, schema: Json) -> frozenset[str]:
        """Return the JSON types that *schema* lets through."""
        if "$ref" in schema:
            body = self.bodies.get(schema["$ref"])
            return frozenset({"object"}) if body is None else self._types(body)
        if "anyOf" in schema:
            return frozenset().union(*(self._types(option) for option in schema["anyOf"]))
        kind = schema.get("type", _EVERY_TYPE)
        return frozenset({kind}) if isinstance(kind, str) else frozenset(kind)

    def _apply_validator(self, schema: Json, validator: Any) -> None:
        """Put into *schema* what a validator of attrs checks; what can't be said is checked when the value is made."""
        for word, limit in checks_of(validator):
            if word in KEYWORDS:
                self._narrow(schema, word, limit)
            elif word == "pattern" and "string" in self._types(schema):
                schema.setdefault("pattern", limit)
            elif word == "options" and not {"enum", "const", "$ref", "anyOf"} & schema.keys():
                self._restrict(schema, limit)

    def _restrict(self, schema: Json, options: Iterable[Any]) -> None:
        try:
            values = structure.to_plain(options if isinstance(options, abc.Set) else list(options))
        except (TypeError, ValueError):
            return
        schema["enum"] = values

    # Classes

    def _class(self, cls: type, args: tuple[Any, ...], place: TypePlace) -> DerivedType:
        if (own := cls.__dict__.get("__output_schema__")) is not None:
            return self._returned_only(cls, own, place)
        if issubclass(cls, enum.Enum):
            return self._named(cls, cls.__name__, place, lambda: self._enum(cls, place), is_class=True, is_built=True)
        if callable(getattr(cls, "model_json_schema", None)):
            return self._named(cls, cls.__name__, place, lambda: self._model(cls), is_class=True, is_built=True)
        read = next((read for applies, read in CLASSES if applies(cls)), None)
        if read is None:
            self._refuse(cls, place)
        if inspect.isabstract(cls):
            self.fail(place, f"found {cls.__name__!r}, which is abstract; write the classes that can be made: A | B")
        arguments = tuple(self._argument(arg, place) for arg in args)
        make = None if read is typed_dict_members else cls

        def derive() -> DerivedType:
            docs = read_class(cls)
            members = read(self, cls, Origins(cls, arguments, place.scope), place)
            return self.members(members, docs.parameters, place, make=make, description=docs.description)

        name = name_of(cls, arguments)
        return self._named((cls, arguments), name, place, derive, is_class=True, is_built=make is not None)

    def _returned_only(self, cls: type, schema: Json, place: TypePlace) -> DerivedType:
        """Take over the schema of a class that results are made of and that nobody makes from JSON."""
        if not self.is_output:
            self.fail(place, f"found {cls.__name__!r}, which a tool returns and does not take; write bytes or str")
        return DerivedType({**schema})

    def _enum(self, cls: type[enum.Enum], place: TypePlace) -> DerivedType:
        if issubclass(cls, enum.Flag) or not len(cls):
            self.fail(place, f"found {cls.__name__!r}, whose values can't be listed; write an Enum with members")
        node = self._choice([(member.value, member) for member in cls], place)
        if text := read_class(cls).description:
            node.schema["description"] = text
        return node

    def _model(self, cls: Any) -> DerivedType:
        """Take over the schema of a pydantic model, with its definitions."""
        schema = cls.model_json_schema(mode="serialization" if self.is_output else "validation")
        definitions = schema.pop("$defs", {})
        refs = {f"{_DEFINITIONS}{name}": f"{_DEFINITIONS}{name}@{len(self._entries)}" for name in definitions}
        for name, body in definitions.items():
            ref = refs[f"{_DEFINITIONS}{name}"]
            node = DerivedType(adopted(body, refs))
            self._entries[cls, name] = NamedType(name, ref, 0, is_class=True, is_built=False, node=node)
            self.bodies[ref] = node.schema
        return DerivedType(adopted(schema, refs), structure.build_model(cls))

    def members(
        self,
        members: Iterable[Field],
        docs: Mapping[str, str],
        place: TypePlace,
        *,
        make: Callable[..., Any] | None = None,
        description: str = "",
    ) -> DerivedType:
        """Derive a closed object of *members*."""
        properties: Json = {}
        required, builders = [], {}
        for member in members:
            if type(member.type) is type and (simple := SIMPLE.get(member.type)) is not None:
                schema, build = {**simple.schema}, simple.build
            else:
                schema, build = self._member(member, TypePlace(member.scope, (*place.path, member.name)))
            self._complete(schema, member, docs)
            properties[member.name] = schema
            if member.required:
                required.append(member.name)
            if build is not None:
                builders[member.name] = build
        schema = {"type": "object", "properties": properties}
        if description:
            schema["description"] = description
        if required:
            schema["required"] = required
        schema["additionalProperties"] = False
        return DerivedType(schema, structure.build_object(make, builders))

    def _member(self, member: Field, place: TypePlace) -> DerivedType:
        if member.type is MISSING:
            self.fail(place, f"has no annotation; write its type, such as {member.name}: str")
        return self.node(member.type, place)

    def _complete(self, schema: Json, member: Field, docs: Mapping[str, str]) -> None:
        """Add to a member's schema what its validator, its documentation and its default say."""
        if member.validator is not None:
            self._apply_validator(schema, member.validator)
        if "description" not in schema:
            text = docs.get(member.name) or docs.get(member.documented_as)
            if text:
                schema["description"] = text
        if member.default is not MISSING:
            try:
                default = structure.to_plain(member.default)
                if schema.get("type") == "number":
                    float(default)
            except (TypeError, ValueError, OverflowError, AttributeError, RecursionError):
                return
            if self._is_plainly(schema, default) or self._check(schema)(default):
                schema["default"] = default

    def _is_plainly(self, schema: Json, value: Any) -> bool:
        """Tell whether *value* fits as is plain to see: most defaults do, and a check takes time to be made."""
        return schema.get("type") == _JSON_TYPES.get(type(value)) and schema.keys() <= {"type", "description"}

    def _check(self, schema: Json) -> Callable[[Any], bool]:
        """Return the check of a schema that was derived; of a class that is not derived yet any object will do."""
        known = {entry.ref: self.bodies.get(entry.ref, {"type": "object"}) for entry in self._entries.values()}
        definitions = {ref.removeprefix(_DEFINITIONS): body for ref, body in known.items()}
        return check_of({**schema, "$defs": definitions} if definitions else schema)

    # Definitions

    def _named(
        self,
        key: Any,
        name: str,
        place: TypePlace,
        derive: Callable[[], DerivedType],
        *,
        is_class: bool = False,
        is_built: bool = False,
    ) -> DerivedType:
        """Derive a class or alias once; what comes again, or contains itself, is a reference to it."""
        try:
            entry = self._entries.get(key)
        except TypeError:  # Annotated with something that can't be hashed
            key = repr(key)
            entry = self._entries.get(key)
        if entry is None:
            ref = f"{_DEFINITIONS}{len(self._entries)}"
            built = is_built or key in self._known_to_build
            entry = NamedType(name, ref, len(place.path), is_class=is_class, is_built=built)
            self._entries[key] = entry
            entry.node = derive()
            self.bodies[ref] = entry.node.schema
            if entry.is_recursive and entry.node.build is not None and not built:
                self._misjudged.add(key)
        elif entry.node is None:
            if entry.depth == len(place.path):
                self.fail(place, f"{entry.name} stands for itself; put itself into a list, a dict or a class")
            entry.is_recursive = True
            return DerivedType({"$ref": entry.ref}, entry.build if entry.is_built else None)
        return DerivedType({"$ref": entry.ref}, entry.node.build)

    def _assembled(self, schema: Json) -> Json:
        """Return *schema* with references only to what is used again, and those defined."""
        if not self._entries:
            return schema
        uses: Counter[str] = Counter()
        self._count(schema, uses)
        entries = {entry.ref: entry for entry in self._entries.values()}
        again = [entries[ref] for ref in uses if uses[ref] > 1 and (entries[ref].is_class or entries[ref].is_recursive)]
        names = distinct_names(again)
        whole = self._expanded(schema, names)
        if names:
            whole["$defs"] = {name: self._expanded(self.bodies[ref], names) for ref, name in names.items()}
        return whole

    def _count(self, schema: Json, uses: Counter[str]) -> None:
        ref = schema.get("$ref")
        if ref in self.bodies:
            uses[ref] += 1
            if uses[ref] == 1:
                self._count(self.bodies[ref], uses)
        for inner in subschemas(schema):
            self._count(inner, uses)

    def _expanded(self, schema: Json, names: Mapping[str, str], inside: frozenset[str] = frozenset()) -> Json:
        self._count_type()
        ref = schema.get("$ref")
        if ref in self.bodies:
            beside = {word: value for word, value in schema.items() if word != "$ref"}
            if ref in names and (ref in inside or beside.keys() <= ANNOTATIONS):
                return {"$ref": f"{_DEFINITIONS}{names[ref]}", **beside}
            return self._expanded({**self.bodies[ref], **beside}, names, inside | {ref})
        return mapped(schema, lambda inner: self._expanded(inner, names, inside))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value - value == 0


# Tables


def _parsed(parse: Callable[[str], Any], expected: str, **keywords: Any) -> DerivedType:
    return DerivedType({"type": "string", **keywords}, structure.build_scalar(parse, expected))


SIMPLE: Mapping[Any, DerivedType] = {
    str: DerivedType({"type": "string"}),
    int: DerivedType({"type": "integer"}),
    float: DerivedType({"type": "number"}, structure.build_scalar(float, "a number that is not too large")),
    bool: DerivedType({"type": "boolean"}),
    type(None): DerivedType({"type": "null"}),
    object: DerivedType({}),
    bytes: _parsed(structure.parse_bytes, "base64", contentEncoding="base64"),
    dt.datetime: _parsed(structure.parse_datetime, "a date and time such as 2026-01-31T09:30:00Z", format="date-time"),
    dt.date: _parsed(dt.date.fromisoformat, "a date such as 2026-01-31", format="date"),
    dt.time: _parsed(structure.parse_time, "a time such as 09:30:00Z", format="time"),
    dt.timedelta: _parsed(
        structure.parse_duration, "a duration in weeks, days or less, such as P1DT12H", format="duration"
    ),
    uuid.UUID: _parsed(uuid.UUID, "a UUID", format="uuid"),
    Decimal: _parsed(Decimal, "a decimal number", pattern=_DECIMAL),
    Path: _parsed(Path, "a path"),
    PurePath: _parsed(PurePath, "a path"),
}

_QUALIFIERS = frozenset({"Required", "NotRequired", "ReadOnly", "Final"})

_INSTEAD: tuple[tuple[tuple[Any, ...], str], ...] = (
    ((abc.Callable, types.FunctionType), "a Literal of names, and look the function up"),
    ((type,), "a Literal or an Enum of names, and look the class up"),
    ((types.ModuleType,), "a type of that module"),
    ((abc.Iterator, abc.Generator, abc.AsyncIterator, abc.AsyncGenerator, abc.AsyncIterable), "list[...]"),
)

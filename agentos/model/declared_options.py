"""What a pack declares of its options: checked when it is loaded, completed for it, and shown to operators."""

import sys
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

import attrs

from agentos.errors import DescriptorError, OptionsError, Problem, ToolDefinitionError
from agentos.model.option_reading import read_options, spellings_of
from agentos.model.parsing import camel, load_schema, mistakes, plain
from agentos.schema.build import to_plain
from agentos.schema.derive import Deriver
from agentos.schema.docs import read_class
from agentos.schema.fields import CLASSES, Origins
from agentos.schema.scopes import Field, Scope, TypePlace
from agentos.schema.validation import BadArguments, Checker, compile_schema

_OPENERS = {"additionalProperties", "unevaluatedProperties", "$ref", "allOf", "anyOf", "oneOf", "patternProperties"}


class PackOptions(Protocol):
    """The options of one pack."""

    @property
    def schema(self) -> Mapping[str, Any]:
        """Return them as JSON Schema, in the spelling of files."""
        ...

    def problems(self, given: Mapping[str, Any], place: str = "options") -> list[Problem]:
        """Say what is wrong with what was *given* at *place*: unknown names, wrong values, what is missing."""
        ...

    def spelled(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return what was *given* with every name as the pack reads it."""
        ...

    def filled(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return what was *given*, in which nothing is wrong, with defaults, and with names as the pack reads them."""
        ...


def fault_of_options(declared: object) -> str | None:
    """Say what keeps *declared* from declaring options; None if nothing does."""
    if declared is None or isinstance(declared, Mapping | ToldOptions):
        return None
    if isinstance(declared, type) and attrs.has(declared):
        return None
    return f"expected an attrs class or a JSON Schema, got {declared!r}"


def as_pack_options(declared: Any) -> PackOptions | None:
    """Return what *declared*, an attrs class or a JSON Schema, says of options; None if nothing is declared."""
    if declared is None or isinstance(declared, ToldOptions):
        return declared
    return _SchemaOptions.of(declared) if isinstance(declared, Mapping) else _ClassOptions(declared)


# -- an attrs class ------------------------------------------------------------------------------------------------


@attrs.frozen
class _ClassOptions:
    """Options that an attrs class declares. The pack reads them by the names of its fields."""

    cls: type[Any]

    def problems(self, given: Mapping[str, Any], place: str = "options") -> list[Problem]:
        try:
            read_options(self.cls, given, place=place)
        except OptionsError as error:
            return list(error.problems)
        return []

    def spelled(self, given: Mapping[str, Any]) -> dict[str, Any]:
        names = spellings_of(field.alias for field in attrs.fields(self.cls) if field.init)
        return {names.get(key, key): value for key, value in given.items()}

    def filled(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Complete *given* with defaults as a file would say them; what no file can say is left out."""
        made = read_options(self.cls, given)
        filled: dict[str, Any] = {}
        for field in attrs.fields(self.cls):
            if field.init:
                try:
                    filled[str(field.alias)] = to_plain(getattr(made, field.name))
                except (TypeError, ValueError):
                    continue
        return {**filled, **self.spelled(given)}

    @property
    def schema(self) -> Mapping[str, Any]:
        read = next(read for applies, read in CLASSES if applies(self.cls))
        scope = Scope(vars(sys.modules[self.cls.__module__]))
        members = list(read(None, self.cls, Origins(self.cls, (), scope), TypePlace(scope)))
        docs = read_class(self.cls).parameters
        derived = {camel(one.name): _as_in_files(_derived(one, docs)) for one in members}
        definitions = {name: body for one in derived.values() for name, body in one.pop("$defs", {}).items()}
        schema: dict[str, Any] = {"type": "object", "properties": derived, "additionalProperties": False}
        schema |= {"required": required} if (required := [camel(one.name) for one in members if one.required]) else {}
        return {**schema, "$defs": definitions} if definitions else schema


def _derived(member: Field, docs: Mapping[str, str]) -> dict[str, Any]:
    """Return the schema of one option; of one that no file can say, such as a function, only that it is there."""
    deriver = Deriver("options")
    try:
        whole = deriver.run(lambda: deriver.members([member], docs, TypePlace(member.scope))).schema
    except ToolDefinitionError:
        return {"description": docs.get(member.name, "Only from Python.")}
    definitions = {"$defs": whole["$defs"]} if "$defs" in whole else {}
    return {**whole["properties"][member.name], **definitions}


def _as_in_files(schema: Any) -> Any:
    """Return a derived schema with the keys of objects as files spell them."""
    if isinstance(schema, list):
        return [_as_in_files(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: value if key in ("default", "enum", "const") else _as_in_files(value) for key, value in schema.items()}
    if isinstance(properties := made.get("properties"), dict) and made.get("type") == "object":
        made["properties"] = {camel(name): value for name, value in properties.items()}
        made |= {"required": [camel(name) for name in made["required"]]} if "required" in made else {}
    return made


# -- a JSON Schema -------------------------------------------------------------------------------------------------


@attrs.frozen
class _SchemaOptions:
    """Options that a JSON Schema declares. The pack reads them as the schema spells them."""

    schema: Mapping[str, Any]
    _validator: Any = attrs.field(repr=False)
    _checker: Checker = attrs.field(repr=False)

    @classmethod
    def of(cls, declared: Mapping[str, Any]) -> "_SchemaOptions":
        """Take a schema; one that lists properties is closed unless it says otherwise."""
        schema = dict(declared)
        if "properties" in schema and not (_OPENERS & schema.keys()):
            schema["additionalProperties"] = False
        try:
            return cls(schema, compile_schema(schema, "the schema of the options"), Checker(schema, "the options"))
        except ToolDefinitionError as error:
            raise DescriptorError(f"ExtensionPack.options: {error}") from None

    def problems(self, given: Mapping[str, Any], place: str = "options") -> list[Problem]:
        found = mistakes(plain(given, place), self._validator, self.schema)
        return [Problem(_inside(place, one.path), one.message) for one in found]

    def spelled(self, given: Mapping[str, Any]) -> dict[str, Any]:
        return dict(given)

    def filled(self, given: Mapping[str, Any]) -> dict[str, Any]:
        try:
            return self._checker.arguments(given)
        except BadArguments:  # what a host gave from Python and JSON does not know
            return dict(given)


# -- a class in another process ------------------------------------------------------------------------------------


@attrs.frozen
class ToldOptions:
    """Options that a class declares in the process of its pack, as that process told them for those of an entry."""

    schema: Mapping[str, Any]
    spellings: Mapping[str, str]
    given: Mapping[str, Any] = attrs.field(repr=False)
    """In which nothing was wrong."""
    completed: Mapping[str, Any] = attrs.field(repr=False)

    @classmethod
    def of(cls, declared: type[Any], given: Mapping[str, Any]) -> "ToldOptions":
        """Return what is told of a class; raise OptionsError if something is wrong with what was *given*."""
        options = _ClassOptions(declared)
        if problems := options.problems(given):
            raise OptionsError(problems)
        names = spellings_of(str(field.alias) for field in attrs.fields(declared) if field.init)
        return cls(options.schema, names, dict(given), options.filled(given))

    def problems(self, given: Mapping[str, Any], place: str = "options") -> list[Problem]:
        """Say what is wrong as far as the schema tells; what the pack's process has checked is not checked again."""
        known = self.spelled(self.given)
        rest = {name: value for name, value in self.spelled(given).items() if name not in known or known[name] != value}
        as_in_files = {camel(name): value for name, value in {**known, **rest}.items()}
        return _SchemaOptions.of(self.schema).problems(as_in_files, place) if rest else []

    def spelled(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return what was *given* with every name as the pack reads it."""
        return {self.spellings.get(key, key): value for key, value in given.items()}

    def filled(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return what was *given* with the defaults that the pack's process told."""
        return {**self.completed, **self.spelled(given)}


def _inside(place: str, path: str) -> str:
    if not path:
        return place
    return f"{place}{path}" if path.startswith("[") else f"{place}.{path}"


def curated_options(package: str) -> Mapping[str, Any] | None:
    """Return what the manifest's schema says of the options of a curated pack; None if *package* is not curated."""
    for one in load_schema("manifest")["$defs"]["pack"]["allOf"]:
        if one["if"]["properties"]["package"]["const"] == package:
            taken = one["then"]["properties"]["options"]
            return {**taken, "properties": {key: said for key, said in taken["properties"].items() if key != "secrets"}}
    return None


def option_rows(schema: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    """Yield a row for each option that a schema lists: name, type, default, whether it is required, description."""
    required = schema.get("required", ())
    for name, said in schema.get("properties", {}).items():
        known = said if isinstance(said, Mapping) else {}
        yield {
            "name": name,
            "type": _type_words(known),
            "required": name in required,
            "default": known.get("default"),
            "description": known.get("description", ""),
        }


def _type_words(schema: Mapping[str, Any]) -> str:
    if isinstance(choices := schema.get("enum"), list):
        return " | ".join(map(repr, choices))
    if isinstance(kinds := schema.get("type"), list):
        return " | ".join(map(str, kinds))
    arms = schema.get("anyOf") or schema.get("oneOf") or ()
    return str(kinds or " | ".join(_type_words(one) for one in arms if isinstance(one, Mapping)) or "any")

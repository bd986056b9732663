"""What lint rules see: a tool read once into plain values, so that a rule need not mistrust what a pack brought."""

from collections.abc import Iterator, Mapping
from typing import Any, Literal

import attrs

from agentos.base.foreign import Border
from agentos.errors import AgentOSError
from agentos.schema.references import resolved
from agentos.schema.validation import compile_schema, to_plain_json
from agentos.tools.lint.display_fit import faults_of_display
from agentos.tools.tool import Tool, as_tool, looks_like_tool

Severity = Literal["error", "warning", "info"]
Remark = tuple[Severity, str, str, str]
Json = dict[str, Any]


@attrs.frozen(kw_only=True)
class Subject:
    """A tool as the rules see it: what could be read of it. What is missing, or of no use, is empty or None."""

    place: str
    is_tool: bool = True
    name: str = ""
    description: str = ""
    system_prompt: str = ""
    schema: Json | None = None
    """The input schema, if it can be compiled."""
    spots: "tuple[Spot, ...]" = ()
    """Every place of the input schema."""
    effect: str | None = None
    aliases: tuple[str, ...] = ()
    timeout: float | None = None
    is_async: bool | None = None
    has_dry_run: bool = False
    display_faults: tuple[str, ...] = ()
    """What its display names that is in none of its schemas."""
    missing: tuple[str, ...] = ()
    fault: str = ""
    """Why it is no tool, or can't be registered as one."""
    cure: str = ""

    def at(self, spot: "Spot") -> str:
        """Name a place in the input schema as errors do: `pack:tool(parameter)`."""
        return f"{self.place}({spot.path})" if spot.path else self.place


@attrs.frozen(kw_only=True)
class Spot:
    """One place of an input schema."""

    schema: Json
    path: str = ""
    parameter: str = ""
    """The name of the property that this is, or is a part of."""
    is_parameter: bool = False
    is_part: bool = False
    """Whether it is one side of a composition, such as `allOf`: closing it alone would close the whole."""
    text: str = ""
    """What is said about it, here, where it refers to, and by what it is an item or a variant of."""

    @property
    def is_object(self) -> bool:
        """Tell whether it describes objects itself, and does not leave that to variants."""
        kind = self.schema.get("type")
        if "properties" in self.schema:
            return True
        return (kind == "object" or (isinstance(kind, list) and "object" in kind)) and not self.is_choice

    @property
    def is_choice(self) -> bool:
        """Tell whether what it takes is said by what it refers to, or by its variants."""
        return bool(self.schema.keys() & {"$ref", "anyOf", "oneOf"})

    @property
    def is_closed(self) -> bool:
        """Tell whether it refuses keys that it does not name."""
        return any(self.schema.get(word) is False for word in ("additionalProperties", "unevaluatedProperties"))

    @property
    def is_typed_map(self) -> bool:
        """Tell whether its keys are data and its values described."""
        return bool(_as_schema(self.schema.get("additionalProperties"))) and "properties" not in self.schema


def subject(payload: object, place: str) -> Subject:
    """Read a payload; nothing it does while it is read gets out."""
    with Border() as border:  # a foreign object's properties are foreign code
        return _read(payload, place)
    fault = f"reading it raised {type(border.error).__name__}"
    return Subject(place=place, is_tool=False, fault=fault, cure="make its parts plain attributes")


def _read(payload: object, place: str) -> Subject:
    if isinstance(payload, type) or not looks_like_tool(payload):
        fault = f"a {type(payload).__name__} is no tool: it is never offered and can't be called"
        cure = "put @tool on the function" if callable(payload) else "use Tool.from_schema, or another kind"
        return Subject(place=place, is_tool=False, fault=fault, cure=cure)
    missing = tuple(part for part in _PARTS if getattr(payload, part, None) is None)
    tool, fault = payload, ""
    try:
        tool = as_tool(payload) or payload
    except (AgentOSError, TypeError, ValueError) as error:
        fault = str(error)
    unusable = _fault_of_schema(tool, "input_schema")
    schema = None if unusable else _plain_schema(tool)
    return Subject(
        place=place,
        name=_text(tool, "name"),
        description=_text(tool, "description"),
        system_prompt=_text(tool, "system_prompt"),
        schema=schema,
        spots=() if schema is None else tuple(_walk(Spot(schema=schema), schema)),
        effect=_text(tool, "effect") or None,
        aliases=_aliases(tool),
        timeout=getattr(tool, "timeout", None),
        is_async=tool.is_async if isinstance(tool, Tool) else None,
        has_dry_run=getattr(tool, "dry_run", None) is not None,
        display_faults=tuple(faults_of_display(tool)) if isinstance(tool, Tool) and not unusable else (),
        missing=missing,
        fault=fault or unusable or _fault_of_schema(tool, "output_schema"),
    )


_PARTS = ("description", "input_schema", "effect", "required_access")


def _text(tool: object, part: str) -> str:
    value = getattr(tool, part, "")
    return str.__str__(value) if isinstance(value, str) else ""


def _aliases(tool: object) -> tuple[str, ...]:
    value = getattr(tool, "aliases", ())
    return tuple(str.__str__(one) for one in value if isinstance(one, str)) if isinstance(value, tuple | list) else ()


def _plain_schema(tool: object) -> Json | None:
    schema = getattr(tool, "input_schema", None)
    return to_plain_json(schema) if isinstance(schema, Mapping) else None


def _fault_of_schema(tool: object, part: str) -> str:
    schema = getattr(tool, part, None)
    try:
        compile_schema({} if schema is None else schema, f"the {part.replace('_', ' ')}")
    except AgentOSError as error:
        return str(error)
    return ""


def _walk(spot: Spot, root: Json) -> Iterator[Spot]:
    """List *spot* and what it is made of.

    References are not followed: what they name is listed under `$defs`. Conditions (`if`, `not`) describe nothing new.
    """
    texts = dict.fromkeys((spot.text, said(spot.schema), said(resolved(spot.schema, root))))
    here = attrs.evolve(spot, text=" ".join(filter(None, texts)))
    yield here
    for inside in _inside(here):
        yield from _walk(inside, root)


def _inside(spot: Spot) -> Iterator[Spot]:
    schema = spot.schema
    for name, inner in _named(schema, "properties"):
        path = f"{spot.path}.{visible(name)}" if spot.path else visible(name)
        yield Spot(schema=inner, path=path, parameter=name, is_parameter=True)
    for word in ("anyOf", "oneOf", "allOf"):
        for inner in each(schema.get(word)):
            is_part = spot.is_part or word == "allOf" or "properties" in schema
            yield attrs.evolve(spot, schema=inner, is_parameter=False, is_part=is_part)
    for word in ("items", "prefixItems", "additionalItems", "unevaluatedItems"):
        for inner in each(schema.get(word)):
            yield attrs.evolve(spot, schema=inner, path=f"{spot.path}[]", is_parameter=False, is_part=False)
    for word in ("additionalProperties", "unevaluatedProperties", "patternProperties"):
        inners = schema.get(word) if word != "patternProperties" else [inner for _, inner in _named(schema, word)]
        for inner in each(inners):
            yield attrs.evolve(spot, schema=inner, path=f"{spot.path}.*", is_parameter=False, is_part=False)
    for word in ("$defs", "definitions"):
        for name, inner in _named(schema, word):
            yield Spot(schema=inner, path=f"{word}.{visible(name)}")


def _named(schema: Json, word: str) -> Iterator[tuple[str, Json]]:
    inner = schema.get(word)
    if isinstance(inner, dict):
        yield from ((name, one) for name, one in inner.items() if isinstance(one, dict))


def each(value: object) -> list[Json]:
    """Return the objects in *value*, which is one or a list of them."""
    return [one for one in (value if isinstance(value, list) else [value]) if isinstance(one, dict)]


def _as_schema(value: object) -> Json:
    return value if isinstance(value, dict) else {}


def said(schema: Json) -> str:
    """Return the description of *schema*; empty if it has none."""
    text = schema.get("description")
    return text if isinstance(text, str) else ""


def visible(name: str) -> str:
    """Return *name* with characters that can't be seen written out."""
    return name if name.isprintable() else ascii(name)[1:-1]


def clip(text: str) -> str:
    """Show the beginning of a text; what can't be seen is escaped."""
    return repr(text) if len(text) <= _SHOWN else f"{repr(text[:_SHOWN])[:-1]}...'"


_SHOWN = 60

"""How the arguments of an operation become a request: which goes where, and the schema that they all fit."""

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

import attrs

from agentos.openapi.document_parts import text
from agentos.openapi.json_schemas import Converted, Schemas, Use
from agentos.schema.build import Json

BodyKind = Literal["json", "form", "multipart", "text", "file"]

_MEDIA = re.compile(r"[a-z0-9!#$&^_.+-]+/[a-z0-9!#$&^_.+-]+")
_KEY = re.compile(r"[A-Za-z0-9_.-]{1,64}")
"""Names of arguments that every provider takes; a single other name costs a whole request."""
_HEAD = 56


@attrs.frozen
class OperationParameter:
    """One parameter: the argument that fills it, and where and how it is written."""

    argument: str
    name: str
    place: str
    style: str
    explode: bool
    is_json: bool


@attrs.frozen
class Body:
    """The body: one argument is all of it, or each of its members has one."""

    kind: BodyKind
    media: str
    is_required: bool
    argument: str | None = None
    members: Mapping[str, str] = attrs.field(factory=dict)
    """The name of each member, by its argument."""
    styles: Mapping[str, tuple[str, bool]] = attrs.field(factory=dict)
    """How members of a form are written, by their names: style, explode."""
    files: Mapping[str, str] = attrs.field(factory=dict)
    """The media types of those members of a form that are files, by their names."""


Segment = tuple[str | OperationParameter, ...]
"""A part of the path between two slashes: text, and parameters in it."""


@attrs.frozen(eq=False)
class RequestPlan:
    """How arguments become a request."""

    input_schema: Json
    segments: tuple[Segment, ...]
    parameters: tuple[OperationParameter, ...]
    body: Body | None
    taken: frozenset[str]
    """The names in the query that have a meaning of their own: no key of an argument may become one of them."""


class Arguments:
    """What an operation takes, while it is read; `where` names the operation in what is refused."""

    def __init__(self, schemas: Schemas, where: str) -> None:
        self.where = where
        self._schemas = schemas
        self._properties: Json = {}
        self._required: list[str] = []
        self._uses: list[Use] = []
        self._rules: Json = {}

    def __contains__(self, argument: str) -> bool:
        return argument in self._properties

    def convert(self, schema: Any) -> Converted:
        """Convert a schema of what is sent."""
        return self._schemas.convert(schema, self.where, is_input=True)

    def described(self, raw: Json) -> Converted:
        """Convert the schema of a parameter or a body, with what is said of it beside its schema."""
        schema, uses = self.convert(raw.get("schema", {}))
        made = as_mapping(schema)
        words = [text(raw.get("description")), text(made.get("description"))]
        if said := " ".join(dict.fromkeys(filter(None, words))):
            made["description"] = said
        if raw.get("deprecated") is True:
            made["deprecated"] = True
        return Converted(made, uses)

    def add(self, argument: str, converted: Converted, *, is_required: bool) -> None:
        """Take an argument up."""
        self._properties[argument] = as_mapping(converted.schema)
        self.use(converted.uses)
        if is_required:
            self._required.append(argument)

    def use(self, uses: Iterable[Use]) -> None:
        """Note which definitions are needed."""
        self._uses += uses

    def need_together(self, members: Mapping[str, str], needed: list[str]) -> None:
        """Say that whoever gives one of *members* gives what is *needed*."""
        rules = {each: [one for one in needed if one != each] for each in members}
        self._rules["dependentRequired"] = {each: others for each, others in rules.items() if others}

    def free(self, name: str, place: str) -> str:
        """Return a name for an argument that no other has."""
        return next(each for each in _candidates(name, place) if each not in self)

    def schema(self) -> Json:
        """Return the schema of all arguments."""
        required = {"required": self._required} if self._required else {}
        made = {"type": "object", "properties": self._properties, **required, "additionalProperties": False}
        return self._schemas.complete({**made, **self._rules}, self._uses, self.where, is_input=True)


def as_mapping(schema: Any) -> Json:
    """Return a copy of a schema as a mapping; true and false are schemas too."""
    if isinstance(schema, bool):
        return {} if schema else {"not": {}}
    return dict(schema)


def safe_name(name: str, otherwise: str) -> str:
    """Return *name* if every provider takes it as that of an argument, else what can be kept of it."""
    if _KEY.fullmatch(name):
        return name
    return re.sub(r"[^A-Za-z0-9_.-]+", "_", name).strip("_")[:_HEAD] or otherwise


def _candidates(name: str, place: str) -> Iterator[str]:
    yield (safe := safe_name(name, place))
    longer = f"{place}_{safe}"[:_HEAD]
    yield longer
    yield from (f"{longer}_{number}" for number in itertools.count(2))


def base_of(media: str) -> str:
    """Return a media type without its parameters."""
    return media.partition(";")[0].strip().lower()


def is_json(media: str) -> bool:
    """Tell whether a media type is JSON, of whatever flavour."""
    base = base_of(media)
    return base == "application/json" or (base.endswith("+json") and _MEDIA.fullmatch(base) is not None)

"""The fields of a form: what the templates draw of a schema and of what was entered."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

import attrs

from agentos.errors import Problem
from agentos.schema.explain import TO_CALLERS
from agentos.studio.forms.form_entries import (
    ABSENT,
    BLANK,
    ROOT,
    EnteredObject,
    Row,
    Unreadable,
    drawn_value,
    plain_of,
    step_name,
)
from agentos.studio.forms.form_shapes import (
    ITEM_LIMIT,
    JSON_SHAPE,
    Shape,
    ShapeKind,
    exactly,
    flattened,
    is_date,
    is_key,
)

FIELD_COUNT = 2_000
"""How many fields a form has; what would be more is raw JSON."""
DRAWN_DEPTH = 24
_SHOWN = 200
_LONG = 60
_HINTS = {
    "minimum": "at least {}",
    "maximum": "at most {}",
    "exclusiveMinimum": "more than {}",
    "exclusiveMaximum": "less than {}",
    "multipleOf": "a multiple of {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
    "pattern": "fits {}",
    "format": "format {}",
}

Control = Literal["none", "line", "area", "date", "select", "hidden", "object", "array", "json"]
Parts = tuple[str | int, ...]


@attrs.frozen
class FieldOption:
    """A line of a list to choose from."""

    value: str
    label: str


@attrs.frozen(kw_only=True)
class FormField:
    """A place of a form: what stands there, how it is drawn, and what is wrong with it."""

    name: str
    path: str
    label: str
    description: str = ""
    is_required: bool = True
    control: Control
    kind: ShapeKind | None = None
    """The kind of the shape that it is drawn as; None where nothing is."""
    value: str = attrs.field(default="", repr=False)
    options: tuple[FieldOption, ...] = ()
    shapes: tuple[FieldOption, ...] = ()
    """What it may be drawn as, where there is a choice."""
    shape: str | None = None
    """Which of these it is drawn as, where that has to be said."""
    is_on: bool = False
    """An empty text is there, and not left out."""
    can_be_empty: bool = False
    """It is a text: whether an empty one is sent has to be said, so that none is by mistake."""
    default: str = ""
    hints: tuple[str, ...] = ()
    key: str | None = None
    """The name of a member that the schema does not name: people write it themselves."""
    can_add: bool = False
    can_remove: bool = False
    fields: "tuple[FormField, ...]" = ()
    problems: tuple[str, ...] = ()

    def walk(self) -> "Iterator[FormField]":
        """Yield it and all fields in it."""
        yield self
        for inner in self.fields:
            yield from inner.walk()


def form_of(schema: Any, values: Any = ABSENT, problems: Iterable[Problem] = (), name: str = ROOT) -> FormField:
    """Return the fields of a form for *schema*, with *values* (JSON, or what was entered) and *problems* in them."""
    drawing = _Drawing(schema)
    root = drawing.field(name, (), schema, BLANK if values is ABSENT else values, _Place(is_required=True), 0)
    return _with_problems(root, [*problems, *drawing.problems])


def controls_of(field: FormField) -> list[tuple[str, str]]:
    """Return the names and values that a page submits of a form that nobody touched."""
    return [pair for one in field.walk() for pair in _submitted(one)]


def _submitted(field: FormField) -> Iterator[tuple[str, str]]:
    if field.shape is not None:
        yield f"{field.name}:is", field.shape
    if field.shapes:
        yield f"{field.name}:kind", field.shape or ""
    if field.key is not None:
        yield f"{field.name}:key", field.key
    if field.control in ("object", "array") or (field.can_be_empty and field.is_on):
        yield f"{field.name}:on", "1"
    if field.control in ("line", "area", "date", "select", "hidden", "json"):
        yield field.name, field.value


@attrs.frozen(kw_only=True)
class _Place:
    """What is known of a place beside its schema."""

    label: str = ""
    is_required: bool = True
    key: str | None = None
    can_remove: bool = False


class _Drawing:
    """Draws the fields of one form, up to its limits."""

    def __init__(self, root: Any) -> None:
        self._root = root
        self._left = FIELD_COUNT
        self.problems: list[Problem] = []

    def field(self, name: str, path: Parts, schema: Any, entry: Any, place: _Place, depth: int) -> FormField:
        """Return the field of a place."""
        self._left -= 1
        shape, value, shapes = drawn_value(entry, schema, self._root)
        if shape is not None and shape.kind in ("object", "array") and (self._left < 0 or depth > DRAWN_DEPTH):
            shape, value = JSON_SHAPE, BLANK if value is BLANK else plain_of(entry)
        flat = flattened(schema, self._root) if shape is None or shape.kind == "json" else shape.schema
        told = flattened(schema, self._root)
        base = FormField(
            name=name,
            path=TO_CALLERS.path(path, "$"),
            label=_text(told.get("title")) or place.label,
            description=_text(told.get("description")) or _text(flat.get("description")),
            is_required=place.is_required,
            control="none",
            kind=None if shape is None else shape.kind,
            default=_default(told),
            hints=tuple(_hints(flat)),
            key=place.key,
            can_remove=place.can_remove,
        )
        return _with_choice(self._filled(base, path, shape, value, depth), shape, shapes)

    def _filled(self, base: FormField, path: Parts, shape: Shape | None, value: Any, depth: int) -> FormField:
        if isinstance(value, Unreadable):
            self.problems.append(Problem(base.path, value.problem))
            value = _Raw(value.text)
        if shape is None:
            return base
        if shape.kind == "object":
            return self._object(base, path, shape, value, depth)
        if shape.kind == "array":
            items = value if isinstance(value, list) else []
            inner = tuple(self._item(base, path, shape, index, one, depth) for index, one in enumerate(items))
            return attrs.evolve(base, control="array", fields=inner, can_add=len(items) < ITEM_LIMIT)
        return _scalar_field(base, shape, value)

    def _object(self, base: FormField, path: Parts, shape: Shape, value: Any, depth: int) -> FormField:
        members, rows = _members(shape, value)
        missing = BLANK if value is BLANK else ABSENT
        fields = []
        for member, schema in shape.members.items():
            place = _Place(label=member, is_required=member in shape.required)
            entry = members.get(member, missing if place.is_required else ABSENT)
            name = step_name(base.name, member)
            fields.append(self.field(name, (*path, member), schema, entry, place, depth + 1))
        rest = {} if shape.rest is False else shape.rest
        for index, row in enumerate(rows):
            place = _Place(label=row.key or "value", key=row.key, can_remove=True)
            name = f"{base.name}/*{index}"
            fields.append(self.field(name, (*path, row.key), rest, row.entry, place, depth + 1))
        return attrs.evolve(base, control="object", fields=tuple(fields), can_add=shape.rest is not False)

    def _item(self, base: FormField, path: Parts, shape: Shape, index: int, entry: Any, depth: int) -> FormField:
        place = _Place(label=f"{base.label} {index + 1}".strip(), can_remove=True)
        return self.field(f"{base.name}/@{index}", (*path, index), shape.item(index), entry, place, depth + 1)


@attrs.frozen
class _Raw:
    """Text that stands in a control although it is no value."""

    text: str


def _members(shape: Shape, value: Any) -> tuple[Mapping[str, Any], list[Row]]:
    """Return what is entered of the members that a schema names, and of the others."""
    if isinstance(value, EnteredObject):
        return value.members, list(value.rows)
    if not isinstance(value, dict):
        return {}, []
    named = shape.members
    others = [Row(name, one) for name, one in value.items() if name not in named and is_key(name)]
    return {name: one for name, one in value.items() if name in named}, others


def _with_choice(field: FormField, shape: Shape | None, shapes: list[Shape]) -> FormField:
    """Return a field with what says how its place is drawn, where it could be drawn in another way, or not at all."""
    is_json = shape is not None and shape.kind == "json"
    if len(shapes) < 2 and not (is_json and shapes):  # noqa: PLR2004 - one shape is no choice
        if shape is None:
            return attrs.evolve(field, can_add=True)
        is_optional_part = not field.is_required and field.control in ("object", "array")
        return attrs.evolve(field, shape="json" if is_json else None, can_remove=field.can_remove or is_optional_part)
    is_open = not field.is_required or shape is None
    options = [FieldOption("", "choose" if field.is_required else "left out")] if is_open else []
    options += [FieldOption(one.key, one.label) for one in shapes]
    options += [FieldOption("json", "JSON")] if is_json else []
    key = "" if shape is None else shape.key
    if shape is not None and (shape.kind == "null" or (shape.kind == "choice" and len(shape.choices) == 1)):
        field = attrs.evolve(field, control="hidden", value="null" if shape.kind == "null" else "0", options=())
    return attrs.evolve(field, shapes=tuple(options), shape=key)


# -- single controls ---------------------------------------------------------------------------------------------------


def _scalar_field(base: FormField, shape: Shape, value: Any) -> FormField:
    match shape.kind:
        case "text":
            return _text_field(base, shape, value)
        case "number" | "integer":
            return attrs.evolve(base, control="line", value=_written(value))
        case "boolean":
            options = (*_none(base), FieldOption("true", "yes"), FieldOption("false", "no"))
            return attrs.evolve(base, control="select", options=options, value=_written(value))
        case "null":
            return _null_field(base, value)
        case "choice":
            return _choice_field(base, shape, value)
        case _:
            return attrs.evolve(base, control="json", value=_json_text(value))


def _written(value: Any) -> str:
    if isinstance(value, _Raw):
        return value.text
    return "" if value in (ABSENT, BLANK) else json.dumps(value)


def _json_text(value: Any) -> str:
    if isinstance(value, _Raw):
        return value.text
    if value in (ABSENT, BLANK):
        return ""
    return json.dumps(value, indent=2, ensure_ascii=True)


def _text_field(base: FormField, shape: Shape, value: Any) -> FormField:
    text = value.text if isinstance(value, _Raw) else value if isinstance(value, str) else ""
    control: Control = "area"
    form, most = shape.schema.get("format"), shape.schema.get("maxLength")
    if form == "date" and (not text or is_date(text)):
        control = "date"
    elif "\n" not in text and (form or "pattern" in shape.schema or (isinstance(most, int) and most <= _LONG)):
        control = "line"
    is_on = isinstance(value, str) and not value
    return attrs.evolve(base, control=control, value=text, is_on=is_on, can_be_empty=True)


def _none(base: FormField) -> tuple[FieldOption, ...]:
    return (FieldOption("", "choose" if base.is_required else "left out"),)


def _null_field(base: FormField, value: Any) -> FormField:
    if base.is_required and value is not ABSENT:
        return attrs.evolve(base, control="hidden", value="null")
    options = (*_none(base), FieldOption("null", "nothing (null)"))
    return attrs.evolve(base, control="select", options=options, value="null" if value is None else "")


def _choice_field(base: FormField, shape: Shape, value: Any) -> FormField:
    choices = [exactly(one) for one in shape.choices]
    labels = [one if isinstance(one, str) else exactly(one) for one in shape.choices]
    is_read = not isinstance(value, _Raw) and value not in (ABSENT, BLANK)
    place = str(choices.index(exactly(value))) if is_read and exactly(value) in choices else ""
    if len(choices) == 1 and base.is_required and value is not ABSENT:
        return attrs.evolve(base, control="hidden", value="0", default=labels[0][:_SHOWN])
    listed = tuple(FieldOption(str(index), label[:_SHOWN] or '""') for index, label in enumerate(labels))
    return attrs.evolve(base, control="select", options=(*_none(base), *listed), value=place)


# -- what is said about it ---------------------------------------------------------------------------------------------


def _text(value: Any) -> str:
    return value[:2_000] if isinstance(value, str) else ""


def _default(flat: Mapping[str, Any]) -> str:
    if "default" not in flat:
        return ""
    value = flat["default"]
    text = value if isinstance(value, str) and value else exactly(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def _hints(flat: Mapping[str, Any]) -> Iterator[str]:
    for word, text in _HINTS.items():
        if isinstance(flat.get(word), str | int | float) and not isinstance(flat[word], bool):
            yield text.format(str(flat[word])[:_SHOWN])


# -- problems ----------------------------------------------------------------------------------------------------------


def _with_problems(root: FormField, problems: Iterable[Problem]) -> FormField:
    """Return the fields with each problem at the one that it is about, or at the nearest around it."""
    fields = list(root.walk())
    told: dict[str, list[str]] = {}
    for problem in dict.fromkeys(problems):
        place = max(
            (one for one in fields if _is_inside(problem.path, one.path)), key=lambda one: len(one.path), default=root
        )
        left = problem.path[len(place.path) :]
        message = f"{left.lstrip('.')}: {problem.message}" if left else problem.message
        told.setdefault(place.name, []).append(message)
    return _told(root, told) if told else root


def _is_inside(path: str, around: str) -> bool:
    return path == around or (path.startswith(around) and path[len(around)] in ".[")


def _told(field: FormField, told: Mapping[str, list[str]]) -> FormField:
    inner = tuple(_told(one, told) for one in field.fields)
    return attrs.evolve(field, fields=inner, problems=tuple(told.get(field.name, ())))

"""What was entered in a form: submitted names and values into a tree of entries, and that into arguments.

A control's name is the path of its place: `a/city`, `a/stops/@0`, `a/more/*0`. Beside it stand, each where it is
needed, `:is` (the shape it was drawn as), `:kind` (the shape that a person chose), `:on` (that an object, a list or an
empty text is there) and `:key` (the name of a member that the schema does not name).
"""

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import parse_qsl, quote

import attrs

from agentos.errors import Problem
from agentos.schema.explain import TO_CALLERS
from agentos.studio.forms.form_shapes import ITEM_LIMIT, JSON_SHAPE, Shape, exactly, holds, shape_for, shapes_of

ROOT = "a"
"""The name of the control of the whole."""
ACTION = ":do"
"""The name of the buttons that change a form and send nothing: `add:a/stops`, `remove:a/stops/@0`, `json:`, `form:`."""
PAIR_LIMIT = 10_000
SIZE_LIMIT = 4_000_000
DEPTH_LIMIT = 40
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")


class _Sign:
    """Something that is in no JSON."""

    __slots__ = ("_word",)

    def __init__(self, word: str) -> None:
        self._word = word

    def __repr__(self) -> str:
        return self._word


ABSENT: Any = _Sign("ABSENT")
"""Nothing is there, and nothing is sent."""
BLANK: Any = _Sign("BLANK")
"""A place is there, and nothing is in it yet."""


@attrs.frozen
class Unreadable:
    """A text that is no value of its shape: it stays in its control, and a problem says why."""

    text: str
    problem: str


@attrs.frozen
class Entered:
    """What is at one place: the key of its shape, and a value, an EnteredObject, or a list of entries."""

    shape: str | None
    value: Any


@attrs.frozen
class Row:
    """A member of an object that the schema does not name."""

    key: str
    entry: Any


@attrs.frozen
class EnteredObject:
    """The members of an object: those that the schema names, and the others."""

    members: Mapping[str, Any]
    rows: Sequence[Row]


@attrs.frozen(kw_only=True)
class EnteredArguments:
    """What a form comes to. With problems it is not to be sent: `value` is as far as it could be read."""

    value: Any
    problems: tuple[Problem, ...] = ()
    entered: Any = attrs.field(repr=False)
    """What was entered, for drawing the form again."""


def pairs_of(body: bytes) -> list[tuple[str, str]]:
    """Return the names and values of a submitted form; raise ValueError if it has too many, or is too large."""
    if len(body) > SIZE_LIMIT:
        raise ValueError(f"expected a form of at most {SIZE_LIMIT:,} bytes")
    text = body.decode("utf-8", "replace")
    return parse_qsl(text, keep_blank_values=True, max_num_fields=PAIR_LIMIT, errors="replace")


def step_name(name: str, step: str) -> str:
    """Return the name of the control of a member."""
    return f"{name}/{quote(step, safe='')}"


def arguments_of(schema: Any, pairs: Iterable[tuple[str, str]]) -> EnteredArguments:
    """Return the arguments that a submitted form means: types restored, and what was left out is not there."""
    entered = entered_of(schema, pairs)
    problems: list[Problem] = []
    value = _finished(entered, (), problems)
    return EnteredArguments(value={} if value in (ABSENT, BLANK) else value, problems=tuple(problems), entered=entered)


def entered_of(schema: Any, pairs: Iterable[tuple[str, str]]) -> Any:
    """Return what a submitted form says, its action applied: what to draw it again from."""
    given: dict[str, str] = {}
    for name, value in pairs:
        given.setdefault(name, value.replace("\r\n", "\n"))
    action, _, target = given.get(ACTION, "").partition(":")
    reading = _FormReading(schema, given, action, target)
    entered = reading.at(ROOT, schema, True, 0)
    if action == "json":
        return Entered("json", plain_of(entered))
    if action == "form" and isinstance(entered, Entered) and not isinstance(entered.value, Unreadable):
        return plain_of(entered)
    return entered


# -- pairs into entries ------------------------------------------------------------------------------------------------


class _FormReading:
    """Reads the controls of one form by what its schema says."""

    def __init__(self, root: Any, given: Mapping[str, str], action: str, target: str) -> None:
        self._root = root
        self._given = given
        self._action = action
        self._target = target
        self._inner = _inner_names(given)

    def at(self, name: str, schema: Any, is_required: bool, depth: int) -> Any:
        """Return what was entered at a place."""
        if self._does("remove", name) or depth > DEPTH_LIMIT:
            return ABSENT
        shapes = shapes_of(schema, self._root)
        drawn = _by_key(shapes, self._given.get(f"{name}:is"))
        wanted = self._given.get(f"{name}:kind")
        if self._does("add", name) and not self._is_there(name):
            return Entered(wanted or None, BLANK)
        value = self._value(name, drawn, is_required, depth) if drawn is not None else ABSENT
        if wanted is None or (drawn is not None and wanted == drawn.key):
            return value if value is ABSENT or drawn is None else Entered(drawn.key, value)
        if not wanted:
            return ABSENT
        return Entered(wanted, self._as(_by_key(shapes, wanted), value))

    def _is_there(self, name: str) -> bool:
        return f"{name}:on" in self._given

    def _does(self, action: str, name: str) -> bool:
        return self._action == action and self._target == name

    def _value(self, name: str, shape: Shape, is_required: bool, depth: int) -> Any:
        match shape.kind:
            case "object":
                return self._object(name, shape, depth) if self._is_there(name) or self._inner.get(name) else ABSENT
            case "array":
                return self._array(name, shape, depth) if self._is_there(name) or self._inner.get(name) else ABSENT
            case "text":
                if self._given.get(name) or self._is_there(name):
                    return self._given.get(name, "")
                return BLANK if is_required or f"{name}:kind" in self._given else ABSENT
            case _:
                return _scalar(shape, self._given.get(name, ""), is_required)

    def _object(self, name: str, shape: Shape, depth: int) -> Any:
        found: dict[str, Any] = {}
        members, required = shape.members, shape.required
        for member, schema in members.items():
            entry = self.at(step_name(name, member), schema, member in required, depth + 1)
            if entry is not ABSENT:
                found[member] = entry
        rows = [self._row(inner, shape, depth) for inner in self._inner.get(name, ()) if "/*" in inner[len(name) :]]
        if self._does("add", name):
            rows.append(Row("", BLANK))
        is_said = self._is_there(name) or any(map(_is_said, found.values())) or any(row is not None for row in rows)
        return EnteredObject(found, [row for row in rows if row is not None]) if is_said else ABSENT

    def _row(self, name: str, shape: Shape, depth: int) -> Row | None:
        entry = self.at(name, {} if shape.rest is False else shape.rest, True, depth + 1)
        if entry is ABSENT and self._does("remove", name):
            return None
        return Row(self._given.get(f"{name}:key", ""), BLANK if entry is ABSENT else entry)

    def _array(self, name: str, shape: Shape, depth: int) -> Any:
        items: list[Any] = []
        for inner in [one for one in self._inner.get(name, ()) if "/@" in one[len(name) :]][:ITEM_LIMIT]:
            number = inner.rpartition("/@")[2]
            schema = shape.item(int(number) if number.isdecimal() and len(number) < 6 else 0)  # noqa: PLR2004
            entry = self.at(inner, schema, True, depth + 1)
            if entry is not ABSENT or not self._does("remove", inner):
                items.append(BLANK if entry is ABSENT else entry)
        if self._does("add", name) and len(items) < ITEM_LIMIT:
            items.append(BLANK)
        is_said = self._is_there(name) or any(map(_is_said, items))
        return items if is_said else ABSENT

    def _as(self, shape: Shape | None, value: Any) -> Any:
        """Return what is kept of an entry when its place is drawn as another shape."""
        if shape is None:
            return BLANK
        plain = plain_of(value)
        if shape.kind == "json":
            return BLANK if plain in (ABSENT, BLANK) else plain
        if shape.kind == "object" and isinstance(plain, dict):
            kept = {name: one for name, one in plain.items() if not _is_of_another(one, shape.members.get(name))}
            missing = {name: _constant(shape.members[name]) for name in shape.required if name not in kept}
            return {**{name: one for name, one in missing.items() if one is not BLANK}, **kept}
        if shape.kind == "array":
            return plain if isinstance(plain, list) else BLANK
        if shape.kind == "text" and plain not in (ABSENT, BLANK) and plain is not None:
            text = plain if isinstance(plain, str) else exactly(plain)
            return text if holds(shape, text) else BLANK
        if shape.kind in ("number", "integer", "boolean") and isinstance(plain, str):
            read = _scalar(shape, plain, True)
            return BLANK if isinstance(read, Unreadable) else read
        return plain if plain not in (ABSENT, BLANK) and holds(shape, plain) else BLANK


def _inner_names(given: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the controls right inside of each place, in the order of the form."""
    found: dict[str, dict[str, None]] = {}
    for full in given:
        name = full.partition(":")[0]
        for _ in range(DEPTH_LIMIT + 1):
            above, slash, _ = name.rpartition("/")
            if not slash or name in found.get(above, ()):
                break
            found.setdefault(above, {})[name] = None
            name = above
    return {name: list(inner) for name, inner in found.items()}


def _by_key(shapes: Sequence[Shape], key: str | None) -> Shape | None:
    """Return the shape of a key; the only or first one if none is named, and None if there is nothing by that name."""
    if key == "json" or (not shapes and key is None):
        return JSON_SHAPE
    if key is None:
        return shapes[0]
    return next((shape for shape in shapes if shape.key == key), None)


def _scalar(shape: Shape, text: str, is_required: bool) -> Any:
    """Return the value that the text of a control means."""
    missing = BLANK if is_required else ABSENT
    if shape.kind == "null":
        return None if text else missing
    if not text.strip():
        return missing
    match shape.kind:
        case "number" | "integer":
            return _number(text, shape)
        case "boolean":
            return text == "true" if text in ("true", "false") else Unreadable(text, "expected true or false")
        case "choice":
            choices = shape.choices
            is_one = text.isdecimal() and len(text) < 6 and int(text) < len(choices)  # noqa: PLR2004
            return choices[int(text)] if is_one else Unreadable(text, "expected one of the list")
        case _:
            return read_json(text)


def _number(text: str, shape: Shape) -> Any:
    wanted = "an integer" if shape.kind == "integer" else "a number"
    if not _NUMBER.fullmatch(text.strip()):
        return Unreadable(text, f"expected {wanted}, got {json.dumps(text[:80], ensure_ascii=False)}")
    try:
        number = json.loads(text)
    except ValueError:
        number = math.inf
    if isinstance(number, float) and not math.isfinite(number):
        return Unreadable(text, f"expected {wanted} that is not so large")
    return number


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def read_json(text: str) -> Any:
    """Return the value of JSON text, or what is wrong with it."""
    try:
        value = json.loads(text, parse_constant=_no_constant)
        exactly(value).encode()
    except json.JSONDecodeError as error:
        return Unreadable(text, f"not JSON: {error.msg} in line {error.lineno}, column {error.colno}")
    except (ValueError, RecursionError) as error:
        reason = "nested too deep" if isinstance(error, RecursionError) else str(error).partition(";")[0][:80]
        return Unreadable(text, f"not JSON: {reason}")
    return value


def _is_said(entry: Any) -> bool:
    """Tell whether a person entered something at a place that nothing says is there."""
    if isinstance(entry, Entered):
        entry = entry.value
    if isinstance(entry, Unreadable):
        return True
    return entry not in (ABSENT, BLANK, "", None)


def _is_of_another(value: Any, schema: Any) -> bool:
    """Tell whether a value is the constant of another shape: it is left out when the shape changes."""
    constant = _constant(schema)
    return constant is not BLANK and exactly(value) != exactly(constant)


def _constant(schema: Any) -> Any:
    """Return the only value that a schema takes; BLANK if it takes others as well."""
    choices = Shape(key="", kind="choice", label="", schema=schema).choices if isinstance(schema, dict) else []
    return choices[0] if len(choices) == 1 else BLANK


# -- entries into values -----------------------------------------------------------------------------------------------


def _finished(entry: Any, path: tuple[str | int, ...], problems: list[Problem]) -> Any:
    """Return the JSON of an entry; what it has none of is a problem."""
    if not isinstance(entry, Entered):
        return entry
    value = entry.value
    if isinstance(value, Unreadable):
        problems.append(Problem(TO_CALLERS.path(path, "$"), value.problem))
        return ABSENT
    if isinstance(value, EnteredObject):
        return _finished_object(value, path, problems)
    if isinstance(value, list):
        return [one for one in _finished_items(value, path, problems) if one is not ABSENT]
    return value


def _finished_items(items: list[Any], path: tuple[str | int, ...], problems: list[Problem]) -> Iterator[Any]:
    for place, item in enumerate(items):
        value = _finished(item, (*path, place), problems)
        if value is BLANK:
            problems.append(
                Problem(TO_CALLERS.path((*path, place), "$"), "nothing is entered; fill it in or remove it")
            )
            value = ABSENT
        yield value


def _finished_object(value: EnteredObject, path: tuple[str | int, ...], problems: list[Problem]) -> dict[str, Any]:
    found = {name: _finished(one, (*path, name), problems) for name, one in value.members.items()}
    found = {name: one for name, one in found.items() if one is not ABSENT and one is not BLANK}
    for row in value.rows:
        inner = _finished(row.entry, (*path, row.key), problems)
        if inner in (BLANK, "") and not row.key:
            continue
        here = TO_CALLERS.path((*path, row.key), "$") if row.key else TO_CALLERS.path(path, "$")
        if not row.key or row.key in found or row.key in value.members:
            problems.append(Problem(here, "a name stands twice" if row.key else "a value has no name"))
        elif inner is BLANK:
            problems.append(Problem(here, "nothing is entered; fill it in or remove it"))
        elif inner is not ABSENT:
            found[row.key] = inner
    return found


def plain_of(entry: Any) -> Any:
    """Return the JSON of an entry, as much of it as there is."""
    return _finished(entry if isinstance(entry, Entered) else Entered(None, entry), (), [])


def drawn_value(entry: Any, schema: Any, root: Any) -> tuple[Shape | None, Any, list[Shape]]:
    """Return which shape an entry is drawn as (None: nothing is there), its value, and all shapes of its place."""
    shapes = shapes_of(schema, root)
    key, value = (entry.shape, entry.value) if isinstance(entry, Entered) else (None, entry)
    if value is ABSENT:
        return _shape_of_nothing(shapes), ABSENT, shapes
    if key is None and value is BLANK:
        return (shapes[0] if shapes else JSON_SHAPE), BLANK, shapes
    if key is None:
        return shape_for(shapes, value, root), value, shapes
    shape = _by_key(shapes, key)
    is_free = value is BLANK or isinstance(value, Unreadable)
    is_drawn = is_free or (isinstance(value, EnteredObject) and shape is not None and shape.kind == "object")
    if shape is not None and (is_drawn or (not isinstance(value, EnteredObject) and holds(shape, value))):
        return shape, value, shapes
    return JSON_SHAPE, value if is_free else plain_of(entry), shapes


def _shape_of_nothing(shapes: Sequence[Shape]) -> Shape | None:
    """Return the control that stands empty where nothing is; None if there is a choice, or it is to be added first."""
    if not shapes:
        return JSON_SHAPE
    return shapes[0] if len(shapes) == 1 and shapes[0].kind not in ("object", "array") else None


def problems_in(schema: Any, value: Any) -> list[Problem]:
    """Return what is wrong with arguments by their schema, each problem with its path."""
    from agentos.schema.validation import BadArguments, Checker

    try:
        Checker(schema, "the schema of a form").arguments(value)
    except BadArguments as error:
        return list(error.problems) or [Problem("$", str(error))]
    return []

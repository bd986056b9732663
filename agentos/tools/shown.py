"""What people are shown of a call, its result and its approval: plain values, for whatever draws them.

Pure: made of what a tool declares (`Display`), or where it declares nothing of its schemas and of what is there.
Nothing in it is markup, and all of it is bounded; `cut` says what was left out. The arguments are always among it,
whatever a tool declares: a person who approves sees all that is approved.
"""

import base64
import difflib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import attrs

from agentos.model.display import TITLE_LIMIT, Display, DisplayKind
from agentos.model.media import Media
from agentos.model.tool_call import ToolResult
from agentos.schema.references import resolved
from agentos.tools.listing import ToolInfo

ROW_LIMIT = 200
COLUMN_LIMIT = 20
CELL_LIMIT = 500
"""How many characters a cell of a table and a fact have."""
TEXT_LIMIT = 100_000
LINE_LIMIT = 2_000
"""Of how many lines the texts are that are compared, and how many lines of a difference are shown."""
ARGUMENT_LIMIT = 20_000
ARGUMENT_COUNT = 200
IMAGE_LIMIT = 2_000_000
"""How many bytes an image has that is shown and not only named."""
_NOTHING: Any = object()
_IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")
_SIGNS: "Mapping[str, DiffSign]" = {"+": "+", "-": "-", "@": "@"}

DiffSign = Literal["+", "-", "@", " "]
Fact = tuple[str, str]


@attrs.frozen
class DiffLine:
    """A line of a difference: added, taken away, the same as before, or where the next ones stand."""

    sign: DiffSign
    text: str


@attrs.frozen(kw_only=True)
class ShownMedia:
    """An image, sound or file of a result: what it is, and an image that a page may draw as a data address."""

    words: str
    mime: str
    name: str | None = None
    source: str | None = attrs.field(default=None, repr=False)
    """A `data:` address, of raster images that are not too large only."""
    media: Media = attrs.field(repr=False)


@attrs.frozen(kw_only=True)
class Shown:
    """What a card shows. What does not belong to its kind is empty."""

    kind: DisplayKind
    title: str
    arguments: tuple[Fact, ...] = ()
    """What the call is made with: each argument and its value as text or JSON."""
    facts: tuple[Fact, ...] = ()
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    row_count: int = 0
    """How many rows there are, with those that are not shown."""
    text: str = ""
    """Plain text, JSON, or the source of markdown: the safe subset is for whoever draws it."""
    lines: tuple[DiffLine, ...] = ()
    media: tuple[ShownMedia, ...] = ()
    error: str = ""
    """Why the call failed, or what it waits for."""
    cut: tuple[str, ...] = ()
    """What is not shown, in words."""


def shown(
    info: ToolInfo,
    arguments: Mapping[str, Any] | None = None,
    result: ToolResult | None = None,
    *,
    preview: Any = None,
) -> Shown:
    """Return what to show of a call of the tool that *info* tells of.

    Without a *result* it is what a call would do: the *preview* of its approval, where there is one.
    """
    arguments = {} if arguments is None else arguments
    output = preview if result is None else result.output
    card = _Card(info, output)
    parts = card.parts(result, is_preview=result is None)
    return Shown(
        title=_title(info, arguments, output),
        arguments=card.arguments(arguments),
        media=card.media(result),
        error="" if result is None or result.error is None else card.clip(_error(result), TEXT_LIMIT, "the error"),
        **parts,
        cut=tuple(dict.fromkeys(card.cut)),
    )


# -- the title ---------------------------------------------------------------------------------------------------------


def _title(info: ToolInfo, arguments: Mapping[str, Any], output: Any) -> str:
    display = info.display
    if display is None or not display.title:
        return info.display_name
    title = display.title
    for root, path in display.places:
        found = value_at(arguments if root == "args" else output, path)
        title = title.replace(f"{{{root}.{'.'.join(path)}}}", "…" if found is _NOTHING else _inline(found), 1)
    return title if len(title) <= TITLE_LIMIT else f"{title[: TITLE_LIMIT - 1]}…"


def _inline(value: Any) -> str:
    """Return a value on one line; braces in it are no placeholders, since each is filled in once, by its place."""
    text = " ".join(_as_text(value)[:CELL_LIMIT].split())
    return text.replace("{", "(").replace("}", ")")


def value_at(value: Any, path: Sequence[str]) -> Any:
    """Return what stands at *path*, of names and places in lists; something of no other value if nothing does."""
    for step in path:
        if isinstance(value, Mapping) and step in value:
            value = value[step]
        elif isinstance(value, list | tuple) and step.isdecimal() and int(step) < len(value):
            value = value[int(step)]
        else:
            return _NOTHING
    return value


def _error(result: ToolResult) -> str:
    return "" if result.error is None else f"{result.error.type}: {result.error.message}"


def _as_text(value: Any, *, indent: int | None = None) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False, indent=indent)
    except (TypeError, ValueError, RecursionError):
        return f"(a {type(value).__name__}, which is not JSON)"


# -- the parts ---------------------------------------------------------------------------------------------------------


class _Card:
    """Makes the parts of one card, and notes what it cuts."""

    def __init__(self, info: ToolInfo, output: Any) -> None:
        self._info = info
        self._output = output
        self._display = info.display
        self.cut: list[str] = []

    def clip(self, text: str, limit: int, what: str) -> str:
        """Return the beginning of a long text."""
        if len(text) <= limit:
            return text
        self.cut.append(f"{what}: {limit:,} of {len(text):,} characters are shown")
        return f"{text[: limit - 1]}…"

    def arguments(self, arguments: Mapping[str, Any]) -> tuple[Fact, ...]:
        """Return what a call is made with."""
        if len(arguments) > ARGUMENT_COUNT:
            self.cut.append(f"{ARGUMENT_COUNT} of {len(arguments):,} arguments are shown")
        named = list(arguments.items())[:ARGUMENT_COUNT]
        return tuple(
            (str(name), self.clip(_said(value), ARGUMENT_LIMIT, f"the argument {name}")) for name, value in named
        )

    def media(self, result: ToolResult | None) -> tuple[ShownMedia, ...]:
        """Return the images, sounds and files of a result."""
        return () if result is None else tuple(_shown_media(one) for one in result.media)

    def parts(self, result: ToolResult | None, *, is_preview: bool) -> dict[str, Any]:
        """Return what belongs to the card's kind, and the kind."""
        if result is not None and not result.success and result.output is None:
            return {"kind": "text"}
        if self._display is not None:
            declared = self._declared(self._display, result, is_preview=is_preview)
            if declared is not None:
                return {"kind": self._display.kind, **declared}
        return self._guessed(result)

    # -- as declared ---------------------------------------------------------------------------------------------

    def _declared(self, display: Display, result: ToolResult | None, *, is_preview: bool) -> dict[str, Any] | None:
        """Return the parts that a tool declares; None if what is there has none of them."""
        if is_preview and self._output is None:
            return {}
        match display.kind:
            case "table":
                return self._table(display)
            case "diff":
                return self._diff(display)
            case "image":
                return {"facts": self._facts(display.fields)} if result is not None and result.media else None
            case "json":
                return self._json(display.fields)
            case _:
                return self._text(display.fields, result)

    def _table(self, display: Display) -> dict[str, Any] | None:
        columns = [one for one in display.fields if "[]" in one]
        facts = self._facts([one for one in display.fields if one not in columns])
        if not columns:
            return {"facts": facts} if facts else None if display.fields else self._found_table()
        place, rests = _columns(display, columns)
        items = value_at(self._output, place)
        if not isinstance(items, list | tuple):
            return {"facts": facts} if facts else None
        rows = [[_joined(item, rest) for rest in rests] for item in self._first(items)]
        return {"facts": facts, **self._rows([".".join(_named(rest)) or "value" for rest in rests], rows, len(items))}

    def _facts(self, fields: Sequence[str]) -> tuple[Fact, ...]:
        found = [(one, _walked(self._output, Display("json").steps(one))) for one in fields]
        return tuple(
            (one, self.clip("; ".join(map(_said, values)), CELL_LIMIT, one)) for one, values in found if values
        )

    def _json(self, fields: Sequence[str]) -> dict[str, Any] | None:
        if not fields:
            return None if self._output is None else {"text": self._dumped(self._output)}
        picked = {one: values for one in fields if (values := _walked(self._output, Display("json").steps(one)))}
        if not picked:
            return None
        return {"text": self._dumped({one: values if "[]" in one else values[0] for one, values in picked.items()})}

    def _text(self, fields: Sequence[str], result: ToolResult | None) -> dict[str, Any] | None:
        if fields:
            found = [text for one in fields for text in _walked(self._output, Display("json").steps(one))]
        else:
            found = [self._output if isinstance(self._output, str) or result is None else result.content]
        texts = [_as_text(one, indent=2) for one in found if one not in (None, "")]
        return {"text": self.clip("\n\n".join(texts), TEXT_LIMIT, "the text")} if texts else None

    def _dumped(self, value: Any) -> str:
        return self.clip(_as_text(value, indent=2), TEXT_LIMIT, "the JSON")

    # -- differences ---------------------------------------------------------------------------------------------

    def _diff(self, display: Display) -> dict[str, Any] | None:
        found = [_walked(self._output, display.steps(one)) for one in display.fields]
        texts = [_lined(values[0]) if values else None for values in found]
        if len(texts) == 1 and texts[0] is not None:
            return {"lines": self._lines([_diff_line(line) for line in texts[0].splitlines()])}
        if len(texts) > 1 and any(text is not None for text in texts):
            return {"lines": self._difference(texts[0] or "", texts[1] or "")}
        return None if texts else self._before_and_after()

    def _before_and_after(self) -> dict[str, Any] | None:
        output = self._output
        if not isinstance(output, Mapping) or not {"before", "after"} <= output.keys():
            return None
        others = [name for name in output if name not in ("before", "after") and isinstance(name, str)]
        facts = self._plain_facts({name: output[name] for name in others})
        return {"facts": facts, "lines": self._difference(_lined(output["before"]), _lined(output["after"]))}

    def _difference(self, before: str, after: str) -> tuple[DiffLine, ...]:
        old, new = before[:TEXT_LIMIT].splitlines(), after[:TEXT_LIMIT].splitlines()
        if max(len(old), len(new)) > LINE_LIMIT or max(len(before), len(after)) > TEXT_LIMIT:
            self.cut.append(f"the first {LINE_LIMIT:,} lines are compared")
        told = difflib.unified_diff(old[:LINE_LIMIT], new[:LINE_LIMIT], lineterm="")
        return self._lines([_diff_line(line) for line in list(told)[2:]])

    def _lines(self, lines: list[DiffLine]) -> tuple[DiffLine, ...]:
        if len(lines) > LINE_LIMIT:
            self.cut.append(f"{LINE_LIMIT:,} of {len(lines):,} lines are shown")
        return tuple(lines[:LINE_LIMIT])

    # -- where nothing is declared -------------------------------------------------------------------------------

    def _guessed(self, result: ToolResult | None) -> dict[str, Any]:
        """Return what fits what is there: images, a difference, a table, text or JSON."""
        if result is not None and any(one.kind == "image" for one in result.media):
            return {"kind": "image"}
        if (difference := self._before_and_after()) is not None:
            return {"kind": "diff", **difference}
        if (table := self._found_table()) is not None:
            return {"kind": "table", **table}
        output = self._output
        if output is None or isinstance(output, str):
            text = output or ("" if result is None else result.content)
            return {"kind": "text", "text": self.clip(text, TEXT_LIMIT, "the text")}
        return {"kind": "json", "text": self._dumped(output)}

    def _columns_and_rows(self, output: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the table of an output that names its columns apart from its rows, as an answer of a database does."""
        columns, rows = output.get("columns"), output.get("rows")
        if not isinstance(columns, list) or not isinstance(rows, list):
            return None
        width = len(columns)
        shown_rows = self._first(rows)
        if not all(isinstance(one, str) for one in columns):
            return None
        if not all(isinstance(row, list) and len(row) == width for row in shown_rows):
            return None
        rest = {name: value for name, value in output.items() if name not in ("columns", "rows")}
        plain = {name: value for name, value in rest.items() if not isinstance(value, Mapping | list | tuple)}
        return {"facts": self._plain_facts(plain), **self._rows(columns, shown_rows, len(rows))}

    def _found_table(self) -> dict[str, Any] | None:
        """Return the rows in an output that has one list, or the facts of one that has none; None if it is neither."""
        output, schema = self._output, self._schema(self._info.output_schema)
        if isinstance(output, list | tuple):
            return self._table_of(output, self._schema(schema.get("items"))) if output else None
        if not isinstance(output, Mapping) or not output:
            return None
        if (table := self._columns_and_rows(output)) is not None:
            return table
        lists = [name for name, value in output.items() if isinstance(value, list | tuple) and value]
        plain = {name: value for name, value in output.items() if not isinstance(value, Mapping | list | tuple)}
        deeper = [name for name in output if name not in plain and output[name]]
        facts = self._plain_facts(plain)
        if not deeper:
            return {"facts": facts} if facts else None
        if deeper != lists or len(lists) > 1:
            return None
        items = self._schema(self._schema(schema.get("properties", {}).get(lists[0])).get("items"))
        table = self._table_of(output[lists[0]], items)
        return None if table is None else {"facts": facts, **table}

    def _schema(self, schema: Any) -> Mapping[str, Any]:
        return resolved(schema, self._info.output_schema)

    def _plain_facts(self, values: Mapping[Any, Any]) -> tuple[Fact, ...]:
        return tuple(
            (str(name), self.clip(_said(value), CELL_LIMIT, str(name)))
            for name, value in list(values.items())[:COLUMN_LIMIT]
            if value is not None
        )

    def _table_of(self, items: Sequence[Any], schema: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the table of a list of objects, or of plain values; None of a list of lists, or of both."""
        listed = self._first(items)
        if all(isinstance(item, Mapping) for item in listed):
            said = [name for name in schema.get("properties", {}) if any(name in item for item in listed)]
            names = list(dict.fromkeys([*said, *(str(name) for item in listed for name in item)]))
            rows = [[item.get(name, "") for name in names] for item in listed]
            return self._rows(names, rows, len(items))
        if any(isinstance(item, Mapping | list | tuple) for item in listed):
            return None
        return self._rows(["value"], [[item] for item in listed], len(items))

    def _first(self, items: Sequence[Any]) -> Sequence[Any]:
        return items[:ROW_LIMIT]

    def _rows(self, columns: Sequence[str], rows: Sequence[Sequence[Any]], count: int) -> dict[str, Any]:
        if count > len(rows):
            self.cut.append(f"{len(rows):,} of {count:,} rows are shown")
        if len(columns) > COLUMN_LIMIT:
            self.cut.append(f"{COLUMN_LIMIT} of {len(columns):,} columns are shown")
        cells = [tuple(self._cell(cell) for cell in row[:COLUMN_LIMIT]) for row in rows]
        return {"columns": tuple(columns[:COLUMN_LIMIT]), "rows": tuple(cells), "row_count": count}

    def _cell(self, value: Any) -> str:
        text = _said(value)
        if len(text) <= CELL_LIMIT:
            return text
        self.cut.append(f"of long cells the first {CELL_LIMIT:,} characters are shown")
        return f"{text[: CELL_LIMIT - 1]}…"


def _said(value: Any) -> str:
    """Return a value in a cell: a text as it is, and anything else as JSON."""
    return "null" if value is None else _as_text(value)


def _lined(value: Any) -> str:
    return _as_text(value, indent=2)


def _diff_line(line: str) -> DiffLine:
    sign = _SIGNS.get(line[:1], " ")
    return DiffLine(sign, line if sign == "@" else line[1:] if sign != " " or line[:1] == " " else line)


def _columns(display: Display, fields: Sequence[str]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return where the rows are, and the path of each column in a row."""
    steps = [display.steps(one) for one in fields]
    place = steps[0][: steps[0].index("[]")]
    return place, [one[len(place) + 1 :] for one in steps]


def _named(steps: Sequence[str]) -> list[str]:
    return [step for step in steps if step != "[]"]


def _joined(item: Any, steps: Sequence[str]) -> Any:
    """Return a cell: what is at a path of a row, or a list of them one after another; empty if nothing is."""
    found = _walked(item, steps)
    if "[]" in steps:
        return ", ".join(_as_text(one) for one in found)
    return found[0] if found and found[0] is not None else ""


def _walked(value: Any, steps: Sequence[str]) -> list[Any]:
    """Return everything that a path leads to."""
    return list(_walk(value, steps))


def _walk(value: Any, steps: Sequence[str]) -> Iterator[Any]:
    for index, step in enumerate(steps):
        if step == "[]":
            for item in value[:ROW_LIMIT] if isinstance(value, list | tuple) else ():
                yield from _walk(item, steps[index + 1 :])
            return
        value = value_at(value, (step,))
        if value is _NOTHING:
            return
    yield value


def _shown_media(one: Media) -> ShownMedia:
    data = one.data
    is_drawn = data is not None and one.type in _IMAGES and len(data) <= IMAGE_LIMIT
    source = f"data:{one.type};base64,{base64.b64encode(data or b'').decode()}" if is_drawn else None
    return ShownMedia(words=one.in_words(), mime=one.type, name=one.name, source=source, media=one)

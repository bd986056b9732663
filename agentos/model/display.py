"""How people are shown a call, its result and its approval: said by a tool as data, never as markup."""

import re
from collections.abc import Iterable
from typing import Any, Literal

import attrs

DisplayKind = Literal["table", "markdown", "image", "diff", "json", "text"]
DISPLAY_KINDS = ("table", "markdown", "image", "diff", "json", "text")
TITLE_LIMIT = 200
"""How many characters a title has as it is declared, and as it is shown."""
FIELD_LIMIT = 20
_PATH_LIMIT = 200
_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
_PLACE = re.compile(r"(args|output)((?:\.[\w$@-]+)+)")
_FIELD = re.compile(r"(?:\[\]|[\w$@-]+(?:\[\])?)(?:\.[\w$@-]+(?:\[\])?)*")
_DIFF_FIELDS = 2


def _paths(value: str | Iterable[str]) -> tuple[Any, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


def _check_kind(_: Any, __: "attrs.Attribute[Any]", value: object) -> None:
    if value not in DISPLAY_KINDS:
        raise ValueError(f"Display.kind: expected one of {', '.join(DISPLAY_KINDS)}, got {value!r:.80}")


def _check_title(_: Any, __: "attrs.Attribute[Any]", value: object) -> None:
    if not isinstance(value, str):
        raise TypeError(f"Display.title: expected a text, got {type(value).__name__}")
    if len(value) > TITLE_LIMIT or not (value.isprintable() or not value):
        raise ValueError(f"Display.title: expected up to {TITLE_LIMIT} printable characters, got {value!r:.80}")
    for inner in _PLACEHOLDER.findall(value):
        if not _PLACE.fullmatch(inner):
            raise ValueError(
                f"Display.title: expected placeholders such as {{args.query}} or {{output.total}}, got {{{inner}}}"
            )
    if re.search(r"[{}]", _PLACEHOLDER.sub("", value)):
        raise ValueError(f"Display.title: a brace begins or ends no placeholder in {value!r:.80}")


@attrs.frozen
class Display:
    """What the card of a call shows: a kind, a title, and which parts of the output.

    `title` may have placeholders: `{args.query}` is an argument and `{output.total}` a part of the output. Each of
    `fields` is a path into the output, `total` or `hits[].url`, where `[]` stands for every item of a list. In a table
    those with `[]` are its columns, and the others are facts above it; of a diff they are the text before and the one
    after, or one text that is a diff already; of anything else they are the parts that are shown, in their order.
    Without fields all of the output is.
    """

    kind: DisplayKind = attrs.field(validator=_check_kind)
    title: str = attrs.field(default="", validator=_check_title, kw_only=True)
    fields: tuple[str, ...] = attrs.field(default=(), converter=_paths, kw_only=True)

    def __attrs_post_init__(self) -> None:
        if len(self.fields) > FIELD_LIMIT:
            raise ValueError(f"Display.fields: expected at most {FIELD_LIMIT}, got {len(self.fields)}")
        for one in self.fields:
            if not isinstance(one, str) or len(one) > _PATH_LIMIT or not _FIELD.fullmatch(one):
                raise ValueError(f"Display.fields: expected paths such as total or hits[].url, got {one!r:.80}")
        if self.kind == "diff" and len(self.fields) > _DIFF_FIELDS:
            raise ValueError("Display.fields: a diff has the path of the text before and the one after, or of one diff")
        lists = {one.partition("[]")[0] for one in self.fields if "[]" in one}
        if self.kind == "table" and len(lists) > 1:
            listed = " and ".join(f"{one}[]" for one in sorted(lists))
            raise ValueError(f"Display.fields: the rows of a table are the items of one list, not of {listed}")

    @property
    def places(self) -> list[tuple[str, tuple[str, ...]]]:
        """Return what the title's placeholders name: `args` or `output`, and the path in it."""
        found = [_PLACE.fullmatch(inner) for inner in _PLACEHOLDER.findall(self.title)]
        return [(one[1], tuple(one[2][1:].split("."))) for one in found if one is not None]

    def steps(self, field: str) -> tuple[str, ...]:
        """Return a field's path as steps; `[]` is one of its own."""
        return tuple(re.findall(r"\[\]|[^.\[\]]+", field))

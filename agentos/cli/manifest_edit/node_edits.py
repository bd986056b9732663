"""Edits of YAML and JSON, which is YAML of one style: by the places at which ruamel.yaml finds their nodes."""

import json
import re
from collections.abc import Sequence
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from agentos.cli.manifest_edit.edits import GONE, Keys, Splice, end_of_line, line_after, margin, spliced, start_of_line

_PLAIN = re.compile(r"(\./)?[A-Za-z][A-Za-z0-9_./-]*")
_WORDS = {"true", "false", "yes", "no", "on", "off", "null", "y", "n"}
_COMMA = re.compile(r"[ \t]*,")


def edit_yaml(text: str, keys: Keys, value: Any) -> str:
    """Return *text* with *value* at *keys*; raise ValueError or LookupError where the layout is not known."""
    return _Editor(text).edited(keys, value)


def edit_json(text: str, keys: Keys, value: Any) -> str:
    """Return *text* with *value* at *keys*."""
    return _JSONEditor(text).edited(keys, value)


class _Editor:
    """Makes edits of one text."""

    def __init__(self, text: str) -> None:
        self.text = text
        try:
            # Tabs count as spaces in JSON, and are not told from them in strings here: only places are looked at.
            self.root = YAML(typ="rt", pure=True).compose(text.replace("\t", " "))
        except YAMLError as error:
            raise ValueError("it can't be read") from error

    def edited(self, keys: Keys, value: Any) -> str:
        if self.root is None:
            if keys != ("packs", -1):
                raise LookupError("there is nothing to change")
            return spliced(self.text, [line_after(self.text, len(self.text), "packs:\n" + self.item(value, "  "))])
        nodes = [self.root]
        for key in keys:
            found = _child(nodes[-1], key)
            if found is None:
                break
            nodes.append(found)
        missing = keys[len(nodes) - 1 :]
        if value is GONE:
            if missing:
                raise LookupError("there is nothing to take away")
            return spliced(self.text, self.without(nodes, keys))
        if missing:
            return spliced(self.text, self.added(nodes, missing, value))
        start, end = self.bounds(nodes[-1])
        return spliced(self.text, [(start, end, self.written(value, start))])

    # -- places ------------------------------------------------------------------------------------------------

    def end(self, node: Any) -> int:
        """Return where the text of *node* ends: blocks claim what follows them, up to the next node."""
        start, end = node.start_mark.index, int(node.end_mark.index)
        if node.id == "scalar":
            header = self.text[start:end].partition("\n")[0]
            is_block = node.style in ("|", ">") and "+" not in header
            return start + len(self.text[start:end].rstrip()) if is_block else end
        if node.flow_style or not node.value:
            return end
        last = node.value[-1]
        return self.end(last[1] if isinstance(last, tuple) else last)

    def bounds(self, item: Any) -> tuple[int, int]:
        """Return where a node, or a key with its value, begins and ends."""
        first, last = item if isinstance(item, tuple) else (item, item)
        return first.start_mark.index, self.end(last)

    def begins_line(self, at: int) -> bool:
        return not self.text[start_of_line(self.text, at) : at].strip()

    def past_comma(self, at: int) -> int:
        found = _COMMA.match(self.text, at)
        return at if found is None else found.end()

    # -- taking away -------------------------------------------------------------------------------------------

    def without(self, nodes: list[Any], keys: Keys) -> list[Splice]:
        above, key = nodes[-2], keys[-1]
        index = key if isinstance(key, int) else _names(above).index(key)
        if above.flow_style:
            return self.cut(above, index)
        start, end = self.bounds(above.value[index])
        if above.id == "sequence":
            start = self.dash(start)
        if not self.begins_line(start):
            raise ValueError("it shares its line with something else")
        lines = (start_of_line(self.text, start), end_of_line(self.text, end), "")
        if len(above.value) > 1:
            return [lines]
        name = nodes[-3].value[_names(nodes[-3]).index(keys[-2])][0]
        colon = self.text.index(":", name.end_mark.index) + 1
        return [(colon, colon, " []" if above.id == "sequence" else " {}"), lines]  # else nothing would stand there

    def cut(self, above: Any, index: int) -> list[Splice]:
        """Cut an item out of a flow collection with its comma; lines that hold nothing else go, and its own comment."""
        text, bounds = self.text, [self.bounds(one) for one in above.value]
        start, end = bounds[index]
        past = self.past_comma(end)
        rest = text[past : end_of_line(text, past)].strip()
        lines = (start_of_line(text, start), end_of_line(text, past), "")
        has_lines = self.begins_line(start) and (not rest or rest.startswith("#"))
        if len(bounds) == 1:
            inside = (above.start_mark.index + 1, self.end(above) - 1, "")
            return [(start, past, "") if "#" in text[inside[0] : inside[1]] else inside]
        if index < len(bounds) - 1:
            following = bounds[index + 1][0]
            if "#" in text[end:following]:
                return [lines] if has_lines else [(start, past, "")]
            return [(start, following, "")]
        before = bounds[index - 1][1]
        if "#" in text[before:start]:
            return [(before, self.past_comma(before), ""), lines if has_lines else (start, end, "")]
        return [(before, end, "")]

    # -- adding ------------------------------------------------------------------------------------------------

    def added(self, nodes: list[Any], keys: Sequence[str | int], value: Any) -> list[Splice]:
        """Add to the last of *nodes*, which is there, what is to stand beneath it at *keys*."""
        node, (key, *rest) = nodes[-1], keys
        if node.id == "scalar" and not rest and key == -1:
            return self.as_block(nodes, value)
        if node.id == "scalar" or len(rest) > 1:
            raise ValueError("a layout that is not known")
        if node.id == "sequence":
            return self.with_item(nodes, value)
        start = node.start_mark.index
        if node.flow_style:
            return self.with_flow_item(
                node, f"{self.written(key, start)}: {self.written([value] if rest else value, start)}"
            )
        name, indent = self.written(key, start), " " * node.start_mark.column
        more = f" {self.written(value, start)}\n" if not rest else "\n" + self.item(value, f"{indent}  ")
        return [line_after(self.text, self.end(node), f"{indent}{name}:{more}")]

    def with_item(self, nodes: list[Any], value: Any) -> list[Splice]:
        node, start = nodes[-1], nodes[-1].start_mark.index
        if not node.value and not self.is_within_flow(nodes) and not self.text[start + 1 : self.end(node) - 1].strip():
            return self.as_block(nodes, value)
        if node.flow_style:
            return self.with_flow_item(
                node, self.written(value, node.value[-1].start_mark.index if node.value else start)
            )
        dash = self.dash(node.value[0].start_mark.index)
        return [line_after(self.text, self.end(node), self.item(value, " " * (dash - start_of_line(self.text, dash))))]

    def is_within_flow(self, nodes: list[Any]) -> bool:
        return any(one.flow_style for one in nodes[:-1])

    def with_flow_item(self, node: Any, item: str) -> list[Splice]:
        """Put an item behind the last one, on a line of its own where that has one."""
        text, close = self.text, self.end(node) - 1
        if not node.value:
            inside, outer = text[node.start_mark.index + 1 : close].rstrip(), margin(text, node.start_mark.index)
            at = node.start_mark.index + 1 + len(inside)
            return [(at, close, f"\n{outer}  {item}\n{outer}" if inside else item)]
        start, end = self.bounds(node.value[-1])
        if not self.begins_line(start) or end_of_line(text, end) > close:
            return [(end, end, f", {item}")]
        past = self.past_comma(end)
        line = f"{margin(text, start)}{item}{',' if past > end else ''}\n"
        return [(end, past, ","), line_after(text, end, line)]

    def as_block(self, nodes: list[Any], value: Any) -> list[Splice]:
        """Put the first item on lines of its own, in the place of `[]` or of nothing; a comment behind that stays."""
        text, node = self.text, nodes[-1]
        head = len(text[: node.start_mark.index].rstrip())
        end = max(self.end(node), head) if node.end_mark.index > node.start_mark.index else head
        tail = text[end : end_of_line(text, end)].rstrip()
        item = self.item(value, f"{margin(text, max(head - 1, 0))}  ")
        return [(head, end + len(tail), tail), line_after(text, end + len(tail), item)]

    def dash(self, start: int) -> int:
        """Return where the dash before an item stands."""
        at = self.text.rindex("-", 0, start)
        if self.text[at + 1 : start].strip():
            raise ValueError("there is something between the dash and its item")
        return at

    # -- writing -----------------------------------------------------------------------------------------------

    def item(self, value: Any, indent: str) -> str:
        """Write an item of a list over as many lines as it has keys."""
        if not isinstance(value, dict):
            return f"{indent}- {_flow(value)}\n"
        lines = [f"{_flow(key)}: {_flow(item)}\n" for key, item in value.items()]
        return "".join(f"{indent}{'  ' if position else '- '}{line}" for position, line in enumerate(lines))

    def written(self, value: Any, at: int) -> str:  # noqa: ARG002 - JSON looks at the place
        """Write a value that stands at a place."""
        return _flow(value)


class _JSONEditor(_Editor):
    """Writes JSON, on lines of its own where the text has some, with the text's own indentation."""

    def is_within_flow(self, nodes: list[Any]) -> bool:  # noqa: ARG002 - all of it is, and `as_block` knows that
        return False

    def as_block(self, nodes: list[Any], value: Any) -> list[Splice]:
        start, end = self.bounds(nodes[-1])
        return [(start, end, self.written([value], start))]

    def written(self, value: Any, at: int) -> str:
        found = re.search(r"\n([ \t]+)\S", self.text)
        indent = found[1] if found else "  " if "\n" in self.text.strip() else None
        return json.dumps(value, ensure_ascii=self.text.isascii(), indent=indent).replace(
            "\n", f"\n{margin(self.text, at)}"
        )


def _child(node: Any, key: str | int) -> Any:
    if isinstance(key, int):
        return node.value[key] if node.id == "sequence" and 0 <= key < len(node.value) else None
    return next((value for name, value in node.value if name.value == key), None) if node.id == "mapping" else None


def _names(node: Any) -> list[Any]:
    return [name.value for name, _ in node.value]


def _flow(value: Any) -> str:
    """Write a value on one line, plain where that can't be misread."""
    if isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
        return value
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_flow(key)}: {_flow(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_flow, value)) + "]"
    return json.dumps(value, ensure_ascii=False)

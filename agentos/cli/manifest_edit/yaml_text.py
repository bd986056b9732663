"""Edits of YAML: by the places at which its nodes stand, so that all other lines stay as they are."""

import json
import re
from bisect import bisect
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from agentos.cli.manifest_edit.edits import GONE, Keys

_PLAIN = re.compile(r"(\./)?[A-Za-z][A-Za-z0-9_./-]*")
_COMMENT = re.compile(r"(?:^|(?<=\s))#.*", re.MULTILINE)
_WORDS = {"true", "false", "yes", "no", "on", "off", "null", "y", "n"}


def edit_nodes(text: str, keys: Keys, value: Any, meant: Any) -> str:  # noqa: ARG001 - an editor's signature
    """Edit what stands at *keys*; raise ValueError or LookupError where the layout is not known."""
    root = _composed(text)
    if root is None:
        return _appended(text, keys, value)
    return _edited(text, root, keys, value)


def comments(text: str) -> Counter[str]:
    """Return the comments in *text*, each as often as it is there."""
    return Counter(comment.rstrip() for _, comment in _comments(text))


def _comments(text: str) -> Iterator[tuple[int, str]]:
    """Yield where each comment begins, and what it says."""
    scalars, at = sorted(_scalars(_composed(text))), 0
    while found := _COMMENT.search(text, at):
        before = bisect(scalars, (found.start(), len(text))) - 1
        end = scalars[before][1] if before >= 0 else 0
        if end > found.start():  # what looks like a comment in a scalar is none
            at = end
        else:
            yield found.start(), found[0]
            at = found.end()


def _scalars(root: Any) -> Iterator[tuple[int, int]]:
    """Yield where the scalars beneath *root* begin and end; a node that aliases repeat is looked at once."""
    waiting, seen = [] if root is None else [root], set()
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if node.id == "scalar":
            yield node.start_mark.index, node.end_mark.index
        else:
            waiting += [each for one in node.value for each in (one if isinstance(one, tuple) else (one,))]


def _composed(text: str) -> Any:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        return YAML(typ="rt", pure=True).compose(text)
    except YAMLError as error:
        raise ValueError("it can't be read") from error


def _appended(text: str, keys: Keys, value: Any) -> str:
    """Put the first key into a file that has none."""
    if keys != ("packs", -1):
        raise ValueError("there is nothing to change")
    return _ended(text) + "packs:\n" + _item(value, "  ")


def _edited(text: str, root: Any, keys: Keys, value: Any) -> str:
    nodes = [root]
    for key in keys:
        found = _child(nodes[-1], key)
        if found is None:
            break
        nodes.append(found)
    if len(nodes) <= len(keys):
        if value is GONE:
            raise LookupError("there is nothing to take away")
        return _added(text, nodes, keys[len(nodes) - 1 :], value)
    if value is not GONE:
        return text[: nodes[-1].start_mark.index] + _flow(value) + text[_end(text, nodes[-1]) :]
    written = _taken_away(text, nodes, keys)
    if (comments(text) - comments(written)) - _own_comments(text, nodes[-1]):
        raise ValueError("a comment would be lost that is about something else")
    return written


def _own_comments(text: str, node: Any) -> Counter[str]:
    """Return the comments on the lines of *node*: they go with it."""
    start, end = _start_of_line(text, node.start_mark.index), _end_of_line(text, _end(text, node))
    return Counter(comment.rstrip() for at, comment in _comments(text) if start <= at < end)


def _child(node: Any, key: str | int) -> Any:
    if isinstance(key, int):
        return node.value[key] if node.id == "sequence" and 0 <= key < len(node.value) else None
    return next((value for name, value in node.value if name.value == key), None) if node.id == "mapping" else None


def _taken_away(text: str, nodes: list[Any], keys: Keys) -> str:
    """Take the lines of the last of *nodes* away."""
    above, node, key = nodes[-2], nodes[-1], keys[-1]
    if above.flow_style:
        return _cut(text, above, above.value.index(node) if isinstance(key, int) else _number(above, key))
    first = _dash(text, node) if isinstance(key, int) else _name(above, key).start_mark.index
    start, end = _start_of_line(text, first), _end_of_line(text, _end(text, node))
    if text[start:first].strip():
        raise ValueError("it shares its line with something else")
    head, tail = text[:start], text[end:]
    if len(above.value) > 1:
        return head + tail
    colon = text.index(":", _name(nodes[-3], str(keys[-2])).end_mark.index) + 1
    empty = "[]" if above.id == "sequence" else "{}"  # without it, there would be nothing at all
    return f"{head[:colon]} {empty}{head[colon:]}{tail}"


def _name(above: Any, key: str) -> Any:
    return above.value[_number(above, key)][0]


def _number(above: Any, key: str) -> int:
    return next(index for index, (name, _) in enumerate(above.value) if name.value == key)


def _cut(text: str, above: Any, index: int) -> str:
    """Cut an item out of a flow collection, with its comma; lines that hold nothing else go with it."""
    start, end = _bounds(text, above.value[index])
    past, own_comma = _past_comma(text, end)
    is_last = index == len(above.value) - 1
    line, line_end = _start_of_line(text, start), _end_of_line(text, past)
    rest = text[past:line_end].strip()
    if not text[line:start].strip() and (not rest or rest.startswith("#")):
        head, tail = text[:line], text[line_end:]
    else:
        head, tail = text[:start], text[past:] if is_last or rest.startswith("#") else text[past:].lstrip(" ")
    if is_last and index and not own_comma:
        before = _bounds(text, above.value[index - 1])[1]
        past_before, _ = _past_comma(text, before)
        return text[:before] + head[past_before:].rstrip(" ") + tail
    return head + tail


def _bounds(text: str, item: Any) -> tuple[int, int]:
    """Return where an item of a flow collection begins and ends."""
    first, last = item if isinstance(item, tuple) else (item, item)
    return first.start_mark.index, _end(text, last)


def _past_comma(text: str, at: int) -> tuple[int, bool]:
    """Return what is behind the comma that follows *at* on its line, and whether there is one."""
    found = re.compile(r"[ \t]*,").match(text, at)
    return (at, False) if found is None else (found.end(), True)


def _added(text: str, nodes: list[Any], keys: Sequence[str | int], value: Any) -> str:
    """Add to the last of *nodes*, which is there, what is to stand beneath it at *keys*."""
    key, *rest = keys
    node, is_within_flow = nodes[-1], any(one.flow_style for one in nodes[:-1])
    if node.id == "sequence" and node.value:
        return _with_item(text, node, value)
    if node.id == "sequence" and (is_within_flow or text[node.start_mark.index + 1 : _end(text, node) - 1].strip()):
        return _with_first(text, node, value)
    if node.id == "sequence" or (node.id == "scalar" and rest == [] and key == -1):
        return _as_block(text, node, value)
    if node.id != "mapping" or len(rest) > 1:
        raise ValueError("a layout that is not known")
    if node.flow_style:
        at = _bounds(text, node.value[-1])[1] if node.value else _end(text, node) - 1
        comma = ", " if node.value else ""
        return text[:at] + f"{comma}{_flow(key)}: {_flow([value] if rest else value)}" + text[at:]
    indent = " " * node.start_mark.column
    more = (
        f"{indent}{_flow(key)}: {_flow(value)}\n"
        if not rest
        else f"{indent}{_flow(key)}:\n{_item(value, indent + '  ')}"
    )
    return _behind(text, node, more)


def _with_item(text: str, node: Any, value: Any) -> str:
    """Put an item behind the others."""
    if node.flow_style:
        return _with_flow_item(text, node, value)
    dash = _dash(text, node.value[0])
    return _behind(text, node, _item(value, " " * (dash - _start_of_line(text, dash))))


def _with_flow_item(text: str, node: Any, value: Any) -> str:
    """Put an item behind the last one, on a line of its own where that has one."""
    start, end = _bounds(text, node.value[-1])
    line, line_end = _start_of_line(text, start), _end_of_line(text, end)
    if text[line:start].strip() or line_end > _end(text, node) - 1:
        return text[:end] + ", " + _flow(value) + text[end:]
    past, has_comma = _past_comma(text, end)
    comma = "," if has_comma else ""
    return f"{text[:end]},{text[past:line_end]}{text[line:start]}{_flow(value)}{comma}\n{text[line_end:]}"


def _with_first(text: str, node: Any, value: Any) -> str:
    """Put the first item between brackets; comments that stand there stay before it."""
    at = _end(text, node) - 1
    if not text[node.start_mark.index + 1 : at].strip():
        return text[:at] + _flow(value) + text[at:]
    margin = _margin(text, node.start_mark.index)
    return f"{text[:at].rstrip()}\n{margin}  {_flow(value)}\n{margin}{text[at:]}"


def _as_block(text: str, node: Any, value: Any) -> str:
    """Put the first item on lines of its own, in the place of `[]` or of nothing; a comment behind that stays."""
    head = text[: node.start_mark.index].rstrip()
    end = max(_end(text, node), len(head)) if node.end_mark.index > node.start_mark.index else len(head)
    line_end = _end_of_line(text, end)
    margin = _margin(text, max(len(head) - 1, 0))
    return _ended(head + text[end:line_end].rstrip()) + _item(value, f"{margin}  ") + text[line_end:]


def _margin(text: str, at: int) -> str:
    """Return the spaces before what stands on the line of *at*."""
    line = text[_start_of_line(text, at) :]
    return line[: len(line) - len(line.lstrip(" "))]


def _behind(text: str, node: Any, more: str) -> str:
    """Put lines behind the last line of *node*, before what is between it and whatever follows."""
    at = _end_of_line(text, _end(text, node))
    return _ended(text[:at]) + more + text[at:]


def _end(text: str, node: Any) -> int:
    """Return where the text of *node* ends: blocks claim what follows them, up to the next node."""
    start, end = node.start_mark.index, int(node.end_mark.index)
    if node.id == "scalar":
        header = text[start:end].partition("\n")[0]
        is_block = node.style in ("|", ">") and "+" not in header
        return start + len(text[start:end].rstrip()) if is_block else end
    if node.flow_style or not node.value:
        return end
    last = node.value[-1]
    return _end(text, last[1] if isinstance(last, tuple) else last)


def _dash(text: str, node: Any) -> int:
    """Return where the dash before an item stands."""
    at = text.rindex("-", 0, node.start_mark.index)
    if text[at + 1 : node.start_mark.index].strip():
        raise ValueError("there is something between the dash and its item")
    return at


def _start_of_line(text: str, at: int) -> int:
    return text.rfind("\n", 0, at) + 1


def _end_of_line(text: str, at: int) -> int:
    """Return the end of the line of *at*. The end of a block scalar is the beginning of a line: that is it already."""
    if at and text[at - 1 : at] == "\n":
        return at
    found = text.find("\n", at)
    return len(text) if found < 0 else found + 1


def _ended(text: str) -> str:
    return text if not text or text.endswith("\n") else f"{text}\n"


def _item(value: Any, indent: str) -> str:
    """Write an item of a list over as many lines as it has keys."""
    if not isinstance(value, dict):
        return f"{indent}- {_flow(value)}\n"
    lines = [f"{_flow(key)}: {_flow(item)}\n" for key, item in value.items()]
    return "".join(f"{indent}{'  ' if position else '- '}{line}" for position, line in enumerate(lines))


def _flow(value: Any) -> str:
    """Write a value on one line, plain where that can't be misread."""
    if isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
        return value
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_flow(key)}: {_flow(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_flow, value)) + "]"
    return json.dumps(value, ensure_ascii=False)

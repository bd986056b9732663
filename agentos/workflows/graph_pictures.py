"""A graph as a picture: SVG by a small layout of our own, and the text that mermaid draws one of.

Layers go from the top to the bottom, each node as far down as the longest way to it. A line over several layers passes
between the nodes of those, by a place that is kept free for it. Within a layer, nodes stand near to what is above them.
"""

import itertools
from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape, quoteattr

import attrs

from agentos.workflows.graph_text import short_title
from agentos.workflows.graphs import GraphNode, WorkflowGraph, short

FILLS = {
    "done": ("#d7f0dc", "#2e7d42"),
    "running": ("#d6ebfa", "#1f6fa8"),
    "waiting": ("#fdf0c8", "#9a7400"),
    "failed": ("#fadbd8", "#b3261e"),
    "unknown": ("#eadcf7", "#7b3fb0"),
    "skipped": ("#eeeeee", "#8a8a8a"),
    None: ("#ffffff", "#6b6b6b"),
}
"""How a node of each state is filled and framed. The state stands in words as well."""
_CHARACTER, _LINE, _PADDING = 7.2, 16, 10
_GAP_X, _GAP_Y, _MARGIN, _TITLE = 24, 36, 16, 28
_LANE = 12
_SWEEPS = 4


# -- mermaid -----------------------------------------------------------------------------------------------------------


def graph_mermaid(graph: WorkflowGraph) -> str:
    """Return a graph in the language of mermaid, for pages that draw it."""
    numbers = {node.id: f"n{number}" for number, node in enumerate(graph.nodes)}
    lines = ["flowchart TD"]
    for node in graph.nodes:
        label = "<br/>".join(_in_mermaid(line) for line in _lines_of(node))
        lines.append(
            f'  {numbers[node.id]}["{label}"]{f":::{node.state}" if node.state in FILLS and node.state else ""}'
        )
    for id, before in graph.needs.items():
        lines += [f"  {numbers[one]} --> {numbers[id]}" for one in before]
    used = {node.state for node in graph.nodes}
    styles = [(state, *FILLS[state]) for state in FILLS if state and state in used]
    lines += [f"  classDef {state} fill:{fill},stroke:{frame},color:#222" for state, fill, frame in styles]
    if graph.left_out:
        lines.append(f"  more[and {graph.left_out} more]")
    return "\n".join(lines) + "\n"


def _in_mermaid(text: str) -> str:
    """Write out whatever means something to mermaid or to the page it stands in."""
    return "".join(char if char.isalnum() or char in " _-.,:/…" else f"#{ord(char)};" for char in text)


def _lines_of(node: GraphNode) -> list[str]:
    action = "" if node.action == node.name else node.action
    state = " - ".join(part for part in (node.state, node.note) if part)
    return [short(line) for line in (node.name or node.id, action, state) if short(line)] or ["?"]


# -- layout ------------------------------------------------------------------------------------------------------------


@attrs.frozen
class Box:
    """Where something is drawn; one without a node is a place that a line passes."""

    id: str
    x: float
    y: float
    width: float
    height: float

    @property
    def middle(self) -> float:
        """Return the middle, from left to right."""
        return self.x + self.width / 2


@attrs.frozen
class Layout:
    """Where everything of a graph is drawn."""

    boxes: Mapping[str, Box]
    ways: Sequence[tuple[str, ...]]
    """Each line between two nodes: the ids of the boxes that it passes, from the top."""
    width: float
    height: float


def layout_of(graph: WorkflowGraph) -> Layout:
    """Return where the nodes of a graph are drawn, and by which ways the lines go."""
    rows, ways = _with_passages(graph)
    rows = _in_order(rows, ways)
    nodes = {node.id: node for node in graph.nodes}
    sizes = {id: _size_of(nodes[id]) if id in nodes else (_LANE, 0) for row in rows for id in row}
    widths = [sum(sizes[id][0] for id in row) + _GAP_X * (len(row) - 1) for row in rows]
    width = max([*widths, _CHARACTER * len(short_title(graph))]) if rows else _CHARACTER * len(short_title(graph))
    boxes: dict[str, Box] = {}
    y: float = _MARGIN + _TITLE
    for row, own in zip(rows, widths, strict=True):
        x = _MARGIN + (width - own) / 2
        tallest = max(sizes[id][1] for id in row)
        for id in row:
            boxes[id] = Box(id, x, y, sizes[id][0], sizes[id][1] or tallest)
            x += sizes[id][0] + _GAP_X
        y += tallest + _GAP_Y
    return Layout(boxes, ways, width + 2 * _MARGIN, y - (_GAP_Y if rows else 0) + _MARGIN)


def _with_passages(graph: WorkflowGraph) -> tuple[list[list[str]], list[tuple[str, ...]]]:
    """Return the rows of nodes, with a place in every row that a line has to pass, and the ways of the lines."""
    rows = [list(layer) for layer in graph.layers]
    depth = {id: number for number, row in enumerate(rows) for id in row}
    ways = []
    lanes: dict[tuple[str, int], str] = {}
    for id, before in graph.needs.items():
        for one in before:
            way = [one]
            for number in range(depth[one] + 1, depth[id]):
                lane = (one, number)  # lines from one node share their places
                if lane not in lanes:
                    lanes[lane] = f"\0{one}\0{number}"
                    rows[number].append(lanes[lane])
                way.append(lanes[lane])
            ways.append((*way, id))
    return rows, ways


def _in_order(rows: Sequence[Sequence[str]], ways: Sequence[tuple[str, ...]]) -> list[list[str]]:
    """Return the rows ordered so that lines seldom cross: each box near the middle of what it is joined with."""
    joined: dict[str, set[str]] = {}
    for way in ways:
        for above, below in itertools.pairwise(way):
            joined.setdefault(above, set()).add(below)
            joined.setdefault(below, set()).add(above)
    ordered = [list(row) for row in rows]
    for sweep in range(_SWEEPS):
        numbers = range(1, len(ordered)) if sweep % 2 == 0 else range(len(ordered) - 2, -1, -1)
        for number in numbers:
            beside = ordered[number - 1 if sweep % 2 == 0 else number + 1]
            place = {id: index / max(len(beside) - 1, 1) for index, id in enumerate(beside)}
            own = {id: index / max(len(ordered[number]) - 1, 1) for index, id in enumerate(ordered[number])}
            ordered[number].sort(key=lambda id, place=place, own=own: _mean(joined.get(id, ()), place, own[id]))  # type: ignore[misc]
    return ordered


def _mean(neighbours: "set[str] | tuple[()]", place: Mapping[str, float], own: float) -> float:
    there = sorted(place[one] for one in neighbours if one in place)
    return sum(there) / len(there) if there else own


def _size_of(node: GraphNode) -> tuple[float, float]:
    lines = _lines_of(node)
    return max(len(line) for line in lines) * _CHARACTER + 2 * _PADDING, len(lines) * _LINE + 2 * _PADDING - 4


# -- SVG ---------------------------------------------------------------------------------------------------------------


def graph_svg(graph: WorkflowGraph) -> str:
    """Return a graph as an SVG document, which loads nothing and runs nothing."""
    layout = layout_of(graph)
    title = short_title(graph)
    more = f" (and {graph.left_out} more)" if graph.left_out else ""
    size = f'width="{layout.width:.0f}" height="{layout.height:.0f}"'
    box = f'viewBox="0 0 {layout.width:.0f} {layout.height:.0f}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} {box} role="img" aria-label={quoteattr(title)}>',
        f"<title>{escape(title)}</title>",
        '<rect width="100%" height="100%" fill="#fff"/>',
        _TIP,
        f'<text x="{_MARGIN}" y="{_MARGIN + 12}" {_TITLE_FONT}>{escape(title + more)}</text>',
        *(_line_svg(way, layout.boxes) for way in layout.ways),
        *(_node_svg(node, layout.boxes[node.id]) for node in graph.nodes),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


_TIP = (
    '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
    '<path d="M0 0 8 4 0 8z" fill="#6b6b6b"/></marker></defs>'
)
_TITLE_FONT = 'font-family="sans-serif" font-size="13" font-weight="bold" fill="#222"'


def _line_svg(way: Sequence[str], boxes: Mapping[str, Box]) -> str:
    first, *passed = (boxes[id] for id in way)
    x, y = first.middle, first.y + first.height
    path = f"M{x:.1f} {y:.1f}"
    for box in passed:
        half = (y + box.y) / 2
        path += f"C{x:.1f} {half:.1f} {box.middle:.1f} {half:.1f} {box.middle:.1f} {box.y:.1f}"
        x, y = box.middle, box.y
        if box is not passed[-1]:
            y = box.y + box.height
            path += f"V{y:.1f}"
    return f'<path d="{path}" fill="none" stroke="#6b6b6b" marker-end="url(#tip)"/>'


def _node_svg(node: GraphNode, box: Box) -> str:
    fill, frame = FILLS.get(node.state, FILLS[None])
    lines = _lines_of(node)
    texts = "".join(
        f'<text x="{box.middle:.1f}" y="{box.y + _PADDING + 9 + _LINE * number:.1f}" text-anchor="middle"'
        f"{' font-weight=' + quoteattr('bold') if number == 0 else ''}>{escape(line)}</text>"
        for number, line in enumerate(lines)
    )
    dash = ' stroke-dasharray="4 3"' if node.state == "skipped" else ""
    return (
        f'<g font-family="monospace" font-size="12" fill="#222"><title>{escape(" - ".join(lines))}</title>'
        f'<rect x="{box.x:.1f}" y="{box.y:.1f}" width="{box.width:.1f}" height="{box.height:.1f}" rx="5" '
        f'fill="{fill}" stroke="{frame}"{dash}/>{texts}</g>'
    )

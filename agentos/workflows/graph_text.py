"""A graph as lines of text, for terminals: a tree in which each node stands beneath the last one before it."""

from collections.abc import Iterator, Sequence

from agentos.workflows.graphs import GraphNode, WorkflowGraph, short

Part = tuple[str, str]
"""A piece of a line, and its style in the words of rich."""
SIGNS = {"done": "✓", "running": "▶", "waiting": "…", "failed": "✗", "unknown": "?", "skipped": "-", None: "·"}
PLAIN_SIGNS = {"done": "+", "running": ">", "waiting": "~", "failed": "x", "unknown": "?", "skipped": "-", None: "."}
STYLES = {
    "done": "green",
    "running": "bold cyan",
    "waiting": "yellow",
    "failed": "bold red",
    "unknown": "bold magenta",
    "skipped": "bright_black",
    None: "bright_black",
}
_GUIDES = ("├── ", "└── ", "│   ", "    ")
_PLAIN_GUIDES = ("|-- ", "`-- ", "|   ", "    ")


def graph_lines(graph: WorkflowGraph, *, ascii_only: bool = False) -> list[list[Part]]:
    """Return the lines of a graph, each as its pieces and their styles; the first is its title."""
    lines: list[list[Part]] = [[(short_title(graph), "bold")], *_tree(graph, ascii_only)]
    if graph.left_out:
        lines.append([(f"and {graph.left_out} more", "bright_black")])
    return lines


def graph_text(graph: WorkflowGraph, *, ascii_only: bool = False) -> str:
    """Return a graph as plain text."""
    return "\n".join("".join(text for text, _ in line) for line in graph_lines(graph, ascii_only=ascii_only))


def short_title(graph: WorkflowGraph) -> str:
    """Return the title on one line."""
    return " ".join("".join(char if char.isprintable() else " " for char in graph.title).split())


def _tree(graph: WorkflowGraph, ascii_only: bool) -> Iterator[list[Part]]:
    """Yield a line for each node, beneath the furthest of those before it; an only one goes on in the same column."""
    tee, corner, line, gap = _PLAIN_GUIDES if ascii_only else _GUIDES
    nodes = {node.id: node for node in graph.nodes}
    parents = _parents(graph)
    waiting: list[tuple[str | None, str, str]] = [(None, "", "")]
    while waiting:  # not by calling itself: a run may be a chain of a thousand steps
        id, head, margin = waiting.pop()
        if id is not None:
            yield [(head, "bright_black"), *_parts(nodes[id], graph, parents[id], ascii_only)]
        below = [one for one in nodes if parents[one] == id]
        if len(below) == 1:
            waiting.append((below[0], margin, margin))
            continue
        for one in reversed(below):
            is_last = one == below[-1]
            waiting.append((one, margin + (corner if is_last else tee), margin + (gap if is_last else line)))


def _parents(graph: WorkflowGraph) -> dict[str, str | None]:
    """Return beneath which node each stands: the furthest of those before it."""
    depth = {id: number for number, layer in enumerate(graph.layers) for id in layer}
    return {
        node.id: max(before, key=depth.__getitem__) if (before := graph.needs.get(node.id)) else None
        for node in graph.nodes
    }


def _parts(node: GraphNode, graph: WorkflowGraph, parent: str | None, ascii_only: bool) -> Sequence[Part]:
    style = STYLES.get(node.state, "")
    signs = PLAIN_SIGNS if ascii_only else SIGNS
    parts = [(f"{signs.get(node.state, signs[None])} ", style), (short(node.name), "bold")]
    if node.action and node.action != node.name:
        parts.append((f"  {short(node.action)}", "bright_black"))
    if node.state is not None:
        parts.append((f"  {node.state}", style))
    if node.note:
        parts.append((f"  {short(node.note)}", ""))
    also = [one for one in graph.needs.get(node.id, ()) if one != parent]
    if also:
        names = {one.id: short(one.name) for one in graph.nodes if one.id in also}
        parts.append((f"  (also after {', '.join(names[one] for one in also)})", "bright_black"))
    return parts

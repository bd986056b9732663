"""Tables, records and trees by rich. Imported when there is something to draw."""

from collections.abc import Iterable, Sequence

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.segment import Segment
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from agentos.cli.terminal.harmless_text import clean

_PADDING = 2


class Cleaned:
    """A renderable whose text makes a terminal do nothing: what it would obey is written out."""

    def __init__(self, renderable: RenderableType) -> None:
        self._renderable = renderable

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for segment in console.render(self._renderable, options):
            if segment.control:
                continue
            yield Segment(clean(segment.text), segment.style)


def natural_width(columns: Sequence[str], rows: Sequence[Sequence[Text]]) -> int:
    """Return how many terminal columns a table wants."""
    cells = [[Text(name) for name in columns], *rows]
    widest = [max(max(map(cell_len, cell.plain.split("\n"))) for cell in column) for column in zip(*cells, strict=True)]
    return sum(widest) + _PADDING * len(widest)


def draw_table(
    columns: Sequence[str], rows: Sequence[Sequence[Text]], title: str | None = None, *, has_line: bool = True
) -> RenderableType:
    """Draw a table, with a line beneath its head or without."""
    table = Table(
        title=None if title is None else Text(clean(title)),
        title_justify="left",
        title_style="bold",
        header_style="bold",
        box=SIMPLE_HEAD if has_line else None,
        pad_edge=False,
        show_edge=False,
    )
    for name in columns:
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table


def draw_records(columns: Sequence[str], rows: Sequence[Sequence[Text]], title: str | None = None) -> RenderableType:
    """Draw each row as a heading and indented lines, for terminals too narrow for a table."""
    parts: list[RenderableType] = [Text(clean(title), "bold")] if title else []
    for first, *rest in rows:
        facts = [(name, cell) for name, cell in zip(columns[1:], rest, strict=True) if cell.plain]
        parts += [Text.assemble(first, style="bold"), draw_facts(facts)]
    return Group(*parts)


def draw_facts(rows: Sequence[tuple[str, Text]]) -> RenderableType:
    """Draw names and values, one below the other."""
    return draw_items([(Text(f"  {clean(name)}", "bright_black"), cell) for name, cell in rows])


def draw_items(rows: Sequence[tuple[Text, Text]]) -> RenderableType:
    """Draw texts behind signs."""
    grid = Table.grid(padding=(0, 1))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for sign, text in rows:
        grid.add_row(sign, text)
    return grid


def draw_tree(label: str, children: Iterable[str]) -> RenderableType:
    """Draw a label with branches."""
    tree = Tree(Text(clean(label), "bold"), guide_style="bright_black")
    for child in children:
        tree.add(Text(clean(child)))
    return tree

"""What people are shown of a call: as its tool declares it, or as its schemas and its output are."""

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentos import (
    PUBLIC,
    Display,
    ExtensionPack,
    Media,
    Tool,
    ToolDefinitionError,
    ToolResult,
    lint_pack,
    tool,
    with_displays,
)
from agentos.stacks.entry import EntryState
from agentos.testing import make_host
from agentos.tools.definition import definition_hash
from agentos.tools.listing import ToolInfo
from agentos.tools.shown import ARGUMENT_LIMIT, CELL_LIMIT, LINE_LIMIT, ROW_LIMIT, DiffLine, shown

HITS = [{"title": "Cats", "url": "https://a.example", "rank": 1}, {"title": "Dogs", "url": None}]


def info(display=None, output_schema=None):
    return ToolInfo(
        name="find_it",
        description="Find it.",
        input_schema={"type": "object"},
        output_schema=output_schema,
        effect="read",
        required_access=PUBLIC,
        display_name="Find it",
        category=None,
        source="extension",
        fully_qualified_id="p:find_it",
        aliases=(),
        state=EntryState.ACTIVE,
        display=display,
    )


def of(output, *args, arguments=None, output_schema=None, content=None, media=(), **fields):
    display = Display(*args, **fields) if args else None
    return shown(info(display, output_schema), arguments, ToolResult.ok(output, content, media=media))


# -- a display is a value that is checked where it is written -----------------------------------------------------


@pytest.mark.parametrize(
    ("args", "fields", "said"),
    [
        (("chart",), {}, "expected one of table, markdown"),
        (("table",), {"title": "{query}"}, "expected placeholders such as {args.query}"),
        (("table",), {"title": "{args.query!r}"}, "expected placeholders"),
        (("table",), {"title": "{args.}"}, "expected placeholders"),
        (("table",), {"title": "{args.a.__class__[0]}"}, "expected placeholders"),
        (("table",), {"title": "{args.query"}, "a brace begins or ends no placeholder"),
        (("table",), {"title": "x" * 201}, "up to 200 printable characters"),
        (("table",), {"title": "a\nb"}, "printable"),
        (("table",), {"fields": ["a"] * 21}, "at most 20"),
        (("table",), {"fields": ["a b"]}, "expected paths"),
        (("table",), {"fields": [3]}, "expected paths"),
        (("table",), {"fields": ["a[].x", "b[].y"]}, "items of one list"),
        (("diff",), {"fields": ["a", "b", "c"]}, "the text before and the one after|path of the text before"),
    ],
)
def test_a_display_that_means_nothing_is_refused(args, fields, said):
    with pytest.raises(ValueError, match=said):
        Display(*args, **fields)


def test_a_title_is_a_text():
    with pytest.raises(TypeError, match="expected a text"):
        Display("text", title=3)


def test_a_tool_takes_a_display_and_nothing_else():
    with pytest.raises(ToolDefinitionError, match=r"display.*expected a Display, got str"):
        Tool.from_schema(
            name="t", description="d", input_schema={}, effect="read", required_access=PUBLIC, display="table"
        )


async def test_lists_tell_how_a_tool_is_shown():
    display = Display("text", title="{args.name}")

    @tool(effect="read", required_access=PUBLIC, display=display)
    def greet(name: str) -> str:
        """Greet somebody by name."""
        return name

    async with make_host(greet) as host:
        (told,) = host.tools.list_available_tools()
    assert told.display == display


def test_what_people_accept_of_a_tool_is_the_same_with_another_display():
    @tool(effect="read", required_access=PUBLIC)
    def greet(name: str) -> str:
        """Greet somebody by name."""
        return name

    assert definition_hash(greet) == definition_hash(attrs.evolve(greet, display=Display("json")))


@pytest.mark.parametrize(
    ("display", "said"),
    [
        (Display("table", title="{args.query}", fields=["hits[].title", "total"]), []),
        (Display("table", title="{args.quer}"), ["{args.quer}, which no argument is"]),
        (Display("text", title="{output.sum}"), ["{output.sum}, which no output has"]),
        (Display("table", fields=["hits[].name"]), ["the field hits[].name, which is not in the output schema"]),
        (Display("table", fields=["hits.title"]), ["the field hits.title, which is not in the output schema"]),
        (Display("table", fields=["total.of"]), ["the field total.of, which is not in the output schema"]),
        (Display("json", title="{output.hits.0.title}", fields=["extra.any.thing"]), []),
    ],
)
def test_lint_names_what_is_in_no_schema(display, said):
    hit = {"type": "object", "properties": {"title": {"type": "string"}}, "additionalProperties": False}
    output = {
        "type": "object",
        "properties": {
            "hits": {"type": "array", "items": {"$ref": "#/$defs/hit"}},
            "total": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
            "extra": {},
        },
        "additionalProperties": False,
        "$defs": {"hit": hit},
    }
    made = Tool.from_schema(
        name="search",
        description="Search for pages with a query.",
        input_schema={"type": "object", "properties": {"query": {"type": "string"}}},
        effect="read",
        required_access=PUBLIC,
        output_schema=output,
        display=display,
    )
    found = [one for one in lint_pack(ExtensionPack("web", "1", [made])) if one.rule == "display"]
    assert [one.message.removeprefix("its display names ") for one in found] == said


def test_a_display_for_a_tool_that_is_not_there_counts_for_nothing():
    made = Tool.from_schema(name="t", description="d", input_schema={}, effect="read", required_access=PUBLIC)

    assert with_displays([made], {"t": Display("json")})[0].display == Display("json")
    assert with_displays([made], {"other": Display("json")})[0].display is None


# -- as declared --------------------------------------------------------------------------------------------------


def test_a_title_has_arguments_and_parts_of_the_output_in_it():
    card = of(
        {"total": 2}, "json", title="{args.q.text} {output.total}/{args.left_out}", arguments={"q": {"text": "a{b}"}}
    )

    assert card.title == "a(b) 2/…"


def test_a_title_is_one_line_of_bounded_length():
    card = of(None, "text", title="{args.a}{args.a}", arguments={"a": "x\ny" * 500})

    assert (len(card.title), "\n" in card.title) == (200, False)


def test_without_a_title_it_is_the_name_for_people():
    assert of("x", "text").title == "Find it"


def test_a_table_has_the_columns_that_are_declared_and_facts_above():
    output = {"hits": HITS, "total": 2}
    card = of(output, "table", fields=["hits[].url", "hits[].title", "total"])

    assert (card.kind, card.facts, card.columns) == ("table", (("total", "2"),), ("url", "title"))
    assert card.rows == (("https://a.example", "Cats"), ("", "Dogs"))


def test_a_table_of_a_list():
    card = of(HITS, "table", fields=["[].title"])

    assert (card.columns, card.rows) == (("title",), (("Cats",), ("Dogs",)))


def test_a_column_may_be_a_list_in_each_row():
    card = of({"rows": [{"tags": [{"n": "a"}, {"n": "b"}]}, {}]}, "table", fields=["rows[].tags[].n"])

    assert (card.columns, card.rows) == (("tags.n",), (("a, b",), ("",)))


def test_rows_and_cells_are_bounded_and_it_says_so():
    card = of([{"a": "x" * 10_000}] * 5_000, "table", fields=["[].a"])

    assert (len(card.rows), card.row_count, len(card.rows[0][0])) == (ROW_LIMIT, 5_000, CELL_LIMIT)
    assert set(card.cut) == {"200 of 5,000 rows are shown", "of long cells the first 500 characters are shown"}


def test_text_and_markdown_are_fields_or_the_content():
    assert of({"a": "one", "b": ["two"]}, "markdown", fields=["a", "b[]"]).text == "one\n\ntwo"
    assert of({"a": 1}, "text", content="what the model reads").text == "what the model reads"


def test_json_is_indented():
    assert of({"a": {"b": 1}, "c": 2}, "json", fields=["a"]).text == '{\n  "a": {\n    "b": 1\n  }\n}'


def test_a_diff_of_two_texts():
    card = of({"old": "a\nb\n", "new": "a\nc\n"}, "diff", fields=["old", "new"])

    assert card.lines == (DiffLine("@", "@@ -1,2 +1,2 @@"), DiffLine(" ", "a"), DiffLine("-", "b"), DiffLine("+", "c"))


def test_a_diff_that_is_one_already():
    told = of({"diff": "@@ -1 +1 @@\n-a\n+b\n c"}, "diff", fields=["diff"])

    assert [line.sign for line in told.lines] == ["@", "-", "+", " "]


def test_a_difference_is_bounded():
    card = of({"before": "a\n" * 9_000, "after": "b\n" * 9_000}, "diff")

    assert len(card.lines) <= LINE_LIMIT
    assert card.cut


def test_an_image_is_data_that_a_page_may_draw_and_svg_is_not():
    png, svg = Media("image/png", b"\x89PNG", name="a.png"), Media("image/svg+xml", b"<svg onload=alert(1)>")
    far = Media("image/png", url="https://a.example/x.png")
    card = of(None, "image", media=[png, svg, far])

    assert card.kind == "image"
    assert [one.source for one in card.media] == ["data:image/png;base64,iVBORw==", None, None]
    assert card.media[0].words == "[image image/png a.png, 4 bytes]"


def test_what_does_not_fit_its_display_is_shown_as_it_is():
    assert of("plain words", "table", fields=["hits[].title"]).kind == "text"
    assert of({"a": {"b": [1]}}, "image").kind == "json"


# -- as it is -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("output", "kind"),
    [
        ("words", "text"),
        (None, "text"),
        (7, "json"),
        ([], "json"),
        ([1, 2], "table"),
        ([{"a": 1}], "table"),
        ([[1], [2]], "json"),
        ([{"a": 1}, 2], "json"),
        ({"a": 1, "b": "x"}, "table"),
        ({"hits": HITS, "total": 2}, "table"),
        ({"hits": HITS, "more": HITS}, "json"),
        ({"a": {"b": 1}}, "json"),
        ({"before": "a", "after": "b"}, "diff"),
    ],
)
def test_without_a_display_the_kind_is_what_fits(output, kind):
    assert of(output).kind == kind


def test_columns_stand_in_the_order_of_the_schema():
    items = {"type": "object", "properties": {"url": {}, "title": {}}}
    card = of(HITS, output_schema={"type": "array", "items": items})

    assert card.columns == ("url", "title", "rank")


def test_an_answer_of_a_database_names_its_columns_apart():
    card = of({"columns": ["n", "sum"], "rows": [["a", 1], ["b", None]], "row_count": 2})

    assert (card.columns, card.rows, card.facts) == (("n", "sum"), (("a", "1"), ("b", "null")), (("row_count", "2"),))


def test_a_failure_says_why():
    card = shown(info(), {}, ToolResult.fail("TimedOut", "it took too long"))

    assert (card.error, card.rows, card.text) == ("TimedOut: it took too long", (), "")


def test_an_approval_shows_the_preview_and_every_argument_whatever_is_declared():
    display = Display("diff", title="Write {args.path}", fields=["before", "after"])
    card = shown(info(display), {"path": "a.txt", "text": "b"}, preview={"before": "a", "after": "b"})

    assert card.arguments == (("path", "a.txt"), ("text", "b"))
    assert [line.sign for line in card.lines] == ["@", "-", "+"]


def test_a_preview_that_has_no_declared_field_is_shown_as_it_is():
    card = shown(info(Display("table", fields=["path"])), {}, preview={"before": "a", "after": "b"})

    assert card.kind == "diff"


def test_an_argument_that_is_too_long_is_said_to_be_cut():
    card = shown(info(), {"text": "x" * (ARGUMENT_LIMIT + 1)})

    assert card.cut == ("the argument text: 20,000 of 20,001 characters are shown",)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["a", "b", "before", "after"]), inner),
    max_leaves=12,
)
DISPLAYS = st.builds(
    Display,
    st.sampled_from(["table", "markdown", "image", "json", "text"]),
    title=st.sampled_from(["", "{args.a}", "{output.a.b} {args.b.0}"]),
    fields=st.lists(st.sampled_from(["a", "a[].b", "a[]", "b", "a[].b[].a"]), max_size=4),
)


@given(st.none() | DISPLAYS, st.dictionaries(st.sampled_from("ab"), JSON), JSON)
def test_any_output_is_shown_as_texts_only(display, arguments, output):
    card = shown(info(display), arguments, ToolResult.ok(output))

    assert all(isinstance(cell, str) for row in card.rows for cell in row)
    assert all(len(row) == len(card.columns) for row in card.rows)
    assert len(card.arguments) == len(arguments)

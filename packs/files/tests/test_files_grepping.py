"""grep_files: lines, and expressions that want to take for ever."""

import asyncio
import os
from contextlib import suppress
from pathlib import Path

import pytest
from agentos_pack_files import _matching, grepping

from agentos import AgentOS, PackEntry, ToolCall


def places(found):
    return [(match.path, match.line, match.column) for match in found.matches]


async def test_a_literal_is_found_in_every_file(tools):
    found = await tools()["grep_files"]("hello")

    assert places(found) == [("src/deep/notes.md", 2, 1), ("src/main.py", 3, 8)]
    assert (found.files_searched, found.truncated) == (3, False)


@pytest.mark.parametrize("pattern", ["print('", "(", "[a", "*", "\\"])
async def test_a_literal_is_no_expression(tools, tree, pattern):
    (tree / "b.txt").write_text(f"x{pattern}y\n")

    assert ("b.txt", 1, 2) in places(await tools()["grep_files"](pattern))


async def test_an_expression_is_one_when_it_is_said(tools):
    found = await tools()["grep_files"](r"^(one|three)$", regex=True)

    assert places(found) == [("a.txt", 1, 1), ("a.txt", 3, 1)]


@pytest.mark.parametrize("regex", [True, False])
async def test_case_can_be_ignored(tools, regex):
    assert len((await tools()["grep_files"]("HELLO", regex=regex, ignore_case=True)).matches) == 2
    assert (await tools()["grep_files"]("HELLO", regex=regex)).matches == []


async def test_a_glob_says_which_files(tools):
    assert places(await tools()["grep_files"]("hello", glob="*.md")) == [("src/deep/notes.md", 2, 1)]


async def test_one_file_can_be_searched(tools):
    assert places(await tools()["grep_files"]("two", path="a.txt")) == [("a.txt", 2, 1)]


async def test_lines_around_are_given(tools):
    (match,) = (await tools()["grep_files"]("two", context_lines=5)).matches

    assert (match.before, match.after) == (["one"], ["three"])


@pytest.mark.parametrize("regex", [True, False])
async def test_many_matches_are_cut_and_it_is_said(tools, tree, regex):
    (tree / "many").write_text("needle\n" * 50)

    found = await tools()["grep_files"]("needle", regex=regex, max_matches=10)

    assert (len(found.matches), found.truncated) == (10, True)
    assert found.stopped


async def test_matches_that_fit_exactly_are_not_cut(tools, tree):
    (tree / "many").write_text("needle\n" * 10)

    assert (await tools()["grep_files"]("needle", max_matches=10)).truncated is False


async def test_a_result_is_cut_by_its_size(tools, tree):
    (tree / "many").write_text(("needle" + "x" * 500 + "\n") * 500)

    found = await tools()["grep_files"]("needle", max_matches=500)

    assert found.truncated
    assert 0 < len(found.matches) < 500


async def test_a_long_line_is_given_around_the_pattern(tools, tree):
    (tree / "long").write_text("x" * 9_000 + "needle" + "y" * 9_000)

    (match,) = (await tools()["grep_files"]("needle")).matches

    assert ("needle" in match.text, grepping.LINE_CHARS, 9_001) == (True, len(match.text), match.column)


async def test_what_is_not_searched_is_counted(tools, tree):
    (tree / "binary").write_bytes(b"hello\0")
    (tree / "large").write_bytes(b"hello\n" * 1_000)
    with (tree / "sparse").open("wb") as file:
        file.truncate(10 * 1024**3)

    found = await tools(max_file_bytes=5_000)["grep_files"]("hello")

    assert (found.skipped.binary, found.skipped.too_large) == (1, 2)
    assert len(found.matches) == 2


async def test_too_many_bytes_are_not_searched_and_it_is_said(tools, monkeypatch):
    monkeypatch.setattr(grepping, "TOTAL_BYTES", 10)

    found = await tools()["grep_files"]("hello")

    assert found.truncated
    assert "more than can be searched at once" in found.stopped


async def test_what_gitignore_leaves_out_is_not_searched(tools, tree):
    (tree / ".gitignore").write_text("*.md\n")

    assert len((await tools()["grep_files"]("hello")).matches) == 1
    assert len((await tools()["grep_files"]("hello", gitignore=False)).matches) == 2


@pytest.mark.parametrize("data", [b"a\r\nhello\r\nb\n", b"a\rhello\rb", "a\nhello".encode("utf-16")])
@pytest.mark.parametrize("regex", [True, False])
async def test_line_ends_and_encodings_make_no_difference(tools, tree, data, regex):
    (tree / "only").write_bytes(data)

    assert places(await tools()["grep_files"]("^hello$" if regex else "hello", path="only", regex=regex)) == [
        ("only", 2, 1)
    ]


async def test_there_is_no_line_after_the_last_line_end(tools):
    assert (await tools()["grep_files"]("^$", path="a.txt", regex=True)).matches == []


async def test_a_text_of_several_pieces_keeps_its_line_numbers(tools, tree, monkeypatch):
    monkeypatch.setattr(_matching, "_PIECE", 100)
    monkeypatch.setattr(_matching, "_BATCH", 20_000)
    lines = [f"line {number}" + "\u20ac" * (number % 150) for number in range(500)]
    (tree / "pieces").write_bytes("\r\n".join(lines).encode())

    found = await tools()["grep_files"](r"^line (7|77|499)\b", path="pieces", regex=True)

    assert [match.line for match in found.matches] == [8, 78, 500]


@pytest.mark.parametrize("pattern", ["a\nb", "a\rb"])
async def test_a_pattern_of_several_lines_is_refused(tools, pattern):
    with pytest.raises(ValueError, match=r"^pattern: has a line break"):
        await tools()["grep_files"](pattern)


@pytest.mark.parametrize("pattern", ["(", "a{2,1}", "(?P<x", "[z-a]", "(" * 900 + ")" * 10, "(?<=a+)b", "\\"])
async def test_what_is_no_expression_is_refused(tools, pattern):
    with pytest.raises(ValueError, match=r"^pattern: not a regular expression"):
        await tools()["grep_files"](pattern, regex=True)


BOMBS = {
    "(a+)+$": "a" * 40 + "b",
    r"(a|aa)+$": "a" * 60 + "b",
    r"(.*)(.*)(.*)(.*)(.*)(.*)\1\2x": "a" * 5_000,
    r"(?:(?:(?:a?){1000}){1000}){1000}b": "a" * 5_000,
    r"(x+x+)+y": "x" * 9_000,
}


@pytest.mark.parametrize("pattern", BOMBS)
async def test_an_expression_without_end_is_stopped(tools, tree, pattern):
    (tree / "bomb").write_text(BOMBS[pattern])

    with pytest.raises(ValueError, match=r"^pattern: matching took too much time or memory"):
        await tools(regex_seconds=0.5)["grep_files"](pattern, regex=True)


async def test_while_an_expression_runs_the_host_goes_on(tools, tree):
    """In this process it would hold the interpreter's lock, and the counter would stand still."""
    (tree / "bomb").write_text("a" * 60 + "b")
    search = asyncio.create_task(tools(regex_seconds=0.5)["grep_files"]("(a+)+$", regex=True))

    turns = 0
    while not search.done():
        await asyncio.sleep(0)
        turns += 1
    with pytest.raises(ValueError, match="too much time"):
        await search

    assert turns > 100


async def test_a_cancelled_search_leaves_no_process(tree):
    (tree / "bomb").write_text("a" * 60 + "b")
    async with AgentOS(mode="auto") as host:
        options = {"root": str(tree), "regexSeconds": 60}
        await host.extensions.load(PackEntry(module="agentos_pack_files", options=options, required=True))
        call = ToolCall("grep_files", {"pattern": "(a+)+$", "regex": True}, id="c")
        task = asyncio.create_task(host.tools.process_tool_call(call))
        await until(_children)

        await host.tools.cancel("c")
        result = await task

        assert result.error.type == "Cancelled"
        await until(lambda: not _children())


async def until(condition):
    while not condition():  # noqa: ASYNC110 - a process tells no event
        await asyncio.sleep(0)


def _children():
    """Return the processes of ours that search lines."""
    path = Path(f"/proc/self/task/{os.getpid()}/children")
    return [pid for pid in path.read_text().split() if b"_lines.py" in _command(pid)]


def _command(pid):
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""

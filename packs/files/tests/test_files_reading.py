"""read_file and list_dir."""

import codecs
import hashlib
from types import SimpleNamespace

import pytest
from agentos_pack_files import _walk, reading


def test_a_file_is_read_whole(tools, tree):
    found = tools()["read_file"]("a.txt")

    assert (found.text, found.start_line, found.end_line, found.total_lines) == ("one\ntwo\nthree\n", 1, 3, 3)
    assert (found.truncated, found.next_line) == (False, None)
    assert hashlib.sha256((tree / "a.txt").read_bytes()).hexdigest() == found.sha256


def test_a_file_is_read_in_parts(tools):
    first = tools()["read_file"]("a.txt", max_lines=2)
    rest = tools()["read_file"]("a.txt", start_line=first.next_line)

    assert (first.text, first.truncated) == ("one\ntwo\n", True)
    assert (rest.text, rest.start_line, rest.truncated) == ("three\n", 3, False)


def test_an_empty_file_has_no_lines(tools, tree):
    (tree / "empty").touch()

    found = tools()["read_file"]("empty")

    assert (
        found.text,
        found.end_line,
        found.total_lines,
        found.line_ending,
        found.truncated,
    ) == ("", 0, 0, "none", False)


def test_a_line_beyond_the_end_is_refused(tools):
    with pytest.raises(ValueError, match=r"^start_line: 'a.txt' has 3 lines; expected 1 to 3"):
        tools()["read_file"]("a.txt", start_line=4)


def test_many_characters_are_cut_between_lines(tools, tree):
    (tree / "long.txt").write_text("".join(f"{number:0999}\n" for number in range(100)))

    found = tools()["read_file"]("long.txt")

    assert (found.end_line, found.next_line, found.truncated) == (40, 41, True)
    assert len(found.text) == reading.TEXT_CHARS


def test_a_huge_line_is_cut_and_named(tools, tree):
    (tree / "huge.txt").write_text("short\n" + "x" * 1_000_000 + "\nlast\n")

    found = tools()["read_file"]("huge.txt")

    assert (found.cut_lines, found.end_line, found.truncated) == ([2], 3, True)
    assert found.text == "short\n" + "x" * reading.LINE_CHARS + "\nlast\n"


@pytest.mark.parametrize(
    ("data", "text", "encoding", "is_guess"),
    [
        ("gr\u00fc\u00df".encode(), "gr\u00fc\u00df", "utf-8", False),
        (codecs.BOM_UTF8 + b"x", "x", "utf-8", False),
        (codecs.BOM_UTF16_LE + "\u00fc".encode("utf-16-le"), "\u00fc", "utf-16-le", False),
        (codecs.BOM_UTF16_BE + "\u00fc".encode("utf-16-be"), "\u00fc", "utf-16-be", False),
        (codecs.BOM_UTF32_LE + "\u00fc".encode("utf-32-le"), "\u00fc", "utf-32-le", False),
        (b"gr\xfc\xdf", "gr\u00fc\u00df", "latin-1", True),
    ],
)
def test_encodings_are_told(tools, tree, data, text, encoding, is_guess):
    (tree / "text").write_bytes(data)

    found = tools()["read_file"]("text")

    assert (text, encoding, is_guess) == (found.text, found.encoding, found.encoding_is_guess)


def test_an_encoding_can_be_named(tools, tree):
    (tree / "text").write_bytes("\u65e5\u672c".encode("shift_jis"))

    assert tools()["read_file"]("text", encoding="shift_jis").text == "\u65e5\u672c"


def test_an_encoding_that_does_not_fit_is_refused(tools, tree):
    (tree / "text").write_bytes(b"ab\xff")

    with pytest.raises(ValueError, match=r"^encoding: 'text' is not utf-8: the byte at 2 does not fit; use 'auto'"):
        tools()["read_file"]("text", encoding="utf-8")


@pytest.mark.parametrize(
    ("data", "ending"),
    [(b"a\nb\n", "lf"), (b"a\r\nb", "crlf"), (b"a\rb", "cr"), (b"a\r\nb\n", "mixed"), (b"a\x0b\xc2\x85b", "none")],
)
def test_line_ends_are_told_and_given_as_line_feeds(tools, tree, data, ending):
    (tree / "text").write_bytes(data)

    found = tools()["read_file"]("text")

    assert (ending, "\r" in found.text) == (found.line_ending, False)


def test_a_binary_file_is_refused(tools, tree):
    (tree / "picture.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR")

    with pytest.raises(ValueError, match=r"^path: 'picture.png' is a binary file of 16 bytes"):
        tools()["read_file"]("picture.png")


def test_characters_that_nobody_sees_are_counted_and_kept(tools, tree):
    (tree / "text").write_text("a\u202eb\u200b c")

    found = tools()["read_file"]("text")

    assert (found.text, found.invisible) == ("a\u202eb\u200b c", 2)


def test_ten_sparse_gigabytes_are_refused_at_once(tools, tree):
    with (tree / "sparse").open("wb") as file:
        file.truncate(10 * 1024**3)

    with pytest.raises(ValueError, match=r"is a binary file of 10,737,418,240 bytes"):
        tools()["read_file"]("sparse")


def test_of_a_large_text_the_beginning_is_read(tools, tree):
    with (tree / "large.log").open("wb") as file:
        file.write(b"line\n" * 2_000)
        file.truncate(10 * 1024**3)

    found = tools(max_file_bytes=9_000)["read_file"]("large.log", start_line=1_700)

    assert (found.text, found.total_lines, found.sha256, found.truncated) == ("line\n" * 101, None, None, True)


def test_beyond_the_beginning_of_a_large_text_is_refused(tools, tree):
    (tree / "large.log").write_bytes(b"line\n" * 2_000)

    with pytest.raises(ValueError, match=r"^start_line: line 1,900 .* use grep_files"):
        tools(max_file_bytes=9_000)["read_file"]("large.log", start_line=1_900)


def test_a_character_cut_in_two_at_the_end_is_no_fault(tools, tree):
    (tree / "large.log").write_bytes("\u20ac".encode() * 1_000)

    found = tools(max_file_bytes=1_000)["read_file"]("large.log")

    assert (found.encoding, found.text) == ("utf-8", "\u20ac" * 333)


def test_a_folder_is_listed_by_name(tools):
    found = tools()["list_dir"]()

    assert [(e.path, e.kind, e.size) for e in found.entries] == [("a.txt", "file", 14), ("src", "folder", 0)]
    assert (found.truncated, found.stopped, found.unreadable) == (False, None, 0)


def test_levels_are_listed_as_asked(tools):
    paths = [entry.path for entry in tools()["list_dir"]("src", depth=2).entries]

    assert paths == ["src/deep", "src/deep/notes.md", "src/main.py"]


def test_a_long_list_is_cut_and_says_so(tools, tree):
    for number in range(20):
        (tree / f"file{number:02}").touch()

    found = tools()["list_dir"](max_entries=5)

    assert (len(found.entries), found.truncated) == (5, True)
    assert "first 5 entries" in found.stopped


def test_a_list_that_fits_exactly_is_not_cut(tools):
    assert tools()["list_dir"](max_entries=2).truncated is False


def test_a_list_of_long_names_is_cut_by_its_size(tools, tree):
    for number in range(400):
        (tree / f"{number:0200}").touch()

    found = tools()["list_dir"](max_entries=2_000)

    assert found.truncated
    assert 0 < len(found.entries) < 400


def test_a_tree_that_never_ends_is_cut(tools, tree, monkeypatch):
    monkeypatch.setattr(_walk, "ENTRIES", 3)

    found = tools()["list_dir"](depth=10)

    assert (len(found.entries), found.truncated) == (3, True)


def test_a_tree_that_is_too_deep_is_cut_and_it_is_said(tools, tree):
    (tree / "/".join(["d"] * 80)).mkdir(parents=True)

    found = tools()["search_files"]("**", kind="folder")

    assert found.truncated
    assert "nested deeper than 64 levels" in found.stopped


@pytest.mark.parametrize("gitignore", [True, False])
def test_a_walk_ends_when_nobody_waits(tools, tree, gitignore):
    (tree / ".gitignore").write_text("*\n" if gitignore else "")

    found = tools()["search_files"]("**", gitignore=gitignore, context=SimpleNamespace(cancelled=True))

    assert ("the time is up" in found.stopped, len(found.matches) < 2) == (True, True)


def test_a_folder_that_cannot_be_read_is_counted(tools, tree, monkeypatch):
    from agentos_pack_common import paths

    for number in range(5):
        (tree / "src" / str(number)).touch()
    monkeypatch.setattr(paths, "_ENTRIES", 5)

    assert tools()["list_dir"](depth=3).unreadable == 1


def test_a_file_is_no_folder(tools):
    with pytest.raises(ValueError, match="is not a folder; read_file reads a file"):
        tools()["list_dir"]("a.txt")


def test_what_is_ignored_can_be_left_out(tools, tree):
    (tree / ".gitignore").write_text("src/\n")

    assert [e.path for e in tools()["list_dir"](depth=3, gitignore=True).entries] == [".gitignore", "a.txt"]

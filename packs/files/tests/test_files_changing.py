"""write_file, edit_file, move_file, delete_file."""

import codecs
import hashlib
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
from agentos_pack_files import _diff
from agentos_pack_files._diff import diff_changes, diff_texts
from agentos_pack_files._edits import changes_of, find_spans, replaced
from agentos_pack_files._text import split_lines
from hypothesis import given, settings
from hypothesis import strategies as st


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def preview(tool, **arguments):
    return tool.dry_run(arguments, None)


# -- write_file --------------------------------------------------------------------------------------------------


def test_a_new_file_is_written_with_its_folders(tools, tree):
    told = tools()["write_file"]("new/folder/b.txt", "hi\r\n")

    assert (tree / "new/folder/b.txt").read_bytes() == b"hi\r\n"
    assert (told.action, told.applied, told.size) == ("created", True, 4)
    assert sha256(tree / "new/folder/b.txt") == told.sha256
    assert told.diff == "--- /dev/null\n+++ b/new/folder/b.txt\n@@ -0,0 +1,1 @@\n+hi"


def test_a_file_that_exists_is_kept(tools, tree):
    with pytest.raises(ValueError, match=r"'a.txt' exists already; say if_exists overwrite or append"):
        tools()["write_file"]("a.txt", "x")

    assert (tree / "a.txt").read_text() == "one\ntwo\nthree\n"


def test_a_file_is_overwritten_when_it_is_said(tools, tree):
    told = tools()["write_file"]("a.txt", "one\n2\nthree\n", if_exists="overwrite")

    assert (tree / "a.txt").read_text() == "one\n2\nthree\n"
    assert (told.action, told.lines_added, told.lines_removed) == ("overwritten", 1, 1)
    assert told.diff == "--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three"


def test_writing_the_same_changes_nothing(tools):
    told = tools()["write_file"]("a.txt", "one\ntwo\nthree\n", if_exists="overwrite")

    assert (told.action, told.diff) == ("unchanged", "")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"a\r\nb\r\n", b"a\r\nb\r\nx\r\ny\r\n"),
        (b"a\n", b"a\nx\ny\n"),
        (b"", b"x\ny\n"),
        (codecs.BOM_UTF16_LE + "a\n".encode("utf-16-le"), codecs.BOM_UTF16_LE + "a\nx\ny\n".encode("utf-16-le")),
    ],
)
def test_what_is_appended_is_as_the_file_is(tools, tree, before, after):
    (tree / "log").write_bytes(before)

    tools()["write_file"]("log", "x\ny\n", if_exists="append")

    assert after == (tree / "log").read_bytes()


def test_nothing_is_appended_to_a_binary_file(tools, tree):
    (tree / "binary").write_bytes(b"\0\1")

    with pytest.raises(ValueError, match="is a binary file; nothing can be appended"):
        tools()["write_file"]("binary", "x", if_exists="append")


def test_a_binary_file_can_be_overwritten_without_a_diff(tools, tree):
    (tree / "binary").write_bytes(b"\0\1")

    assert tools()["write_file"]("binary", "x", if_exists="overwrite").diff == ""


@pytest.mark.parametrize("name", ["write_file", "edit_file", "delete_file"])
def test_a_file_that_changed_meanwhile_is_kept(tools, tree, name):
    seen = sha256(tree / "a.txt")
    (tree / "a.txt").write_text("two, by someone else\n")
    arguments = {
        "write_file": {"content": "x", "if_exists": "overwrite"},
        "edit_file": {"old_text": "two", "new_text": "2"},
        "delete_file": {},
    }[name]

    with pytest.raises(ValueError, match=r"^expected_sha256: 'a.txt' is not as expected any more; read it again"):
        tools()[name]("a.txt", **arguments, expected_sha256=seen)

    assert (tree / "a.txt").read_text() == "two, by someone else\n"


def test_a_file_as_expected_is_written(tools, tree):
    made = tools()
    seen = made["read_file"]("a.txt").sha256

    first = made["write_file"]("a.txt", "x", if_exists="overwrite", expected_sha256=seen)
    made["edit_file"]("a.txt", "x", "y", expected_sha256=first.sha256)

    assert (tree / "a.txt").read_text() == "y"


def test_a_file_that_is_expected_but_gone_is_not_made(tools, tree):
    with pytest.raises(ValueError, match="does not exist, but expected_sha256 was given"):
        tools()["write_file"]("gone.txt", "x", expected_sha256="0" * 64)

    assert not (tree / "gone.txt").exists()


@pytest.mark.parametrize("content", ["\ud800", "x\udfff"])
def test_half_a_surrogate_pair_is_refused(tools, content):
    with pytest.raises(ValueError, match=r"^content: U\+D[0-9A-F]{3} can't be written in utf-8"):
        tools()["write_file"]("b.txt", content)


def test_a_file_has_a_size_it_may_have(tools, tree):
    with pytest.raises(ValueError, match=r"^content: the file would have 1,001 bytes; at most 1,000"):
        tools(max_file_bytes=1_000)["write_file"]("b.txt", "x" * 1_001)

    assert not (tree / "b.txt").exists()


def test_a_large_file_is_not_overwritten_unseen(tools, tree):
    (tree / "large").write_bytes(b"x" * 2_000)

    with pytest.raises(ValueError, match="more than 1,000 bytes"):
        tools(max_file_bytes=1_000)["write_file"]("large", "x", if_exists="overwrite")


def test_a_folder_is_not_written(tools):
    with pytest.raises(ValueError, match="is a folder"):
        tools()["write_file"]("src", "x", if_exists="overwrite")


def test_what_nobody_sees_in_new_text_is_counted(tools):
    assert tools()["write_file"]("b.txt", "a\u202e\u2066b\n").invisible == 2


def test_the_mode_of_a_file_is_kept(tools, tree):
    (tree / "a.txt").chmod(0o755)

    tools()["edit_file"]("a.txt", "two", "2")

    assert (tree / "a.txt").stat().st_mode & 0o777 == 0o755


def test_nothing_is_left_beside(tools, tree):
    before = {path.name for path in tree.iterdir()}

    tools()["write_file"]("a.txt", "x", if_exists="overwrite")

    assert before == {path.name for path in tree.iterdir()}


# -- edit_file ---------------------------------------------------------------------------------------------------


def test_an_exact_text_is_replaced(tools, tree):
    told = tools()["edit_file"]("a.txt", "two", "2")

    assert (tree / "a.txt").read_text() == "one\n2\nthree\n"
    assert (1, "edited", sha256(tree / "a.txt")) == (told.replaced, told.action, told.sha256)
    assert told.diff == "--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three"


@pytest.mark.parametrize(
    ("old", "count", "message"),
    [
        ("four", 1, r"^old_text: is not in 'a.txt'; read the file again"),
        ("  two  ", 1, r"^old_text: is not in 'a.txt'; without the blanks around it, it is"),
        ("e", 1, r"^old_text: is in 'a.txt' 3 times, expected 1 \(lines 1, 3, 3\); give more .* or say count 3"),
        ("two", 2, r"^old_text: is in 'a.txt' 1 times, expected 2"),
    ],
)
def test_another_count_than_expected_changes_nothing(tools, tree, old, count, message):
    with pytest.raises(ValueError, match=message):
        tools()["edit_file"]("a.txt", old, "x", count=count)

    assert (tree / "a.txt").read_text() == "one\ntwo\nthree\n"


def test_all_of_as_many_as_expected_are_replaced(tools, tree):
    assert tools()["edit_file"]("a.txt", "e", "E", count=3).replaced == 3
    assert (tree / "a.txt").read_text() == "onE\ntwo\nthrEE\n"


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        (b"a\r\nb\r\nc\r\n", "a\nb", "x\ny\nz", b"x\r\ny\r\nz\r\nc\r\n"),
        (b"a\r\nb\r\n", "b", "x\ny", b"a\r\nx\r\ny\r\n"),
        (b"a\rb\r", "a\nb", "x\ny", b"x\ry\r"),
        (b"a\nb\r\nc\r\n", "a\nb\nc", "x\ny", b"x\r\ny\r\n"),
        (b"a\nb\n", "a\r\nb", "x\r\ny", b"x\ny\n"),
        (b"a\nb", "a\nb", "", b""),
        (b"ab", "b", "\r\n", b"a\r\n"),
        (codecs.BOM_UTF8 + b"a\r\n", "a", "b", codecs.BOM_UTF8 + b"b\r\n"),
        ("\ufeffa\u00fc".encode("utf-16-be"), "\u00fc", "\u65e5", "\ufeffa\u65e5".encode("utf-16-be")),
        (b"\xfc two \xdf", "two", "2", b"\xfc 2 \xdf"),
    ],
)
def test_line_ends_encoding_and_mark_are_kept(tools, tree, before, old, new, after):
    (tree / "text").write_bytes(before)

    tools()["edit_file"]("text", old, new)

    assert after == (tree / "text").read_bytes()


def test_a_guessed_encoding_is_not_written_in(tools, tree):
    (tree / "text").write_bytes(b"gr\xfc\xdf")

    with pytest.raises(ValueError, match=r"^new_text: 'text' is not UTF-8 and its encoding is not known"):
        tools()["edit_file"]("text", "gr", "gr\u00f6")

    tools()["edit_file"]("text", "gr", "gr\u00f6", encoding="cp1252")
    assert (tree / "text").read_bytes() == b"gr\xf6\xfc\xdf"


def test_what_an_encoding_does_not_have_is_refused(tools, tree):
    (tree / "text").write_bytes(b"gr\xfc\xdf")

    with pytest.raises(ValueError, match=r"^new_text: U\+20AC can't be written in latin-1"):
        tools()["edit_file"]("text", "gr", "\u20ac", encoding="latin-1")


@pytest.mark.parametrize(
    ("data", "message"), [(b"\0\1\2two", "is a binary file"), (b"x" * 2_000, "at most 1,000 can be changed")]
)
def test_what_cannot_be_edited_is_refused(tools, tree, data, message):
    (tree / "file").write_bytes(data)

    with pytest.raises(ValueError, match=message):
        tools(max_file_bytes=1_000)["edit_file"]("file", "two", "x")


def test_two_edits_at_once_are_both_made(tools, tree):
    (tree / "list").write_text("".join(f"[{number}]\n" for number in range(40)))
    made = tools()

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda n: made["edit_file"]("list", f"[{n}]", f"({n})"), range(40)))

    assert (tree / "list").read_text() == "".join(f"({number})\n" for number in range(40))


def test_a_call_that_was_ended_changes_nothing(tools, tree):
    with pytest.raises(ValueError, match="nothing was changed"):
        tools()["edit_file"]("a.txt", "two", "2", context=SimpleNamespace(cancelled=True))

    assert (tree / "a.txt").read_text() == "one\ntwo\nthree\n"


# -- diffs -------------------------------------------------------------------------------------------------------

texts = st.text(alphabet="ab\n", max_size=40)


def patched(old, diff):
    """Apply a unified diff, as `patch` does."""
    lines, made, place = old.split("\n"), [], 0
    for line in diff.split("\n")[2:]:
        if line.startswith("@@"):
            start, length = line.split()[1][1:].split(",")
            first = int(start) - (1 if int(length) else 0)
            made += lines[place:first]
            place = first
        elif line.startswith("\\"):
            made.append(None)
        elif line.startswith(" "):
            assert lines[place] == line[1:]
            made.append(line[1:])
            place += 1
        elif line.startswith("-"):
            assert lines[place] == line[1:]
            place += 1
        elif line.startswith("+"):
            made.append(line[1:])
    return [line for line in [*made, *lines[place:]] if line]


@settings(deadline=None)
@given(texts, texts)
def test_a_diff_of_two_texts_leads_from_one_to_the_other(old, new):
    diff = diff_texts("f", old, new)

    assert [line for line in new.split("\n") if line] == patched(old, diff.text)


@settings(deadline=None)
@given(texts, st.text(alphabet="ab\n", min_size=1, max_size=3), st.text(alphabet="ab\n", max_size=4))
def test_the_changes_of_an_edit_lead_to_its_text(text, old, new):
    spans = find_spans(text, old)
    lines = split_lines(text)

    made, place = [], 0
    changes = changes_of(text, spans, new)
    for change in changes:
        made += [*lines[place : change.start], *change.lines]
        place = change.end

    assert replaced(text, spans, new) == "".join([*made, *lines[place:]])
    assert [line for line in replaced(text, spans, new).split("\n") if line] == patched(
        text, diff_changes("f", text, changes).text
    )


@pytest.mark.parametrize(
    ("old", "new", "shown"),
    [
        ("two\n", "", " one\n-two\n three"),
        ("one\n", "one\nmore\n", " one\n+more\n two\n three"),
        ("two\nthree", "two\n3", " one\n two\n-three\n+3"),
        ("two\n", "two ", " one\n-two\n-three\n+two three"),
    ],
)
def test_a_diff_shows_no_more_than_what_changes(tools, old, new, shown):
    assert tools()["edit_file"]("a.txt", old, new).diff.split("@@\n")[1] == shown


def test_changes_far_apart_are_shown_apart(tools, tree):
    (tree / "many").write_text("".join(f"{number}\n" for number in range(30)))
    made = tools()
    made["edit_file"]("many", "\n5\n", "\nfive\n5b\n")

    told = made["write_file"]("many", (tree / "many").read_text().replace("five", "5").replace("25", "x"), "overwrite")

    assert [line for line in told.diff.split("\n") if line[0] in "@+-"][2:] == [
        *("@@ -3,7 +3,7 @@", "-five", "+5"),
        *("@@ -24,7 +24,7 @@", "-25", "+x"),
    ]


def test_a_long_diff_is_cut_and_says_so():
    diff = diff_texts("f", "a\n" * 9_000, "b\n" * 9_000)

    assert (diff.truncated, diff.added, diff.removed) == (True, 9_000, 9_000)
    assert len(diff.text) <= _diff.CHARS


def test_a_diff_of_huge_lines_is_short():
    diff = diff_texts("f", "a" * 1_000_000, "b" * 1_000_000)

    assert len(diff.text) < 3_000
    assert "[... 1000000 characters]" in diff.text


def test_a_diff_of_many_lines_takes_no_time(run_python):
    code = (
        "from agentos_pack_files._diff import diff_texts\n"
        "old = ''.join(f'{n % 7}\\n' for n in range(200000))\n"
        "new = ''.join(f'{n % 5}\\n' for n in range(200000))\n"
        "print(diff_texts('f', old, new).truncated)"
    )

    assert run_python(code) == "True"


def test_an_edit_of_many_places_takes_no_time(run_python):
    code = (
        "from agentos_pack_files._edits import changes_of, find_spans\n"
        "text = 'abc abc abc\\n' * 50000\n"
        "print(len(changes_of(text, find_spans(text, 'b'), 'x')))"
    )

    assert run_python(code) == "50000"


# -- move_file, delete_file --------------------------------------------------------------------------------------


def test_a_file_is_moved_and_folders_are_made(tools, tree):
    told = tools()["move_file"]("a.txt", "new/folder/b.txt")

    assert (
        told.source,
        told.destination,
        told.kind,
        told.replaced,
        told.applied,
    ) == ("a.txt", "new/folder/b.txt", "file", False, True)
    assert (tree / "new/folder/b.txt").read_text() == "one\ntwo\nthree\n"
    assert not (tree / "a.txt").exists()


def test_a_folder_is_moved_with_what_is_in_it(tools, tree):
    tools()["move_file"]("src", "lib")

    assert (tree / "lib" / "deep" / "notes.md").exists()


def test_what_is_at_the_destination_is_kept(tools, tree):
    with pytest.raises(ValueError, match="exists already"):
        tools()["move_file"]("a.txt", "src/main.py")

    assert (tree / "a.txt").exists()


def test_a_file_is_replaced_when_it_is_said(tools, tree):
    assert tools()["move_file"]("a.txt", "src/main.py", overwrite=True).replaced
    assert (tree / "src" / "main.py").read_text() == "one\ntwo\nthree\n"


@pytest.mark.parametrize(
    ("source", "destination", "message"),
    [
        ("a.txt", "src", "is a folder; give the whole new path"),
        ("src", "src/deep/src", "is inside of what is to be moved"),
        ("a.txt", "a.txt", "is where it is already"),
        ("a.txt", "src/../a.txt", "is where it is already"),
        ("missing", "x", "does not exist"),
        (".", "x", r"root folder itself|inside"),
        ("a.txt", "a.txt/b", r"inside|not a folder"),
    ],
)
def test_a_move_that_cannot_be_is_refused(tools, tree, source, destination, message):
    with pytest.raises(ValueError, match=message):
        tools()["move_file"](source, destination, overwrite=True)

    assert (tree / "a.txt").read_text() == "one\ntwo\nthree\n"


def test_a_file_and_an_empty_folder_are_deleted(tools, tree):
    (tree / "empty").mkdir()
    made = tools()

    file, folder = made["delete_file"]("a.txt"), made["delete_file"]("empty/")

    assert (file.kind, file.size, file.applied) == ("file", 14, True)
    assert (folder.kind, folder.sha256) == ("folder", None)
    assert not (tree / "a.txt").exists()
    assert not (tree / "empty").exists()


@pytest.mark.parametrize(("path", "message"), [("src", "is not empty"), (".", "root folder itself"), ("x", "does not")])
def test_a_deletion_that_cannot_be_is_refused(tools, tree, path, message):
    with pytest.raises(ValueError, match=message):
        tools()["delete_file"](path)

    assert (tree / "src" / "main.py").exists()


def test_a_folder_with_only_secrets_in_it_is_not_deleted(tools, tree):
    (tree / "seems-empty").mkdir()
    (tree / "seems-empty" / ".env").touch()

    with pytest.raises(ValueError, match="is not empty"):
        tools()["delete_file"]("seems-empty")


# -- previews ----------------------------------------------------------------------------------------------------

CHANGES = [
    ("write_file", {"path": "new/b.txt", "content": "x"}),
    ("write_file", {"path": "a.txt", "content": "x", "if_exists": "overwrite"}),
    ("write_file", {"path": "a.txt", "content": "x", "if_exists": "append"}),
    ("edit_file", {"path": "a.txt", "old_text": "e", "new_text": "E", "count": 3}),
    ("move_file", {"source": "src", "destination": "new/lib"}),
    ("delete_file", {"path": "a.txt"}),
]


@pytest.mark.parametrize(("name", "arguments"), CHANGES)
def test_a_preview_says_what_will_happen_and_changes_nothing(tools, tree, name, arguments):
    before = {path: path.is_file() and path.read_bytes() for path in tree.rglob("*")}
    tool = tools()[name]

    shown = preview(tool, **arguments)
    assert before == {path: path.is_file() and path.read_bytes() for path in tree.rglob("*")}

    done = tool(**arguments)
    assert (shown.applied, done.applied) == (False, True)
    assert _but_applied(shown) == _but_applied(done)


def _but_applied(told):
    import attrs

    return attrs.evolve(told, applied=False)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("write_file", {"path": "a.txt", "content": "x"}),
        ("edit_file", {"path": "a.txt", "old_text": "four", "new_text": ""}),
        ("move_file", {"source": "a.txt", "destination": "src/main.py"}),
        ("delete_file", {"path": "src"}),
    ],
)
def test_a_preview_says_what_will_fail(tools, name, arguments):
    with pytest.raises(ValueError, match=r"exists|not in|not empty"):
        preview(tools()[name], **arguments)


# -- previews that must not promise --------------------------------------------------------------------------------

IMPOSSIBLE = [
    ("write_file", {"path": "b\\c", "content": "x"}),
    ("write_file", {"path": "new/", "content": "x"}),
    ("write_file", {"path": "new/ blank/x", "content": "x"}),
    ("move_file", {"source": "src", "destination": "a.txt", "overwrite": True}),
    ("move_file", {"source": "src", "destination": "link/inside"}),
    ("move_file", {"source": "a.txt", "destination": "new/folder/b "}),
    ("move_file", {"source": ".", "destination": "new"}),
    ("move_file", {"source": ".config", "destination": "new"}),
    ("delete_file", {"path": "only-hidden"}),
]


@pytest.mark.parametrize(("name", "arguments"), IMPOSSIBLE)
def test_a_preview_refuses_what_the_call_refuses_and_nothing_is_left_of_either(tools, tree, name, arguments):
    (tree / "link").symlink_to("src")
    (tree / ".config").mkdir()
    (tree / "only-hidden").mkdir()
    (tree / "only-hidden" / ".env").write_text("TOKEN=x")
    tool, before = tools()[name], sorted(tree.rglob("*"))

    with pytest.raises(ValueError) as promised:
        preview(tool, **arguments)
    with pytest.raises(ValueError) as done:
        tool(**arguments)

    assert str(promised.value) == str(done.value)
    assert sorted(tree.rglob("*")) == before

"""search_files: names, .gitignore, and patterns that want to take for ever."""

import pytest
from agentos_pack_files._globs import compile_glob
from agentos_pack_files._ignore import is_simple, read_rules
from hypothesis import given, settings
from hypothesis import strategies as st


def paths(found):
    return [hit.path for hit in found.matches]


@pytest.mark.parametrize(
    ("glob", "path", "matches"),
    [
        ("*.py", "a.py", True),
        ("*.py", "deep/down/a.py", True),
        ("*.py", "a.pyc", False),
        ("src/*.py", "src/a.py", True),
        ("src/*.py", "src/deep/a.py", False),
        ("src/*.py", "other/src/a.py", False),
        ("src/**/*.py", "src/a.py", True),
        ("src/**/*.py", "src/x/y/a.py", True),
        ("**/x/**", "x", True),
        ("**/x/**", "a/x/b", True),
        ("**/x/**", "a/b", False),
        ("**", "a/b", True),
        ("/a", "a", True),
        ("/a", "b/a", False),
        ("[ab]?", "a1", True),
        ("[!ab]?", "a1", False),
        ("[z-a]", "z", False),
        ("a[", "a[", True),
        ("**a", "xa", True),
        ("./src/*", "src/a", True),
    ],
)
def test_a_glob_means_what_it_means_in_a_shell(glob, path, matches):
    assert matches is compile_glob(glob).matches(path)


@settings(deadline=None)
@given(st.text(alphabet="ab*?[]/!-", max_size=12), st.text(alphabet="ab/", max_size=12))
def test_any_glob_is_matched_or_refused(glob, path):
    try:
        made = compile_glob(glob)
    except ValueError:
        return
    assert made.matches(path) in (True, False)


@pytest.mark.parametrize("glob", ["..", "../*", "a/../b", "/", ".", "a/" * 40 + "b"])
def test_a_glob_that_is_none_is_refused(tools, glob):
    with pytest.raises(ValueError, match=r"^query: "):
        tools()["search_files"](glob)


def test_files_are_found_by_glob(tools):
    found = tools()["search_files"]("*.py")

    assert (paths(found), found.truncated) == (["src/main.py"], False)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("folder", ["src", "src/deep"]), ("file", ["a.txt", "src/deep/notes.md", "src/main.py"])],
)
def test_what_is_looked_for_can_be_said(tools, kind, expected):
    assert expected == sorted(paths(tools()["search_files"]("**", kind=kind)))


def test_a_search_can_begin_further_down(tools):
    assert paths(tools()["search_files"]("*", path="src/deep")) == ["src/deep/notes.md"]


def test_names_that_are_nearly_right_are_found_best_first(tools, tree):
    (tree / "src" / "maintenance.txt").touch()

    found = tools()["search_files"]("mian.py", mode="fuzzy")

    assert paths(found)[0] == "src/main.py"
    assert [hit.score for hit in found.matches] == sorted((hit.score for hit in found.matches), reverse=True)


def test_names_that_are_far_off_are_not_found(tools):
    assert paths(tools()["search_files"]("zzzqqq", mode="fuzzy")) == []


@pytest.mark.parametrize("mode", ["glob", "fuzzy"])
def test_many_matches_are_cut_and_it_is_said(tools, tree, mode):
    for number in range(9):
        (tree / f"name{number}").touch()

    found = tools()["search_files"]("name*", mode=mode, max_matches=4)

    assert (len(found.matches), found.truncated) == (4, True)
    assert found.stopped


def test_what_gitignore_leaves_out_is_left_out(tools, tree):
    (tree / ".gitignore").write_text("# comment\n*.log\n/build/\n!keep.log\nsrc/deep\n")
    for name in ("x.log", "keep.log", "build/out.txt", "src/build"):
        (tree / name).parent.mkdir(exist_ok=True)
        (tree / name).touch()

    found = paths(tools()["search_files"]("**"))

    assert found == [".gitignore", "a.txt", "keep.log", "src/build", "src/main.py"]


def test_a_nearer_gitignore_counts_more(tools, tree):
    (tree / ".gitignore").write_text("*.log\n")
    (tree / "src" / ".gitignore").write_text("!*.log\n/main.py\n")
    (tree / "src" / "x.log").touch()
    (tree / "y.log").touch()

    found = paths(tools()["search_files"]("**"))

    assert "src/x.log" in found
    assert {"y.log", "src/main.py"}.isdisjoint(found)


def test_the_rules_above_count_when_a_search_begins_further_down(tools, tree):
    (tree / ".gitignore").write_text("*.md\n")

    assert paths(tools()["search_files"]("**", path="src")) == ["src/main.py"]


def test_a_folder_that_is_named_is_searched_even_if_it_is_ignored(tools, tree):
    (tree / ".gitignore").write_text("src/\n")

    assert "src/main.py" in paths(tools()["search_files"]("**", path="src"))


def test_rules_that_cannot_be_read_are_left_out_and_counted(tools, tree):
    """pathspec raises for a faulty range, and all rules of the file would be lost."""
    (tree / ".gitignore").write_text("[z-a]\n*.txt\n")

    found = tools()["search_files"]("**")

    assert ("a.txt" in paths(found), found.ignore_rules_left_out) == (False, 1)


def test_a_gitignore_that_is_a_link_is_not_followed(tools, tree):
    (tree / "rules").write_text("*.py\n")
    (tree / ".gitignore").symlink_to("rules")

    assert "src/main.py" in paths(tools()["search_files"]("**"))


@pytest.mark.parametrize(
    "line", ["*.py[cod]", "**/node_modules/", "/build/**/*.o", "*~", ".*.sw?", "!**/keep*", "*a*b*"]
)
def test_rules_as_people_write_them_are_simple(line):
    assert is_simple(line)
    assert read_rules(".", line).left_out == 0


HOSTILE = ["*a" * 20 + "*b", "**/a/" * 20 + "b", "a" * 300, "/".join(["*a*"] * 10)]


@pytest.mark.parametrize("line", HOSTILE)
def test_rules_that_nobody_writes_are_left_out(line):
    assert read_rules(".", line).left_out == 1


def test_hostile_rules_take_no_time(run_python, tree):
    """Each of these takes pathspec alone longer than anybody waits."""
    (tree / ("a" * 250)).touch()
    (tree / ".gitignore").write_text("\n".join(HOSTILE))
    code = (
        "import sys\n"
        "from agentos_pack_files._tools import create_tools\n"
        "from agentos_pack_files.options import FilesOptions\n"
        "options = FilesOptions(root=sys.argv[1])\n"
        "tools = {tool.name: tool for tool in create_tools(options.open_root(), options)}\n"
        "print(len(tools['search_files']('**').matches))"
    )

    assert run_python(code, str(tree)) == "5"


def test_hostile_globs_take_no_time(run_python):
    code = (
        "from agentos_pack_files._globs import compile_glob\n"
        "print(compile_glob('*a' * 100 + '*b').matches('a' * 255))\n"
        "print(compile_glob('/'.join(['**', '*a*a'] * 16)).matches('/'.join(['a' * 60] * 60) + '/b'))"
    )

    assert run_python(code).split() == ["False", "False"]


def test_a_glob_is_compiled_without_going_back():
    """What `fnmatch` makes of stars must stay atomic: that is why it is used."""
    assert "(?>" in compile_glob("*a*b").parts[-1].pattern

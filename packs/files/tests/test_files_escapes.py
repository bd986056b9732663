"""Ways out of the folder, and into what is hidden: none works, for any tool."""

import os
import threading
from contextlib import suppress

import pytest

SECRET = "top-secret"


def calls(path):
    """Return a call of each tool that takes *path*."""
    return [
        ("read_file", {"path": path}),
        ("list_dir", {"path": path}),
        ("search_files", {"query": "*", "path": path}),
        ("write_file", {"path": path, "content": "x", "if_exists": "overwrite"}),
        ("write_file", {"path": path, "content": "x", "if_exists": "append"}),
        ("edit_file", {"path": path, "old_text": "secret", "new_text": "x"}),
        ("move_file", {"source": path, "destination": "taken.txt"}),
        ("move_file", {"source": "a.txt", "destination": path, "overwrite": True}),
        ("delete_file", {"path": path}),
    ]


OUTSIDE = ["../outside.txt", "src/../../outside.txt", "/etc/passwd", "/proc/self/environ", "link", "folder/outside.txt"]


def is_about_the_link(name, arguments, path):
    """Tell whether a call acts on a link itself, which is inside."""
    return path == "link" and (name in ("move_file", "delete_file"))


@pytest.mark.parametrize("path", OUTSIDE)
def test_no_tool_leaves_the_folder(tree, tools, path):
    outside = tree.parent / "outside.txt"
    (tree / "link").symlink_to(outside)
    (tree / "folder").symlink_to("..")
    made = tools()

    for name, arguments in calls(path):
        if is_about_the_link(name, arguments, path):
            continue
        with pytest.raises(ValueError, match=r"leaves|outside"):
            made[name](**arguments)

    assert outside.read_text() == "outside secret\n"
    assert (tree / "a.txt").read_text() == "one\ntwo\nthree\n"


async def test_grep_does_not_leave_the_folder(tree, tools):
    (tree / "link").symlink_to(tree.parent / "outside.txt")
    (tree / "folder").symlink_to("..")

    found = await tools()["grep_files"]("secret", gitignore=False)
    assert found.matches == []

    for path in OUTSIDE:
        with pytest.raises(ValueError, match=r"leaves|outside"):
            await tools()["grep_files"]("secret", path=path)


def test_a_chain_of_links_that_ends_outside_is_not_followed(tree, tools):
    (tree / "one").symlink_to("two")
    (tree / "two").symlink_to("src/three")
    (tree / "src" / "three").symlink_to("../../outside.txt")

    with pytest.raises(ValueError, match="leaves"):
        tools()["read_file"]("one")


def test_a_link_that_stays_inside_is_followed(tree, tools):
    (tree / "link").symlink_to("src/main.py")

    assert tools()["read_file"]("link").path == "src/main.py"


def test_writing_through_a_link_tells_where_it_is_written(tree, tools):
    (tree / "link").symlink_to("src/main.py")

    told = tools()["write_file"]("link", "x", if_exists="overwrite")

    assert (told.path, (tree / "src" / "main.py").read_text()) == ("src/main.py", "x")


def test_moving_and_deleting_a_link_leaves_what_it_leads_to(tree, tools):
    (tree / "link").symlink_to(tree.parent / "outside.txt")
    made = tools()

    moved = made["move_file"]("link", "link2")
    deleted = made["delete_file"]("link2")

    assert (moved.kind, deleted.kind) == ("link", "link")
    assert (tree.parent / "outside.txt").exists()
    assert not (tree / "link2").is_symlink()


def test_links_that_go_round_are_an_answer(tree, tools):
    (tree / "loop").symlink_to("loop")
    (tree / "src" / "up").symlink_to("..")

    with pytest.raises(ValueError, match="circles"):
        tools()["read_file"]("loop")
    assert "src/up/a.txt" not in {entry.path for entry in tools()["list_dir"](depth=10).entries}


HIDDEN = [".env", ".ENV", "src/.env.local", "id_rsa", "server.pem", ".ssh/config", ".git/config"]


@pytest.mark.parametrize("path", HIDDEN)
def test_no_tool_reaches_what_is_hidden(tree, tools, path):
    target = tree / path
    target.parent.mkdir(exist_ok=True)
    target.write_text(SECRET)
    made = tools()

    for name, arguments in calls(path):
        with pytest.raises(ValueError, match="is hidden"):
            made[name](**arguments)

    assert target.read_text() == SECRET


@pytest.mark.parametrize("path", HIDDEN)
async def test_what_is_hidden_is_not_found(tree, tools, path):
    target = tree / path
    target.parent.mkdir(exist_ok=True)
    target.write_text(SECRET)
    made = tools()

    listed = {entry.path for entry in made["list_dir"](depth=5).entries}
    found = {hit.path for hit in made["search_files"]("**", kind="any", gitignore=False).matches}
    fuzzy = {hit.path for hit in made["search_files"](path, mode="fuzzy", kind="any").matches}
    lines = await made["grep_files"](SECRET, gitignore=False)

    assert path not in listed | found | fuzzy
    assert lines.matches == []


def test_a_hard_link_to_a_secret_is_no_way_to_it(tree, tools):
    os.link(tree / ".env", tree / "innocent.txt")

    with pytest.raises(ValueError, match="is hidden"):
        tools()["read_file"]("innocent.txt")


def test_a_link_that_changes_meanwhile_leads_nowhere(tree, tools):
    """One thread turns a link to the inside and to the outside, as fast as it can; the tools read and write there."""
    outside = tree.parent / "elsewhere"
    outside.mkdir()
    (outside / "f.txt").write_text("outside")
    (tree / "real").mkdir()
    (tree / "real" / "f.txt").write_text("inside")
    (tree / "swap").symlink_to("real")
    is_over = threading.Event()

    def swap():
        while not is_over.is_set():
            for target in (outside, "real"):
                (tree / "turned").symlink_to(target)
                (tree / "turned").replace(tree / "swap")

    thread = threading.Thread(target=swap)
    thread.start()
    made = tools()
    read = set()
    try:
        for _ in range(150):
            with suppress(ValueError):
                read.add(made["read_file"]("swap/f.txt").text)
            with suppress(ValueError):
                made["write_file"]("swap/f.txt", "inside", if_exists="overwrite")
            with suppress(ValueError):
                made["write_file"]("swap/new.txt", "inside", if_exists="overwrite")
    finally:
        is_over.set()
        thread.join()

    assert "outside" not in read
    assert {path.name: path.read_text() for path in outside.iterdir()} == {"f.txt": "outside"}


def test_a_pipe_is_refused_and_not_waited_for(tree, tools):
    os.mkfifo(tree / "pipe")
    made = tools()

    for name, arguments in calls("pipe"):
        if name != "search_files":
            with pytest.raises(ValueError, match=r"not a regular file|not a folder|only a file"):
                made[name](**arguments)
    with pytest.raises(ValueError, match="not a regular file"):
        made["move_file"].dry_run({"source": "pipe", "destination": "taken.txt"}, None)
    assert ("pipe", "other") in {(entry.path, entry.kind) for entry in made["list_dir"]().entries}


async def test_grep_passes_pipes_by(tree, tools):
    os.mkfifo(tree / "pipe")

    assert (await tools()["grep_files"]("hello")).files_searched == 3


def test_the_system_s_own_files_are_no_files(tools, tmp_path):
    from agentos_pack_files._tools import create_tools
    from agentos_pack_files.options import FilesOptions

    options = FilesOptions(root="/", writable=False)
    made = {tool.name: tool for tool in create_tools(options.open_root(), options)}

    with pytest.raises(ValueError, match="view of the system"):
        made["read_file"]("proc/self/environ")


@pytest.mark.parametrize("path", ["a\0b", "", "x" * 300, "\ud800", "a" * 5000])
def test_a_path_that_is_none_is_refused(tools, path):
    with pytest.raises(ValueError, match=r"NUL|empty|too long|valid text"):
        tools()["read_file"](path)


@pytest.mark.parametrize("name", ["a\nb.txt", "a\u202egpj.exe", "tab\there", "C:", "back\\slash", "end."])
def test_a_name_that_misleads_is_not_made(tools, name):
    with pytest.raises(ValueError, match=r"name|drive"):
        tools()["write_file"](name, "x")

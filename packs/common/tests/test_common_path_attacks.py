"""Attempts to get out of a root, to get at what is hidden in it, and to hang or fill whoever reads: none succeeds."""

import os
import socket
import stat
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest
from agentos_pack_common import DEFAULT_HIDDEN, PathError, Root
from hypothesis import given
from hypothesis import strategies as st

SECRET = b"the secret outside"


@pytest.fixture
def outside(tmp_path):
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "secret.txt").write_bytes(SECRET)
    return folder


@pytest.fixture
def root(tmp_path, outside):
    folder = tmp_path / "root"
    (folder / "sub").mkdir(parents=True)
    (folder / "a.txt").write_bytes(b"hello")
    (folder / "sub" / "b.txt").write_bytes(b"inner")
    return Root(folder)


def refusal(act, *arguments, **fields):
    with pytest.raises(PathError) as caught:
        act(*arguments, **fields)
    return caught.value


def outcome(act, *arguments, **fields):
    """Return the message of a refusal, and of what caused it; nothing if there is none."""
    try:
        act(*arguments, **fields)
    except PathError as error:
        return f"{error} {error.__cause__} {error.__context__}"
    return ""


def every_way(root, path):
    """Return the refusal of each thing that could be done with *path*."""
    return [
        refusal(root.resolve, path),
        refusal(root.stat, path),
        refusal(root.open_read, path, max_bytes=100),
        refusal(root.scan, path),
        refusal(root.write_bytes, path, b"x", overwrite=True, parents=True),
        refusal(root.make_folder, path, parents=True),
    ]


def descriptors():
    return sorted(path.name for path in Path("/proc/self/fd").iterdir())


def tree(folder):
    return {str(path): path.lstat().st_mtime_ns for path in sorted(folder.rglob("*"))}


# -- out of the root ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [
        *(
            "..",
            "../",
            "../outside/secret.txt",
            "sub/../../outside/secret.txt",
            "sub/../..",
            "./../x",
            "sub/./../.././x",
        ),
        *("/", "//", "/etc/passwd", "//etc/passwd", "/proc/self/environ", "/dev/zero", "/../etc/passwd"),
        *("../" * 50 + "etc/passwd", "sub/" + "../" * 60 + "etc/passwd"),
    ],
)
def test_a_path_that_leaves_the_root_is_refused(root, path):
    assert {error.kind for error in every_way(root, path)} == {"outside"}


def test_a_folder_whose_name_only_begins_like_the_roots_is_outside(root, tmp_path):
    (tmp_path / "root-2").mkdir()
    (tmp_path / "root-2" / "secret.txt").write_bytes(SECRET)

    assert {error.kind for error in every_way(root, str(tmp_path / "root-2" / "secret.txt"))} == {"outside"}
    assert {error.kind for error in every_way(root, str(root.folder / ".." / "root-2"))} == {"outside"}


@pytest.mark.parametrize(
    ("target", "path"),
    [
        ("../outside", "link/secret.txt"),
        ("../outside/secret.txt", "link"),
        ("/etc/passwd", "link"),
        ("/proc/self/environ", "link"),
        ("/proc/self/root/etc", "link/passwd"),
        ("/proc/self/cwd", "link/pyproject.toml"),
        ("/dev/zero", "link"),
        ("..", "link"),
        ("../root/../outside/secret.txt", "link"),
        ("sub/../../outside/secret.txt", "link"),
        ("second", "link/secret.txt"),
        ("/", "link"),
    ],
)
def test_a_link_that_leaves_the_root_is_refused(root, outside, target, path):
    (root.folder / "second").symlink_to("../outside")
    (root.folder / "link").symlink_to(target)
    before = tree(outside)

    assert {error.kind for error in every_way(root, path)} == {"outside"}
    assert tree(outside) == before


def test_an_absolute_link_that_leaves_the_root_and_comes_back_is_refused(root):
    (root.folder / "link").symlink_to(f"{root.folder}/../root/a.txt")

    assert refusal(root.open_read, "link", max_bytes=9).kind == "outside"


def test_messages_do_not_tell_where_a_link_leads(root):
    (root.folder / "link").symlink_to("/home/somebody/private")

    message = str(refusal(root.open_read, "link", max_bytes=9))

    assert message == "'link' is a link, or lies beneath one, that leaves the root folder"


@pytest.mark.parametrize("act", ["open_read", "stat", "scan", "remove_file", "resolve", "write_bytes"])
def test_messages_do_not_tell_where_the_root_is(root, act):
    arguments = {"open_read": {"max_bytes": 9}, "write_bytes": {"data": b"", "overwrite": False}}.get(act, {})
    paths = (
        "sub/none/x",
        "a.txt/x",
        "../x",
        ".env",
        "x\0y",
        "n" * 300,
        root.folder / "sub" / ".env",
        root.folder / "a.txt/",
    )

    told = [outcome(getattr(root, act), path, **arguments) for path in paths]

    assert not [message for message in told if str(root.folder) in message]


def test_nothing_is_removed_or_moved_out_of_or_into_the_root(root, outside):
    (root.folder / "link").symlink_to("../outside")
    before = tree(outside)
    errors = [
        refusal(root.remove_file, "link/secret.txt"),
        refusal(root.remove_folder, "link/"),
        refusal(root.remove_file, "../outside/secret.txt"),
        refusal(root.rename, "link/secret.txt", "mine", overwrite=True),
        refusal(root.rename, "a.txt", "link/mine", overwrite=True),
        refusal(root.rename, "a.txt", "../outside/mine", overwrite=True),
    ]

    assert [error.kind for error in errors] == ["outside", "not_a_folder", "outside", "outside", "outside", "outside"]
    assert tree(outside) == before


def test_links_in_circles_are_left(root):
    (root.folder / "x").symlink_to("y")
    (root.folder / "y").symlink_to("x")
    (root.folder / "me").symlink_to("me/me/me")

    assert {error.kind for path in ("x", "x/a", "me") for error in every_way(root, path)} == {"bad"}


def test_links_that_grow_are_left(root):
    """Each link leads twice through the one before: to follow them all would take 2**39 steps."""
    (root.folder / "l0").symlink_to("sub/..")
    for count in range(1, 40):
        (root.folder / f"l{count}").symlink_to(f"l{count - 1}/l{count - 1}")

    assert refusal(root.stat, "l39").kind == "bad"


@pytest.mark.parametrize("path", ["sub/../" * 600 + "a.txt", "d/" * 2_000, "./" * 2_000 + "none"])
def test_a_long_way_is_left_or_ends(root, path):
    assert refusal(root.open_read, path, max_bytes=9).kind in ("bad", "missing")


# -- races -------------------------------------------------------------------------------------------------------

SWAPPER = """
import os, sys
folder, outside = sys.argv[1:]
os.chdir(folder)
os.symlink(outside, "evil")
print("ready", flush=True)
while True:
    os.rename("sub", "real"); os.rename("evil", "sub")
    os.rename("sub", "evil"); os.rename("real", "sub")
"""


@pytest.fixture
def swapped(root, outside):
    """Swap `sub` for a link that leads outside and back, as fast as another process can."""
    (root.folder / "sub" / "secret.txt").write_bytes(b"inner")
    process = subprocess.Popen(
        [sys.executable, "-c", SWAPPER, str(root.folder), str(outside)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout.readline() == "ready\n"
        yield root
    finally:
        process.kill()
        process.communicate()


def outcomes(act, count):
    """Try *act* again and again; return what came, and the kinds of refusals."""
    found = set()
    for _ in range(count):
        try:
            found.add(act())
        except PathError as error:
            found.add(error.kind)
    return found


REFUSALS = {"outside", "missing", "failed", "not_a_folder", "exists", None}


def test_a_folder_that_becomes_a_link_is_not_read_through(swapped):
    found = outcomes(lambda: swapped.read_bytes("sub/secret.txt", max_bytes=100), 3_000)

    assert b"inner" in found
    assert found <= {b"inner", *REFUSALS}


def test_a_folder_that_becomes_a_link_is_not_listed_through(swapped, outside):
    for index in range(5):
        (outside / f"only-outside-{index}").touch()

    found = outcomes(lambda: tuple(item.path for item in swapped.scan("sub")), 2_000)

    assert found <= {("sub/b.txt", "sub/secret.txt"), *REFUSALS}


def test_a_folder_that_becomes_a_link_is_not_written_through(swapped, outside):
    before = tree(outside)

    outcomes(lambda: swapped.write_bytes("sub/new.txt", b"x", overwrite=True), 500)
    outcomes(lambda: swapped.write_bytes("sub/newer.txt", b"x", overwrite=False), 100)
    outcomes(lambda: swapped.make_folder("sub/made/deep", parents=True), 300)

    assert tree(outside) == before


def test_a_folder_that_becomes_a_link_is_not_removed_or_moved_through(swapped, outside):
    (outside / "empty").mkdir()
    before = tree(outside)

    outcomes(lambda: swapped.remove_file("sub/secret.txt"), 1_000)
    outcomes(lambda: swapped.remove_folder("sub/empty"), 500)
    outcomes(lambda: swapped.rename("sub/secret.txt", "stolen", overwrite=True), 500)
    outcomes(lambda: swapped.rename("a.txt", "sub/given", overwrite=True), 500)

    assert tree(outside) == before


def test_a_file_that_becomes_a_link_is_not_read_through(root, outside):
    stop = threading.Event()

    def swap():
        (root.folder / "good").write_bytes(b"inner")
        (root.folder / "evil").symlink_to(outside / "secret.txt")
        while not stop.is_set():
            for name in ("good", "evil"):
                os.link(root.folder / name, root.folder / "next", follow_symlinks=False)
                (root.folder / "next").replace(root.folder / "file")

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        found = outcomes(lambda: root.read_bytes("file", max_bytes=100), 2_000)
    finally:
        stop.set()
        thread.join()

    assert found <= {b"inner", *REFUSALS}


def test_of_many_that_write_a_new_file_one_succeeds(root):
    results = []

    def write(number):
        try:
            root.write_bytes("new.txt", b"%d" % number * 50_000, overwrite=False)
            results.append(number)
        except PathError as error:
            results.append(error.kind)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    winners = [result for result in results if result != "exists"]
    assert len(winners) == 1
    assert (root.folder / "new.txt").read_bytes() == b"%d" % winners[0] * 50_000


def test_a_reader_sees_the_old_or_the_new_file_and_no_mixture(root):
    old, new = b"a" * 200_000, b"b" * 200_000
    root.write_bytes("file", old, overwrite=True)
    stop = threading.Event()

    def rewrite():
        while not stop.is_set():
            root.write_bytes("file", new, overwrite=True)
            root.write_bytes("file", old, overwrite=True)

    thread = threading.Thread(target=rewrite)
    thread.start()
    try:
        found = {root.read_bytes("file", max_bytes=1_000_000) for _ in range(200)}
    finally:
        stop.set()
        thread.join()

    assert found <= {old, new}


# -- what is no file ---------------------------------------------------------------------------------------------


def test_a_pipe_is_not_waited_for(root):
    os.mkfifo(root.folder / "pipe")

    assert refusal(root.open_read, "pipe", max_bytes=9).kind == "not_a_file"
    assert refusal(root.write_bytes, "pipe", b"x", overwrite=True).kind == "not_a_file"


def test_a_pipe_that_takes_a_files_place_is_not_waited_for(root):
    stop = threading.Event()
    os.mkfifo(root.folder / "pipe")

    def swap():
        while not stop.is_set():
            for name in ("pipe", "a.txt"):
                os.link(root.folder / name, root.folder / "next")
                (root.folder / "next").replace(root.folder / "file")

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        found = outcomes(lambda: root.read_bytes("file", max_bytes=100), 2_000)
    finally:
        stop.set()
        thread.join()

    assert found <= {b"hello", "not_a_file", "missing"}


def test_a_socket_is_no_file(root, monkeypatch):
    monkeypatch.chdir(root.folder)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("sock")

    assert refusal(root.open_read, "sock", max_bytes=9).kind == "not_a_file"


def test_a_device_is_no_file(root):
    try:
        os.mknod(root.folder / "zero", 0o600 | stat.S_IFCHR, os.makedev(1, 5))
    except PermissionError:
        pytest.skip("only the superuser makes devices")

    assert refusal(root.open_read, "zero", max_bytes=9).kind == "not_a_file"
    assert refusal(root.remove_file, "zero").kind == "not_a_file"


@pytest.mark.skipif(sys.platform != "linux", reason="there is no /proc")
@pytest.mark.parametrize("path", ["proc/self/environ", "proc/1/maps", "proc", "sys/kernel", "proc/self/x"])
def test_the_systems_own_views_are_no_files_even_if_the_root_is_everything(path):
    everything = Root("/", writable=False)

    assert refusal(everything.open_read, path, max_bytes=9).kind == "outside"


def test_a_huge_file_takes_no_more_than_is_asked_for(root):
    with (root.folder / "sparse").open("wb") as file:
        file.truncate(10_000_000_000)

    with root.open_read("sparse", max_bytes=1_000) as file:
        assert (len(file.read()), file.truncated, file.size) == (1_000, True, 10_000_000_000)
    with root.open_read("sparse", max_bytes=1_000) as file:
        assert len(file.readline()) == 1_000
    assert refusal(root.read_bytes, "sparse", max_bytes=1_000).kind == "failed"


def test_a_file_that_grows_takes_no_more_than_is_asked_for(root):
    with root.open_read("a.txt", max_bytes=8) as file, (root.folder / "a.txt").open("ab") as writer:
        first = file.read()
        writer.write(b"x" * 100)
        writer.flush()

        assert (first, file.read(), file.truncated) == (b"hello", b"xxx", True)


# -- names -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path", ["a\0.txt", "\0", "sub\0/../../outside", "", "n" * 256, "ü" * 128, "x/" * 2_049, "a\udcff", "\ud800"]
)
def test_what_can_be_no_path_is_refused(root, path):
    assert {error.kind for error in every_way(root, path)} == {"bad"}


@pytest.mark.parametrize("path", [None, 7, b"a.txt", ["a.txt"]])
def test_a_path_is_text(root, path):
    assert refusal(root.open_read, path, max_bytes=9).kind == "bad"


@pytest.mark.parametrize(
    "name",
    [
        *("..\\..\\outside\\secret.txt", "C:\\x", "C:/x", "c:", "a\\b"),
        *(
            "a\nb",
            "a\x1b[31mb",
            "\x7f",
            "a\u202egpj.exe",
            "a\u200bb",
            "\u00a0",
            "x ",
            " x",
            "x.",
            "sub/...",
            "a\u2028b",
        ),
    ],
)
def test_a_name_that_misleads_is_not_made(root, name):
    before = tree(root.folder)
    errors = [
        refusal(root.write_bytes, name, b"x", overwrite=True, parents=True),
        refusal(root.make_folder, name, parents=True),
        refusal(root.make_folder, f"{name}/inner", parents=True),
        refusal(root.rename, "a.txt", name, overwrite=True),
    ]

    assert {error.kind for error in errors} <= {"bad", "missing"}
    assert errors[0].kind == "bad"
    assert tree(root.folder) == before


@pytest.mark.parametrize(
    "name", ["12:30.log", "ünï.txt", "名前", "a b", ".config", "-rf", "~", "$HOME", "%2e%2e", "con"]
)
def test_a_name_that_is_only_unusual_is_made(root, name):
    root.write_bytes(name, b"x", overwrite=False)

    assert (root.folder / name).read_bytes() == b"x"


def test_a_strange_name_that_exists_can_be_read_and_is_told_on_one_line(root):
    (root.folder / "a\nb").write_bytes(b"x")

    assert root.read_bytes("a\nb", max_bytes=9) == b"x"
    assert str(refusal(root.scan, "a\nb")) == r"'a\nb' is not a folder"


def test_a_name_that_is_no_text_is_left_out(root):
    name = os.fsdecode(b"\xff\xfe")
    (root.folder / name).touch()
    (root.folder / "link").symlink_to(name)

    assert [item.path for item in root.scan()] == ["a.txt", "link", "sub"]
    assert refusal(root.stat, "link").kind == "bad"


def test_a_slash_after_a_file_is_not_ignored(root):
    (root.folder / "link").symlink_to("a.txt/")

    assert refusal(root.open_read, "a.txt/", max_bytes=9).kind == "not_a_folder"
    assert refusal(root.open_read, "a.txt/.", max_bytes=9).kind == "not_a_folder"
    assert refusal(root.open_read, "a.txt/../a.txt", max_bytes=9).kind == "not_a_folder"
    assert refusal(root.open_read, "link", max_bytes=9).kind == "not_a_folder"


PARTS = ["/", "/", ".", "..", "a.txt", "sub", "link", "up", "out", "\\", "~", "\u202e", "\n", "x"]
ODD = st.lists(st.sampled_from(PARTS), max_size=12).map("".join)


@given(path=ODD)
def test_whatever_is_asked_for_is_beneath_the_root_or_refused(tmp_path_factory, path):
    folder = tmp_path_factory.getbasetemp() / "odd"
    if not folder.exists():
        (folder / "sub").mkdir(parents=True)
        (folder / "a.txt").touch()
        (folder / "link").symlink_to("sub")
        (folder / "sub" / "up").symlink_to("..")
        (folder / "out").symlink_to("../..")
    root = Root(folder)
    try:
        found = root.resolve(path)
    except PathError:
        return

    assert Path(os.path.realpath(found)).is_relative_to(root.folder)
    assert found == Path(os.path.realpath(root.folder / path))


# -- hidden files ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [
        *(
            ".env",
            ".env.local",
            "sub/.env",
            "prod.env",
            ".ENV",
            ".Env.Production",
            "server.pem",
            "SERVER.PEM",
            "tls.key",
        ),
        *(
            "id_rsa",
            "id_ed25519.pub",
            ".ssh",
            ".ssh/config",
            "sub/.ssh/deep/known_hosts",
            ".SSH/config",
            ".aws/credentials",
        ),
        *(".netrc", ".git-credentials", "vault.kdbx", ".git/config", ".git/hooks/pre-commit", ".git", "x/.git/HEAD"),
        *(".env.", ".env ", "\uff0eenv", ".e\u200bnv", ".cargo/credentials.toml", ".config/gh/hosts.yml", ".npmrc"),
        *("sub/../.env", "./.env", ".env/", "new/.env", ".env/x"),
    ],
)
def test_what_is_hidden_can_not_be_used_whether_or_not_it_is_there(root, path):
    before = tree(root.folder)
    errors = [
        *every_way(root, path),
        refusal(root.remove_file, path),
        refusal(root.rename, "a.txt", path, overwrite=True),
    ]

    assert {error.kind for error in errors} == {"hidden"}
    assert tree(root.folder) == before


def test_what_is_hidden_is_not_listed(root):
    for name in (".env", "server.pem", ".git", ".hidden-but-not-secret"):
        (root.folder / name).touch()

    assert [item.path for item in root.scan()] == [".hidden-but-not-secret", "a.txt", "sub"]


@pytest.mark.parametrize("target", [".env", "sub/../.env", ".ssh/config", "second"])
def test_what_is_hidden_is_not_reached_by_a_link(root, target):
    (root.folder / ".env").write_bytes(SECRET)
    (root.folder / ".ssh").mkdir()
    (root.folder / ".ssh" / "config").write_bytes(SECRET)
    (root.folder / "second").symlink_to(".env")
    (root.folder / "notes.txt").symlink_to(target)
    (root.folder / "folder").symlink_to(".ssh")

    assert {error.kind for error in every_way(root, "notes.txt")} == {"hidden"}
    assert {error.kind for error in every_way(root, "folder/config")} == {"hidden"}


def test_a_hidden_name_hides_whatever_its_link_leads_to(root):
    (root.folder / "plain").mkdir()
    (root.folder / "plain" / "credentials").write_bytes(SECRET)
    (root.folder / ".cargo").symlink_to("plain")
    (root.folder / ".env").symlink_to("a.txt")

    assert refusal(root.open_read, ".env", max_bytes=9).kind == "hidden"
    assert refusal(root.open_read, ".cargo/credentials", max_bytes=9).kind == "hidden"


@pytest.mark.parametrize("place", [".env", "sub/.env", ".ssh/config"])
@pytest.mark.parametrize("name", ["sub/notes.txt", "sub/deep/notes.txt"])
def test_another_name_of_a_hidden_file_near_by_is_noticed(root, place, name):
    for path in (place, name):
        (root.folder / path).parent.mkdir(exist_ok=True)
    (root.folder / place).write_bytes(SECRET)
    os.link(root.folder / place, root.folder / name)

    assert refusal(root.open_read, name, max_bytes=100).kind == "hidden"


def test_another_name_of_a_hidden_file_is_not_moved_to_where_it_would_not_be_noticed(root):
    (root.folder / "sub" / ".env").write_bytes(SECRET)
    os.link(root.folder / "sub" / ".env", root.folder / "sub" / "notes.txt")

    assert refusal(root.rename, "sub/notes.txt", "notes.txt", overwrite=False).kind == "hidden"


def test_a_file_with_two_harmless_names_is_read(root):
    (root.folder / ".env").write_bytes(SECRET)
    (root.folder / ".ssh").mkdir()
    os.link(root.folder / "a.txt", root.folder / "sub" / "twin.txt")

    assert root.read_bytes("sub/twin.txt", max_bytes=9) == b"hello"


def test_a_folder_is_not_moved_if_that_would_bring_hidden_files_to_light(root):
    (root.folder / ".cargo").mkdir()
    (root.folder / ".cargo" / "credentials").write_bytes(SECRET)

    assert refusal(root.rename, ".cargo", "cargo", overwrite=False).kind == "hidden"
    root.rename("sub", "other", overwrite=False)


def test_what_is_hidden_can_be_chosen(root):
    (root.folder / ".env").write_bytes(b"open")
    (root.folder / "private").mkdir()
    (root.folder / "private" / "x").touch()
    own = Root(root.folder, hidden=["private/", "sub/*.TXT"])

    assert own.read_bytes(".env", max_bytes=9) == b"open"
    assert refusal(own.stat, "private/x").kind == "hidden"
    assert refusal(own.stat, "sub/b.txt").kind == "hidden"
    assert own.stat("a.txt").kind == "file"


def test_patterns_are_several(root):
    with pytest.raises(TypeError, match="several patterns"):
        Root(root.folder, hidden=".env")


def test_the_default_patterns_leave_ordinary_files_alone(root):
    for name in (
        "README.md",
        "environment.yml",
        "keys.py",
        "config.json",
        ".gitignore",
        ".github",
        "monkey.jpg",
        "envs",
    ):
        root.write_bytes(name, b"x", overwrite=False)

    assert len(DEFAULT_HIDDEN) > 50


# -- a full disk -------------------------------------------------------------------------------------------------

FULL = """
import os, sys
from agentos_pack_common import PathError, Root
root = Root(sys.argv[1])
{limit}
for overwrite in (True, False):
    for name in ("old.txt", "sub/new.txt"):
        try:
            root.write_bytes(name, b"x" * 5_000_000, overwrite=overwrite)
        except PathError as error:
            print(error)
print(sorted(os.listdir(root.folder)), os.listdir(root.folder / "sub"), root.read_bytes("old.txt", max_bytes=9))
"""
LEFT = "['old.txt', 'sub'] [] b'old'"


def test_a_file_that_grows_too_large_is_not_left_half_written(tmp_path, run_python):
    (tmp_path / "old.txt").write_bytes(b"old")
    (tmp_path / "sub").mkdir()
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))"

    lines = run_python(FULL.format(limit=limit), tmp_path).splitlines()

    assert lines[-1] == LEFT
    assert lines[0] == "'old.txt' was not written: it is larger than a file may be here"


def test_a_disk_that_is_full_leaves_the_old_file(tmp_path, run_python):
    """On a file system of 1 MB, made in a namespace of its own."""
    by = ["unshare", "--map-root-user", "--mount"]
    script = tmp_path / "mount.sh"
    script.write_text(
        'mount -t tmpfs -o size=1m tmpfs "$1" && mkdir "$1/sub" && printf old > "$1/old.txt" && shift && exec "$@"\n'
    )
    place = tmp_path / "small"
    place.mkdir()
    probe = [*by, "mount", "-t", "tmpfs", "tmpfs", str(place)]
    try:
        if subprocess.run(probe, capture_output=True, check=False).returncode:
            pytest.skip("file systems can't be mounted here")
    except FileNotFoundError:
        pytest.skip("there is no unshare")

    lines = run_python(FULL.format(limit=""), place, by=[*by, "sh", str(script), str(place)]).splitlines()

    assert lines[0] == "'old.txt' was not written: there is no room left"
    assert lines[-1] == LEFT


# -- nothing is left open ----------------------------------------------------------------------------------------


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="descriptors can't be counted")
def test_no_descriptor_stays_open_whatever_happens(root):
    (root.folder / "link").symlink_to("../outside")
    os.mkfifo(root.folder / "pipe")
    os.link(root.folder / "a.txt", root.folder / "twin")
    paths = ("a.txt", "twin", "sub", "link", "none", "none/none", "pipe", "../x", "sub/../a.txt", ".env", "a.txt/x")
    before = descriptors()
    for path in paths:
        for act in (root.stat, root.scan, root.resolve, lambda path: root.read_bytes(path, max_bytes=2)):
            outcomes(lambda act=act, path=path: str(act(path)), 1)
        outcomes(lambda path=path: root.write_bytes(path, b"x", overwrite=False, parents=True), 1)
        outcomes(lambda path=path: root.rename(path, "sub/b.txt", overwrite=False), 1)

    assert descriptors() == before


def test_importing_it_needs_no_folder_descriptors(run_python):
    """Where the system can't open files from a folder on, only making a Root fails, and says why."""
    code = textwrap.dedent("""
        import os
        os.supports_dir_fd.discard(os.open)
        from agentos_pack_common import PathError, Root
        try:
            Root(".")
        except PathError as error:
            print(error)
    """)

    assert run_python(code) == "'.' can't be a root: this system can't open files from a folder on"

"""zip_create."""

import os
import zipfile
from types import SimpleNamespace

import pytest


def names(path):
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        return archive.namelist()


def test_files_and_folders_are_packed_by_name(tools, tree):
    (tree / "src" / "empty").mkdir()

    told = tools()["zip_create"]("out/x.zip", ["src", "a.txt"])

    assert names(tree / "out" / "x.zip") == ["a.txt", "src/a.txt", "src/deep/b.txt", "src/empty/"]
    assert (told.files, told.folders, told.bytes, told.applied, told.replaced) == (3, 1, 11, True, False)
    assert (tree / "out" / "x.zip").stat().st_size == told.size


def test_files_of_the_same_name_do_not_collide(tools, tree):
    tools()["zip_create"]("x.zip", ["a.txt", "src/a.txt", "src/a.txt", "./src"])

    with zipfile.ZipFile(tree / "x.zip") as archive:
        assert {name: archive.read(name) for name in archive.namelist()} == {
            "a.txt": b"one",
            "src/a.txt": b"two",
            "src/deep/b.txt": b"three",
        }


def test_names_are_relative_to_the_base(tools, tree):
    tools()["zip_create"]("x.zip", ["src"], base="src")

    assert names(tree / "x.zip") == ["a.txt", "deep/b.txt"]


def test_what_is_not_in_the_base_is_refused(tools, tree):
    with pytest.raises(ValueError, match=r"^base: 'a.txt' is not in 'src'"):
        tools()["zip_create"]("x.zip", ["a.txt"], base="src")

    assert not (tree / "x.zip").exists()


def test_equal_files_make_equal_archives(tools, tree):
    made = tools()

    first = made["zip_create"]("x.zip", ["a.txt", "src"], fixed_times=True)
    for path in ("a.txt", "src/a.txt"):
        os.utime(tree / path, (1, 1))
    second = made["zip_create"]("y.zip", ["src", "a.txt"], fixed_times=True)

    assert first.sha256 == second.sha256


def test_times_are_kept_in_utc_and_within_what_a_zip_can_say(tools, tree):
    os.utime(tree / "a.txt", (1_700_000_000, 1_700_000_000))
    os.utime(tree / "src" / "a.txt", (0, 0))
    os.utime(tree / "src" / "deep" / "b.txt", (2**33, 2**33))

    tools()["zip_create"]("x.zip", ["a.txt", "src"])

    with zipfile.ZipFile(tree / "x.zip") as archive:
        times = {info.filename: info.date_time for info in archive.infolist()}
    assert times["a.txt"] == (2023, 11, 14, 22, 13, 20)
    assert (times["src/a.txt"], times["src/deep/b.txt"]) == ((1980, 1, 1, 0, 0, 0), (1980, 1, 1, 0, 0, 0))


@pytest.mark.parametrize("name", [".env", "key.pem", ".ssh/id_ed25519", ".git/config"])
def test_secrets_are_never_packed(tools, tree, name):
    (tree / "src" / name).parent.mkdir(exist_ok=True)
    (tree / "src" / name).write_text("top-secret")

    tools()["zip_create"]("x.zip", ["."])

    assert names(tree / "x.zip") == ["a.txt", "src/a.txt", "src/deep/b.txt"]


def test_a_secret_that_is_named_is_refused(tools, tree):
    with pytest.raises(ValueError, match="is hidden"):
        tools()["zip_create"]("x.zip", [".env"])


def test_links_and_special_files_are_left_out_and_told(tools, tree):
    (tree / "src" / "link").symlink_to(tree.parent / "outside.txt")
    (tree / "src" / "folder").symlink_to(tree.parent)
    os.mkfifo(tree / "src" / "pipe")

    told = tools()["zip_create"]("x.zip", ["src"])

    assert [(one.path, one.reason) for one in told.left_out] == [
        ("src/folder", "it is a link"),
        ("src/link", "it is a link"),
        ("src/pipe", "it is a special file"),
    ]
    assert names(tree / "x.zip") == ["src/a.txt", "src/deep/b.txt"]


@pytest.mark.parametrize("path", ["../outside.txt", "link", "/etc/passwd"])
def test_what_is_outside_is_not_packed(tools, tree, path):
    (tree / "link").symlink_to(tree.parent / "outside.txt")

    with pytest.raises(ValueError, match=r"leaves|outside"):
        tools()["zip_create"]("x.zip", [path])
    with pytest.raises(ValueError, match=r"leaves|outside"):
        tools()["zip_create"](path, ["a.txt"], overwrite=True)


def test_the_archive_does_not_pack_itself(tools, tree):
    made = tools()
    made["zip_create"]("src/x.zip", ["src"])
    made["zip_create"]("src/x.zip", ["src"], overwrite=True)

    assert names(tree / "src" / "x.zip") == ["src/a.txt", "src/deep/b.txt"]


def test_an_archive_that_exists_is_kept(tools, tree):
    (tree / "x.zip").write_text("mine")

    with pytest.raises(ValueError, match="exists already; choose another name, or say overwrite"):
        tools()["zip_create"]("x.zip", ["src"])

    assert (tree / "x.zip").read_text() == "mine"
    assert tools()["zip_create"]("x.zip", ["src"], overwrite=True).replaced


@pytest.mark.parametrize("path", [".env", "src/.env.local", "x.pem"])
def test_an_archive_is_not_written_over_secrets(tools, path):
    with pytest.raises(ValueError, match="is hidden"):
        tools()["zip_create"](path, ["a.txt"], overwrite=True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "src", "paths": ["a.txt"], "overwrite": True}, "is not a file; give the path of the archive itself"),
        ({"name": "x.zip", "paths": ["a.txt"], "base": "a.txt"}, "is not a folder"),
        ({"name": "x.zip", "paths": ["missing"]}, "does not exist"),
        ({"name": "x.zip", "paths": ["deep"]}, r"^paths: folders are nested deeper than 64 levels"),
        ({"name": "x.zip", "paths": ["a.txt"], "context": SimpleNamespace(cancelled=True)}, "the call was ended"),
    ],
)
def test_what_cannot_be_packed_is_refused(tools, tree, arguments, message):
    (tree / "deep" / "/".join(["d"] * 80)).mkdir(parents=True)

    with pytest.raises(ValueError, match=message):
        tools()["zip_create"](**arguments)

    assert not (tree / "x.zip").exists()


def test_nothing_to_pack_is_refused(tools, tree):
    with pytest.raises(ValueError, match=r"^paths: there is nothing to pack"):
        tools()["zip_create"]("a.txt", ["a.txt"], overwrite=True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_members": 2}, r"^paths: more than 2 files, which is the limit"),
        ({"max_bytes": 1_000}, r"^paths: 5,011 bytes; at most 1,000 can be packed"),
        ({"max_archive_bytes": 1_000}, r"^paths: the archive has more than 1,000 bytes"),
    ],
)
def test_there_is_a_limit(tools, tree, options, message):
    (tree / "src" / "large").write_bytes(os.urandom(5_000))

    with pytest.raises(ValueError, match=message):
        tools(**options)["zip_create"]("x.zip", ["."])

    assert not (tree / "x.zip").exists()


def test_a_sparse_file_is_counted_as_what_it_says(tools, tree):
    with (tree / "sparse").open("wb") as file:
        file.truncate(10 * 1024**3)

    with pytest.raises(ValueError, match=r"^paths: 10,737,\d{3},\d{3} bytes; at most"):
        tools()["zip_create"]("x.zip", ["."])


def test_a_preview_says_what_will_happen_and_changes_nothing(tools, tree, everything):
    before = everything()
    tool = tools()["zip_create"]
    arguments = {"name": "new/x.zip", "paths": ["src", "a.txt"]}

    shown = tool.dry_run(arguments, None)
    assert before == everything()

    done = tool(**arguments)
    assert (shown.names, shown.bytes, shown.path) == (done.names, done.bytes, done.path)
    assert (shown.applied, shown.size, done.applied) == (False, None, True)


def test_what_is_packed_can_be_unpacked(tools, tree):
    made = tools()
    made["zip_create"]("x.zip", ["src"])
    made["zip_extract"]("x.zip", "again")

    assert (tree / "again" / "src" / "deep" / "b.txt").read_text() == "three"


def test_a_preview_refuses_a_name_that_can_not_be_written(tools):
    with pytest.raises(ValueError, match="has a backslash in its name"):
        tools()["zip_create"].dry_run({"name": "new\\x.zip", "paths": ["a.txt"]}, None)

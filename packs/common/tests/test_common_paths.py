"""What a Root lets through: reading, writing, listing and moving beneath one folder."""

import datetime as dt
import os
import stat
import zipfile
from pathlib import Path

import pytest
from agentos_pack_common import Item, PathError, Root
from agentos_pack_common.paths import _moment


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "root"
    (folder / "sub" / "deep").mkdir(parents=True)
    (folder / "a.txt").write_bytes(b"hello")
    (folder / "sub" / "b.txt").write_bytes(b"one\ntwo\nthree\n")
    return Root(folder)


def refusal(act, *arguments, **fields):
    with pytest.raises(PathError) as caught:
        act(*arguments, **fields)
    return caught.value


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def read(root, path, max_bytes=1_000):
    with root.open_read(path, max_bytes=max_bytes) as file:
        return file.read()


# -- where things are --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "real"),
    [
        ("a.txt", "a.txt"),
        ("./a.txt", "a.txt"),
        ("sub//deep/", "sub/deep"),
        ("sub/deep/../b.txt", "sub/b.txt"),
        ("sub/..", ""),
        (".", ""),
        ("./", ""),
        ("new.txt", "new.txt"),
        ("new/er/still", "new/er/still"),
    ],
)
def test_a_path_is_resolved_whether_or_not_something_is_there(root, path, real):
    assert root.resolve(path) == root.folder / real


def test_an_absolute_path_within_the_root_is_taken(root):
    assert root.resolve(root.folder / "sub" / "b.txt") == root.folder / "sub" / "b.txt"


def test_an_absolute_path_by_another_spelling_of_the_root_is_taken(root, tmp_path):
    (tmp_path / "alias").symlink_to(root.folder)
    aliased = Root(tmp_path / "alias")

    assert aliased.resolve(tmp_path / "alias" / "a.txt") == root.folder / "a.txt"
    assert aliased.resolve(root.folder / "a.txt") == root.folder / "a.txt"


@pytest.mark.parametrize(
    ("link", "target", "path"),
    [
        ("link", "sub/b.txt", "link"),
        ("link", "sub", "link/b.txt"),
        ("sub/up", "..", "sub/up/sub/b.txt"),
        ("dot", ".", "dot/dot/sub/b.txt"),
        ("sub/deep/back", "../../sub/b.txt", "sub/deep/back"),
    ],
)
def test_a_link_that_stays_within_is_followed(root, link, target, path):
    (root.folder / link).symlink_to(target)

    assert read(root, path) == b"one\ntwo\nthree\n"
    assert root.resolve(path) == root.folder / "sub" / "b.txt"


def test_an_absolute_link_that_stays_within_is_followed(root):
    (root.folder / "sub" / "link").symlink_to(root.folder / "a.txt")

    assert read(root, "sub/link") == b"hello"


@pytest.mark.parametrize(
    ("path", "shown"), [("sub/../a.txt", "a.txt"), (".", "."), ("x//y/", "x/y"), (Path("sub") / "b.txt", "sub/b.txt")]
)
def test_a_path_is_told_from_the_root_on(root, path, shown):
    assert root.relative(path) == shown
    assert root.relative(root.folder / path) == shown


def test_messages_name_an_absolute_path_from_the_root_on(root):
    error = refusal(root.open_read, root.folder / "none.txt", max_bytes=1)

    assert (error.kind, str(error)) == ("missing", "'none.txt' does not exist; list the folder to see what does")


def test_what_is_there_is_told(root):
    os.utime(root.folder / "a.txt", (0, 1_000_000_000))

    item = root.stat("a.txt")

    assert item == Item("a.txt", "file", 5, dt.datetime(2001, 9, 9, 1, 46, 40, tzinfo=dt.UTC))
    assert (root.stat("sub").kind, root.stat(".").path) == ("folder", ".")


@pytest.mark.parametrize(("follow", "kind", "path"), [(True, "file", "a.txt"), (False, "link", "link")])
def test_a_link_is_told_as_what_it_leads_to_or_as_itself(root, follow, kind, path):
    (root.folder / "link").symlink_to("a.txt")

    item = root.stat("link", follow=follow)

    assert (item.kind, item.path) == (kind, path)


@pytest.mark.parametrize("seconds", [2.0**60, -(2.0**60)])
def test_a_time_that_no_calendar_has_is_told_as_the_first(seconds):
    assert _moment(seconds) == dt.datetime.min.replace(tzinfo=dt.UTC)


def test_a_folder_is_listed_by_name_with_links_as_links(root):
    (root.folder / "link").symlink_to("/etc")
    os.mkfifo(root.folder / "pipe")

    items = [(item.path, item.kind, item.size) for item in root.scan()]

    assert items == [("a.txt", "file", 5), ("link", "link", 0), ("pipe", "other", 0), ("sub", "folder", 0)]
    assert [item.path for item in root.scan("sub")] == ["sub/b.txt", "sub/deep"]


def test_a_folder_that_is_listed_by_a_link_is_told_by_its_own_name(root):
    (root.folder / "link").symlink_to("sub")

    assert [item.path for item in root.scan("link")] == ["sub/b.txt", "sub/deep"]


@pytest.mark.parametrize(("path", "kind"), [("a.txt", "not_a_folder"), ("none", "missing")])
def test_what_is_no_folder_is_not_listed(root, path, kind):
    assert refusal(root.scan, path).kind == kind


# -- reading -----------------------------------------------------------------------------------------------------


def test_a_file_ends_where_its_reader_is_told_to(root):
    with root.open_read("sub/b.txt", max_bytes=7) as file:
        lines = list(file)

        assert (lines, file.truncated, file.size) == ([b"one\n", b"two"], True, 14)


def test_a_file_that_fits_is_not_truncated(root):
    with root.open_read("a.txt", max_bytes=5) as file:
        assert (file.read(), file.read(), file.truncated) == (b"hello", b"", False)


def test_a_reader_can_be_moved_but_not_beyond_its_end(root):
    with root.open_read("sub/b.txt", max_bytes=7) as file:
        ends = file.seek(0, os.SEEK_END), file.read(), file.seek(-3, os.SEEK_END), file.read(), file.seek(100)

        assert ends == (7, b"", 4, b"two", 100)
        assert file.read() == b""


def test_no_way_leads_around_a_reader_to_the_rest_of_its_file(root):
    with root.open_read("sub/b.txt", max_bytes=7) as file, pytest.raises(OSError, match="fileno"):
        file.fileno()


def test_an_archive_can_be_read_through_a_reader(root):
    with zipfile.ZipFile(root.folder / "x.zip", "w") as archive:
        archive.writestr("inner.txt", "text")

    with root.open_read("x.zip", max_bytes=10_000) as file, zipfile.ZipFile(file) as archive:
        assert archive.read("inner.txt") == b"text"


def test_a_whole_file_is_read_if_it_fits(root):
    assert root.read_bytes("a.txt", max_bytes=5) == b"hello"
    assert str(refusal(root.read_bytes, "a.txt", max_bytes=4)) == "'a.txt' has more than 4 bytes"


def test_less_than_nothing_can_not_be_read(root):
    with pytest.raises(ValueError, match="max_bytes"):
        root.open_read("a.txt", max_bytes=-1)


# -- writing -----------------------------------------------------------------------------------------------------


def test_a_file_is_written_with_its_folders_if_they_may_be_made(root):
    root.write_bytes("new/er/c.txt", b"data", overwrite=False, parents=True)

    assert (root.folder / "new" / "er" / "c.txt").read_bytes() == b"data"


def test_folders_are_not_made_unasked(root):
    assert refusal(root.write_bytes, "new/c.txt", b"", overwrite=False).kind == "missing"


def test_a_file_is_overwritten_only_if_it_may_be(root):
    error = refusal(root.write_bytes, "a.txt", b"new", overwrite=False)
    root.write_bytes("sub/b.txt", b"new", overwrite=True)

    assert (error.kind, read(root, "a.txt"), read(root, "sub/b.txt")) == ("exists", b"hello", b"new")


def test_a_new_file_gets_the_mode_it_is_given_and_an_old_one_keeps_its_own(root):
    (root.folder / "a.txt").chmod(0o750)
    root.write_bytes("a.txt", b"x", overwrite=True, mode=0o600)
    root.write_bytes("new", b"x", overwrite=True, mode=0o600)

    modes = [stat.S_IMODE((root.folder / name).stat().st_mode) for name in ("a.txt", "new")]
    assert modes == [0o750, 0o600]


def test_no_file_is_written_that_runs_as_its_owner(root):
    (root.folder / "a.txt").chmod(0o4755)
    root.write_bytes("a.txt", b"x", overwrite=True)

    assert stat.S_IMODE((root.folder / "a.txt").stat().st_mode) == 0o755


def test_writing_through_a_link_writes_what_it_leads_to(root):
    (root.folder / "link").symlink_to("sub/b.txt")
    (root.folder / "dangling").symlink_to("sub/new.txt")
    root.write_bytes("link", b"new", overwrite=True)
    root.write_bytes("dangling", b"newer", overwrite=False)

    assert (root.folder / "link").is_symlink()
    assert (read(root, "sub/b.txt"), read(root, "sub/new.txt")) == (b"new", b"newer")


@pytest.mark.parametrize("path", ["sub", ".", "new.txt/"])
def test_a_folder_is_not_written_over(root, path):
    assert refusal(root.write_bytes, path, b"", overwrite=True).kind in ("not_a_file", "bad")
    assert names(root.folder) == ["a.txt", "sub"]


def test_nothing_is_left_beside_a_file_that_was_written(root):
    root.write_bytes("c.txt", b"x", overwrite=False)
    root.write_bytes("c.txt", b"y", overwrite=True)
    refusal(root.write_bytes, "c.txt", b"z", overwrite=False)

    assert names(root.folder) == ["a.txt", "c.txt", "sub"]


def test_where_files_can_not_have_two_names_a_new_one_is_claimed_first(root, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    root.write_bytes("c.txt", b"x", overwrite=False)
    root.rename("c.txt", "d.txt", overwrite=False)
    error = refusal(root.write_bytes, "d.txt", b"z", overwrite=False)

    assert (read(root, "d.txt"), error.kind, names(root.folder)) == (
        b"x",
        "exists",
        ["a.txt", "d.txt", "sub"],
    )


def test_folders_are_made_and_removed(root):
    root.make_folder("new")
    root.make_folder("x/y", parents=True)
    root.make_folder("x/y", exist_ok=True)
    root.remove_folder("x/y")

    assert [item.path for item in root.scan() if item.kind == "folder"] == ["new", "sub", "x"]
    assert list(root.scan("x")) == []


@pytest.mark.parametrize(
    ("path", "kind"), [("sub", "exists"), ("a.txt", "exists"), ("x/y", "missing"), (".", "exists")]
)
def test_a_folder_is_not_made_where_something_is_or_its_folder_is_missing(root, path, kind):
    assert refusal(root.make_folder, path).kind == kind


@pytest.mark.parametrize(
    ("path", "kind"), [("sub", "exists"), ("a.txt", "not_a_folder"), ("none", "missing"), (".", "bad")]
)
def test_only_an_empty_folder_is_removed(root, path, kind):
    assert refusal(root.remove_folder, path).kind == kind


def test_a_link_is_removed_and_not_what_it_leads_to(root):
    (root.folder / "link").symlink_to("a.txt")
    (root.folder / "out").symlink_to("/etc/passwd")
    root.remove_file("link")
    root.remove_file("out")

    assert [item.path for item in root.scan()] == ["a.txt", "sub"]


@pytest.mark.parametrize(("path", "kind"), [("sub", "not_a_file"), ("none", "missing"), (".", "not_a_file")])
def test_only_a_file_is_removed_as_a_file(root, path, kind):
    assert refusal(root.remove_file, path).kind == kind


# -- moving ------------------------------------------------------------------------------------------------------


def test_files_folders_and_links_are_moved(root):
    (root.folder / "link").symlink_to("a.txt")
    root.rename("a.txt", "sub/c.txt", overwrite=False)
    root.rename("sub", "other", overwrite=False)
    root.rename("link", "other/link", overwrite=False)

    assert [(item.path, item.kind) for item in root.scan("other")] == [
        ("other/b.txt", "file"),
        ("other/c.txt", "file"),
        ("other/deep", "folder"),
        ("other/link", "link"),
    ]
    assert [item.path for item in root.scan()] == ["other"]


def test_a_file_is_moved_over_another_only_if_it_may_be(root):
    error = refusal(root.rename, "a.txt", "sub/b.txt", overwrite=False)
    root.rename("a.txt", "sub/b.txt", overwrite=True)

    assert (error.kind, read(root, "sub/b.txt")) == ("exists", b"hello")


@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [
        ("none", "x", "missing"),
        ("a.txt", "sub", "exists"),
        ("sub", "a.txt", "exists"),
        ("sub", "sub/deep/x", "bad"),
        ("sub", "sub", "bad"),
        (".", "x", "bad"),
        ("a.txt", ".", "bad"),
        ("a.txt", "x/", "bad"),
        ("a.txt", "none/x", "missing"),
    ],
)
def test_what_can_not_be_moved_stays(root, old, new, kind):
    before = sorted(map(str, root.folder.rglob("*")))

    assert refusal(root.rename, old, new, overwrite=True).kind == kind
    assert sorted(map(str, root.folder.rglob("*"))) == before


# -- a root that is only read ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "act",
    [
        lambda root: root.write_bytes("x", b"", overwrite=True),
        lambda root: root.make_folder("x"),
        lambda root: root.remove_file("a.txt"),
        lambda root: root.remove_folder("sub/deep"),
        lambda root: root.rename("a.txt", "x", overwrite=True),
    ],
)
def test_nothing_changes_in_a_root_that_is_only_read(root, act):
    reading = Root(root.folder, writable=False)

    assert refusal(act, reading).kind == "read_only"
    assert read(reading, "a.txt") == b"hello"


@pytest.mark.parametrize("path", ["new/a\\b", "a\\b/new", "new\n", " new/x", "new/"])
def test_a_name_that_can_not_be_made_is_told_beforehand(root, path):
    assert refusal(root.check_new, path).kind == "bad"
    assert not (root.folder / "new").exists()


def test_a_move_is_checked_as_if_its_folders_were_there(root):
    root.check_rename("a.txt", "new/folder/x.txt", overwrite=False)

    assert refusal(root.check_rename, "sub", "sub/new/x", overwrite=False).kind == "bad"
    assert (root.folder / "a.txt").exists()


def test_a_folder_with_nothing_but_hidden_files_is_not_empty(root):
    (root.folder / "inner").mkdir()
    assert root.is_empty("inner")
    (root.folder / "inner" / ".env").touch()

    assert not root.is_empty("inner")


@pytest.mark.parametrize("folder", ["none", "a.txt", "", "a\0b"])
def test_a_root_is_a_folder_that_exists(root, folder):
    assert refusal(Root, str(root.folder / folder) if folder else "").kind in ("not_a_folder", "bad")


def test_an_open_folder_stays_the_same_whatever_its_name_becomes(root):
    with root.open_folder("sub") as fd:
        (root.folder / "sub").rename(root.folder / "other")
        (root.folder / "sub").symlink_to("/")

        assert sorted(entry.name for entry in os.scandir(fd)) == ["b.txt", "deep"]

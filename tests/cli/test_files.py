"""Files that are written whole or not at all."""

import os
import stat

import pytest

from agentos.base import atomic_files as writing
from agentos.base.atomic_files import FileChangedError, make_file, replace_file, replacing
from agentos.cli.scaffolding import new_folder


def test_a_file_is_replaced_and_keeps_its_mode(tmp_path):
    path = tmp_path / "a"
    path.write_text("old")
    path.chmod(0o640)
    replace_file(path, b"new")

    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_stays_a_link(tmp_path):
    target = tmp_path / "deep" / "a"
    target.parent.mkdir()
    target.write_text("old")
    link = tmp_path / "link"
    link.symlink_to(target)
    replace_file(link, b"new")

    assert link.is_symlink()
    assert target.read_bytes() == b"new"


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root may give files away")
def test_a_file_of_another_stays_theirs(tmp_path):
    path = tmp_path / "a"
    path.write_text("old")
    os.chown(path, 12345, 12345)
    replace_file(path, b"new")

    assert (path.stat().st_uid, path.stat().st_gid) == (12345, 12345)


def test_what_somebody_else_changed_meanwhile_is_left_alone(tmp_path):
    path = tmp_path / "a"
    path.write_text("theirs")
    with pytest.raises(FileChangedError, match="try again"):
        replace_file(path, b"ours", expected=b"old")

    assert path.read_bytes() == b"theirs"
    assert list(tmp_path.iterdir()) == [path]


def test_an_edit_that_came_too_late_is_told(tmp_path, monkeypatch):
    from agentos.cli.app import Fail
    from agentos.cli.manifest_edit import editing

    path = tmp_path / "agentos.toml"
    path.write_text("")
    edit = editing._edited

    def slow(*args):
        path.write_text("# somebody else")
        return edit(*args)

    monkeypatch.setattr(editing, "_edited", slow)
    with pytest.raises(Fail, match="changed by somebody else"):
        editing.add_pack(path, {"module": "a.py"})

    assert path.read_text() == "# somebody else"


def modes_while(tmp_path, monkeypatch, act):
    """Return which modes the files in a folder have while something is written there."""
    seen = []
    sync = os.fsync

    def look(number):
        seen.extend(stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir() if path.suffix == ".tmp")
        sync(number)

    monkeypatch.setattr(os, "fsync", look)
    act()
    return seen


def test_what_is_half_written_can_be_read_by_nobody_who_may_not_read_the_file(tmp_path, monkeypatch):
    path = tmp_path / "a"
    path.touch(0o600)

    assert modes_while(tmp_path, monkeypatch, lambda: replace_file(path, b"new")) == [0o600]


def test_a_private_file_is_for_its_owner_alone_whatever_it_was(tmp_path, monkeypatch):
    path = tmp_path / "a"
    path.touch(0o644)

    assert modes_while(tmp_path, monkeypatch, lambda: replace_file(path, b"new", private=True)) == [0o600]
    assert modes_while(tmp_path, monkeypatch, lambda: make_file(tmp_path / "b", b"new", private=True))[0] == 0o600
    assert {stat.S_IMODE(one.stat().st_mode) for one in tmp_path.iterdir()} == {0o600}


def test_a_new_file_has_the_mode_that_the_user_wants_for_files(tmp_path):
    before = os.umask(0o027)
    try:
        replace_file(tmp_path / "a", b"new")
        make_file(tmp_path / "b", b"new")
    finally:
        os.umask(before)

    assert {stat.S_IMODE(one.stat().st_mode) for one in tmp_path.iterdir()} == {0o640}


def test_what_is_written_piece_by_piece_appears_at_the_end_or_not_at_all(tmp_path):
    path = tmp_path / "a"

    def interrupted():
        with replacing(path) as file:
            file.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert list(tmp_path.iterdir()) == []
    with replacing(path) as file:
        file.write(b"one, ")
        assert not path.exists()
        file.write(b"two")
    assert path.read_bytes() == b"one, two"


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_what_is_no_file_is_not_replaced(tmp_path, make):
    """Who writes to /dev/full or /dev/null as root would put a file in the place of the device."""
    path = tmp_path / "a"
    make(path)
    before = path.stat()
    with pytest.raises(OSError, match="is no regular file"):
        replace_file(path, b"new")

    assert path.stat().st_mode == before.st_mode
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_is_made_once(tmp_path):
    path = tmp_path / "a"
    make_file(path, b"one")
    with pytest.raises(FileExistsError):
        make_file(path, b"two")

    assert path.read_bytes() == b"one"


def test_where_there_are_no_links_a_file_is_made_all_the_same(tmp_path, monkeypatch):
    def refused(*_):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(writing.os, "link", refused)
    path = tmp_path / "a"
    make_file(path, b"one")
    with pytest.raises(FileExistsError):
        make_file(path, b"two")

    assert path.read_bytes() == b"one"


def test_a_folder_appears_when_it_is_complete(tmp_path):
    path = tmp_path / "a"
    with new_folder(path) as draft:
        (draft / "b").write_text("c")
        assert not path.exists()

    assert (path / "b").read_text() == "c"


@pytest.mark.parametrize("taken", ["file", "folder", "link"])
def test_a_name_that_is_taken_is_refused(tmp_path, taken):
    path = tmp_path / "a"
    {"file": path.touch, "folder": path.mkdir, "link": lambda: path.symlink_to("nowhere")}[taken]()

    with pytest.raises(FileExistsError), new_folder(path):
        pass


def test_a_folder_that_fails_leaves_nothing(tmp_path):
    def interrupted():
        with new_folder(tmp_path / "a") as draft:
            (draft / "b").write_text("c")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()

    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cant_be_made_is_named_not_its_draft(tmp_path):
    path = tmp_path / ("a" * 250)  # the draft's name is longer than a name may be
    with pytest.raises(OSError, match="too long") as failure, new_folder(path):
        pass

    assert failure.value.filename == str(path)


@pytest.mark.parametrize("filename", [None, "inside"])
def test_what_fails_in_a_new_folder_fails_for_the_path_that_people_know(tmp_path, filename):
    path = tmp_path / "a"
    with pytest.raises(OSError, match="No space left") as failure, new_folder(path) as draft:
        raise OSError(28, "No space left on device", *([] if filename is None else [str(draft / filename)]))

    assert failure.value.filename == str(path)

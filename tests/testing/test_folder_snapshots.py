"""What a call changed in folders."""

import os

from agentos.testing._folder_snapshots import FolderSnapshot, folders_in


def changes(folder, act):
    before = FolderSnapshot.of([folder])
    act()
    return [os.path.relpath(path, folder) for path in before.changes(FolderSnapshot.of([folder]))]


def test_what_came_went_and_changed_is_told(tmp_path):
    for name in ("kept", "gone", "other"):
        (tmp_path / name).write_text("a")

    def act():
        (tmp_path / "gone").unlink()
        (tmp_path / "other").write_text("b")
        (tmp_path / "new").mkdir()

    assert changes(tmp_path, act) == ["gone", "new", "other"]


def test_a_file_itself_can_be_watched(tmp_path):
    (tmp_path / "file").write_text("a")

    assert changes(tmp_path / "file", lambda: (tmp_path / "file").write_text("b")) == ["."]


def test_what_a_database_keeps_beside_its_file_is_no_change(tmp_path):
    assert changes(tmp_path, lambda: (tmp_path / "notes.db-wal").write_text("a")) == []


def test_a_pipe_is_not_read(tmp_path):
    os.mkfifo(tmp_path / "pipe")

    assert changes(tmp_path, lambda: None) == []


def test_of_a_large_file_the_size_counts(tmp_path):
    (tmp_path / "large").write_bytes(b"a" * 300_000)

    assert changes(tmp_path, lambda: (tmp_path / "large").write_bytes(b"a" * 300_001)) == ["large"]


def test_what_goes_while_it_is_looked_at_does_no_harm(tmp_path, monkeypatch):
    monkeypatch.setattr("agentos.testing._folder_snapshots._walk", lambda folders: [tmp_path / "gone"])

    assert list(FolderSnapshot.of([tmp_path]).files.values()) == ["FileNotFoundError"]


def test_only_so_many_files_are_looked_at(tmp_path, monkeypatch):
    monkeypatch.setattr("agentos.testing._folder_snapshots._MOST_FILES", 2)
    for name in "abc":
        (tmp_path / name).write_text("")

    assert len(FolderSnapshot.of([tmp_path]).files) == 2


def test_options_name_files_and_folders(tmp_path):
    (tmp_path / "file").write_text("")
    options = {"root": str(tmp_path), "more": [str(tmp_path / "file"), "relative", 5, "\0", ""], "none": "/nowhere"}

    assert folders_in(options) == [tmp_path, tmp_path / "file"]


def test_an_option_that_is_too_long_for_a_path_is_none():
    assert folders_in("/" + "a" * 10_000) == []

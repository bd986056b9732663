"""The lock file: what was agreed on, how it is written and read, and what differs from it."""

import errno
import json
import os
import stat
import string

import attrs
import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentos import ManifestError, PackEntry, PackLoadError
from agentos.access import lock as subject
from agentos.access.lock import Difference, Lock, LockedPack, check_files
from agentos.loading.pack_files import PackFiles, files_of, hash_files
from agentos.model.parsing import load_schema

A, B, C = (f"sha256:{digit * 64}" for digit in "abc")


def locked(key="search", **fields):
    given = {
        "name": "search",
        "version": "1.0",
        "origin_kind": "module",
        "files": {"a.py": A, "b/c.py": B},
        "tools": {"find": "1" * 64},
    }
    return LockedPack(key=key, **(given | fields))


def written(tmp_path, *packs):
    file = tmp_path / "agentos.lock"
    Lock(packs).write(file)
    return file


def said(**fields):
    """Return the data of a lock file with one pack, of which *fields* are changed."""
    pack = {"key": "k", "name": "n", "version": None, "originKind": "module", "files": {}, "tools": {}}
    return {"version": 1, "packs": [pack | fields]}


def problems_of(tmp_path, data):
    """Return the problems that reading *data* as a lock file has, by their paths."""
    file = tmp_path / "agentos.lock"
    file.write_text(data if isinstance(data, str) else json.dumps(data))
    with pytest.raises(ManifestError) as caught:
        Lock.read(file)
    assert caught.value.origin == str(file)
    return {problem.path: problem.message for problem in caught.value.problems}


# -- strategies ----------------------------------------------------------------------------------------------------

words = st.text(min_size=1, max_size=8)
hashes = st.text("0123456789abcdef", min_size=64, max_size=64).map("sha256:{}".format)
parts = st.text(string.ascii_letters + "é_\udc80 '", min_size=1, max_size=5).filter(
    lambda part: part not in (".", "..")
)
paths = st.lists(parts, min_size=1, max_size=3).map("/".join)
versions = st.none() | words
kinds = st.sampled_from(["factory", "module", "package"])
locked_packs = st.builds(
    LockedPack,
    key=words.filter(lambda key: not subject._is_absolute(key)),
    name=words,
    version=versions,
    origin_kind=kinds,
    files=st.dictionaries(paths, hashes, max_size=4),
    tools=st.dictionaries(words, hashes, max_size=4),
)
locks = st.lists(locked_packs, max_size=4, unique_by=lambda pack: pack.key).map(Lock)


# -- the value -----------------------------------------------------------------------------------------------------


def test_the_packs_of_a_lock_are_sorted_by_key():
    assert [pack.key for pack in Lock([locked("b"), locked("a")]).packs] == ["a", "b"]


def test_a_pack_is_found_by_its_key():
    lock = Lock([locked("a"), locked("b", name="other")])

    assert lock.pack("b").name == "other"


def test_a_pack_that_is_not_locked_is_none():
    assert Lock([locked("a")]).pack("b") is None


def test_a_key_that_stands_twice_is_refused():
    with pytest.raises(ManifestError, match="the key 'a' stands twice"):
        Lock([locked("a"), locked("a")])


def test_a_lock_of_a_version_to_come_can_not_be_made():
    with pytest.raises(ManifestError, match="version 2"):
        Lock((), version=2)


def test_what_is_locked_can_not_be_written_to():
    with pytest.raises(TypeError):
        locked().files["x"] = A


# -- the file ------------------------------------------------------------------------------------------------------


@given(lock=locks)
def test_what_is_written_is_what_is_read(tmp_path_factory, lock):
    file = tmp_path_factory.getbasetemp() / "round.lock"
    lock.write(file)

    assert Lock.read(file) == lock


@given(lock=locks)
def test_what_is_written_fits_the_published_schema(tmp_path_factory, lock):
    file = tmp_path_factory.getbasetemp() / "schema.lock"
    lock.write(file)

    jsonschema.validate(json.loads(file.read_text("ascii")), load_schema("lock"))


def test_the_text_is_sorted_indented_ascii_with_a_line_end(tmp_path):
    file = written(tmp_path, locked("b", files={"é.py": B, "a.py": A}, tools={}), locked("a", files={}, version=None))

    assert file.read_bytes().decode() == (
        "{\n"
        '  "packs": [\n'
        "    {\n"
        '      "files": {},\n'
        '      "key": "a",\n'
        '      "name": "search",\n'
        '      "originKind": "module",\n'
        '      "tools": {\n'
        f'        "find": "{"1" * 64}"\n'
        "      },\n"
        '      "version": null\n'
        "    },\n"
        "    {\n"
        '      "files": {\n'
        f'        "a.py": "{A}",\n'
        f'        "\\u00e9.py": "{B}"\n'
        "      },\n"
        '      "key": "b",\n'
        '      "name": "search",\n'
        '      "originKind": "module",\n'
        '      "tools": {},\n'
        '      "version": "1.0"\n'
        "    }\n"
        "  ],\n"
        '  "version": 1\n'
        "}\n"
    )


def test_the_order_in_which_things_were_given_does_not_show(tmp_path):
    one = written(tmp_path, locked("a", files={"x": A, "y": B}), locked("b")).read_bytes()
    other = written(tmp_path, locked("b"), locked("a", files={"y": B, "x": A})).read_bytes()

    assert one == other


def test_a_path_may_be_text(tmp_path):
    Lock([locked()]).write(str(tmp_path / "agentos.lock"))

    assert Lock.read(str(tmp_path / "agentos.lock")) == Lock([locked()])


def test_the_example_of_the_schema_is_a_lock(tmp_path):
    (tmp_path / "agentos.lock").write_text(json.dumps(load_schema("lock")["examples"][0]))

    assert [pack.key for pack in Lock.read(tmp_path / "agentos.lock").packs] == ["greeter"]


def test_a_schema_may_be_named_in_the_file(tmp_path):
    (tmp_path / "agentos.lock").write_text(json.dumps(said() | {"$schema": "docs/schemas/lock.schema.json"}))

    assert Lock.read(tmp_path / "agentos.lock").pack("k")


def test_a_file_with_foreign_line_ends_and_a_byte_order_mark_is_read(tmp_path):
    file = written(tmp_path, locked())
    file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes().replace(b"\n", b"\r\n"))

    assert Lock.read(file) == Lock([locked()])


# -- no machine's paths ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["/home/me/greeter.py", "C:\\packs\\greeter.py", "C:/packs/greeter.py", "//host/x.py"])
def test_an_absolute_path_as_key_is_not_written_and_the_way_out_is_told(tmp_path, key):
    with pytest.raises(ManifestError, match="give the manifest entry an identifier") as caught:
        Lock([locked("a"), locked(key)]).write(tmp_path / "agentos.lock")

    assert "packs[" in caught.value.problems[0].path
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["/etc/passwd", "../x.py", "a/../x.py", "./x.py", "a//b.py", "C:\\x.py", "C:/x", "a/"])
def test_a_file_name_that_is_not_relative_is_refused_and_named(tmp_path, name):
    problems = problems_of(tmp_path, said(files={name: A}))

    assert list(problems.values()) == ["expected a path relative to the pack, with forward slashes"]
    assert repr(name) in next(iter(problems))


def test_two_machines_give_the_same_lock(tmp_path):
    texts = []
    for machine in ("one", "another"):
        folder = tmp_path / machine / "packs" / "greeter"
        folder.mkdir(parents=True)
        (folder / "__init__.py").write_text("x = 1\n")
        found = files_of(PackEntry(module="./packs/greeter", base_path=tmp_path / machine))
        pack = locked("./packs/greeter", files=hash_files(found))
        texts.append(written(tmp_path / machine, pack).read_text())

    assert texts[0] == texts[1]
    assert str(tmp_path) not in texts[0]


# -- mistakes in the file ----------------------------------------------------------------------------------------------


def test_a_missing_file_is_an_error_that_names_it(tmp_path):
    with pytest.raises(ManifestError, match=r"agentos\.lock has 1 problem.*\n.*No such file"):
        Lock.read(tmp_path / "agentos.lock")


@pytest.mark.parametrize(
    "text",
    ["", "{", "<<<<<<< ours\n{}", '{"version": 1, "version": 1, "packs": []}', "[" * 100_000, "9" * 10_000],
    ids=["nothing", "half", "a merge", "twice", "deep", "long"],
)
def test_a_text_that_is_no_json_is_an_error_with_a_way_out(tmp_path, text):
    problems = problems_of(tmp_path, text)

    assert list(problems) == [""]
    assert problems[""].startswith("can't be parsed: ")
    assert problems[""].endswith("; put it back, or lock again")


def test_bytes_that_are_no_text_are_an_error(tmp_path):
    (tmp_path / "agentos.lock").write_bytes(b"\xff\xfe")
    with pytest.raises(ManifestError, match="can't be parsed"):
        Lock.read(tmp_path / "agentos.lock")


MISTAKES = {
    "no mapping": ([], "", "expected a mapping, got a list"),
    "no packs": ({"version": 1}, "", "expected the key 'packs'"),
    "no version": ({"packs": []}, "", "expected the key 'version'"),
    "version 0": (said() | {"version": 0}, "version", "expected at least 1"),
    "version as text": (said() | {"version": "1"}, "version", "expected an int, got a string"),
    "version as truth": (said() | {"version": True}, "version", "expected an int, got a boolean"),
    "an unknown key": (said() | {"pakcs": []}, "pakcs", "did you mean 'packs'?"),
    "an unknown key of a pack": (said(orginKind="module"), "packs[0].orginKind", "did you mean 'originKind'?"),
    "an empty key": (said(key=""), "packs[0].key", "not empty"),
    "another kind": (said(originKind="file"), "packs[0].originKind", '"factory", "module", "package"'),
    "files as a list": (said(files=[]), "packs[0].files", "expected a mapping, got a list"),
    "a short hash": (said(files={"a.py": "sha256:abc"}), "packs[0].files['a.py']", "sha256"),
    "a hash with a line end": (said(files={"a.py": A + "\n"}), "packs[0].files['a.py']", "one line"),
    "another hash": (said(files={"a.py": "md5:" + "a" * 64}), "packs[0].files['a.py']", "sha256"),
    "a tool without hash": (said(tools={"find": ""}), "packs[0].tools.find", "not empty"),
    "a version as number": (said(version=1.0), "packs[0].version", "expected a string or null"),
    "a key twice": ({"version": 1, "packs": said()["packs"] * 2}, "packs[1].key", "the key 'k' stands twice"),
}


@pytest.mark.parametrize(("data", "path", "message"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_told_with_its_path(tmp_path, data, path, message):
    assert message in problems_of(tmp_path, data)[path]


def test_all_mistakes_are_told_at_once(tmp_path):
    data = said(key="", files={"a.py": "x"}, tools=5)

    assert problems_of(tmp_path, data).keys() == {"packs[0].key", "packs[0].files['a.py']", "packs[0].tools"}


def test_a_file_of_a_version_to_come_is_refused_in_words_whatever_else_is_in_it(tmp_path):
    problems = problems_of(tmp_path, {"version": 2, "bundles": {}})

    assert problems == {"version": "the lock file is of version 2, this agentos knows 1; update agentos, or lock again"}


def test_a_file_that_is_too_large_is_refused(tmp_path, monkeypatch):
    file = written(tmp_path, locked())
    monkeypatch.setattr(subject, "SIZE_LIMIT", file.stat().st_size - 1)
    with pytest.raises(ManifestError, match="larger than"):
        Lock.read(file)


def test_what_would_be_too_large_to_read_is_not_written(tmp_path, monkeypatch):
    file = written(tmp_path, locked())
    before = file.read_bytes()
    monkeypatch.setattr(subject, "SIZE_LIMIT", len(before))
    with pytest.raises(ManifestError, match="can't be written: larger than"):
        Lock([locked(), locked("b")]).write(file)

    assert file.read_bytes() == before


def test_what_could_not_be_read_again_is_not_written(tmp_path):
    with pytest.raises(ManifestError, match="files"):
        Lock([locked(files={"a.py": "no hash"})]).write(tmp_path / "agentos.lock")

    assert list(tmp_path.iterdir()) == []


# -- writing at once or not at all -------------------------------------------------------------------------------------


class Killed(BaseException):
    """What ends a program in the middle, as Ctrl-C does."""


def full_disk(*args, **kwargs):
    raise OSError(errno.ENOSPC, "No space left on device")


def killed(*args, **kwargs):
    raise Killed


class HalfWritten:
    """A file that takes half of what is written to it, and then fails."""

    def __init__(self, file, fail):
        self._file, self._fail = file, fail

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._file.close()

    def write(self, raw):
        self._file.write(raw[: len(raw) // 2])
        self._file.flush()
        self._fail()


def break_step(monkeypatch, step, fail):
    """Make one step of writing fail."""
    if step == "write":
        whole = type(subject.Path()).open
        monkeypatch.setattr(subject.Path, "open", lambda path, mode: HalfWritten(whole(path, mode), fail))
    elif step == "open":
        monkeypatch.setattr(subject.Path, "open", fail)
    else:
        monkeypatch.setattr(os, step, fail)


@pytest.mark.parametrize("step", ["open", "write", "fsync", "chmod", "replace"])
@pytest.mark.parametrize(("fail", "error"), [(full_disk, ManifestError), (killed, Killed)])
def test_when_a_step_fails_the_old_file_is_whole_and_no_other_is_left(tmp_path, monkeypatch, step, fail, error):
    file = written(tmp_path, locked())
    before = file.read_bytes()
    with monkeypatch.context() as patch:
        break_step(patch, step, fail)
        with pytest.raises(error):
            Lock([locked("new")]).write(file)

    assert file.read_bytes() == before
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("step", ["open", "write", "fsync", "replace"])
def test_when_the_first_write_fails_nothing_is_left(tmp_path, monkeypatch, step):
    with monkeypatch.context() as patch:
        break_step(patch, step, killed)
        with pytest.raises(Killed):
            written(tmp_path, locked())

    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_told_with_the_files_name(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(ManifestError, match=r"agentos\.lock has 1 problem(?s:.*)can't be written: the disk is full"):
        written(tmp_path, locked())


def test_what_fails_while_cleaning_up_does_not_hide_why(tmp_path, monkeypatch):
    def refuse(*args, **kwargs):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, "replace", full_disk)
    monkeypatch.setattr(os, "unlink", refuse)
    with pytest.raises(ManifestError, match="No space left"):
        written(tmp_path, locked())


def test_everything_is_on_disk_before_the_old_file_is_replaced(tmp_path, monkeypatch):
    steps = []
    sync, replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda number: (steps.append(("fsync", os.fstat(number).st_size)), sync(number)))
    monkeypatch.setattr(os, "replace", lambda *pair: (steps.append(("replace", None)), replace(*pair)))
    file = written(tmp_path, locked())

    assert steps[:2] == [("fsync", file.stat().st_size), ("replace", None)]
    assert [step for step, _ in steps[2:]] == ["fsync"]  # of the folder, for the new name


def test_a_folder_that_is_not_there_is_told(tmp_path):
    with pytest.raises(ManifestError, match="can't be written: No such file"):
        Lock(()).write(tmp_path / "nowhere" / "agentos.lock")


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664])
def test_the_mode_of_the_old_file_is_kept(tmp_path, mode):
    file = written(tmp_path, locked())
    file.chmod(mode)
    Lock([locked("new")]).write(file)

    assert stat.S_IMODE(file.stat().st_mode) == mode


def test_a_new_file_has_the_mode_that_the_process_gives(tmp_path):
    (tmp_path / "plain").touch()
    file = written(tmp_path, locked())

    assert file.stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_link_to_the_file_stays_a_link(tmp_path):
    real = tmp_path / "real"
    real.mkdir()
    (tmp_path / "agentos.lock").symlink_to(real / "agentos.lock")
    file = written(tmp_path, locked())

    assert file.is_symlink()
    assert Lock.read(real / "agentos.lock") == Lock([locked()])


# -- differences -------------------------------------------------------------------------------------------------------


@given(lock=locks)
def test_a_lock_does_not_differ_from_itself(lock):
    assert lock.differences(Lock(lock.packs)) == []


def replace_pack(lock, old, **changes):
    return Lock([attrs.evolve(pack, **changes) if pack is old else pack for pack in lock.packs])


@st.composite
def single_changes(draw):
    """Draw a lock, the same with one change, and the differences that this makes."""
    lock = draw(st.lists(locked_packs, min_size=1, max_size=4, unique_by=lambda pack: pack.key).map(Lock))
    pack = draw(st.sampled_from(lock.packs))
    field = draw(st.sampled_from(["pack", "name", "version", "origin_kind", "files", "tools"]))
    if field == "pack":
        rest = Lock([one for one in lock.packs if one is not pack])
        return rest, lock, [Difference(pack.key, "added", pack.name, None, str(pack))]
    if field in ("name", "origin_kind", "version"):
        values = {"name": words, "origin_kind": kinds, "version": versions}[field]
        value = draw(values.filter(lambda one: one != getattr(pack, field)))
        changed = replace_pack(lock, pack, **{field: value})
        new = changed.pack(pack.key)
        if field == "version":
            return lock, changed, [Difference(pack.key, "version", pack.name, pack.version, value)]
        gone = Difference(pack.key, "removed", pack.name, str(pack), None)
        return lock, changed, [gone, Difference(pack.key, "added", new.name, None, str(new))]
    noun, held = field[:-1], getattr(pack, field)
    name = draw(paths)
    value = draw(hashes.filter(lambda one: one != held.get(name)))
    changed = replace_pack(lock, pack, **{field: {**held, name: value}})
    what = f"{noun} changed" if name in held else f"{noun} added"
    return lock, changed, [Difference(pack.key, what, name, held.get(name), value)]


OPPOSITE = {"added": "removed", "removed": "added", "version": "version"}
OPPOSITE |= {f"{noun} added": f"{noun} removed" for noun in ("file", "tool")}
OPPOSITE |= {f"{noun} changed": f"{noun} changed" for noun in ("file", "tool")}


@given(single_changes())
def test_every_single_change_is_found_and_named(change):
    agreed, present, expected = change

    assert agreed.differences(present) == expected


@given(single_changes())
def test_every_single_change_is_found_the_other_way_round(change):
    agreed, present, expected = change
    turned = [Difference(one.pack, OPPOSITE[one.what], one.subject, one.found, one.locked) for one in expected]

    assert present.differences(agreed) == (turned[::-1] if len(turned) > 1 else turned)


@given(locks, locks)
def test_two_locks_differ_in_nothing_only_if_they_are_equal(one, other):
    assert (one.differences(other) == []) == (one == other)


def test_differences_are_in_order_of_keys_and_then_of_subjects():
    agreed = Lock([locked("b"), locked("a", files={"y": A, "x": A}, tools={"t": "1"}, version="1"), locked("c")])
    present = Lock([locked("a", files={"z": A, "x": B}, tools={"s": "1"}, version="2"), locked("d"), locked("c")])

    assert [(one.pack, one.what, one.subject) for one in agreed.differences(present)] == [
        ("a", "version", "search"),
        ("a", "file changed", "x"),
        ("a", "file removed", "y"),
        ("a", "file added", "z"),
        ("a", "tool added", "s"),
        ("a", "tool removed", "t"),
        ("b", "removed", "search"),
        ("d", "added", "search"),
    ]


SENTENCES = {
    "added": "pack 'k' is there as 'new', but not in the lock; lock again if it is meant to be there",
    "removed": "pack 'k' is in the lock as 'old', but not there; put it back, or lock again without it",
    "version": (
        "pack 'k' is of version 'new', but locked is 'old'; install that one, or lock again to accept this one"
    ),
    "file added": "pack 'k' has the file 's', which is not in the lock; remove it, or lock again to accept it",
    "file removed": "pack 'k' lacks the file 's', which is in the lock; put it back, or lock again without it",
    "file changed": (
        "pack 'k' has another file 's' ('new') than the locked one ('old'); "
        "put that one back, or lock again to accept this one"
    ),
    "tool added": "pack 'k' offers the tool 's', which is not in the lock; lock again to accept it",
    "tool removed": "pack 'k' does not offer the tool 's', which is in the lock; lock again without it",
    "tool changed": (
        "pack 'k' defines the tool 's' ('new') otherwise than locked ('old'); "
        "read what it says now, then lock again to accept it"
    ),
}


@pytest.mark.parametrize("what", SENTENCES)
def test_a_difference_says_what_it_is_and_what_to_do(what):
    assert str(Difference("k", what, "s", "old", "new")) == SENTENCES[what]


def test_a_version_that_there_is_not_is_none():
    assert "is of version none, but locked is '1.0'" in str(Difference("k", "version", "s", "1.0", None))


def test_of_a_hash_the_beginning_is_shown():
    assert "('sha256:bbbbbbbbbbbbb'...)" in str(Difference("k", "file changed", "s", A, B))


@given(st.sampled_from(list(SENTENCES)), st.text(), st.text(), st.none() | st.text(), st.none() | st.text())
def test_a_difference_is_one_line_whatever_foreign_text_is_in_it(what, key, name, before, now):
    text = str(Difference(key, what, name, before, now))

    assert text.isprintable()
    assert len(text.splitlines()) == 1


# -- before a pack's code runs ---------------------------------------------------------------------------------------


@pytest.fixture
def greeter(tmp_path):
    for name in ("__init__.py", "tools.py"):
        (tmp_path / "greeter").mkdir(exist_ok=True)
        (tmp_path / "greeter" / name).write_text(f"# {name}\n")
    return PackEntry(module="./greeter", base_path=tmp_path, identifier="g")


@pytest.fixture
def agreed(greeter):
    return locked("g", files=hash_files(files_of(greeter)))


def test_files_that_are_as_locked_differ_in_nothing(greeter, agreed):
    assert check_files(agreed, "g", files_of(greeter)) == []


def test_a_version_that_a_pack_states_itself_is_no_difference_before_it_runs(greeter, agreed):
    assert check_files(attrs.evolve(agreed, version="7"), "g", files_of(greeter)) == []


def test_a_changed_an_added_and_a_removed_file_are_found(greeter, agreed, tmp_path):
    (tmp_path / "greeter" / "__init__.py").write_text("# changed\n")
    (tmp_path / "greeter" / "tools.py").rename(tmp_path / "greeter" / "utils.py")
    found = check_files(agreed, "g", files_of(greeter))

    assert [(one.what, one.subject) for one in found] == [
        ("file changed", "__init__.py"),
        ("file removed", "tools.py"),
        ("file added", "utils.py"),
    ]
    assert [(one.locked, one.found) for one in found[1:]] == [(found[2].found, None), (None, found[1].locked)]


def test_other_line_ends_are_a_change(greeter, agreed, tmp_path):
    (tmp_path / "greeter" / "tools.py").write_bytes(b"# tools.py\r\n")

    assert [one.what for one in check_files(agreed, "g", files_of(greeter))] == ["file changed"]


def test_another_version_of_a_distribution_is_told_before_its_files(greeter, agreed, tmp_path):
    (tmp_path / "greeter" / "tools.py").unlink()
    found = attrs.evolve(files_of(greeter), version="2.0")

    assert check_files(agreed, "g", found) == [
        Difference("g", "version", "search", "1.0", "2.0"),
        Difference("g", "file removed", "tools.py", agreed.files["tools.py"], None),
    ]


def test_the_version_of_a_distribution_that_is_as_locked_is_no_difference(greeter, agreed):
    assert check_files(agreed, "g", attrs.evolve(files_of(greeter), version="1.0")) == []


@pytest.mark.parametrize(
    ("found", "shown"),
    [(None, "g"), (PackFiles("here", None, {}), "g"), (PackFiles("here", "2.0", {}), "g 2.0")],
)
def test_a_pack_that_is_not_locked_is_added(found, shown):
    assert check_files(None, "g", found) == [Difference("g", "added", "g", None, shown)]


def test_a_pack_that_is_no_longer_on_disk_lacks_all_its_files(agreed):
    assert [one.what for one in check_files(agreed, "g", None)] == ["file removed", "file removed"]


def test_a_pack_that_never_was_on_disk_differs_in_nothing(agreed):
    assert check_files(attrs.evolve(agreed, files={}), "g", None) == []


def test_a_file_that_can_not_be_read_is_no_difference_but_an_error(greeter, agreed, tmp_path):
    found = files_of(greeter)
    (tmp_path / "greeter" / "tools.py").unlink()
    with pytest.raises(PackLoadError, match=r"tools\.py"):
        check_files(agreed, "g", found)

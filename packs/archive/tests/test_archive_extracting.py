"""zip_list and zip_extract on archives that mean no harm, and that everything comes or nothing."""

import io
import subprocess
import tarfile
import threading
import zipfile
from contextlib import suppress

import pytest

FILES = {"one.txt": b"1", "deep/down/two.txt": b"22", "deep/three.bin": bytes(range(256)) * 300}


def make_zip(path, files=FILES, method=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, data in files.items():
            archive.writestr(name, data)


def make_tar(path, files=FILES, mode="w"):
    with tarfile.open(path, mode) as archive:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))


FORMATS = {
    "zip": make_zip,
    "tar": make_tar,
    "tar.gz": lambda path: make_tar(path, mode="w:gz"),
    "tar.bz2": lambda path: make_tar(path, mode="w:bz2"),
    "tar.xz": lambda path: make_tar(path, mode="w:xz"),
}


@pytest.mark.parametrize("format", FORMATS)
def test_an_archive_is_listed_by_what_it_contains(tools, tree, format):
    FORMATS[format](tree / "x.anything")

    found = tools()["zip_list"]("x.anything")

    assert (format, 3, 76_803, 0, False, None) == (
        found.format,
        found.total,
        found.total_size,
        found.problems,
        found.truncated,
        found.stopped,
    )
    assert [(name, "file", len(data), None) for name, data in FILES.items()] == [
        (one.name, one.kind, one.size, one.problem) for one in found.members
    ]


@pytest.mark.parametrize("format", FORMATS)
def test_an_archive_is_unpacked(tools, tree, format):
    FORMATS[format](tree / "x")

    told = tools()["zip_extract"]("x", "new/out")

    assert (
        told.files,
        told.bytes,
        told.destination,
        told.applied,
        told.skipped_count,
    ) == (3, 76_803, "new/out", True, 0)
    assert {name: (tree / "new" / "out" / name).read_bytes() for name in FILES} == FILES


@pytest.mark.parametrize("flag", ["", "z", "j", "J"])
def test_what_tar_packs_is_unpacked(tools, tree, flag):
    subprocess.run(["tar", f"c{flag}f", "x.tar", "src"], cwd=tree, check=True)

    tools()["zip_extract"]("x.tar", "out")

    assert (tree / "out" / "src" / "deep" / "b.txt").read_text() == "three"


def test_the_folder_itself_as_a_member_is_no_fault(tools, tree):
    subprocess.run(["tar", "cf", "../x.tar", "."], cwd=tree / "src", check=True)

    assert sorted(tools()["zip_extract"]("x.tar", "out").names) == ["a.txt", "deep/b.txt"]


@pytest.mark.parametrize("format", ["v7", "ustar", "gnu", "pax"])
def test_every_format_of_tar_is_read(tools, tree, format):
    (tree / "long").mkdir()
    name = "n" * (60 if format in ("v7", "ustar") else 200)
    (tree / "long" / name).write_text("x")
    subprocess.run(["tar", f"--format={format}", "-cf", "x.tar", "long"], cwd=tree, check=True)

    assert tools()["zip_extract"]("x.tar", "out").names == [f"long/{name}"]


def test_several_streams_in_a_row_are_one(tools, tree):
    import gzip

    make_tar(tree / "x.tar")
    data = (tree / "x.tar").read_bytes()
    (tree / "x.tgz").write_bytes(gzip.compress(data[:5_000]) + gzip.compress(data[5_000:]) + b"\0" * 100)

    assert tools()["zip_extract"]("x.tgz", "out").files == 3


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2])
def test_every_usual_method_of_zip_is_read(tools, tree, method):
    make_zip(tree / "x", method=method)

    assert tools()["zip_extract"]("x", "out").bytes == 76_803


def test_a_zip_after_something_else_is_read(tools, tree):
    make_zip(tree / "x")
    (tree / "y").write_bytes(b"#!/bin/sh\n" * 50 + (tree / "x").read_bytes())

    assert tools()["zip_list"]("y").format == "zip"


def test_an_empty_archive_is_no_fault(tools, tree):
    make_zip(tree / "x", {})
    make_tar(tree / "y", {}, mode="w:gz")

    assert (tools()["zip_list"]("x").total, tools()["zip_list"]("y").total) == (0, 0)
    assert tools()["zip_extract"]("x", "out").files == 0
    assert (tree / "out").is_dir()


def test_folders_that_are_members_come_too(tools, tree):
    make_zip(tree / "x", {"empty/": b"", "windows\\folder\\file.txt": b"w", "./dot/./f": b"d"})

    told = tools()["zip_extract"]("x", "out")

    assert (told.folders, told.names) == (1, ["windows/folder/file.txt", "dot/f"])
    assert (tree / "out" / "empty").is_dir()
    assert (tree / "out" / "windows" / "folder" / "file.txt").read_text() == "w"


def test_permissions_are_plain(tools, tree):
    info = zipfile.ZipInfo("run")
    info.external_attr = 0o104777 << 16
    with zipfile.ZipFile(tree / "x", "w") as archive:
        archive.writestr(info, "#!/bin/sh")

    tools()["zip_extract"]("x", "out")

    assert (tree / "out" / "run").stat().st_mode & 0o7111 == 0


@pytest.mark.parametrize("format", FORMATS)
def test_some_members_can_be_chosen(tools, tree, format):
    FORMATS[format](tree / "x")

    assert tools()["zip_extract"]("x", "out", members=["deep/", "one.txt"]).files == 3
    assert tools()["zip_extract"]("x", "out2", members=["deep/down"]).names == ["deep/down/two.txt"]


def test_a_member_that_is_not_there_is_refused(tools, tree):
    make_zip(tree / "x")

    with pytest.raises(ValueError, match=r"^members: 'de', 'missing' not in the archive; zip_list tells what is"):
        tools()["zip_extract"]("x", "out", members=["one.txt", "de", "missing"])

    assert not (tree / "out").exists()


@pytest.mark.parametrize("members", [[], [""], ["/"], ["."]])
def test_no_member_is_no_choice(tools, tree, members):
    make_zip(tree / "x")

    with pytest.raises(ValueError, match=r"^members: expected names"):
        tools()["zip_extract"]("x", "out", members=members)


def test_a_long_list_is_cut_and_says_so(tools, tree):
    make_zip(tree / "x", {f"{number:03}": b"" for number in range(300)})

    listed, told = tools()["zip_list"]("x", max_members=10), tools()["zip_extract"]("x", "out")

    assert (len(listed.members), listed.total, listed.truncated) == (10, 300, True)
    assert (len(told.names), told.files, told.names_truncated) == (200, 300, True)


def test_a_listing_that_nobody_waits_for_is_ended(tools, tree):
    make_zip(tree / "x")

    with pytest.raises(ValueError, match="the call was ended"):
        tools()["zip_list"]("x", context=EndedAfter(0))


def test_what_was_read_of_a_broken_archive_is_listed(tools, tree):
    make_tar(tree / "x")
    (tree / "x").write_bytes((tree / "x").read_bytes()[:5_000])

    found = tools()["zip_list"]("x")

    assert (
        [one.name for one in found.members],
        found.truncated,
    ) == (["one.txt", "deep/down/two.txt", "deep/three.bin"], True)
    assert "broken" in found.stopped


def test_archives_within_are_files(tools, tree):
    make_zip(tree / "inner.zip")
    make_zip(tree / "x", {"inner.zip": (tree / "inner.zip").read_bytes()})

    tools()["zip_extract"]("x", "out")

    assert [path.name for path in (tree / "out").rglob("*")] == ["inner.zip"]


# -- whole or not at all -----------------------------------------------------------------------------------------


def test_into_a_folder_that_is_there_files_are_added(tools, tree):
    make_zip(tree / "x", {"deep/new.txt": b"n", "other/f": b"o"})

    told = tools()["zip_extract"]("x", "src")

    assert (tree / "src" / "deep" / "new.txt").read_text() == "n"
    assert (tree / "src" / "deep" / "b.txt").read_text() == "three"
    assert (told.overwritten_count, told.files) == (0, 2)


def test_the_root_itself_can_be_the_destination(tools, tree):
    make_zip(tree / "x", {"deep/new.txt": b"n"})

    assert tools()["zip_extract"]("x", ".").destination == "."
    assert (tree / "deep" / "new.txt").exists()


def test_what_is_there_stops_everything(tools, tree, everything):
    make_zip(tree / "x", {"new.txt": b"n", "a.txt": b"theirs"})
    before = everything()

    with pytest.raises(ValueError, match=r"'src/a.txt' exists already; choose another destination, or say overwrite"):
        tools()["zip_extract"]("x", "src")

    assert before == everything()


def test_what_is_there_is_replaced_when_it_is_said(tools, tree):
    make_zip(tree / "x", {"new.txt": b"n", "a.txt": b"theirs"})

    told = tools()["zip_extract"]("x", "src", overwrite=True)

    assert (told.overwritten, told.overwritten_count) == (["a.txt"], 1)
    assert (tree / "src" / "a.txt").read_text() == "theirs"
    assert sorted(path.name for path in tree.iterdir()) == [".env", "a.txt", "src", "x"]


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"deep": b""}, "'src/deep' is a folder already"),
        ({"a.txt/f": b""}, "'src/a.txt' is a file, and members are to come beneath it"),
        ({"a.txt/": b""}, "'src/a.txt' is a file already"),
        ({"link/f": b""}, "'src/link' is a link, and members are to come beneath it"),
        ({"file-link": b""}, "'src/file-link' is a link already"),
    ],
)
def test_what_cannot_be_replaced_stops_everything(tools, tree, everything, files, message):
    (tree / "src" / "link").symlink_to("deep")
    (tree / "src" / "file-link").symlink_to("a.txt")
    make_zip(tree / "x", {"first.txt": b"1", **files})
    before = everything()

    with pytest.raises(ValueError, match=message):
        tools()["zip_extract"]("x", "src", overwrite=True)

    assert before == everything()


def test_a_destination_that_is_a_file_is_refused(tools, tree):
    make_zip(tree / "x")

    with pytest.raises(ValueError, match=r"is not a folder"):
        tools()["zip_extract"]("x", "a.txt/deeper")


@pytest.mark.parametrize("destination", ["../out", "/tmp/out", "link/out", ".env", ".ssh", "src/.git/hooks"])
def test_a_destination_outside_or_hidden_is_refused(tools, tree, everything, destination):
    (tree / "link").symlink_to("..")
    make_zip(tree / "x")
    before = everything()

    with pytest.raises(ValueError, match=r"leaves|outside|hidden"):
        tools()["zip_extract"]("x", destination)

    assert before == everything()


def damaged_zip(path):
    """Make a zip whose last member is damaged: its checksum is wrong."""
    make_zip(path, {"a.txt": b"theirs", "z": b"damaged here"}, zipfile.ZIP_STORED)
    path.write_bytes(path.read_bytes().replace(b"damaged here", b"DAMAGED here"))


@pytest.mark.parametrize("destination", ["out", "new/deep/out", "src", "."])
def test_a_member_that_fails_leaves_nothing(tools, tree, everything, destination):
    damaged_zip(tree / "x")
    before = everything()

    with pytest.raises(ValueError, match=r"^path: 'x' can't be used: it is broken"):
        tools()["zip_extract"]("x", destination, overwrite=True)

    assert before == everything()


@pytest.mark.parametrize("format", [one for one in FORMATS if one != "zip"])
@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
def test_an_archive_that_is_cut_off_leaves_nothing(tools, tree, everything, format, share):
    FORMATS[format](tree / "x")
    data = (tree / "x").read_bytes()
    end = len(data) - 10_240 if format == "tar" else len(data)
    (tree / "x").write_bytes(data[: int(end * share)])
    before = everything()

    with pytest.raises(ValueError, match=r"^path: 'x' can't be used: it is (cut off|broken)"):
        tools()["zip_extract"]("x", "out")

    assert before == everything()


class EndedAfter:
    """A context whose call is ended after it was asked a number of times."""

    def __init__(self, count):
        self.left = count

    @property
    def cancelled(self):
        self.left -= 1
        return self.left < 0


@pytest.mark.parametrize("destination", ["out", "src", "."])
def test_a_call_that_is_ended_at_any_time_leaves_nothing(tools, tree, everything, destination):
    make_zip(tree / "x", {"new/f": b"n", "a.txt": b"theirs", "deep/b.txt": b"theirs", "z.txt": b"z"})
    before = everything()
    made = tools()

    for count in range(100):
        try:
            made["zip_extract"]("x", destination, overwrite=True, context=EndedAfter(count))
        except ValueError as error:
            assert "the call was ended" in str(error)  # noqa: PT017 - the last one succeeds
            assert before == everything()
        else:
            break

    assert count > 4
    assert before != everything()


def test_a_destination_that_is_turned_into_a_link_meanwhile_leads_nowhere(tools, tree):
    """One thread turns a link to the inside and to the outside, as fast as it can; archives are unpacked there."""
    make_zip(tree / "x", {"deep/f": b"inside"})
    outside = tree.parent / "elsewhere"
    outside.mkdir()
    (tree / "real").mkdir()
    (tree / "swap").symlink_to("real")
    is_over = threading.Event()

    def turn():
        while not is_over.is_set():
            for target in (outside, "real"):
                (tree / "turned").symlink_to(target)
                (tree / "turned").replace(tree / "swap")

    thread = threading.Thread(target=turn)
    thread.start()
    made = tools()
    try:
        for number in range(40):
            with suppress(ValueError):
                made["zip_extract"]("x", f"swap/{number}")
    finally:
        is_over.set()
        thread.join()

    assert list(outside.iterdir()) == []


# -- previews ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("destination", ["out", "src"])
def test_a_preview_says_what_will_happen_and_changes_nothing(tools, tree, everything, format, destination):
    import attrs

    FORMATS[format](tree / "x")
    (tree / "src" / "one.txt").write_text("mine")
    before = everything()
    tool = tools()["zip_extract"]
    arguments = {"path": "x", "dest": destination, "overwrite": True}

    shown = tool.dry_run(arguments, None)
    assert before == everything()

    done = tool(**arguments)
    assert (shown.applied, done.applied) == (False, True)
    assert attrs.evolve(shown, applied=True) == done


def test_a_preview_says_what_will_fail(tools, tree):
    make_zip(tree / "x", {"a.txt": b""})

    with pytest.raises(ValueError, match="exists already"):
        tools()["zip_extract"].dry_run({"path": "x", "dest": "src"}, None)


def test_no_folder_of_a_new_destination_gets_a_name_that_misleads(tools, tree):
    make_zip(tree / "x")
    tool, given = tools()["zip_extract"], {"path": "x", "dest": "new/a\nb"}
    for call in (lambda: tool(**given), lambda: tool.dry_run(given, None)):
        with pytest.raises(ValueError, match="control or invisible characters"):
            call()

    assert not (tree / "new").exists()

"""Media of a result as files of the person who called."""

import pytest
from commanding import Project
from hypothesis import given
from hypothesis import strategies as st

from agentos import Media, ToolResult
from agentos.cli.saved_media import _names, save_media

PACK = '''
from agentos import PUBLIC, ExtensionPack, Media, tool


@tool(effect="read", required_access=PUBLIC)
async def shoot() -> list[str | Media]:
    """Take a picture."""
    return ["Here:", Media("image/png", b"PNG", name="../../shot.png"), Media("image/png", url="https://a/b.png")]


@tool(effect="mutate", required_access=PUBLIC)
async def draw() -> Media:
    """Draw a picture."""
    return Media("image/png", b"DRAWN", name="drawn.png")


def create_extension_pack():
    return ExtensionPack("shooting", "1.0", [shoot, draw])
'''


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path, 'store = "store.db"\n[[packs]]\nmodule = "pack.py"\n', pack=PACK)


def test_media_are_saved_where_it_is_said(project, tmp_path):
    done = project.run("tools", "call", "shoot", "--save-media", str(tmp_path / "shots"))

    assert done.code == 0
    assert "[image image/png ../../shot.png, 3 bytes]" in done.out
    assert "saved" in done.err
    assert {file.name: file.read_bytes() for file in (tmp_path / "shots").iterdir()} == {"shot.png": b"PNG"}


def test_nothing_is_overwritten(project, tmp_path):
    for _ in range(3):
        told = project.run("tools", "call", "shoot", "--save-media", str(tmp_path), "--json").json

    assert told["media"][0]["saved"] == str(tmp_path / "shot-3.png")
    assert told["media"][1] == {"mime": "image/png", "url": "https://a/b.png", "saved": None}


def test_without_a_folder_the_way_is_told(project):
    done = project.run("tools", "call", "shoot")

    assert "--save-media FOLDER" in done.err


def test_a_folder_that_can_not_be_written_costs_the_result_nothing(project, tmp_path):
    (tmp_path / "file").write_text("")
    done = project.run("tools", "call", "shoot", "--save-media", str(tmp_path / "file" / "in"))

    assert (done.code, "Here:" in done.out) == (0, True)
    assert "could not be saved" in done.err


def test_what_an_approved_call_returns_is_saved(project, tmp_path):
    waiting = project.run("tools", "call", "draw", "--json").json["proposal"]
    done = project.run("approvals", "approve", waiting, "--yes", "--save-media", str(tmp_path / "out"))

    assert done.code == 0
    assert (tmp_path / "out" / "drawn.png").read_bytes() == b"DRAWN"


@pytest.mark.parametrize(
    ("mime", "name", "file"),
    [
        ("image/png", "chart.png", "chart.png"),
        ("image/png", "Mai: Übersicht (1).PNG", "Mai_bersicht_1.png"),
        ("image/png", "run.sh", "run.sh.png"),
        ("image/png", ".bashrc", "bashrc.png"),
        ("image/png", "..", "image.png"),
        ("image/png", r"C:\windows\a.png", "a.png"),
        ("image/png", "con.png", "_con.png"),
        ("image/jpeg", "photo.jpeg", "photo.jpeg"),
        ("image/jpeg", None, "image.jpg"),
        ("application/x-desktop", "evil.desktop", "evil.desktop.bin"),
        ("audio/mpeg", "a" * 150, "a" * 80 + ".mp3"),
    ],
)
def test_a_foreign_name_becomes_a_harmless_one(mime, name, file):
    assert next(_names(Media(mime, b"", name=name))) == file


@given(st.text(min_size=1, max_size=60).filter(str.isprintable))
def test_no_name_leaves_the_folder(name):
    (made, *_) = _names(Media("image/png", b"", name=name))

    assert made.isascii()
    assert not set(made) & set('/\\:*?"<>| \0')
    assert not made.startswith((".", "-"))


def test_a_link_that_waits_at_the_place_is_not_followed(tmp_path):
    (tmp_path / "shots").mkdir()
    (tmp_path / "shots" / "a.png").symlink_to(tmp_path / "target")
    (saved,) = save_media(ToolResult.ok(media=[Media("image/png", b"PNG", name="a.png")]), tmp_path / "shots")

    assert (saved.name, (tmp_path / "target").exists()) == ("a-2.png", False)

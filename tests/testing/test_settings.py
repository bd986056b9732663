"""What an examination is told: names and values that can't be meant are refused with their place."""

import pytest
from testing.good_packs import plain
from testing.parts import count_letters, pack

from agentos import ExtensionPack
from agentos.testing import examine_pack


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        (
            {"samples": {"count_leters": {"text": "a"}}},
            "samples: there is no tool 'count_leters'; did you mean 'count_l",
        ),
        ({"samples": {"count_letters": []}}, "samples.count_letters: the list is empty"),
        ({"samples": {"count_letters": 5}}, "samples.count_letters: expected arguments by their names"),
        ({"samples": [{"text": "a"}]}, "samples: expected a table, got list"),
        ({"secrets": {"openai.apiKey": 5}}, "secrets.openai.apiKey: expected a text, got int"),
        ({"secrets": ["a"]}, "secrets: expected a table"),
        ({"secrets": {"openai.apiKey": "a"}}, "secrets: there is no secret 'openai.apiKey'"),
        ({"skip": ["leaks:count_letters"]}, "skip: 'leaks:count_letters': the check 'leaks' is about the whole pack"),
        (
            {"skip": ["hostile:count_leters"]},
            "skip: 'hostile:count_leters': there is no tool 'count_leters'; did you m",
        ),
        ({"only": ["hostile:nope"]}, "only: 'hostile:nope': there is no tool 'nope'; known: count_letters"),
        ({"skip": "leaks"}, "skip: expected a list of ids of checks"),
        ({"skip": [5]}, "skip: expected ids of checks, got 5"),
        ({"skip": {"leaks": " "}}, 'skip."leaks": expected a reason in words'),
        ({"cases": 0}, "cases: expected a whole number above 0, got 0"),
        ({"limit": -1}, "limit: expected seconds above 0, got -1"),
        ({"grace": "2"}, "grace: expected seconds above 0, got '2'"),
        ({"sandboxed": "no"}, "sandboxed: expected true or false, got 'no'"),
        ({"beneath": "calculator"}, "beneath: expected a list, got str"),
        ({"seed": ""}, "seed: expected the path of a folder"),
        ({"seed": "nowhere"}, "seed: there is no folder 'nowhere'"),
        ({"prepare": 5}, "prepare: expected a function, or the path of a Python file"),
    ],
)
async def test_a_setting_that_cant_be_meant_is_refused(settings, told):
    with pytest.raises(ValueError, match=r"expected|there is no|is empty|is about") as caught:
        await examine_pack(pack(count_letters), **settings)

    assert told in str(caught.value)


async def test_a_check_can_be_skipped_for_a_reason():
    found = await examine_pack(ExtensionPack("empty", "1.0", []), skip={"lints": "it is a test"}, only=["lints"])

    assert {finding.rule for finding in found} == {"loads"}


async def test_a_pack_that_offers_nothing_is_remarked():
    (finding,) = await examine_pack(ExtensionPack("empty", "1.0", []), only=["loads"])

    assert (finding.severity, finding.message) == ("warning", "it offers nothing: it has no descriptors")


@pytest.fixture
def home(tmp_path, monkeypatch):
    """Return the folder of a distribution that says what its pack needs."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "pyproject.toml").write_text('[project.entry-points."agentos.packs"]\nwanting = "pack_of_a_folder"\n')
    (tmp_path / "pack_of_a_folder.py").write_text(
        "from agentos import ExtensionPack\nSEEN = []\n"
        "def create_extension_pack(context):\n"
        "    SEEN.append(dict(context.options))\n"
        "    return ExtensionPack('wanting', '1.0', [])\n"
    )
    (tmp_path / "conformance.toml").write_text('only = ["loads"]\nstrict = true\noptions = {word = "{name}"}\n')
    (tmp_path / "conformance.py").write_text(
        "import contextlib\n@contextlib.asynccontextmanager\nasync def prepare(tmp):\n    yield {'name': tmp.name}\n"
    )
    return tmp_path


async def test_what_the_folder_of_a_pack_says_counts(home):
    await examine_pack(home)

    import pack_of_a_folder

    assert pack_of_a_folder.SEEN == [{"word": "data"}]


async def test_a_keyword_goes_before_what_the_folder_says(home):
    await examine_pack(home, options={"word": "mine"})

    import pack_of_a_folder

    assert pack_of_a_folder.SEEN[-1] == {"word": "mine"}


@pytest.mark.parametrize(
    ("file", "text", "told"),
    [
        ("conformance.toml", "optoins = {}", "conformance.toml: unknown key 'optoins'; did you mean 'options'?"),
        ("conformance.toml", "seed = 'nowhere'", "conformance.toml: seed: there is no folder 'nowhere'"),
        ("conformance.toml", "prepare = 'other.py'", "other.py: it can't be imported: FileNotFoundError"),
        ("conformance.py", "import nothing_of_that_name", "conformance.py: it can't be imported: ModuleNotFoundError"),
        ("conformance.py", "prepare = None", "conformance.py: expected a function `prepare`; decorate"),
    ],
)
async def test_a_mistake_in_the_files_of_a_folder_is_told(home, file, text, told):
    (home / file).write_text(text)
    with pytest.raises(ValueError, match=r"conformance|other") as caught:
        await examine_pack(home)

    assert told in str(caught.value)


async def test_everything_that_is_wrong_with_settings_is_told_at_once_with_the_file(home):
    (home / "conformance.toml").write_text("optoins = {}\nlimit = 0\nseed = 'nowhere'\n")
    with pytest.raises(ValueError, match="3 settings are invalid") as caught:
        await examine_pack(home)

    said = str(caught.value)
    assert said.startswith(f"{home / 'conformance.toml'}: 3 settings are invalid:")
    assert all(one in said for one in ("unknown key 'optoins'", "limit: expected seconds", "seed: there is no folder"))


async def test_names_that_the_pack_does_not_have_are_told_with_the_file_that_says_them(home):
    (home / "conformance.toml").write_text("[samples]\nnope = {}\nnobody = {}\n")
    with pytest.raises(ValueError, match="2 settings are invalid") as caught:
        await examine_pack(home, options={"word": "a"})

    assert str(caught.value).count(f"{home / 'conformance.toml'}: samples: there is no tool") == 2


async def test_of_what_is_given_by_a_keyword_no_file_is_named(home):
    (home / "conformance.toml").write_text("[options]\n")
    with pytest.raises(ValueError, match="there is no check") as caught:
        await examine_pack(home, skip=["lint"])

    assert str(caught.value).startswith("there is no check 'lint'")


async def test_what_is_beneath_is_seen_from_the_file_that_names_it(home):
    (home / "ground.py").write_text("from agentos import ExtensionPack\npack = ExtensionPack('ground', '1.0', [])\n")
    (home / "conformance.toml").write_text('only = ["loads"]\nbeneath = ["./ground.py"]\n')

    assert [finding.severity for finding in await examine_pack(home, options={"word": "a"})] == ["warning"]


async def test_a_good_pack_needs_no_settings():
    assert await examine_pack(plain, cases=5) == []

"""`pytest --agentos-pack`: one test for every check, on any pack, without a file of tests."""

import json
import subprocess
import sys
from importlib.metadata import entry_points

import pytest
from testing.good_packs import plain

from agentos.testing import CHECKS, check_pack
from agentos.testing._check_registry import Check

pytest_plugins = ["pytester"]

IS_INSTALLED = any(point.value == "agentos.testing.plugin" for point in entry_points(group="pytest11"))
FLAGS = [] if IS_INSTALLED else ["-p", "agentos.testing.plugin"]

GOOD = '''
from typing import Annotated
from agentos import PUBLIC, ExtensionPack, Schema, tool

@tool(effect="read", required_access=PUBLIC)
async def count_letters(text: Annotated[str, "What to look at, in plain words", Schema(maxLength=200)]) -> int:
    """Count the letters of a text, blanks included."""
    return len(text)

def create_extension_pack(context):
    return ExtensionPack("good", "1.0", [count_letters], description=context.options.get("word", ""))
'''
BAD = GOOD.replace("Schema(maxLength=200)", "Schema()").replace('"good"', '"bad"')
REMARKED = GOOD.replace('effect="read"', 'effect="mutate"').replace("count_letters", "post_letters")
WANTING = GOOD.replace('context.options.get("word", "")', 'context.options["word"]')


@pytest.fixture(scope="module", autouse=True)
def everything_is_imported():
    """Import what an examination imports: a run within this process forgets the modules that it was first to import."""
    check_pack(plain, cases=5)


@pytest.fixture
def run(pytester):
    """Write packs, and run the plugin on them within this process."""

    def run(*flags, **packs):
        for name, source in packs.items():
            pytester.makepyfile(**{name: source})
        return pytester.runpytest_inprocess(*FLAGS, "-p", "no:cacheprovider", *flags)

    return run


def test_a_good_pack_passes_without_a_file_of_tests(run):
    result = run("--agentos-pack", "good.py", good=GOOD)

    result.assert_outcomes(passed=19)
    assert result.ret == 0


def test_a_bad_pack_fails_with_what_is_wrong_and_its_cure(run):
    result = run("--agentos-pack", "bad.py", "-k", "bounds", bad=BAD)

    result.assert_outcomes(failed=1, deselected=18)
    result.stdout.fnmatch_lines(["*bad.py: bounds[[]count_letters[]]*", "*text: a text may have any length; give it*"])
    assert "Traceback" not in result.stdout.str()
    assert "runtest" not in result.stdout.str()


def test_there_is_one_test_for_every_check_and_tool(run):
    result = run("--agentos-pack", "good.py", "--collect-only", "-q", good=GOOD)
    listed = [line for line in result.outlines if line.startswith("agentos-pack:")]
    about_tools = [check.id for check in CHECKS.values() if check.is_about_tools]

    assert "agentos-pack:good.py::loads" in listed
    assert "agentos-pack:good.py::hostile[count_letters]" in listed
    assert {line.partition("::")[2].partition("[")[0] for line in listed} == set(CHECKS) - {
        "samples",
        "dry-run",
        "runs",
    }
    assert sum("[count_letters]" in line for line in listed) == len(about_tools) - 3


def test_several_packs_can_be_named(run):
    flags = ("--agentos-pack", "good.py", "--agentos-pack", "bad.py", "--agentos-pack", "good.py")
    result = run(*flags, "-k", "bounds or loads", good=GOOD, bad=BAD)

    result.assert_outcomes(passed=3, failed=1, deselected=34)


def test_an_installed_pack_is_named_by_its_entry_point(run):
    result = run("--agentos-pack", "calculator", "-k", "lints or wire")

    result.assert_outcomes(passed=2, deselected=35)


def test_a_pack_that_cant_be_loaded_fails_once(run):
    result = run("--agentos-pack", "nothing_of_that_name")

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*no importable package has this name*"])


def test_a_path_that_says_nothing_of_packs_is_told(run, pytester):
    pytester.makefile(".toml", pyproject="[project]\nname = 'x'\n")
    result = run("--agentos-pack", str(pytester.path))

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*expected one entry point in the group 'agentos.packs', found none*"])


def test_tests_beside_it_are_left_out_unless_they_are_named(run, pytester):
    pytester.makepyfile(test_mine="def test_mine(): pass")
    alone = run("--agentos-pack", "good.py", "-k", "loads or mine", good=GOOD)
    both = run("--agentos-pack", "good.py", "-k", "loads or mine", "test_mine.py")

    alone.assert_outcomes(passed=1, deselected=18)
    both.assert_outcomes(passed=2, deselected=18)


def test_in_a_configuration_it_goes_beside_other_tests(run, pytester):
    pytester.makepyfile(test_mine="def test_mine(): pass")
    pytester.makeini("[pytest]\naddopts = --agentos-pack good.py\n")
    result = run("-k", "loads or mine", good=GOOD)

    result.assert_outcomes(passed=2, deselected=18)


def test_without_it_nothing_changes(run, pytester):
    pytester.makepyfile(test_mine="def test_mine(): pass")

    run().assert_outcomes(passed=1)


# -- options -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["toml", "json"])
def test_a_file_says_what_packs_need(run, pytester, ending):
    said = {"wanting": {"options": {"word": "hello"}, "skip": ["bounds", "hostile:count_letters"], "cases": 5}}
    text = json.dumps(said) if ending == "json" else '[wanting]\noptions.word = "hello"\ncases = 5\n'
    text += "" if ending == "json" else 'skip = ["bounds", "hostile:count_letters"]\n'
    (pytester.path / f"packs.{ending}").write_text(text)
    (pytester.path / "wanting").mkdir()
    (pytester.path / "wanting" / "__init__.py").write_text(WANTING)
    result = run("--agentos-pack", "wanting", "--agentos-options", f"packs.{ending}")

    result.assert_outcomes(passed=17)


def test_samples_become_tests(run, pytester):
    pytester.makefile(".toml", packs='["good.py".samples]\ncount_letters = {text = "four"}\n')
    result = run("--agentos-pack", "good.py", "--agentos-options", "packs.toml", "-k", "samples", good=GOOD)

    result.assert_outcomes(passed=1, deselected=19)


@pytest.mark.parametrize(
    ("text", "passed"), [('options = { word = "w" }', 19), ("", 0)], ids=["with what it needs", "without"]
)
def test_the_folder_of_a_distribution_says_what_its_pack_needs(run, pytester, text, passed):
    folder = pytester.mkdir("dist")
    (folder / "pyproject.toml").write_text('[project.entry-points."agentos.packs"]\nwanting = "wanting_of_a_folder"\n')
    (folder / "wanting_of_a_folder.py").write_text(WANTING)
    (folder / "conformance.toml").write_text(text)
    result = run("--agentos-pack", "dist")

    assert result.parseoutcomes().get("passed", 0) == passed


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[good]\noption = 1\n", "unknown key 'option'"),
        ("good = 1\n", "expected a table for every pack"),
        ("[good\n", "packs.toml"),
        (None, "packs.toml"),
        ("[good]\noptoins = {}\n", "good: unknown key 'optoins'; did you mean 'options'?"),
        ("[god]\ncases = 5\n", "for the table 'god'; did you mean 'good.py'?"),
        ("['good.py']\ncases = 0\n", "good.py: cases: expected a whole number above 0, got 0"),
        ("['good.py']\nseed = 'nowhere'\n", "good.py: seed: there is no folder 'nowhere'"),
        ("['good.py']\nskip.bounds = ''\n", 'good.py: skip."bounds": expected a reason in words'),
    ],
)
def test_a_file_with_a_mistake_is_refused(run, pytester, text, told):
    if text is not None:
        (pytester.path / "packs.toml").write_text(text)
    result = run("--agentos-pack", "good.py", "--agentos-options", "packs.toml", good=GOOD)

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert told in result.stderr.str() + result.stdout.str()


def test_a_file_with_a_mistake_is_refused_before_workers_read_it(run, pytester):
    (pytester.path / "packs.toml").write_text("[good]\noption = 1\n")
    result = run("--agentos-pack", "good.py", "--agentos-options", "packs.toml", "-p", "xdist", "-n", "2", good=GOOD)

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "unknown key 'option'" in result.stderr.str() + result.stdout.str()


def test_an_unknown_check_is_refused(run, pytester):
    pytester.makefile(".toml", packs='["good.py"]\nskip = ["bound"]\n')
    result = run("--agentos-pack", "good.py", "--agentos-options", "packs.toml", good=GOOD)

    assert "there is no check 'bound'; did you mean 'bounds'" in result.stdout.str()
    assert result.ret != 0


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("samples.count_leters = {}", "samples: there is no tool 'count_leters'; did you mean 'count_letters'?"),
        ("skip = ['hostile:count_leters']", "skip: 'hostile:count_leters': there is no tool 'count_leters'"),
        ("only = ['leaks:count_letters']", "the check 'leaks' is about the whole pack"),
        ("secrets.'openai.apiKey' = 'x'", "secrets: there is no secret 'openai.apiKey'"),
    ],
)
def test_a_name_that_the_pack_does_not_have_is_refused(run, pytester, text, told):
    pytester.makefile(".toml", packs=f'["good.py"]\n{text}\n')
    result = run("--agentos-pack", "good.py", "--agentos-options", "packs.toml", good=GOOD)

    assert told in result.stdout.str()
    assert result.ret != 0


def test_what_is_skipped_for_a_reason_is_listed_with_it(run, pytester):
    pytester.makefile(
        ".toml", packs='["good.py"]\nskip = {"hostile:count_letters" = "it is known", bounds = "so is it"}\n'
    )
    result = run("--agentos-pack", "good.py", "--agentos-options", "packs.toml", "-rs", good=GOOD)

    result.assert_outcomes(passed=17, skipped=2)
    result.stdout.fnmatch_lines(["SKIPPED*it is known*"])


def test_a_folder_and_a_file_beside_the_settings_furnish_every_room(run, pytester):
    folder = pytester.mkdir("dist")
    (folder / "pyproject.toml").write_text(
        '[project.entry-points."agentos.packs"]\nwanting = "wanting_to_be_furnished"\n'
    )
    (folder / "wanting_to_be_furnished.py").write_text(FURNISHED)
    (folder / "conformance.toml").write_text('seed = "seeds"\noptions = {file = "{tmp}/a.txt", port = "{port}"}\n')
    (folder / "conformance.py").write_text(PREPARING)
    (folder / "seeds").mkdir()
    (folder / "seeds" / "a.txt").write_text("from the seed")
    result = run("--agentos-pack", "dist", "--agentos-strict")

    result.assert_outcomes(passed=19)


FURNISHED = GOOD.replace("return len(text)", "return SEEN[0]").replace(
    "def create_extension_pack(context):",
    """from pathlib import Path
SEEN = []

def create_extension_pack(context):
    assert Path(context.options["file"]).read_text() == "from the seed, prepared"
    SEEN[:] = [context.options["port"]]""",
)
PREPARING = """
import contextlib

@contextlib.asynccontextmanager
async def prepare(tmp):
    with (tmp / "a.txt").open("a") as file:
        file.write(", prepared")
    yield {"port": 4711}
"""


def test_what_is_only_remarked_is_listed_at_the_end(run):
    result = run("--agentos-pack", "remarked.py", "-k", "dry", remarked=REMARKED)

    result.assert_outcomes(passed=1, deselected=17)
    result.stdout.fnmatch_lines(["*agentos packs: remarks*", "warning: good:post_letters: whoever is asked*"])


def test_strict_counts_what_is_only_remarked(run):
    result = run("--agentos-pack", "remarked.py", "--agentos-strict", "-k", "dry", remarked=REMARKED)

    result.assert_outcomes(failed=1, deselected=17)


def test_a_mistake_of_the_kit_itself_is_shown_with_its_traceback(run, monkeypatch):
    async def fail(check, candidate, tool=None):
        raise SystemError("of the kit")

    monkeypatch.setattr(Check, "run", fail)
    result = run("--agentos-pack", "good.py", "-k", "loads", good=GOOD)

    result.assert_outcomes(failed=1, deselected=18)
    result.stdout.fnmatch_lines(["*SystemError: of the kit*"])


# -- with other plugins ------------------------------------------------------------------------------------------------


def test_it_works_on_several_cores_and_without_other_plugins(tmp_path):
    (tmp_path / "good.py").write_text(GOOD)
    (tmp_path / "test_mine.py").write_text("def test_mine(): pass")
    flags = [*FLAGS, "-p", "no:anyio", "-p", "no:hypothesispytest", "-n", "2", "--strict-markers", "-W", "error"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *flags, "--agentos-pack", "good.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert "19 passed" in done.stdout, done.stdout + done.stderr


def test_fixtures_are_there(run, pytester):
    pytester.makepyfile(
        test_mine="""
        import asyncio
        import socket
        import good
        import pytest
        from agentos import ToolCall

        def test_call(agentos_call):
            (result,) = agentos_call(good.create_extension_pack, ("count_letters", {"text": "four"}))
            assert result.output == 4

        def test_host(agentos_host, agentos_clock, agentos_secrets):
            async def main():
                async with agentos_host(good, clock=agentos_clock, secrets=agentos_secrets) as host:
                    return await host.tools.process_tool_call(ToolCall("count_letters", {"text": "four"}))

            assert asyncio.run(main()).output == 4
            assert agentos_clock() == agentos_clock.now
            assert agentos_secrets.reads == []

        def test_offline(agentos_offline):
            with pytest.raises(OSError):
                socket.create_connection(("192.0.2.1", 80))
            assert agentos_offline[-1].target == "192.0.2.1"
        """
    )
    result = run("test_mine.py", good=GOOD)

    result.assert_outcomes(passed=3)

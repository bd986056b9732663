"""What the examination is told, and what it tells."""

import os
import socket
import sys
from pathlib import Path

import attrs
import pytest
from testing.bad_packs import bounds, dry_run, gate, hostile, loads
from testing.good_packs import plain
from testing.parts import Text, count_letters, pack, reads

from agentos import Descriptor, ToolContext
from agentos.testing import CHECKS, assert_pack_ok, check_pack, examine_pack
from agentos.testing.fakes import canary_of

ONE_FILE = '''
from typing import Annotated
from agentos import PUBLIC, ExtensionPack, Schema, tool

@tool(effect="read", required_access=PUBLIC)
async def count_letters(text: Annotated[str, "What to look at, in plain words", Schema(maxLength=200)]) -> int:
    """Count the letters of a text, blanks included."""
    return len(text)

pack = ExtensionPack("one-file", "1.0", [count_letters])
'''


def rules(found):
    return {finding.rule for finding in found}


async def test_one_error_lists_everything_that_is_wrong():
    def factory():
        return pack(*bounds.endless_text().descriptors, *hostile.slips().descriptors)

    with pytest.raises(AssertionError) as caught:
        await assert_pack_ok(factory, cases=20)

    assert "2 things to mend" in str(caught.value)
    assert "error: example:look_at: value: a text may have any length" in str(caught.value)
    assert "error: example:look_up: it raised KeyError" in str(caught.value)
    assert "[bounds]" in str(caught.value)


async def test_a_pack_that_cant_be_loaded_is_told_once():
    assert rules(await examine_pack(loads.raises)) == {"loads"}


async def test_a_pack_that_can_be_loaded_only_once_is_told_once():
    begun = []

    def begin():
        if begun:
            raise RuntimeError("it has begun already")
        begun.append(True)

    found = await examine_pack(lambda: pack(on_activate=begin))

    assert [finding.cure for finding in found] == ["undo in on_deactivate what on_activate did"]
    assert "the pack can't be loaded again" in found[0].message


async def test_the_message_of_what_cant_be_loaded_is_told():
    (finding,) = await examine_pack(loads.raises)

    assert "no licence found" in finding.message


async def test_a_module_that_cant_be_imported_is_a_finding(tmp_path):
    (tmp_path / "broken.py").write_text("import nothing_of_that_name")
    (finding,) = await examine_pack(tmp_path / "broken.py")

    assert "nothing_of_that_name" in finding.message


async def test_a_check_can_be_skipped():
    assert await examine_pack(bounds.endless_text, skip=["bounds"], cases=5) == []


async def test_a_check_of_one_tool_can_be_skipped():
    def factory():
        return pack(*bounds.endless_text().descriptors, count_letters)

    assert await examine_pack(factory, skip=["bounds:look_at"], cases=5) == []
    assert rules(await examine_pack(factory, skip=["bounds:count_letters"], cases=5)) == {"bounds"}


async def test_only_some_checks_can_be_made():
    assert await examine_pack(bounds.endless_text, only=["schemas"]) == []
    assert rules(await examine_pack(bounds.endless_text, only=["bounds"])) == {"bounds"}


async def test_only_one_tool_can_be_looked_at():
    def factory():
        return pack(*bounds.endless_text().descriptors, count_letters)

    assert await examine_pack(factory, only=["bounds:count_letters"]) == []


async def test_an_unknown_check_is_refused_with_the_nearest_one():
    with pytest.raises(ValueError, match="no check 'bound'; did you mean 'bounds'"):
        await examine_pack(plain, skip=["bound"])


async def test_warnings_count_only_when_it_is_strict():
    def factory():
        return pack(*dry_run.with_preview(None).descriptors)

    remarks = await assert_pack_ok(factory, cases=5)

    assert [(finding.rule, finding.severity) for finding in remarks] == [("dry-run", "warning"), ("runs", "warning")]
    with pytest.raises(AssertionError, match="sees only its arguments"):
        await assert_pack_ok(factory, cases=5, strict=True)


def test_there_is_a_front_without_a_loop():
    assert check_pack(plain, cases=5) == []
    with pytest.raises(AssertionError, match="any length"):
        check_pack(bounds.endless_text, only=["bounds"])


async def test_options_reach_the_pack():
    seen = []

    def factory(context):
        seen.append(dict(context.options))
        return pack()

    await examine_pack(factory, options={"region": "eu"}, only=["loads"])

    assert seen == [{"region": "eu"}]


async def test_every_load_has_an_empty_folder_if_options_ask_for_one():
    seen = []

    def factory(context):
        folder = Path(context.options["folders"][0])
        seen.append(folder)
        assert not list(folder.iterdir())
        return pack(on_activate=lambda: (folder / "state.db").write_text("x"))

    await assert_pack_ok(factory, options={"folders": ["{tmp}"]}, only=["loads", "quiet"])

    assert len(set(seen)) == 2


async def test_secrets_are_canaries_unless_their_values_are_given():
    seen = {}

    def connect(context):
        seen.update({id: context.secret(id) for id in ("openai.apiKey", "brave.apiKey")})

    def factory():
        needs = ["openai.apiKey", "brave.apiKey"]
        return pack(Descriptor("tool", "count_letters", count_letters, required_secrets=needs, on_activate=connect))

    await examine_pack(factory, secrets={"brave.apiKey": "a-value"}, only=["loads"])

    assert seen["openai.apiKey"] == canary_of("openai.apiKey")
    assert seen["brave.apiKey"] == "a-value"


async def test_secrets_in_options_are_the_packs_own():
    seen = []

    def factory(context):
        seen.append(context.secret("openai.apiKey"))
        return pack(Descriptor("tool", "count_letters", count_letters, required_secrets=["openai.apiKey"]))

    found = await examine_pack(factory, options={"secrets": {"openai.apiKey": "mine-alone"}}, only=["loads", "gate"])

    assert found == []
    assert seen == ["mine-alone", None]


async def test_the_machines_own_secrets_are_out_of_reach(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "a-real-key")

    assert rules(await examine_pack(gate.refuses_to_load_without, only=["gate"])) == {"gate"}
    assert os.environ["OPENAI_API_KEY"] == "a-real-key"


async def test_samples_are_used_where_nothing_can_be_made_from_a_schema():
    seen = []

    @reads
    async def look_up(text: Text) -> str:
        """Look a text up in the table of known ones."""
        seen.append(text)
        return "found"

    await examine_pack(lambda: pack(look_up), samples={"look_up": [{"text": "one"}, {"text": "two"}]}, only=["quiet"])

    assert seen == ["one"]


async def test_a_tool_without_good_arguments_is_remarked():
    schema = {"type": "object", "properties": {"text": {"type": "string", "maxLength": 9}}, "not": {}}

    @reads
    async def look_up(text: Text) -> str:
        """Look a text up in the table of known ones."""
        return "found"

    tool = attrs.evolve(look_up, input_schema=schema)
    found = await examine_pack(lambda: pack(tool), only=["hostile"])

    assert [(finding.severity, finding.cure) for finding in found] == [("warning", "give some in samples=")]


async def test_a_pack_can_be_a_file(tmp_path, monkeypatch):
    (tmp_path / "my_pack.py").write_text(ONE_FILE)
    monkeypatch.chdir(tmp_path)

    assert await examine_pack("my_pack.py", cases=5) == []


async def test_a_pack_can_be_the_folder_of_a_distribution(tmp_path, monkeypatch):
    home = tmp_path / "dist"
    (home / "src" / "example_of_a_pack").mkdir(parents=True)
    (home / "src" / "example_of_a_pack" / "__init__.py").write_text(ONE_FILE)
    (home / "pyproject.toml").write_text('[project.entry-points."agentos.packs"]\nexample = "example_of_a_pack:pack"\n')
    monkeypatch.setattr("sys.path", [*sys.path])

    assert await examine_pack(home, cases=5) == []


async def test_the_network_is_refused_and_loopback_is_not():
    told = []

    @reads
    def look_up(text: Text) -> str:
        """Look a text up in the table of known ones."""
        try:
            socket.create_connection(("192.0.2.1", 80), timeout=5).close()
        except OSError as error:
            told.append(type(error).__name__)
        return "found"

    await examine_pack(lambda: pack(look_up), only=["quiet"])

    assert told == ["NetworkRefusedError"]


async def test_the_process_is_left_as_it_was(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = dict(os.environ)
    assert await examine_pack(plain, cases=5) == []

    assert (dict(os.environ), Path.cwd()) == (before, tmp_path)
    assert list(tmp_path.iterdir()) == []


async def test_what_a_library_does_when_it_is_first_imported_is_no_leak(monkeypatch):
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    imported = []

    @reads
    async def look_up(text: Text) -> str:
        """Look a text up in the table of known ones."""
        if not imported:
            imported.append("a library")
            sys.meta_path.append(type("Finder", (), {"find_spec": lambda *_: None}))
        return "found"

    assert await examine_pack(lambda: pack(look_up), only=["leaks"]) == []


async def test_a_path_that_stays_in_a_folder_of_the_packs_own_is_no_escape(tmp_path):
    @reads
    def read_text(path: Text) -> str:
        """Read a text file by its path beneath the folder."""
        try:
            return (tmp_path / path.replace("..", "").lstrip("/")).read_text()
        except (OSError, ValueError):
            raise ValueError("path: it can't be read") from None

    assert await examine_pack(lambda: pack(read_text), only=["reach"]) == []


async def test_a_check_that_cant_be_finished_is_a_finding():
    class Odd:
        def __repr__(self):
            raise RuntimeError("no")

    (finding,) = await examine_pack(lambda: pack(Descriptor("odd", "one", Odd())), only=["secrets"])

    assert finding.message == "it could not be checked: RuntimeError: no"


@pytest.mark.parametrize("check", CHECKS.values(), ids=lambda check: check.id)
def test_every_check_says_what_it_is_about(check):
    assert check.summary.endswith(".")


async def test_many_findings_of_one_kind_are_told_as_few():
    @reads
    async def look_up(a: str, b: str, c: str, d: str, e: str, f: str, g: str) -> str:
        """Look seven texts up in the table of known ones."""
        return "found"

    found = await examine_pack(lambda: pack(look_up), only=["bounds"])

    assert len(found) == 5
    assert found[-1].message.endswith("(and 2 more)")


async def test_a_tool_of_the_context_can_be_examined_with_its_options():
    @reads
    async def look_up(text: Text, *, context: ToolContext) -> str:
        """Look a text up in the table of known ones."""
        return str(context.options["region"])

    samples = {"look_up": {"text": "a"}}
    found = await examine_pack(lambda: pack(look_up), options={"region": "eu"}, samples=samples, only=["samples"])

    assert found == []

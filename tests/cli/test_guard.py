"""`agentos guard check`: the guardrails in force, asked from the command."""

import pytest
from commanding import Project

PACK = """
from agentos import ExtensionPack, GuardVerdict, guardrail


@guardrail(stage="input")
async def pii(text, context):
    return GuardVerdict.block("it has an address", "EMAIL") if "@" in text else None


@guardrail(stage="output", sanitizes=True)
async def clean(text, context):
    return GuardVerdict.sanitize(text.replace("secret", "***"), "masked") if "secret" in text else None


def create_extension_pack():
    return ExtensionPack("guards", "1.0", [pii, clean])
"""


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path, '[[packs]]\nmodule = "guards.py"\n', guards=PACK)


def test_a_text_that_is_fine_is_printed(project):
    done = project.run("guard", "check", "--stage", "input", "hello")

    assert (done.code, done.out.splitlines()[0]) == (0, "hello")


def test_a_blocked_text_exits_4_and_is_not_printed(project):
    done = project.run("guard", "check", "--stage", "input", "ann@example.org")

    assert done.code == 4
    assert "it has an address" in done.out
    assert "ann@" not in done.out + done.err


def test_a_sanitized_text_is_printed_as_it_passes(project):
    done = project.run("guard", "check", "--stage", "output", "my secret", "--json")

    assert (done.code, done.json["action"], done.json["value"]) == (0, "sanitize", "my ***")
    assert [row["guard"] for row in done.json["verdicts"]] == ["guards:clean"]


def test_another_stage_can_t_be_asked_about(project):
    assert project.run("guard", "check", "--stage", "tool_call", "x").code == 2


def test_why_says_who_reads_a_guardrail(project):
    done = project.run("why", "guardrail:pii")

    assert done.code == 0
    assert "Read by every call" in done.out


def test_stacks_say_that_nothing_reads_a_kind(tmp_path):
    pack = PACK.replace("[pii, clean]", '[__import__("agentos").Descriptor("mood", "friendly", {})]')
    done = Project(tmp_path, '[[packs]]\nmodule = "p.py"\n', p=pack).run("stacks")

    assert "active, but nothing reads this kind here" in " ".join(done.out.split())


def test_a_required_guardrail_that_is_missing_is_said(tmp_path):
    done = Project(tmp_path, 'requiredGuardrails = ["nobody"]\n').run("tools", "call", "x")

    assert done.code != 0
    assert "nobody" in done.err

"""What the checks of how calls end see of the calls after them."""

import asyncio

import pytest
from testing.parts import Text, pack, reads

from agentos import PUBLIC, tool
from agentos.testing import _check_endings, examine_pack


class Table:
    """A pack of one tool, which keeps what belongs to a call where it outlives the pack."""

    def __init__(self, effect="read", seconds=0.01):
        self.busy = []
        self.effect = effect
        self.seconds = seconds

    def __call__(self):
        @tool(effect=self.effect, required_access=PUBLIC)
        async def look_up(text: Text) -> str:
            """Look a text up in the table of known ones, and add it."""
            if self.busy:
                raise ValueError("it is busy")
            self.busy.append(text)
            await asyncio.sleep(self.seconds)
            self.busy.clear()
            return "found"

        return pack(look_up)


DEAD = "it can't be called any more: ToolRaised: ValueError: it is busy"


@pytest.mark.parametrize(("check", "effect"), [("cancel", "read"), ("timeout", "read"), ("timeout", "mutate")])
async def test_a_tool_that_is_dead_after_a_call_was_ended_is_told_by_the_check_that_ended_it(check, effect):
    (finding,) = await examine_pack(Table(effect), only=[check], sandboxed=True, grace=0.5)

    assert (finding.rule, DEAD in finding.message) == (check, True)


async def test_a_tool_that_changes_something_is_called_again_in_another_room(monkeypatch):
    monkeypatch.setattr(_check_endings, "_PATIENCE", 0.5)  # it is cancelled while it runs, on a busy machine too
    (finding,) = await examine_pack(Table("mutate", seconds=1.0), only=["cancel"], sandboxed=True, grace=0.5)

    assert (finding.rule, DEAD in finding.message) == ("cancel", True)


async def test_a_tool_that_is_dead_is_told_once():
    found = await examine_pack(Table(), only=["cancel", "timeout", "parallel", "succeeds"], grace=0.5)

    assert [finding.rule for finding in found] == ["cancel"]


async def test_a_call_alone_that_fails_after_it_succeeded_is_told():
    made = []

    @reads
    async def look_up(text: Text) -> str:
        """Look a text up in the table of known ones."""
        if made:
            raise ValueError("the table is gone")
        made.append(text)
        return "found"

    found = await examine_pack(pack(look_up), only=["samples", "parallel"], samples={"look_up": {"text": "tea"}})

    assert [(finding.rule, "succeeded before, and fails now" in finding.message) for finding in found] == [
        ("parallel", True)
    ]


async def test_a_tool_that_never_succeeds_is_not_taken_for_one_that_died():
    @reads
    async def look_up(text: Text) -> str:
        """Look a text up in the table of known ones."""
        await asyncio.sleep(0)
        raise ValueError(f"there is no {text!r}")

    assert await examine_pack(pack(look_up), only=["cancel", "timeout", "parallel"]) == []


async def test_what_can_be_done_only_once_is_not_taken_for_dead():
    def factory():
        words = ["a"]

        @tool(effect="mutate", required_access=PUBLIC)
        async def remove_word(text: Text) -> str:
            """Remove a text from the table of known ones."""
            await asyncio.sleep(0)
            words.remove(text)
            return "removed"

        return pack(remove_word)

    samples = {"remove_word": {"text": "a"}}

    assert await examine_pack(factory, only=["cancel", "timeout", "parallel"], sandboxed=True, samples=samples) == []

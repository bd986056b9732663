"""Good packs pass, and nothing that changes something is let loose on the machine."""

import pytest
from testing import good_packs
from testing.parts import Text, count_letters, pack, reads

from agentos import PUBLIC, ToolContext, tool
from agentos.testing import assert_pack_ok, examine_pack

FACTORIES = [
    *(good_packs.plain, good_packs.with_a_thread, good_packs.with_notes, good_packs.with_helpers),
    *(good_packs.with_a_secret, good_packs.with_tools_that_come_later, good_packs.with_a_shape),
    *(good_packs.switched_off, good_packs.with_a_wrapper),
]


@pytest.mark.parametrize("factory", FACTORIES, ids=lambda factory: factory.__name__)
async def test_a_good_pack_passes(factory):
    await assert_pack_ok(factory, cases=60)


@pytest.mark.parametrize("name", ["calculator", "datetime"])
async def test_a_curated_pack_passes(name):
    await assert_pack_ok(name, cases=60)


async def test_a_tool_that_repeats_half_of_a_character_it_was_given_passes():
    @tool(effect="read", required_access=PUBLIC, timeout=5)
    def greet_person(name: Text) -> str:
        """Greet a person by the name that is given."""
        return f"Hello {name}"

    await assert_pack_ok(pack(greet_person), only=["hostile"], cases=60)


async def test_a_wrapper_passes_with_what_it_wraps():
    samples = {"count_letters": {"text": "four"}}
    await assert_pack_ok(good_packs.with_a_wrapper, beneath=[count_letters], samples=samples, cases=60)


@pytest.fixture
def done():
    return []


def pack_that_changes_things(done, **fields):
    def preview(arguments, context):
        return "would send it"

    @tool(effect="mutate", required_access=PUBLIC, dry_run=preview, **fields)
    async def send_text(text: Text) -> str:
        """Send a text to whoever is listening."""
        done.append("send")
        return "sent"

    @tool(effect="destructive", required_access=PUBLIC)
    async def delete_text(text: Text) -> str:
        """Delete a text for good, wherever it is."""
        done.append("delete")
        return "deleted"

    @reads
    async def list_texts(*, context: ToolContext) -> str:
        """List the texts that were sent; it asks the tool that sends."""
        result = await context.call("send_text", {"text": "a"})
        return "some" if result.success else "none"

    return pack(send_text, delete_text, list_texts)


@pytest.mark.parametrize("intervention", [None, "never", lambda args, context: "never"])
async def test_what_changes_things_is_never_run(done, intervention):
    await assert_pack_ok(lambda: pack_that_changes_things(done, intervention=intervention), cases=20)

    assert done == []


async def test_what_is_registered_later_and_changes_things_is_never_run(done):
    @tool(effect="mutate", required_access=PUBLIC, intervention="never")
    async def send_text(text: Text) -> str:
        """Send a text to whoever is listening."""
        done.append("send")
        return "sent"

    async def register(context):
        await context.tools.register_tool(send_text)

    await assert_pack_ok(lambda: pack(on_activate=register), cases=20)

    assert done == []


async def test_in_a_sandbox_everything_is_run(done):
    found = await examine_pack(lambda: pack_that_changes_things(done), sandboxed=True, cases=5, only=["hostile"])

    assert [finding for finding in found if finding.severity == "error"] == []
    assert set(done) == {"send", "delete"}

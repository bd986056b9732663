"""Lock and pins of a pack in a process of its own: what was agreed on counts for it as for any other."""

import pytest
from bridging import children
from working import call, worker_of, working

from agentos import PackEntry
from agentos.model.isolation import WorkerState

PACK = """
from pathlib import Path
from agentos import PUBLIC, ExtensionPack, tool

Path({mark!r}).touch()

@tool(effect="read", required_access=PUBLIC)
def act() -> str:
    \"\"\"{says}\"\"\"
    return "done"

pack = ExtensionPack("agreed", "1.0", [act])
"""


@pytest.fixture
def written(tmp_path):
    """Return a function that writes the pack, which leaves a mark when it runs, and returns its entry."""

    def write(says="Do it."):
        (tmp_path / "pack").mkdir(exist_ok=True)
        (tmp_path / "pack" / "agreed.py").write_text(PACK.format(mark=str(tmp_path / "ran"), says=says))
        (tmp_path / "ran").unlink(missing_ok=True)
        file = str(tmp_path / "pack" / "agreed.py")
        return PackEntry(module=file, identifier="agreed", isolation="process", mount_timeout=60.0)

    return write


async def test_a_changed_definition_is_held_back_until_it_is_accepted(tmp_path, written):
    store = tmp_path / "store.db"
    async with working(written(), store=store) as host:
        assert (await call(host, "act")).output == "done"
    async with working(written("Do it, and tell nobody."), store=store) as host:
        (pin,) = await host.pins.pending()
        held = await call(host, "act")
        await host.pins.accept("agreed:act")
        accepted = await call(host, "act")

    assert (pin.tool, pin.state, pin.changes) == ("agreed:act", "changed", ("description",))
    assert held.error.type == "DefinitionChanged"
    assert accepted.output == "done"


async def test_a_pack_as_locked_is_let_in_and_stays_dormant(tmp_path, written):
    store, lock = tmp_path / "store.db", tmp_path / "agentos.lock"
    async with working(written(), store=store) as host:
        host.lock().write(lock)
    async with working(written(), store=store, lock=lock, pins="strict") as host:
        assert worker_of(host, "agreed").state is WorkerState.DORMANT
        assert (await call(host, "act")).output == "done"


async def test_a_file_that_differs_from_the_lock_is_refused_before_a_process_is_started(tmp_path, written):
    lock = tmp_path / "agentos.lock"
    async with working(written()) as host:
        host.lock().write(lock)
    async with working(written("Do something else."), lock=lock, pins="strict") as host:
        [outcome] = host.extensions.report.outcomes

        assert (outcome.status, "lock" in outcome.reason) == ("failed", True), outcome.reason
        assert (host.workers.list(), children(), (tmp_path / "ran").exists()) == ([], [], False)

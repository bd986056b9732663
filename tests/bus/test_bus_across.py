"""The bus and packs in processes of their own: they use it with a permission, and may carry its messages."""

import os
import signal

from bussing import Ears, repeated_until, until
from working import PATIENT, entry, worker_of, working


async def test_a_pack_in_a_process_of_its_own_hears_and_publishes_if_it_is_permitted(tmp_path):
    ears = Ears()
    messenger = entry(tmp_path, "messenger.py", options={"listens": True}, permissions=("bus",))
    async with working(messenger) as host:
        await host.bus.subscribe("echoes", ears)
        await host.bus.publish("calls", ["hello"])
        [echo] = await ears.until(1)
        assert echo["said"] == ["hello"]
        assert echo["by"] == worker_of(host, "messenger").pid != os.getpid()

        await host.bus.publish("calls", "stop")
        await ears.until(2)
        await host.extensions.unload("messenger")
        await host.bus.publish("calls", "nobody")
        await host.bus.publish("echoes", "end")
        assert (await ears.until(3))[2] == "end"


async def test_a_pack_in_a_process_of_its_own_needs_the_permission(tmp_path):
    async with working(entry(tmp_path, "messenger.py", options={"listens": True})) as host:
        [outcome] = host.extensions.report.outcomes

    assert outcome.status == "failed"
    assert "permission 'bus'" in str(outcome.error)


async def test_a_process_that_died_subscribes_again_in_the_next_one(tmp_path):
    ears = Ears()
    messenger = entry(tmp_path, "messenger.py", options={"listens": True}, permissions=("bus",))
    async with working(messenger, rules=PATIENT) as host:
        await host.bus.subscribe("echoes", ears)
        first = worker_of(host, "messenger").pid
        os.kill(first, signal.SIGKILL)
        await host.workers.restart("messenger")
        await host.bus.publish("calls", 1)
        [echo] = await ears.until(1)

    assert echo["said"] == 1
    assert echo["by"] != first


async def test_a_channel_in_a_process_of_its_own_carries_and_goes_on_in_the_next_one(tmp_path):
    ears = Ears()
    messenger = entry(tmp_path, "messenger.py", options={"carries": True})
    async with working(messenger, rules=PATIENT) as host:
        unsubscribe = await host.bus.subscribe("news", ears)
        await host.bus.publish("news", 1)
        first = worker_of(host, "messenger").pid
        assert await ears.until(1) == [{"carried": 1, "by": first}]

        os.kill(first, signal.SIGKILL)
        await until(lambda: worker_of(host, "messenger").pid not in (None, first))
        await until(lambda: str(worker_of(host, "messenger").state) == "ready")
        second = Ears()
        await host.bus.subscribe("other", second)
        await host.bus.publish("other", 2)
        assert (await second.until(1))[0]["by"] == worker_of(host, "messenger").pid

        # The subscription of before is made again as well: what is published until then is lost, so it is repeated.
        await repeated_until(lambda: len(ears.heard) > 1, lambda: host.bus.publish("news", 2))
        assert ears.heard[1] == {"carried": 2, "by": worker_of(host, "messenger").pid}

        await unsubscribe()
        await host.extensions.unload("messenger")
        await host.bus.publish("other", 3)
        assert (await second.until(2))[1] == 3

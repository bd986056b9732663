"""A host with a store that lasts works under a debugger, a profiler, and whatever else traces Python."""

import json

import pytest
from store_fixtures import outcome, python

HOST = """
    import asyncio, json, sys, threading

    seen, threads = set(), {}

    def watch(frame, event, argument):
        seen.add((threading.get_ident(), frame.f_code.co_name))
        return watch

    for how in sys.argv[2:]:
        getattr(threading, how)(watch)
        getattr(sys, how)(watch)

    from agentos import PUBLIC, AgentOS, ExtensionPack, ToolCall, tool

    @tool(effect="mutate", required_access=PUBLIC)
    async def add(a: int, b: int) -> int:
        '''Add two numbers.'''
        return a + b

    async def main():
        async with AgentOS(store=sys.argv[1]) as host:
            await host.extensions.load_pack(ExtensionPack("ours", "1.0", [add]))
            call = ToolCall("add", {"a": 1, "b": 2})
            asked = await host.tools.process_tool_call(call)
            applied = await host.approvals.approve(asked.error.details["token"])
            await host.grants.add("add", "always")
            ran = await asyncio.gather(*(host.tools.process_tool_call(call) for _ in range(5)))
            verdict = await host.audit.verify()
            threads.update({one.ident: one.name for one in threading.enumerate()})
        return asked.error.type, applied.output, [one.output for one in ran], verdict.ok

    said = asyncio.run(main())
    sys.setprofile(None)
    sys.settrace(None)
    writing = sorted({name for thread, name in seen if threads.get(thread) == "agentos-store" and name == "extend"})
    modules = sorted({"greenlet", "aiosqlite", "asyncpg"} & {name.partition(".")[0] for name in sys.modules})
    print(json.dumps([said, writing, modules]))
"""
SAID = ["ApprovalRequired", 3, [3] * 5, True]


@pytest.mark.parametrize("how", [["setprofile"], ["settrace"], ["setprofile", "settrace"]], ids=" ".join)
def test_a_host_with_a_durable_store_works_while_it_is_traced(store_url, how):
    said, writing, _ = json.loads(outcome(python(HOST, store_url, *how)))

    assert (said, writing) == (SAID, ["extend"])


def test_a_host_with_a_durable_store_needs_no_library_that_switches_stacks(store_url):
    said, _, modules = json.loads(outcome(python(HOST, store_url)))

    assert (said, modules) == (SAID, [])

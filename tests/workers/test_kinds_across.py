"""What a pack offers comes to the same from a process of its own as from the host's."""

import asyncio
import logging
import os

import pytest
from worker_children import in_process, placed

from agentos import PUBLIC, Display, Principal, ToolCall, tool
from agentos.testing import make_host

SECRETS = {"api_key": "s3cret-value"}.get
ANN = Principal("ann", access=frozenset({"files"}))
FIELDS = {"permissions": ("tools:register",), "options": {"greeting": "servus"}}


@tool(effect="read", required_access=PUBLIC)
def greet(name: str = "you") -> str:
    """Greet."""
    return f"hi {name}"


async def both(do, **fields):
    """Return what *do* comes to with the pack in the host, and in a process of its own."""
    found = []
    for place in ("inline", "process"):
        async with (
            placed(place, "every_kind", **FIELDS) as entry,
            make_host(greet, entry, secrets=SECRETS, mode="approve", **fields) as host,
        ):
            found.append(await do(host))
    return found


def shown(result):
    return [result.success, result.output, result.content, result.state, result.error, result.stop]


CALLS = [
    *(("add", {"a": 1}), ("add", '{"a": 5, "b": "x"}'), ("add_async", {"a": 1, "b": 1}), ("add", {"b": 1})),
    *(("point", {"point": {"x": 1}}), ("day", {"day": "2026-02-03"}), ("day", {"day": "2026-02-31"})),
    *(("raw", {"n": 1}), ("uncooked", {"n": 7}), ("raw", {"n": 8}), ("raw", {"n": "x"})),
    *(("letters", {"count": 3}), ("letters_async", {"count": 3}), ("letters", {"count": 10_001})),
    *(("seen", {}), ("seen_async", {}), ("undeclared", {}), ("tells", {}), ("tells_async", {})),
    *(("calls", {}), ("calls_async", {}), ("greet", {"name": "bob"}), ("logs", {}), ("counts", {}), ("counts", {})),
    *(("late", {}), ("registers", {}), ("hangs", {}), ("endless", {}), ("nothing", {})),
    *(("add", {"a": 13}), ("add", {"a": 14}), ("add", {"a": 98}), ("add", {"a": 97})),
    *(("deep", {"levels": levels}) for levels in (10, 63, 64, 65, 99, 100, 101, 500)),
]
STRANGE = [
    *("bytes", "set", "tuple", "date", "decimal", "path", "enum", "keys", "nan", "object", "function", "attrs", "big"),
    *("surrogate", "empty", "nothing", "result", "failure", "class", "delta"),
]
RAISED = ["value", "key", "own", "exit", "empty", "os", "group", "unicode", "stop", "cancelled", "lines", "interrupt"]


async def test_calls_end_as_they_do_in_the_host():
    async def calls(host):
        made = [ToolCall(name, arguments, f"id-{number}") for number, (name, arguments) in enumerate(CALLS)]
        return [shown(await host.tools.process_tool_call(call, ANN, session={"room": 1})) for call in made]

    inline, process = await both(calls)
    for call, one, other in zip(CALLS, inline, process, strict=True):
        assert (call, other) == (call, one)


async def test_how_a_tool_is_shown_comes_with_it():
    async def displays(host):
        return {info.name: info.display for info in host.tools.list_available_tools()}

    inline, process = await both(displays)
    assert process == inline
    assert process["add_async"] == Display("text", title="{args.a} and {args.b}")


async def test_whatever_a_tool_returns_comes_to_the_same():
    async def calls(host):
        return [shown(await host.tools.process_tool_call(ToolCall("strange", {"kind": kind}))) for kind in STRANGE]

    inline, process = await both(calls)
    for kind, one, other in zip(STRANGE, inline, process, strict=True):
        assert (kind, other) == (kind, one)


@pytest.mark.parametrize("name", ["raises", "raises_async"])
async def test_whatever_a_tool_raises_comes_to_the_same(name):
    async def calls(host):
        kinds = RAISED if name == "raises" else [kind for kind in RAISED if kind not in ("interrupt", "stop")]
        return [(kind, shown(await host.tools.process_tool_call(ToolCall(name, {"kind": kind})))) for kind in kinds]

    inline, process = await both(calls)

    assert process == inline


async def test_the_functions_run_in_the_process_of_the_pack_sync_ones_in_threads():
    async with in_process("every_kind", **FIELDS) as (entry, child), make_host(greet, entry, secrets=SECRETS) as host:
        found = [(await host.tools.process_tool_call(ToolCall(name))).output for name in ("where", "where_async")]

    assert found == [{"pid": child.process.pid, "main": False}, {"pid": child.process.pid, "main": True}]
    assert child.process.pid != os.getpid()


async def test_definitions_prompts_and_listings_are_the_same():
    async def listed(host):
        definitions = [
            host.extensions.registry("tool").get_active(one.name) for one in host.tools_service().list_tools()
        ]
        from agentos.tools.definition import definition_of

        return (
            [definition_of(entry.payload) for entry in definitions],
            [(entry.id, entry.priority, str(entry.state), dict(entry.descriptor.metadata)) for entry in definitions],
            [one.descriptor.required_secrets for one in definitions],
            [(one.payload.timeout, one.payload.cost, one.payload.is_public) for one in definitions],
        )

    inline, process = await both(listed)

    for one, other in zip(inline, process, strict=True):
        for part, same in zip(one, other, strict=True):
            assert same == part


async def test_guardrails_on_texts_say_the_same():
    async def asked(host):
        guards = host.guardrails
        texts = [await guards.check_input(text, principal=ANN) for text in ("hello", "damn it")]
        texts += [await guards.check_output(text, principal=ANN) for text in ("hello", "call 555 now")]

        async def parts():
            for part in ("my num", "ber is 12", "34 and ", "that is all of it"):
                yield part

        stream = "".join([part async for part in guards.stream(parts(), ANN)])
        return [(one.action, one.value, [row.verdict for row in one.verdicts]) for one in texts], stream

    inline, process = await both(asked)

    assert process == inline


async def test_responses_are_processed_the_same():
    async def answered(host):
        return [await host.respond(text, principal=ANN) for text in ("be loud", "please raise")]

    inline, process = await both(answered)

    assert process == inline


async def test_approvals_dry_runs_and_interventions_come_to_the_same():
    async def asked(host):
        calls = [("careful", "small"), ("careful", "big fish"), ("careful", "big bad"), ("careful", "big one")]
        calls += [("ruled", "small one"), ("ruled", "big bad"), ("delete", "x")]
        results = [await host.tools.process_tool_call(ToolCall(name, {"name": of}), ANN) for name, of in calls]
        waiting = sorted((one.tool, str(one.preview), one.reason) for one in await host.approvals.pending())
        return [[one.success, one.output, one.error and one.error.type] for one in results], waiting

    inline, process = await both(asked)

    assert process == inline


async def test_memories_personas_plans_and_media_come_to_the_same():
    async def asked(host):
        async def answer(text):
            return f"slowly ({text})"

        kept = [await host.memory.remember(text, principal=ANN) for text in ("red apple", "green pear")]
        found = await host.memory.recall("pear", principal=ANN)
        plan = await host.planning.plan("bake", principal=ANN, ask=answer)
        refined = await host.planning.refine(plan, [], principal=ANN)
        picture = await host.tools.process_tool_call(ToolCall("picture"), host.personas.narrow("plain", ANN))
        narrowed = await host.tools.process_tool_call(ToolCall("seen"), host.personas.narrow("guide", ANN))
        return {
            "kept": kept,
            "found": found,
            "plans": [plan, refined],
            "media": picture.media,
            "narrowed": narrowed.error and narrowed.error.type,
            "prompts": [await host.personas.prompt(id, principal=ANN) for id in ("guide", "plain")],
            "personas": [(one.id, one.description, one.tools, one.deny, one.model) for one in host.personas.active()],
        }

    inline, process = await both(asked)

    assert process == inline


async def test_a_cancelled_call_is_cancelled_in_the_process_and_the_pack_goes_on():
    async with in_process("every_kind", **FIELDS) as (entry, _), make_host(greet, entry, secrets=SECRETS) as host:
        waiting = asyncio.create_task(host.tools.process_tool_call(ToolCall("waits", {}, "w1")))
        while not await host.tools.cancel("w1"):
            await asyncio.sleep(0)

        assert (await waiting).error.type == "Cancelled"
        assert (await host.tools.process_tool_call(ToolCall("add", {"a": 1}))).output == 3


async def test_kinds_that_nobody_declared_cross_as_values_functions_and_objects():
    async with in_process("every_kind", **FIELDS) as (entry, _), make_host(entry, secrets=SECRETS) as host:
        registry = host.extensions.registry
        store = registry("notebook").get_active("store").payload
        await store.put("a", [1, 2])

        assert await store.get("a") == [1, 2]
        assert store.limit == 3
        assert registry("phrase").get_active("hello").payload == {"text": "servus"}
        assert str(registry("joke").stack("knock")[0].state) == "gated"
        assert await registry("joke").stack("knock")[0].payload("tank") == "tank who?"


async def test_functions_among_the_arguments_are_called_back():
    async with in_process("every_kind", **FIELDS) as (entry, _), make_host(entry, secrets=SECRETS) as host:
        app, sent = host.extensions.registry("web-app").get_active("app").payload, []

        async def receive():
            return {"type": "http.request", "body": b"abc\xff"}

        async def send(message):
            sent.append(message)

        await app({"type": "http", "headers": [(b"host", b"x")]}, receive, send)

    assert sent == [
        {"type": "http.response.start", "status": 200, "headers": [(b"host", b"x")]},
        {"type": "http.response.body", "body": b"\xffcba"},
    ]


async def test_a_result_that_is_too_large_to_cross_says_so_and_the_pack_goes_on():
    async with in_process("every_kind", **FIELDS) as (entry, _), make_host(entry, secrets=SECRETS) as host:
        result = await host.tools.process_tool_call(ToolCall("much", {"size": 9_000_000}))

        assert "at most 8388608 are allowed (worker.message)" in result.content
        assert (await host.tools.process_tool_call(ToolCall("much", {"size": 3}))).output == "xxx"


async def test_what_a_pack_finds_wrong_with_itself_is_told():
    async def told(host):
        report = await host.check()
        explained = host.extensions.explain("response-processor", "signed")
        return [str(one) for one in report.troubles if "ink" in str(one) or "notes" in str(one)], explained.troubles

    inline, process = await both(told)

    assert process == inline


async def test_progress_and_content_are_heard_before_the_result():
    async def heard(host):
        events = []
        host.extensions.events.on(lambda event: events.append((event.type, getattr(event, "content", None))))
        for name in ("tells", "tells_async", "letters"):
            await host.tools.process_tool_call(ToolCall(name, {"count": 2} if name == "letters" else {}))
        return [one for one in events if one[0].startswith("tool:")]

    inline, process = await both(heard)

    assert process == inline


async def test_what_the_pack_logs_is_in_its_log_without_secrets(caplog):
    with caplog.at_level(logging.INFO):
        async with in_process("every_kind", **FIELDS) as (entry, _), make_host(greet, entry, secrets=SECRETS) as host:
            await host.tools.process_tool_call(ToolCall("logs"))

    (record,) = [one for one in caplog.records if "careful" in one.getMessage()]
    assert (record.name, record.levelno) == ("agentos.packs.every", logging.WARNING)
    assert "s3cret" not in caplog.text


async def test_a_workflow_that_is_data_runs_with_an_executor_of_another_process():
    async def runs(host):
        run = await host.workflows.start("twice", {"n": 21}, principal=ANN)
        return await host.workflows.result(run.id)

    found = []
    for place in ("inline", "process"):
        async with placed(place, "tells_workflows") as entry, make_host(entry) as host:
            found.append(await runs(host))

    assert found == [{"doubled": 42, "for": "ann"}] * 2


async def test_a_workflow_that_is_a_function_is_refused_from_another_process_with_the_way_out():
    async with placed("process", "runs_workflows") as entry, make_host() as host:
        outcome = await host.extensions.load(entry)

    assert outcome.status == "failed"
    assert "the workflow 'onboard' is a function, which runs in the process of a host" in str(outcome.error)

"""The border: who asks is found for each request, and what goes wrong inside stays inside."""

import asyncio
import subprocess
import sys
from pathlib import Path

import mcp_types as types
import pytest
from mcp import Client
from mcp.server._otel import OpenTelemetryMiddleware
from mcp.shared.exceptions import MCPError
from opentelemetry import trace

import agentos.mcp
from agentos import Principal
from agentos.mcp import MCPServer
from agentos.mcp.server import mcp_server as serving

sys.path.append(str(Path(__file__).parent))
import fixture_pack as pack

ERAS = ("legacy", "2026-07-28")
REQUESTS = {
    "tools/list": lambda client: client.list_tools(),
    "tools/call": lambda client: client.call_tool("add", {"a": 1}),
    "prompts/list": lambda client: client.list_prompts(),
    "prompts/get": lambda client: client.get_prompt("instructions"),
    "resources/list": lambda client: client.list_resources(),
    "resources/templates/list": lambda client: client.list_resource_templates(),
    "resources/read": lambda client: client.read_resource("agentos://tools/add"),
}


@pytest.fixture(params=ERAS)
def era(request):
    return request.param


@pytest.fixture
async def host(anyio_backend):
    async with pack.hosted() as host:
        yield host


# -- who asks --------------------------------------------------------------------------------------------------------


async def test_the_principal_is_found_for_each_request(host, era):
    who = {"now": Principal("ada", access={"vault:read"})}
    async with Client(MCPServer(host, principal=lambda ctx: who["now"]).server, mode=era) as client:
        first = await client.call_tool("vault", {})
        who["now"] = Principal("eve")
        second = await client.call_tool("vault", {})

    assert first.content[0].text == "gold"
    assert "there is no tool called 'vault'" in second.content[0].text


async def test_the_function_is_given_the_request(host, era):
    methods = []

    def find(ctx):
        methods.append(ctx.method)
        return pack.USER

    async with Client(MCPServer(host, principal=find).server, mode=era) as client:
        await client.call_tool("add", {"a": 1})

    assert "tools/call" in methods


@pytest.mark.parametrize("method", REQUESTS)
async def test_a_request_of_nobody_is_refused(host, era, method):
    who = {"now": pack.USER}
    async with Client(MCPServer(host, principal=lambda ctx: who["now"]).server, mode=era) as client:
        who["now"] = None
        with pytest.raises(MCPError, match="its principal is unknown") as refused:
            await REQUESTS[method](client)
    assert refused.value.code == types.INVALID_REQUEST


async def test_nobody_can_not_even_connect(host):
    with pytest.raises((MCPError, ExceptionGroup)):
        async with Client(MCPServer(host, principal=lambda ctx: None).server, mode="legacy"):
            pass


async def test_nobody_can_not_listen_for_changes(host):
    who = {"now": pack.USER}
    server = MCPServer(host, principal=lambda ctx: who["now"])
    async with Client(server.server, mode="2026-07-28") as client:
        who["now"] = None
        with pytest.raises(MCPError, match="its principal is unknown"):
            async with client.listen(tools_list_changed=True):
                pass


# -- what goes wrong -------------------------------------------------------------------------------------------------


def raising(error):
    def find(ctx):
        if ctx.method in REQUESTS:
            raise error
        return pack.USER

    return find


@pytest.mark.parametrize("method", REQUESTS)
async def test_an_exception_is_told_as_a_plain_error_and_logged(host, era, method, caplog):
    host.extensions.masker.learn("hunter2-and-more")
    server = MCPServer(host, principal=raising(RuntimeError("the password is hunter2-and-more")))
    async with Client(server.server, mode=era) as client:
        with pytest.raises(MCPError) as refused:
            await REQUESTS[method](client)

    assert (refused.value.code, refused.value.message) == (
        *(types.INTERNAL_ERROR, "Internal error; the host's log says why"),
    )
    assert refused.value.data is None
    assert f"{method} failed" in caplog.text
    assert "the password is ***" in caplog.text
    assert "hunter2" not in caplog.text


async def test_a_cancellation_that_nobody_asked_for_is_an_error_like_any_other(host, era):
    server = MCPServer(host, principal=raising(asyncio.CancelledError()))
    async with Client(server.server, mode=era) as client:
        with pytest.raises(MCPError, match="Internal error"):
            await client.call_tool("add", {"a": 1})


async def test_a_function_that_finds_something_else_is_an_error_of_the_host(host, era, caplog):
    server = MCPServer(host, principal=lambda ctx: "ada" if ctx.method == "tools/call" else pack.USER)
    async with Client(server.server, mode=era) as client:
        with pytest.raises(MCPError, match="Internal error"):
            await client.call_tool("add", {"a": 1})

    assert "expected a Principal or None, got str" in caplog.text


async def test_a_notification_that_fails_ends_nothing(host):
    def find(ctx):
        if ctx.request_id is None:
            raise RuntimeError("not that one")
        return pack.USER

    async with Client(MCPServer(host, principal=find).server, mode="legacy") as client:
        assert not (await client.call_tool("add", {"a": 1})).is_error


async def test_a_method_that_nobody_knows_is_refused_as_the_protocol_says(host):
    async with Client(MCPServer(host).server, mode="legacy") as client:
        with pytest.raises(MCPError) as refused:
            await client.session._dispatcher.send_raw_request("tools/invent", {})
    assert refused.value.code == types.METHOD_NOT_FOUND


@pytest.mark.parametrize(
    "arguments",
    [
        {"a": 10**400},
        {"a": {"deep": [[[[[[[[[[1]]]]]]]]]]}},
        {"a": 1, **{f"key{place}": place for place in range(5_000)}},
        {"a": "x" * 1_000_000},
    ],
    ids=["number", "depth", "keys", "text"],
)
async def test_arguments_of_any_shape_get_an_answer_within_bounds(host, era, arguments):
    async with Client(MCPServer(host).server, mode=era) as client:
        result = await client.call_tool("add", arguments)

    assert len(result.content[0].text) <= 60_000


# -- spans -----------------------------------------------------------------------------------------------------------


class Spans(OpenTelemetryMiddleware):
    """Stands where the SDK's middleware for spans stands."""

    def __init__(self):
        self.seen = []

    async def __call__(self, ctx, call_next):
        self.seen.append(ctx.method)
        return await call_next(ctx)


class Request:
    method = "tools/call"

    def __init__(self, meta):
        self.meta = meta


async def passed(request):
    return "answer"


@pytest.mark.parametrize(("meta", "seen"), [(None, []), ({}, []), ({"traceparent": "00-0-0-0"}, ["tools/call"])])
async def test_without_anybody_who_collects_spans_none_is_made_unless_one_is_to_be_continued(meta, seen):
    spans = Spans()
    answer = await serving._skip_unused_spans(spans)(Request(meta), passed)

    assert (answer, spans.seen) == ("answer", seen)


def test_any_other_middleware_of_the_sdk_is_left_alone():
    assert serving._skip_unused_spans(passed) is passed


async def test_whoever_collects_spans_gets_them(monkeypatch):
    monkeypatch.setattr(serving, "get_tracer_provider", lambda: trace.NoOpTracerProvider())
    spans = Spans()
    await serving._skip_unused_spans(spans)(Request(None), passed)

    assert spans.seen == ["tools/call"]


# -- the door --------------------------------------------------------------------------------------------------------


def test_importing_the_package_does_not_import_the_sdk():
    program = (
        "import sys, agentos.mcp; print(any(name.partition('.')[0] in ('mcp', 'mcp_types') for name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "False"


def test_what_the_package_offers_is_there():
    assert [name for name in agentos.mcp.__all__ if not hasattr(agentos.mcp, name)] == []
    assert set(agentos.mcp.__all__) <= set(dir(agentos.mcp))


def test_what_the_package_does_not_offer_is_said_in_words():
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        agentos.mcp.Nothing  # noqa: B018 - asking is the test


def test_without_the_sdk_it_is_said_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "mcp", None)
    monkeypatch.delattr(agentos.mcp, "MCPServer", raising=False)  # kept once it was asked for

    with pytest.raises(ImportError, match=r"pip install 'agentos-host\[mcp\]'"):
        agentos.mcp.MCPServer  # noqa: B018 - asking is the test


async def test_the_server_says_who_it_is(host, era):
    server = MCPServer(host, name="house", instructions="Be kind.")
    async with Client(server.memory(), mode="auto" if era != "legacy" else era) as client:
        assert (client.server_info.name, client.instructions) == ("house", "Be kind.")


async def test_the_server_is_made_when_it_is_asked_for(host):
    server = MCPServer(host)

    assert "server" not in vars(server)
    assert server.server is server.server is server.memory()

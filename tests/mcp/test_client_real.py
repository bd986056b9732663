"""Servers that others made: with the official SDK, with FastMCP, and the reference servers from npm."""

import asyncio
import os
import shutil
import subprocess
import sys
from pathlib import Path

import attrs
import pytest
from bridging import FAST, SERVERS, bridge_of, bridged, call, children, eventually, state_of, until
from kit import Recorder, states

from agentos import ExtensionPack, Tool

PATIENT = attrs.evolve(FAST, connect=30.0, grace=2.0)
READ = {"effects": {"*": "read"}, "startTimeout": 30}


def python(name, **said):
    """Return a fixture server that needs the libraries of this environment."""
    return {"command": sys.executable, "args": [str(SERVERS / name)], **READ, **said}


def local(name, answer):
    made = Tool.from_schema(
        name=name,
        description="A local one.",
        input_schema={"type": "object"},
        effect="read",
        required_access="any",
        execute=lambda args, context: answer,
    )
    return ExtensionPack("local", "1.0", [made])


# -- the SDK and FastMCP over stdio --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def anyio_backend():
    return "asyncio"


@pytest.fixture(scope="module")
async def sdk(anyio_backend):
    async with bridged({"plain": python("sdk.py")}, limits=PATIENT) as host:
        yield host


async def test_the_newest_era_is_spoken_where_both_know_it(sdk):
    assert bridge_of(sdk).protocol == "2026-07-28"


async def test_a_tool_of_an_sdk_server_is_called(sdk):
    assert (await call(sdk, "add", {"a": 1, "b": 2})).output == {"result": 3}


async def test_progress_of_an_sdk_server_is_told(sdk):
    recorder = sdk.extensions.on(Recorder())
    await call(sdk, "steps")

    assert recorder.of("tool:progress")[-1].done == 3


async def test_cancelling_reaches_an_sdk_server(sdk, tmp_path):
    mark = tmp_path / "mark"
    under_way = asyncio.create_task(call(sdk, "wait", {"mark": str(mark)}, id="c"))
    await eventually(mark.exists)
    await sdk.tools.cancel("c")
    await eventually(lambda: mark.read_text() == "cancelled")

    assert (await under_way).error.type == "Cancelled"


async def test_a_new_tool_of_an_sdk_server_is_heard_of_in_the_newest_era(sdk):
    await call(sdk, "grow")
    await until(sdk, lambda: state_of(sdk, "grown") is not None)

    assert (await call(sdk, "grown")).content == "grown"


async def test_a_fastmcp_server_is_bridged():
    before = children()
    async with bridged({"plain": python("fast.py")}, limits=PATIENT) as host:
        assert (await call(host, "add", {"a": 1, "b": 2})).output == {"result": 3}

    assert children() == before


async def test_an_agentos_host_is_bridged_by_another_one():
    async with bridged({"plain": python("ours.py", trust=True, effects={})}, limits=PATIENT) as host:
        info = next(one for one in host.tools.list_available_tools() if one.name == "add")

        assert info.effect == "read"
        assert (await call(host, "add", {"a": 1, "b": 2})).success


# -- reference servers ---------------------------------------------------------------------------------------------

PACKAGES = ("@modelcontextprotocol/server-everything", "@modelcontextprotocol/server-filesystem")


@pytest.fixture(scope="session")
def npm(tmp_path_factory):
    """Return a folder with the reference servers; installed once, or kept where AGENTOS_TEST_NPM says."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("node and npm are not installed")
    kept = os.environ.get("AGENTOS_TEST_NPM")
    folder = Path(kept) if kept else tmp_path_factory.mktemp("npm")
    modules = folder / "node_modules"
    if not all((modules / name).is_dir() for name in PACKAGES):
        quick = ["--no-audit", "--no-fund", "--fetch-retries=1", "--fetch-timeout=60000"]
        command = ["npm", "install", "--prefix", str(folder), *quick, *PACKAGES]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=150, check=False)
        except subprocess.TimeoutExpired:
            pytest.skip("the registry does not answer")
        if done.returncode:
            pytest.skip(f"the registry can't be reached: {done.stderr.strip().splitlines()[-1:]}")
    return modules


def node(npm, package, *args):
    script = npm / package / "dist" / "index.js"
    return {"command": "node", "args": [str(script), *args], **READ}


async def test_the_everything_server_is_bridged_called_overridden_and_back(npm):
    before = children()
    async with bridged({"plain": node(npm, PACKAGES[0], "stdio")}, limits=PATIENT) as host:
        names = {one.name for one in host.tools.list_available_tools()}
        first = await call(host, "echo", {"message": "hello"})
        total = await call(host, "get-sum", {"a": 2, "b": 3})
        image = await call(host, "get-tiny-image")
        await host.extensions.load_pack(local("echo", "from here"))
        overridden, shadowed = await call(host, "echo"), states(host.extensions, "echo")
        await host.extensions.unload("local")
        back = await call(host, "echo", {"message": "again"})

        assert {"echo", "get-sum", "get-tiny-image"} <= names
        assert {one.name for one in bridge_of(host).skipped} <= {"simulate-research-query"}  # a task only
        assert (first.content, back.content, overridden.content) == ("Echo: hello", "Echo: again", "from here")
        assert "5" in total.content
        assert "[image image/png" in image.content
        assert shadowed == {"local": "active", "mcp/plain": "shadowed"}

    assert children() == before


async def test_long_work_of_the_everything_server_tells_how_far_it_is(npm):
    async with bridged({"plain": node(npm, PACKAGES[0], "stdio")}, limits=PATIENT) as host:
        recorder = host.extensions.on(Recorder())
        result = await call(host, "trigger-long-running-operation", {"duration": 0.4, "steps": 4})

        assert result.success
        assert recorder.of("tool:progress")[-1].total == 4


async def test_the_filesystem_server_reads_only_where_it_may(npm, tmp_path):
    (tmp_path / "a.txt").write_text("what a says")
    spec = {**node(npm, PACKAGES[1], str(tmp_path)), "effects": {"read_*": "read", "list_*": "read"}}
    async with bridged({"plain": spec}, limits=PATIENT) as host:
        inside = await call(host, "read_text_file", {"path": str(tmp_path / "a.txt")})
        outside = await call(host, "read_text_file", {"path": "/etc/passwd"})
        asked = await call(host, "write_file", {"path": str(tmp_path / "b.txt"), "content": "x"})
        unwritten = not (tmp_path / "b.txt").exists()
        await host.approvals.approve(asked.error.details["token"])

        assert "what a says" in inside.content
        assert outside.error.type == "ToolRaised"
        assert (asked.error.type, unwritten) == ("ApprovalRequired", True)
        assert (tmp_path / "b.txt").read_text() == "x"

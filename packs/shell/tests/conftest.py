"""Hand out hosts with the pack, a root folder and programs beside it."""

import sys
from contextlib import asynccontextmanager

import pytest

from agentos import AgentOS, ToolCall


@pytest.fixture
def root(tmp_path):
    """Return the folder that commands run in."""
    made = tmp_path / "root"
    made.mkdir()
    return made


@pytest.fixture
def program(tmp_path):
    """Return a function that makes a program of Python code, outside of the root, and returns its path."""

    def make(code, name="program", folder="bin"):
        path = tmp_path / folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!{sys.executable} -IS\n{code}\n")
        path.chmod(0o755)
        return str(path)

    return make


@pytest.fixture
def hosting(root):
    """Return a context manager for a host with the pack, its commands in *root*."""

    @asynccontextmanager
    async def host(*allow, settings=None, **options):
        said = {"root": str(root), "allow": list(allow), **options}
        entry = {"module": "agentos_pack_shell", "options": said, "required": True}
        async with AgentOS(extension_manifest={"packs": [entry]}, **(settings or {})) as made:
            yield made

    return host


@pytest.fixture
def run():
    """Return a function that asks for a command, approves it, and returns the result."""

    async def running(host, *argv, **more):
        asked = await host.tools.process_tool_call(ToolCall("run_command", {"argv": list(argv), **more}))
        assert asked.error.type == "ApprovalRequired", asked.content
        return await host.approvals.approve(asked.error.details["token"])

    return running

"""What an operator changes while `agentos serve` runs reaches the host, and its clients hear of it."""

import asyncio
import contextlib

import pytest
from commanding import MANIFEST, PACK, Project
from mcp import Client, StdioServerParameters
from terminal import AGENTOS, PATIENCE, environment

from agentos.cli import live_changes as _following
from agentos.cli.app import App
from agentos.cli.store_records import opened
from agentos.secrets.vaults import SecretVault

KEYED = PACK.replace(
    '*tools, Descriptor("mood", "friendly", {})',
    '*(Descriptor("tool", one.name, one, required_secrets=["openai.apiKey"]) if one is add else one for one in tools)',
)
SWITCHED = MANIFEST.replace('module = "pack.py"', 'module = "pack.py"\nenabled = {}')


@pytest.fixture
def project(tmp_path, monkeypatch):
    made = Project(tmp_path)
    monkeypatch.chdir(tmp_path)
    for name, value in made.env.items():
        monkeypatch.setenv(name, value)
    return made


class Told(list):
    """What is said on stderr."""

    def note(self, text):
        self.append(str(text))

    warn = note


@contextlib.asynccontextmanager
async def served(monkeypatch):
    """Give a host that is followed, how to look once, and what was said."""
    monkeypatch.setattr(_following, "INTERVAL", 3600.0)
    app = App()
    following = _following.LiveChanges(app)
    following._out = told = Told()
    given = {"principals": following.principals, "extension_secrets": following.kept_secret, "dotenv": following.dotenv}
    async with app.host(**given) as host, following.watching(host):
        yield host, lambda: following.look(host), told


def state_of(host, tool="add"):
    entry = next(iter(host.extensions.registry("tool").stack(tool)), None)
    return None if entry is None else str(entry.state)


# -- overrides ---------------------------------------------------------------------------------------------------------


async def test_local_overrides_count_while_they_are_there(project, monkeypatch):
    async with served(monkeypatch) as (host, look, told):
        file = project.write("overrides.local.toml", "[tool.add]\nenabled = false\n")
        await look()
        off = state_of(host)
        file.unlink()
        await look()

        assert (off, state_of(host)) == ("disabled", "active")
        assert told == ["the override of tool:add changed"] * 2


async def test_overrides_of_the_manifest_count_beneath_local_ones(project, monkeypatch):
    project.write("overrides.local.toml", "[tool.add]\nenabled = true\n")
    async with served(monkeypatch) as (host, look, _):
        project.write("agentos.toml", MANIFEST + "[overrides.tool.add]\nenabled = false\n")
        await look()
        beneath = state_of(host)
        project.write("overrides.local.toml", "")
        await look()

        assert (beneath, state_of(host)) == ("active", "disabled")


async def test_a_file_that_can_not_be_used_is_told_and_changes_nothing(project, monkeypatch):
    async with served(monkeypatch) as (host, look, told):
        project.write("overrides.local.toml", "[tool.add\n")
        await look()
        await look()

        assert state_of(host) == "active"
        assert len(told) == 1
        assert "What it said before counts until that is corrected" in told[0]


# -- secrets -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["dotenv", "vault"])
async def test_a_secret_that_is_set_lets_a_tool_in(project, monkeypatch, where):
    project.write("pack.py", KEYED)
    async with served(monkeypatch) as (host, look, told):
        before = state_of(host)
        if where == "dotenv":
            project.write(".env", "OPENAI_API_KEY=abcdefgh12345\n")
        else:
            SecretVault().set("openai.apiKey", "abcdefgh12345")
        await look()

        assert (before, state_of(host)) == ("gated", "active")
        assert told == ["the secret openai.apiKey changed"]


# -- packs -------------------------------------------------------------------------------------------------------------


async def flagged(app_config, *, enabled):
    async with opened(app_config.manifest.store) as memory:
        await memory.keeper.switched("pack.py", enabled=enabled)
        return await memory.disabled()


async def test_a_pack_that_is_disabled_in_the_store_goes_and_comes_back(project, monkeypatch):
    async with served(monkeypatch) as (host, look, told):
        written = await flagged(App().config, enabled=False)
        await look()
        off = state_of(host)
        async with opened(App().config.manifest.store) as memory:
            kept = await memory.disabled()
        await flagged(App().config, enabled=True)
        await look()

        assert (off, state_of(host)) == ("disabled", "active")
        assert told == ["pack.py is disabled", "pack.py is enabled"]
        assert kept == written  # it was not written down once more


async def test_a_pack_that_is_disabled_in_the_manifest_goes_and_comes_back(project, monkeypatch):
    async with served(monkeypatch) as (host, look, told):
        project.write("agentos.toml", SWITCHED.format("false"))
        await look()
        off = state_of(host)
        project.write("agentos.toml", SWITCHED.format("true"))
        await look()

        assert (off, state_of(host)) == (None, "active")
        assert told == ["pack.py is disabled", "pack.py is enabled"]


async def test_a_pack_that_fails_when_it_is_enabled_ends_nothing(project, monkeypatch):
    project.write("agentos.toml", SWITCHED.format("false"))
    async with served(monkeypatch) as (_, look, told):
        project.write("pack.py", "raise SystemExit('no')")
        project.write("agentos.toml", SWITCHED.format("true"))
        await look()
        project.write("overrides.local.toml", "[tool.add]\nenabled = false\n")
        await look()

        assert "could not be applied" in told[0]
        assert told[1:] == ["the override of tool:add changed"]


# -- principals, and the rest ------------------------------------------------------------------------------------------


async def test_principals_are_those_of_the_manifest_now(project, monkeypatch):
    app = App()
    following = _following.LiveChanges(app)
    async with app.host(principals=following.principals) as host:
        project.write("agentos.toml", MANIFEST.replace("notes:write", "notes:read") + "[principals.bob]\naccess = []\n")
        await following.look(host)

    assert {id: set(one.held) for id, one in following.principals.items()} == {"ann": {"notes:read"}, "bob": set()}


async def test_what_needs_a_new_start_is_said_once(project, monkeypatch):
    async with served(monkeypatch) as (_, look, told):
        project.write("agentos.toml", 'mode = "auto"\nproposalTtl = 5\n' + MANIFEST.replace("pack.py", "other.py"))
        await look()
        await look()

    assert told == ["agentos.toml changed: what it says of mode, packs, proposalTtl counts after the next start"]


# -- clients -----------------------------------------------------------------------------------------------------------


async def test_a_client_hears_that_a_pack_was_disabled_while_it_was_served(project):
    changed = asyncio.Event()

    async def hear(message):
        if "tools/list_changed" in str(getattr(message, "method", "")):
            changed.set()

    argv = [*AGENTOS, "serve"]
    server = StdioServerParameters(command=argv[0], args=argv[1:], cwd=project.folder, env=environment(project.env))
    async with Client(server, mode="legacy", message_handler=hear) as client:
        before = {tool.name for tool in (await client.list_tools()).tools}
        done = await asyncio.to_thread(project.run, "packs", "disable", "pack.py")
        async with asyncio.timeout(PATIENCE):
            await changed.wait()
        after = {tool.name for tool in (await client.list_tools()).tools}

    assert done.code == 0
    assert ("add" in before, "add" in after) == (True, False)


async def test_a_client_loses_what_is_taken_from_its_principal_while_it_is_served(project):
    argv = [*AGENTOS, "serve", "--principal", "ann"]
    server = StdioServerParameters(command=argv[0], args=argv[1:], cwd=project.folder, env=environment(project.env))
    async with Client(server, mode="legacy") as client:
        before = {tool.name for tool in (await client.list_tools()).tools}
        project.write("agentos.toml", MANIFEST.replace('["notes:write"]', "[]"))
        async with asyncio.timeout(PATIENCE):
            while "note" in (after := {tool.name for tool in (await client.list_tools()).tools}):
                await asyncio.sleep(0.05)

    assert ("note" in before, "add" in after) == (True, True)

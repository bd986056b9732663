"""`agentos mcp`: the MCP servers that the manifest takes in, and this host as a server in a client's settings."""

import asyncio
import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import attrs
import click

from agentos.base.extras import import_extra
from agentos.cli.app import App, Fail, completing, examples, pass_app
from agentos.cli.hidden_secrets import shown_tree
from agentos.cli.host_session import FAILED, UNUSABLE, USAGE
from agentos.cli.manifest_edit.edits import GONE
from agentos.cli.manifest_entries import ManifestEntry, entries_in
from agentos.cli.mcp_clients import CLIENTS, ClientFile, install_entry, own_entry
from agentos.cli.terminal.harmless_text import counted, one_line
from agentos.errors import ManifestError
from agentos.model.field_checks import did_you_mean

if TYPE_CHECKING:
    from agentos.mcp.client.server_spec import ServerSpec
    from agentos.secrets.sources import SecretSources

_KEY = "mcpServers"
_WEB = ("http://", "https://")


@click.group(
    epilog=examples(
        "agentos mcp add files -- npx -y @modelcontextprotocol/server-filesystem .",
        "agentos mcp add notes https://example.com/mcp",
        "agentos mcp test",
        "agentos mcp config --client cursor --install",
    ),
)
def mcp() -> None:
    """Take MCP servers in as packs, and put this host into the settings of an MCP client."""


def _servers_in(app: App) -> list[ManifestEntry]:
    return [one for one in entries_in(app.manifest_path) if one.is_server]


def _name_of(one: ManifestEntry) -> str:
    return str(one.at[-1])


def _names(app: App) -> list[str]:
    return [] if app.find_manifest() is None else [_name_of(one) for one in _servers_in(app)]


complete_server = completing(_names)
"""Completes the name of a server in the manifest."""


def _find(app: App, name: str) -> ManifestEntry:
    """Return the server called *name*; fail with the nearest ones if there is none."""
    known = {_name_of(one): one for one in _servers_in(app)}
    found = known.get(name.removeprefix("mcp/"))
    if found is None:
        hint = f"there are {', '.join(known)}" if known else "add one with `agentos mcp add`"
        raise Fail(f"no MCP server {name!r} in {app.manifest_path.name}{did_you_mean(name, known)}", hint=hint)
    return found


# -- list --------------------------------------------------------------------------------------------------------------


@mcp.command("list", epilog=examples("agentos mcp list", "agentos mcp list --json | jq '.servers[].name'"))
@pass_app
def list_(app: App) -> None:
    """List the MCP servers in the manifest. None of them is started: `agentos mcp test` does that."""
    rows = [
        {
            "name": _name_of(one),
            "enabled": one.is_enabled,
            "trust": one.said.get("trust") is True,
            "entry": shown_tree(one.said, one.at),
        }
        for one in _servers_in(app)
    ]
    app.out.data({"manifest": app.manifest_path, "servers": rows})
    shown = [
        (one["name"], _shown_state(one["enabled"]), "yes" if one["trust"] else "no", _place(one["entry"]))
        for one in rows
    ]
    app.out.table(("server", "state", "trusted", "reached by"), shown, empty="There are no MCP servers; add one.")


def _shown_state(is_enabled: object) -> tuple[str, str]:
    return ("enabled", "green") if is_enabled else ("disabled", "yellow")


def _place(entry: Mapping[str, Any]) -> str:
    """Say how a server is reached; *entry* has no secrets in it."""
    if "url" in entry:
        return str(entry["url"])
    return one_line(" ".join(map(str, (entry.get("command", ""), *entry.get("args", ())))))


# -- add, remove -------------------------------------------------------------------------------------------------------


@mcp.command(
    short_help="Take in an MCP server",
    epilog=examples(
        "agentos mcp add files -- npx -y @modelcontextprotocol/server-filesystem .",
        "agentos mcp add notes https://example.com/mcp --header 'Authorization=Bearer ${secret:notes.token}'",
        "agentos mcp add db --env 'PGPASSWORD=${secret:db.password}' --option timeout=30 -- uvx db-server",
    ),
)
@click.argument("name")
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="URL | -- COMMAND [ARGS]...")
@click.option(
    "--env", multiple=True, metavar="NAME=VALUE", help="A variable for the command; ${secret:id} is filled in."
)
@click.option("--header", multiple=True, metavar="NAME=VALUE", help="A header for the address; ${secret:id} as well.")
@click.option("--cwd", metavar="FOLDER", help="Where the command runs, relative to the manifest.")
@click.option("--tool", "tools", multiple=True, metavar="PATTERN", help="Take these tools alone.")
@click.option("--trust", is_flag=True, help="Believe what it says of its tools, and let them rank as a pack's.")
@click.option("--option", "options", multiple=True, metavar="KEY=VALUE", help="Another key of its entry, as JSON.")
@click.option("--replace", is_flag=True, help="Put it in the place of a server of the same name.")
@click.option("--no-test", is_flag=True, help="Do not start it to see whether that works.")
@pass_app
def add(app: App, /, *, name: str, words: tuple[str, ...], replace: bool, no_test: bool, **said: Any) -> None:
    """Add an MCP server to the manifest: its address, or behind `--` the command that starts it.

    It is started once to see whether that works, and what it offers; it stays in the manifest if it does not.
    """
    from agentos.cli.manifest_edit.editing import put

    path, entry = app.config.path, _new_entry(words, **said)
    spec = _checked(name, entry)
    if not replace and any(_name_of(one) == name for one in _servers_in(app)):
        hint = "--replace puts this one in its place; or choose another name"
        raise Fail(f"{path.name} has an MCP server {name!r} already", hint=hint)
    put(path, _KEY, name, entry)
    app.out.say(f"Added {name} to {path.name}.")
    for id in spec.own_secrets:
        way = f"keep it with `agentos secrets add {id}`, and write ${{secret:{id}}} in its place"
        app.out.warn(f"a value that sounds secret stands in {path.name} in the clear; {way}")
    tested = [] if no_test else _test(app, [name])
    app.out.data(
        {"added": name, "manifest": path, "entry": shown_tree(entry, (_KEY, name)), "test": next(iter(tested), None)}
    )
    for one in tested:
        if one.ok:
            _print_tested(app, one)
        else:
            app.out.warn(f"it does not answer yet: {one.reason}")


def _new_entry(
    words: tuple[str, ...],
    *,
    env: tuple[str, ...],
    header: tuple[str, ...],
    cwd: str | None,
    tools: tuple[str, ...],
    trust: bool,
    options: tuple[str, ...],
) -> dict[str, Any]:
    if not words:
        raise Fail("say how the server is reached: its address, or behind -- the command that starts it", code=USAGE)
    place: dict[str, Any] = {"command": words[0], **({"args": list(words[1:])} if words[1:] else {})}
    if words[0].startswith(_WEB):
        if words[1:]:
            raise Fail("an address stands alone; a command stands behind --", code=USAGE)
        place = {"url": words[0]}
    more = {
        "env": dict(_pair(one, "--env") for one in env),
        "headers": dict(_pair(one, "--header") for one in header),
        "cwd": cwd,
        "tools": list(tools),
        "trust": trust,
        **{key: _json_or_text(value) for key, value in (_pair(one, "--option") for one in options)},
    }
    return place | {key: value for key, value in more.items() if value}


def _pair(text: str, option: str) -> tuple[str, str]:
    name, is_pair, value = text.partition("=")
    if not is_pair or not name:
        raise Fail(f"{option}: expected NAME=VALUE, got {name!r}", code=USAGE)
    return name, value


def _json_or_text(value: str) -> Any:
    try:
        return json.loads(value)
    except ValueError:
        return value


def _checked(name: str, entry: Mapping[str, Any]) -> "ServerSpec":
    """Return the server of an entry; exit 2 with everything that is wrong with it."""
    from agentos.mcp.client.manifest_servers import parse_servers

    try:
        (spec,) = parse_servers({name: entry})
    except ManifestError as error:
        raise Fail("\n".join(str(problem) for problem in error.problems), code=USAGE) from None
    return spec


@mcp.command(short_help="Take an MCP server out of the manifest", epilog=examples("agentos mcp remove files"))
@click.argument("name", shell_complete=complete_server)
@pass_app
def remove(app: App, name: str) -> None:
    """Take an MCP server out of the manifest."""
    from agentos.cli.manifest_edit.editing import edit

    found = _find(app, name)
    edit(app.manifest_path, {found.at: GONE})
    app.out.data({"removed": _name_of(found), "manifest": app.manifest_path})
    app.out.say(f"Removed {_name_of(found)} from {app.manifest_path.name}.")


# -- test --------------------------------------------------------------------------------------------------------------


@attrs.frozen(kw_only=True)
class TestedServer:
    """Whether a server could be reached, and the tools that it lists."""

    __test__ = False

    name: str
    ok: bool
    reason: str | None
    protocol: str | None
    tools: tuple[Mapping[str, Any], ...]


@mcp.command(epilog=examples("agentos mcp test", "agentos mcp test files", "agentos mcp test --json | jq .ok"))
@click.argument("names", nargs=-1, shell_complete=complete_server)
@pass_app
def test(app: App, names: tuple[str, ...]) -> int:
    """Start MCP servers of the manifest, or reach them, and list their tools: exit 1 if one does not answer.

    Without NAMES, all that are enabled. Nothing of it is accepted, and running hosts are not touched.
    """
    chosen = [_name_of(_find(app, name)) for name in names]
    tested = _test(app, chosen or [_name_of(one) for one in _servers_in(app) if one.is_enabled])
    app.out.data({"ok": all(one.ok for one in tested), "servers": tested})
    if not tested:
        app.out.say("There are no MCP servers that are enabled.")
    for one in tested:
        _print_tested(app, one)
    return 0 if all(one.ok for one in tested) else FAILED


def _test(app: App, names: Iterable[str]) -> list[TestedServer]:
    """Connect to the servers of these names, all at once, and to no others."""
    from agentos.cli.layered_config import kept_secrets, load_config, sources_of
    from agentos.mcp.client.manifest_servers import parse_servers

    try:
        import_extra("mcp", "mcp")
    except ImportError as error:
        raise Fail(str(error), code=UNUSABLE) from None
    config = load_config(app.config.path)  # as it is now: it may have been edited
    specs = {one.name: one for one in parse_servers(config.manifest.mcp_servers)}
    return app.run(_test_all([specs[name] for name in names], sources_of(config, kept_secrets())), logs=False)


async def _test_all(specs: Iterable["ServerSpec"], sources: "SecretSources") -> list[TestedServer]:
    return list(await asyncio.gather(*(_test_one(spec, sources) for spec in specs)))


async def _test_one(spec: "ServerSpec", sources: "SecretSources") -> TestedServer:
    from agentos.mcp.client.connection import ServerConnection
    from agentos.mcp.client.limits import ServerLimits
    from agentos.mcp.client.server_text import ServerText
    from agentos.secrets.masking import MaskingLogger

    def read(id: str) -> str | None:
        found = sources.find(id, spec.own_secrets)
        return None if found is None else found[0]

    text, logger = ServerText(), MaskingLogger("agentos.mcp", sources.masker)
    connection = ServerConnection(spec, secret=read, text=text, logger=logger, limits=ServerLimits())
    connection.start()
    try:
        is_open = await connection.wait(spec.start_timeout, for_success=False)
        reason = None if is_open else str(connection.why_not()).partition("; retry in")[0]
        raw = connection.listing.tools if is_open and connection.listing is not None else ()
        shown = tuple(_told(one, spec, text.clip) for one in raw if isinstance(one, dict))
        return TestedServer(name=spec.name, ok=is_open, reason=reason, protocol=connection.protocol, tools=shown)
    finally:
        await connection.close()


def _told(raw: Mapping[str, Any], spec: "ServerSpec", clip: Any) -> dict[str, Any]:
    name = str(raw.get("name", ""))
    return {"name": clip(name), "taken": spec.takes(name), "description": clip(str(raw.get("description") or ""))}


def _print_tested(app: App, one: TestedServer) -> None:
    if not one.ok:
        app.out.fail(one.reason)
        return
    app.out.say(f"{one.name} answers (protocol {one.protocol}) and has {counted(len(one.tools), 'tool')}.", "green")
    rows = [(each["name"], "" if each["taken"] else "not named in `tools`", each["description"]) for each in one.tools]
    if rows:
        app.out.table(("tool", "left out", "what it says it does"), rows)


# -- config ------------------------------------------------------------------------------------------------------------


@mcp.command(
    short_help="Print or install a client's configuration",
    epilog=examples(
        "agentos mcp config --client claude",
        "agentos mcp config --client cursor --install",
        "agentos mcp config --client vscode --principal ann --name notes --install",
        "agentos mcp config --client json > mcp.json",
    ),
)
@click.option(
    "--client", type=click.Choice(list(CLIENTS)), required=True, help="Whose configuration; json is any other's."
)
@click.option("--name", metavar="NAME", help="What the client calls this server; else the manifest's name or folder.")
@click.option("--install", is_flag=True, help="Write it into the client's file; what was there is kept beside it.")
@click.option(
    "--file", type=click.Path(dir_okay=False), metavar="FILE", help="Another file than the client's usual one."
)
@click.option("--replace", is_flag=True, help="Put it in the place of another server of the same name.")
@pass_app
def config(app: App, *, client: str, name: str | None, install: bool, file: str | None, replace: bool) -> None:
    """Print how an MCP client starts this host, or write it into the client's settings with --install.

    The command is an absolute path, so that it is found whatever the client has as its PATH. With --principal
    everything is done for that principal.
    """
    place = ClientFile.of(CLIENTS[client], app.config.folder, file)
    name = name or _default_name(app)
    entry, left_out = own_entry(app.config.path, app.given.get("principal") and app.principal.id, CLIENTS[client].extra)
    shown = {CLIENTS[client].key: {name: entry}}
    done = install_entry(place, name, entry, replace=replace) if install else None
    app.out.data({"client": client, "file": place.path, "config": shown, "installed": install, "backup": done})
    if not install:
        app.out.raw(json.dumps(shown, indent=2, ensure_ascii=False))
        if place.path is not None:
            app.out.note(f"It belongs into {place.path}; --install writes it there.")
    else:
        app.out.say(f"Wrote {name} into {place.path}{f'; what was there is in {done}' if done else ''}.")
        app.out.say("The client reads it when it is started again.")
    for variable in left_out:
        app.out.warn(f"{variable} counts here and is not written: give it to the client's server yourself")


def _default_name(app: App) -> str:
    from agentos.model.manifest import fault_of_server_name

    named = app.config.manifest.name or app.config.folder.name
    made = "".join(char if char.isascii() and (char.isalnum() or char in "._-") else "-" for char in named).strip("._-")
    return made[:64] if made and fault_of_server_name(made[:64]) is None else "agentos"

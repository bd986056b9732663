"""`agentos packs`: what is in the manifest and installed, switched on and off. No pack is imported by this process."""

import json
import math
import os
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from agentos.checks.probed import ProbedPack
from agentos.cli.app import App, Fail, examples, pass_app, run_async
from agentos.cli.host_session import REFUSED, USAGE, working_host
from agentos.cli.inspection import deadline_option, inspect_packs, manifest_of
from agentos.cli.known_names import complete_qualified_tool
from agentos.cli.manifest_edit.edits import GONE
from agentos.cli.manifest_entries import (
    ManifestEntry,
    announced,
    complete_any_pack,
    complete_new_pack,
    complete_pack,
    entries_in,
    find_announced,
    find_entries,
    is_in_manifest,
)
from agentos.errors import AgentOSError, ManifestError, PackLoadError, StoreError
from agentos.model.field_checks import did_you_mean
from agentos.model.manifest import ISOLATIONS, PackEntry

if TYPE_CHECKING:
    from agentos.access.pins import Pin
    from agentos.cli.layered_config import Config
    from agentos.loading.entry_points import PackEntryPoint
    from agentos.loading.pack_files import PackFiles

_WHEN_IT_COUNTS = "`agentos serve` hears of it at once, other hosts when they start again."
_STYLES = {"enabled": "green", "disabled": "bright_black", "missing": "bold red"}
_FILES_SHOWN = 20


@click.group(epilog=examples("agentos packs list", "agentos packs add ./packs/hello.py", "agentos packs disable hello"))
def packs() -> None:
    """List, add, remove, switch and reload packs.

    A pack is named by its key (identifier, package or module), or shortly: hello for packs/hello.py. A bad pack
    can stop none of these but accept, which alone imports packs into this process.
    """


# -- list --------------------------------------------------------------------------------------------------------------


@packs.command(
    "list",
    short_help="List packs: in the manifest, and installed",
    epilog=examples("agentos packs list", "agentos packs list --json | jq '.packs[].key'"),
)
@pass_app
def list_(app: App) -> None:
    """List the packs of the manifest, and those installed that are not in it."""
    disabled = _disabled_in_store(app)
    rows = [_row(app.config, one, disabled) for one in entries_in(app.config.path)]
    named = {one.said.get("package") for one in entries_in(app.config.path)}
    spare = [
        {"name": one.name, "entryPoint": one.value, "distribution": one.distribution}
        for one in announced()
        if one.name not in named
    ]
    app.out.data({"manifest": app.config.path, "packs": rows, "available": spare})
    shown = [
        (one["key"], (one["state"], _STYLES[one["state"]]), one["version"], one["source"], one["reason"])
        for one in rows
    ]
    app.out.table(("pack", "state", "version", "source", "why"), shown, empty="There are no packs; add one.")
    if spare:
        names = ", ".join(f"{one['name']} ({one['distribution']})" for one in spare)
        app.out.say(f"\nInstalled, and not in the manifest: {names}", "cyan")


def _row(config: "Config", one: ManifestEntry, disabled: Mapping[str, float]) -> dict[str, Any]:
    found, fault = _files_or_fault(config, one)
    state, reason = "enabled", None
    if not one.is_enabled:
        state, reason = "disabled", f"enabled = false in {config.path.name}"
    elif one.key in disabled:
        at = datetime.fromtimestamp(disabled[one.key], UTC)
        state, reason = "disabled", f"disabled by a person on {at:%Y-%m-%d}"
    elif fault:
        state, reason = "missing", fault
    return {
        "key": one.key,
        "state": state,
        "reason": reason,
        "version": None if found is None else found.version,
        "source": one.source,
        "origin": None if found is None else found.origin,
    }


def _files_or_fault(config: "Config", one: ManifestEntry) -> "tuple[PackFiles | None, str | None]":
    """Find a pack's files without importing it; say why there are none."""
    from agentos.loading.pack_files import files_of

    if one.is_server:
        return None, None
    try:
        return files_of(config.manifest.packs[int(one.at[1])]), None
    except PackLoadError as error:
        return None, error.message


def _disabled_in_store(app: App) -> dict[str, float]:
    """Return what the store says of packs. A store that can't be read is told of; the list is there all the same."""
    from agentos.cli.store_records import disabled_packs

    config = app.config
    try:
        return app.run(disabled_packs(config))
    except (StoreError, OSError) as error:
        app.out.warn(f"{error}; which packs were disabled there is not known")
        return {}


# -- show --------------------------------------------------------------------------------------------------------------


@packs.command(
    short_help="Say what is known of a pack",
    epilog=examples("agentos packs show calculator", "agentos packs show hello --probe"),
)
@click.argument("name", shell_complete=complete_any_pack)
@click.option(
    "--probe", "wants_probe", is_flag=True, help="Load it in a process of its own, and say what it offers and takes."
)
@deadline_option
@pass_app
def show(app: App, *, name: str, wants_probe: bool, deadline: float) -> None:
    """Say what is known of a pack: where it comes from, its files and options, what its entry in the manifest says.

    It is one of the manifest's, or any other that is installed. Which options a pack takes is known of curated packs;
    of others, --probe finds it out.
    """
    installed = None if is_in_manifest(app, name) else find_announced(name)
    patience = deadline if wants_probe else None
    told = _facts_of_entry(app, name, patience) if installed is None else _facts_of_installed(app, installed, patience)
    told["options"] = _options(told["entry"].get("package", name), told.get("probe"))
    app.out.data(told)
    _show_facts(app, told)


def _facts_of_entry(app: App, name: str, deadline: float | None) -> dict[str, Any]:
    """Say what is known of a pack of the manifest; with a *deadline*, also what it offers."""
    from agentos.cli.hidden_secrets import shown_tree

    config = app.config
    one = find_entries(config.path, name, [each.name for each in announced()])[0]
    found, _ = _files_or_fault(config, one)
    told = {**_row(config, one, _disabled_in_store(app)), "entry": shown_tree(one.said, one.at)}
    told |= {**_announcement(one.said.get("package")), "files": _sizes(found)}
    return told if deadline is None else {**told, "probe": _probe_one(app, one, deadline)}


def _facts_of_installed(app: App, one: "PackEntryPoint", deadline: float | None) -> dict[str, Any]:
    """Say what is known of a pack that is installed and not in the manifest; with a *deadline*, also what it offers."""
    from agentos.loading.pack_files import files_of

    found = files_of(PackEntry(package=one.name))
    row: dict[str, Any] = {
        "key": one.name,
        "state": "installed",
        "reason": f"`agentos packs add {one.name}` puts it into the manifest",
    }
    row |= {"version": None if found is None else found.version, "source": f"package {one.name}"}
    told = {**row, "origin": None if found is None else found.origin, "entry": {}}
    told |= {**_announcement(one.name), "files": _sizes(found)}
    if deadline is None:
        return told
    with manifest_of([{"package": one.name}]) as config:
        return {**told, "probe": inspect_packs(app, deadline, config=config).packs[0]}


def _sizes(found: "PackFiles | None") -> dict[str, int]:
    return {} if found is None else {name: _size(path) for name, path in found.files.items()}


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:  # gone since it was found
        return 0


def _announcement(package: str | None) -> dict[str, Any]:
    """Return how a distribution announces a pack, and what it says of itself."""
    found = next((each for each in announced() if each.name == package), None)
    if found is None:
        return {"entryPoint": None, "distribution": None, "summary": None}
    from importlib.metadata import PackageNotFoundError, metadata

    try:
        summary = metadata(found.distribution.partition(" ")[0])["Summary"]
    except PackageNotFoundError:
        summary = None
    return {"entryPoint": found.value, "distribution": found.distribution, "summary": summary}


def _probe_one(app: App, one: ManifestEntry, deadline: float) -> ProbedPack | None:
    index = next(index for index, entry in enumerate(app.config.entries) if entry.key == one.key)
    return inspect_packs(app, deadline, only=[index]).pack(one.key)


def _options(package: object, probed: ProbedPack | None) -> list[Mapping[str, Any]]:
    """Return which options a pack takes: as it says itself, else as is known of curated packs."""
    from agentos.model.declared_options import curated_options, option_rows

    if probed is not None and not probed.is_bad:
        return list(probed.options)
    return list(option_rows(curated_options(str(package)) or {}))


def _show_options(app: App, options: list[Mapping[str, Any]]) -> None:
    rows = []
    for one in options:
        default = "needed" if one["required"] else "" if one["default"] is None else json.dumps(one["default"])
        rows.append((one["name"], one["type"], default, one["description"]))
    app.out.say("\noptions", "bold")
    app.out.table(("option", "type", "default", "what it is"), rows)


def _show_facts(app: App, told: Mapping[str, Any]) -> None:
    out = app.out
    out.say(told["key"], "bold")
    labels = ("state", "reason", "version", "source", "origin", "distribution", "summary", "entryPoint")
    rows = [(label, str(told[label])) for label in labels if told[label]]
    rows += [
        (key, value if isinstance(value, str) else json.dumps(value))
        for key, value in told["entry"].items()
        if key not in ("module", "package")
    ]
    out.facts(rows)
    files = list(told["files"].items())
    if files:
        more = f", the first {_FILES_SHOWN}" if len(files) > _FILES_SHOWN else ""
        out.say(f"\nfiles ({len(files)}{more})", "bold")
        out.facts([(name, f"{size:,} bytes") for name, size in files[:_FILES_SHOWN]])
    if told["options"]:
        _show_options(app, told["options"])
    if probed := told.get("probe"):
        _show_probed(app, probed)


def _show_probed(app: App, probed: ProbedPack) -> None:
    app.out.say(f"\nprobed: {probed.status}", "bold green" if not probed.is_bad else "bold red")
    if probed.reason:
        app.out.say(probed.reason)
    rows = [(f"{one['kind']}:{one['id']}", one["effect"] or "", one["description"]) for one in probed.offers]
    if rows:
        app.out.table(("offers", "effect", "what it does"), rows)


# -- add, remove -------------------------------------------------------------------------------------------------------


@packs.command(
    short_help="Add a pack to the manifest",
    epilog=examples(
        "agentos packs add calculator",
        "agentos packs add ./packs/hello.py --option word='\"Good day\"'",
        "agentos packs add myhost.packs.greeter --identifier greeter --priority 10",
        "agentos packs add web-search --isolation process --requirement 'httpx<0.28'",
    ),
)
@click.argument("what", shell_complete=complete_new_pack)
@click.option("--identifier", metavar="KEY", help="A key of its own for the pack.")
@click.option("--priority", type=int, help="Rank of what it offers; the highest wins.")
@click.option("--version", metavar="SPEC", help="A PEP 440 specifier, such as '>=1.2,<2'.")
@click.option(
    "--option", "options", multiple=True, metavar="KEY=VALUE", help="An option; the value is JSON, else text."
)
@click.option("--required", is_flag=True, help="Let the whole load fail if this pack does.")
@click.option("--isolation", type=click.Choice(ISOLATIONS), help="Where it runs: here, or in a process of its own.")
@click.option("--python", metavar="PATH", help="The interpreter of its process; needs --isolation process.")
@click.option(
    "--requirement",
    "requirements",
    multiple=True,
    metavar="SPEC",
    help="What an environment made for its process holds, such as 'httpx<0.28'; needs --isolation process.",
)
@click.option("--no-probe", is_flag=True, help="Do not load it to see whether that works.")
@pass_app
def add(
    app: App,
    /,
    *,
    what: str,
    identifier: str | None,
    priority: int | None,
    version: str | None,
    options: tuple[str, ...],
    required: bool,
    no_probe: bool,
    requirements: tuple[str, ...],
    **process: str | None,
) -> None:
    """Add a pack to the manifest: a file or folder, a dotted module, a package, or the name of an entry point."""
    from agentos.cli.manifest_edit.editing import add_pack

    config = app.config
    fields: dict[str, Any] = {
        "identifier": identifier,
        "priority": priority,
        "version": version,
        "required": required or None,
    }
    fields |= process | {"requirements": list(requirements) or None}
    entry = _new_entry(config, what, options, fields)
    key = entry.get("identifier") or entry.get("package") or entry["module"]
    if any(one.key == key for one in entries_in(config.path)):
        raise Fail(f"{config.path.name} has a pack {key!r} already", hint="--identifier gives it a key of its own")
    add_pack(config.path, entry)
    app.out.say(f"Added {key} to {config.path.name}.")
    _print_added(app, key, entry, is_probed=not no_probe)


def _print_added(app: App, key: str, entry: Mapping[str, Any], *, is_probed: bool) -> None:
    from agentos.cli.hidden_secrets import shown_tree
    from agentos.cli.layered_config import load_config

    probed = None
    if is_probed:
        config = load_config(app.config.path)
        probed = inspect_packs(app, config=config, only=[len(config.manifest.packs) - 1]).pack(key)
    shown = shown_tree(entry, ("packs", len(app.config.manifest.packs)))
    app.out.data({"added": key, "entry": shown, "manifest": app.config.path, "probe": probed})
    if probed is None:
        return
    if probed.is_bad:
        app.out.warn(f"it can't be loaded yet: {probed.reason}")
    else:
        offered = ", ".join(f"{one['kind']}:{one['id']}" for one in probed.offers)
        app.out.say(f"It offers {offered or 'nothing'}.")


def _new_entry(config: "Config", what: str, options: tuple[str, ...], fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entry for *what*, checked as the manifest will be."""
    entry = {**_locate(config, what), **{key: value for key, value in fields.items() if value is not None}}
    if options:
        entry["options"] = dict(map(_parse_option, options))
        _require_writable(entry["options"], config.path.suffix)
    try:
        PackEntry(**entry)
    except ManifestError as error:
        raise Fail("\n".join(str(problem) for problem in error.problems), code=USAGE) from None
    return entry


def _require_writable(options: Mapping[str, Any], suffix: str) -> None:
    """Refuse what no manifest of this kind can hold."""
    for name, option in options.items():
        for value in _plain_values(option):
            if value is None and suffix == ".toml":
                raise Fail(f"--option {name}: TOML has no null; leave it out", code=USAGE)
            if isinstance(value, float) and not math.isfinite(value):
                raise Fail(f"--option {name}: expected a number that JSON knows, got {value}", code=USAGE)


def _plain_values(value: Any) -> Iterator[Any]:
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _plain_values(item)
    else:
        yield value


def _locate(config: "Config", what: str) -> dict[str, str]:
    """Say what kind of thing *what* is, without importing it; fail with the nearest names if it is nowhere."""
    from agentos.loading.modules import is_path
    from agentos.loading.pack_files import files_of

    if not what.strip():
        raise Fail("say what to add: a file or folder, a module, or a package", code=USAGE)
    path = Path(what).expanduser().absolute()
    if path.is_file() or (path / "__init__.py").is_file():
        return {"module": _relative(path, config.folder)}
    if is_path(what):
        near = did_you_mean(path.name, [one.name for one in path.parent.glob("*")] if path.parent.is_dir() else [])
        raise Fail(f"there is no pack at {path}: expected a .py file, or a folder with an __init__.py{near}")
    is_announced = any(one.name == what for one in announced())
    entry = {"package" if is_announced or "." not in what else "module": what}
    try:
        files_of(PackEntry(**entry))  # type: ignore[arg-type]
    except PackLoadError as error:
        raise Fail(
            str(error), hint="name a file, a module, or an installed package; `agentos packs list` knows some"
        ) from None
    return entry


def _relative(path: Path, folder: Path) -> str:
    """Return a path for the manifest: relative where that leads somewhere, with slashes that every system reads."""
    try:
        relative = Path(os.path.relpath(path, folder)).as_posix()
    except ValueError:  # another drive
        return path.as_posix()
    return relative if "/" in relative or relative.endswith(".py") else f"./{relative}"


def _parse_option(text: str) -> tuple[str, Any]:
    key, is_pair, value = text.partition("=")
    if not is_pair or not key:
        raise click.UsageError(f"--option {text!r}: expected KEY=VALUE")
    try:
        return key, json.loads(value)
    except ValueError:
        return key, value


@packs.command(short_help="Take a pack out of the manifest", epilog=examples("agentos packs remove hello"))
@click.argument("name", shell_complete=complete_pack)
@pass_app
def remove(app: App, name: str) -> None:
    """Take a pack out of the manifest. Its files stay."""
    from agentos.cli.manifest_edit.editing import edit

    path = app.manifest_path
    found = find_entries(path, name)
    edit(path, {one.at: GONE for one in reversed(found)})
    app.out.data({"removed": found[0].key, "manifest": path})
    app.out.say(f"Removed {found[0].key} from {path.name}.")


# -- enable, disable ---------------------------------------------------------------------------------------------------


@packs.command(
    short_help="Let a pack load again",
    epilog=examples("agentos packs enable hello", "agentos packs enable hello --in-manifest"),
)
@click.argument("name", shell_complete=complete_pack)
@click.option("--in-manifest", is_flag=True, help="Only in the manifest: what the store says of it stays.")
@pass_app
def enable(app: App, name: str, in_manifest: bool) -> None:
    """Let a pack load again: in the store, and in the manifest if that says otherwise."""
    _switch(app, name, enabled=True, in_manifest=in_manifest)


@packs.command(
    short_help="Keep a pack out of force",
    epilog=examples("agentos packs disable hello", "agentos packs disable hello --in-manifest"),
)
@click.argument("name", shell_complete=complete_pack)
@click.option("--in-manifest", is_flag=True, help="Write it into the manifest: then it is not even imported.")
@pass_app
def disable(app: App, name: str, in_manifest: bool) -> None:
    """Keep a pack out of force: remembered in the store if there is one, else written into the manifest.

    What the store keeps out of force is imported all the same, so that it can be switched back while a host runs.
    """
    _switch(app, name, enabled=False, in_manifest=in_manifest)


def _switch(app: App, name: str, *, enabled: bool, in_manifest: bool = False) -> None:
    path = app.manifest_path
    found = find_entries(path, name)
    key = found[0].key
    is_kept, is_new = (False, False) if in_manifest else _switch_in_store(app, key, enabled=enabled)
    places = ["the store"] if is_new else []
    if any(one.is_enabled != enabled for one in found) and (enabled or not is_kept):
        _write_switch(path, found, enabled=enabled)
        places.append(path.name)
    app.out.data({"pack": key, "enabled": enabled, "changed": places})
    word = "enabled" if enabled else "disabled"
    if places:
        app.out.say(f"{key} is {word} in {' and '.join(places)}. {_WHEN_IT_COUNTS}")
    else:
        app.out.say(f"{key} was {word} already.")


def _write_switch(path: Path, found: list[ManifestEntry], *, enabled: bool) -> None:
    from agentos.cli.manifest_edit.editing import edit

    places = [(*one.at, "enabled") for one in found if one.is_enabled != enabled]
    try:
        edit(path, dict.fromkeys(places, GONE if enabled else False))
    except Fail:
        if not enabled:
            raise
        edit(path, dict.fromkeys(places, True))  # where the key can't be taken out, it can say so


def _switch_in_store(app: App, key: str, *, enabled: bool) -> tuple[bool, bool]:
    """Remember a switch in the store. Tell whether there is one that lasts, and whether it changed."""
    try:
        config = app.config
        return app.run(_write_flag(config, key, enabled=enabled))
    except (Fail, StoreError) as error:  # the pack can be switched all the same
        app.out.warn(error)
        app.out.note("So the manifest has to say it.")
        return False, False


async def _write_flag(config: "Config", key: str, *, enabled: bool) -> tuple[bool, bool]:
    from agentos.cli.store_records import is_there, lasts, opened

    location = config.manifest.store
    if not lasts(location) or (enabled and not is_there(location)):
        return lasts(location), False
    async with opened(location) as found:
        is_new = (key not in await found.disabled()) != enabled
        if is_new:
            await found.keeper.switched(key, enabled=enabled)
    return True, is_new


# -- accept ------------------------------------------------------------------------------------------------------------


@packs.command(
    short_help="Accept new or changed definitions",
    epilog=examples("agentos packs accept", "agentos packs accept hello:greet", "agentos packs accept --all --yes"),
)
@click.argument("tools", nargs=-1, shell_complete=complete_qualified_tool)
@click.option("--all", "takes_all", is_flag=True, help="Accept everything that waits.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask at a terminal.")
@run_async
async def accept(app: App, *, tools: tuple[str, ...], takes_all: bool, yes: bool) -> int:
    """Accept definitions that are held back because they are new or changed; without names, show what waits.

    TOOLS are named as pack:tool. At a terminal, what changed is shown and asked about first.
    """
    async with working_host(app, tells_held_back=False) as host:
        waiting = {pin.tool: pin for pin in await host.pins.pending()}
        chosen = list(waiting) if takes_all else list(dict.fromkeys(tools))
        _require_waiting(app, chosen, waiting)
        agreed = [tool for tool in chosen if yes or await _agrees(app, waiting[tool])]
        for tool in agreed:
            await host.pins.accept(tool, by=app.principal)
    _print_accepted(app, agreed, [pin for tool, pin in waiting.items() if tool not in chosen])
    for tool in chosen:
        if tool not in agreed:
            app.out.warn(f"{tool} was not accepted, and is held back")
    return 0 if agreed == chosen else REFUSED


def _require_waiting(app: App, chosen: list[str], waiting: "Mapping[str, Pin]") -> None:
    """End the command if one of the chosen can't be accepted here; then none of them is."""
    from agentos.cli.held_back import way_to_accept
    from agentos.cli.store_records import require_store

    for tool in chosen:
        if tool not in waiting:
            hint = did_you_mean(tool, waiting)
            raise Fail(f"nothing of {tool!r} waits to be accepted{hint}", hint="`agentos packs accept` shows what does")
        if way_to_accept(app.config, tool) == "agentos lock":
            raise Fail(f"the lock file decides about {tool}", hint="`agentos lock` writes it again")
    if chosen:
        require_store(app.config)


async def _agrees(app: App, pin: "Pin") -> bool:
    """Show what changed and ask; without a person at a terminal, naming it was enough."""
    from agentos.cli.terminal.line_input import can_ask, read_line

    if not can_ask(app.out):
        return True
    _show_pin(app, pin)
    said = await read_line(f"Accept {pin.tool}? [y/N] ", afresh=True)
    return (said or "").strip().lower() in ("y", "yes")


def _print_accepted(app: App, agreed: list[str], left: "list[Pin]") -> None:
    shown = [{"tool": pin.tool, "state": pin.state, "reason": pin.reason, "changes": _changes_of(pin)} for pin in left]
    app.out.data({"accepted": agreed, "pending": shown})
    for tool in agreed:
        app.out.say(f"accepted {tool}", "green")
    for pin in left:
        _show_pin(app, pin)
    if not left and not agreed:
        app.out.say("Nothing waits to be accepted.")


def _show_pin(app: App, pin: "Pin") -> None:
    app.out.say(f"{pin.tool} waits: it is {pin.state}", "bold yellow")
    if not pin.before:
        app.out.facts([(field, _value_text(value)) for field, value in pin.data.items()])
    for field, (was, now) in _changes_of(pin).items():
        app.out.facts([(f"{field} was", was), (f"{field} now", now)])


def _changes_of(pin: "Pin") -> dict[str, tuple[str, str]]:
    """Return what of a definition changed: as it was, and as it is now."""
    return {field: (_value_text(pin.before.get(field)), _value_text(pin.data.get(field))) for field in pin.changes}


def _value_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=str, sort_keys=True)


# -- reload ------------------------------------------------------------------------------------------------------------


@packs.command(
    short_help="Load packs anew, and say what changed",
    epilog=examples("agentos packs reload", "agentos packs reload hello"),
)
@click.argument("names", nargs=-1, shell_complete=complete_pack)
@deadline_option
@pass_app
def reload(app: App, names: tuple[str, ...], deadline: float) -> None:
    """Load packs anew in a process of their own, and say what changed since it was accepted or locked.

    Running hosts are not touched: `agentos watch` reloads by itself, others load what is there when they start.
    """
    from agentos.cli.held_back import data_of_held, way_to_accept

    config = app.config
    keys = {find_entries(config.path, name)[0].key for name in names}
    report = inspect_packs(app, deadline)
    chosen = [one for one in report.packs if not keys or one.key in keys]
    owners = {one.pack for one in chosen}
    pending = [one for one in report.pending if one["tool"].partition(":")[0] in owners]
    changes = _changes_since_lock(config, keys)
    app.out.data({"packs": chosen, "pending": data_of_held(config, pending), "differences": changes})
    rows = [
        (one.key, (one.status, "bold red" if one.is_bad else "green"), one.reason or f"offers {len(one.offers)}")
        for one in chosen
    ]
    app.out.table(("pack", "outcome", "why"), rows)
    for one in pending:
        way = f"`{way_to_accept(config, one['tool'])}` accepts it"
        app.out.say(f"changed: {one['reason']}; {way}", "yellow")
    for said in changes:
        app.out.say(f"changed: {said}", "yellow")
    if any(one.is_bad for one in chosen):
        raise click.exceptions.Exit(1)


def _changes_since_lock(config: "Config", keys: set[str]) -> list[str]:
    """Compare files with the lock file, if there is one."""
    from agentos.access.lock import Lock, check_files
    from agentos.loading.pack_files import files_of

    if config.manifest.settings.lock is None:
        return []
    lock = Lock.read(config.manifest.settings.lock)
    said = []
    for entry in config.manifest.packs:
        if entry.key is not None and entry.enabled and (not keys or entry.key in keys):
            try:
                said += [str(one) for one in check_files(lock.pack(entry.key), entry.key, files_of(entry))]
            except AgentOSError as error:
                said.append(str(error))
    return said

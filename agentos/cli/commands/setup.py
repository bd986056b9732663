"""`agentos init`, `agentos new` and `agentos config`: the beginning, and what counts afterwards."""

import json
import os
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from agentos.cli.app import App, Fail, examples, pass_app

if TYPE_CHECKING:
    from agentos.cli.scaffolding import WrappedTool

STORE = ".agentos/store.db"
_FORMATS = ("toml", "yaml", "json")
_MODES = ("approve", "auto", "unattended")


# -- init --------------------------------------------------------------------------------------------------------------


@click.command(epilog=examples("agentos init", "agentos init --yes", "agentos init demo --name greeter --format yaml"))
@click.argument("folder", default=".", type=click.Path(file_okay=False))
@click.option("--name", help="What the first pack is called; hello unless you say otherwise.")
@click.option("--format", "format_", type=click.Choice(_FORMATS), help="How the manifest is written; TOML by default.")
@click.option("--mode", type=click.Choice(_MODES), help="What happens with calls that change something; approve asks.")
@click.option("--store", metavar="PLACE", help=f"Where what must last is kept; {STORE} by default.")
@click.option("--no-pack", is_flag=True, help="Make no first pack.")
@click.option("--yes", "-y", is_flag=True, help="Ask nothing, take the defaults.")
@pass_app
def init(
    app: App,
    *,
    folder: str,
    name: str | None,
    format_: str | None,
    mode: str | None,
    store: str | None,
    no_pack: bool,
    yes: bool,
) -> None:
    """Make a working manifest and a first pack. Nothing that is there is overwritten."""
    top = Path(folder).absolute()
    if no_pack and name is not None:
        raise Fail("--name and --no-pack: give one of them", code=2)
    _refuse_second_manifest(app, top)
    _check_name(name)
    _check_store(store)
    asks = app.out.can_ask and not yes
    name = None if no_pack else name or (_ask_name(app) if asks else "hello")
    format_ = format_ or (_ask_choice(app, "Format of the manifest", _FORMATS) if asks else "toml")
    mode = mode or (_ask_choice(app, "Calls that change something", _MODES) if asks else "approve")
    made = _write_files(top, name, format_, {"mode": mode, "store": store or STORE})
    app.out.data({"made": made})
    for path in made:
        app.out.say(f"made {_display_path(path)}")
    _print_next_steps(app, top, name)


def _check_name(name: str | None) -> None:
    from agentos.cli.scaffolding import fault_of_pack_name

    if name is not None and (fault := fault_of_pack_name(name)):
        raise Fail(f"the pack's name: {fault}", code=2)


def _check_store(store: str | None) -> None:
    from agentos.errors import StoreError
    from agentos.store.locations import place_of

    if store is not None and not store.isprintable():
        raise Fail("--store: there are signs in it that can't be written down", code=2)
    try:
        place_of(store)
    except StoreError as error:
        raise Fail(f"--store: {error}", code=2) from None


def _ask_name(app: App) -> str:
    from agentos.cli.scaffolding import fault_of_pack_name

    return _ask_until_valid(app, "Name of the first pack", "hello", fault_of_pack_name)


def _ask_choice(app: App, question: str, choices: tuple[str, ...]) -> str:
    from agentos.model.field_checks import did_you_mean

    def fault(answer: str) -> str | None:
        return None if answer in choices else f"expected one of {', '.join(choices)}{did_you_mean(answer, choices)}"

    return _ask_until_valid(app, f"{question} ({', '.join(choices)})", choices[0], fault)


def _ask_until_valid(app: App, question: str, default: str, fault_of: Callable[[str], str | None]) -> str:
    """Ask until the answer has no fault; Ctrl-C and the end of input end it."""
    while fault := fault_of(answer := app.out.ask(question, default=default)):
        app.out.warn(fault)
    return answer


def _refuse_second_manifest(app: App, top: Path) -> None:
    from agentos.cli.manifest_files import find_manifest, manifests_in

    if found := manifests_in(top):
        raise Fail(
            f"there is a manifest already: {_display_path(found[0])}", hint="`agentos config show` says what is in it"
        )
    if above := find_manifest(top):
        app.out.warn(f"{above} is a manifest too; in this folder, the new one will count")


def _write_files(top: Path, name: str | None, format_: str, values: dict[str, str]) -> list[Path]:
    """Write the pack first: the manifest is there when what it names is there."""
    from agentos.base.atomic_files import make_file
    from agentos.cli.manifest_files import fault_of_place
    from agentos.cli.scaffolding import filled

    manifest = top / f"agentos.{format_}"
    if fault := fault_of_place(manifest):
        raise Fail(f"{_display_path(manifest)} {fault}", hint="move it away, or choose another --format")
    top.mkdir(parents=True, exist_ok=True)
    made = []
    quoted = {key: json.dumps(value, ensure_ascii=False)[1:-1] for key, value in values.items()}
    text = filled(f"manifest.{format_}", quoted).decode()
    if name is not None:
        file = f"{name.replace('-', '_')}.py"
        made += _write_once(top / "packs" / file, filled("first_pack.py", {"name": name, "file": file}))
        text = _with_pack(text, format_, f"packs/{file}")
    if values["store"] == STORE:  # it is nobody else's business
        made += _write_once(top / ".agentos" / ".gitignore", b"*\n")
    try:
        make_file(manifest, text.encode())
    except FileExistsError:
        raise Fail(f"there is a manifest already: {_display_path(manifest)}") from None
    return [manifest, *made]


def _with_pack(text: str, format_: str, module: str) -> str:
    if format_ == "json":
        return json.dumps({**json.loads(text), "packs": [{"module": module}]}, indent=2) + "\n"
    if format_ == "yaml":
        return f"{text}\npacks:\n  - module: {module}\n"
    return f'{text}\n[[packs]]\nmodule = "{module}"\n'


def _write_once(path: Path, data: bytes) -> list[Path]:
    """Make a file, unless it is there just so, from an attempt that was interrupted."""
    from agentos.base.atomic_files import make_file

    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        make_file(path, data)
    except FileExistsError:
        if path.read_bytes() == data:
            return []
        raise Fail(f"{_display_path(path)} is there already", hint="choose another --name, or --no-pack") from None
    return [path]


def _display_path(path: Path) -> str:
    """Return a path as people would type it here."""
    try:
        relative = os.path.relpath(path)
    except ValueError:  # another drive
        return str(path)
    return str(path) if relative.startswith("..") else relative


def _print_next_steps(app: App, top: Path, name: str | None) -> None:
    app.out.say("\nTry next:", "bold")
    if top != Path.cwd():
        app.out.say(f"  cd {shlex.quote(_display_path(top))}")
    tries = ["agentos tools list", "agentos tools call greet name=Ada", "agentos why tool:greet"]
    for line in [*(tries if name else []), "agentos new pack my-pack", "agentos doctor"]:
        app.out.say(f"  {line}")


# -- new ---------------------------------------------------------------------------------------------------------------


@click.group(
    epilog=examples("agentos new pack my-pack", "agentos new pack my-cache --flavour wrapper --tool web_search")
)
def new() -> None:
    """Begin something of your own."""


@new.command(
    "pack", epilog=examples("agentos new pack my-pack", "agentos new pack my-notes --flavour toolset --into packs")
)
@click.argument("name")
@click.option(
    "--flavour",
    type=click.Choice(["tool", "toolset", "wrapper", "guardrail", "middleware", "bridge"]),
    default="tool",
    show_default=True,
    help="One tool; several that belong together; one that calls the one beneath; a guardrail; middleware; "
    "functions that are there already.",
)
@click.option("--into", default=".", type=click.Path(file_okay=False), help="The folder to make it in.")
@click.option("--tool", metavar="ID", help="What its tool is called, or which tool it wraps.")
@pass_app
def new_pack(app: App, *, name: str, flavour: str, into: str, tool: str | None) -> None:
    """Make a distribution for a pack: module, entry point, tests that pass, README and CI. Nothing is overwritten.

    A wrapper is written for the tool as the manifest here has it: with its schema, its effect and its access.
    """
    from agentos.cli.scaffolding import ANSWERING, fault_of_pack_name, make_distribution

    if fault := fault_of_pack_name(name):
        raise Fail(f"the pack's name: {fault}", code=2)
    if tool is not None and not tool.isidentifier():
        raise Fail(f"--tool: expected letters, digits and underscores, got {tool!r}", code=2)
    folder = Path(into).absolute() / name
    wrapped = ANSWERING
    if flavour == "wrapper" and tool is not None and app.find_manifest() is not None:
        wrapped = app.run(_tool_to_wrap(app, tool))
    try:
        files = make_distribution(folder, name, flavour, tool, wrapped)
    except FileExistsError:
        raise Fail(f"{_display_path(folder)} is there already", hint="choose another name, or --into") from None
    app.out.data({"folder": folder, "files": files})
    app.out.tree(_display_path(folder), files)
    module = f"agentos_pack_{name.replace('-', '_')}"
    app.out.say("\nTry next:", "bold")
    app.out.say(f"  cd {shlex.quote(_display_path(folder))} && pytest")
    app.out.say(f"  agentos packs add {shlex.quote(_display_path(folder / module))}")


async def _tool_to_wrap(app: App, name: str) -> "WrappedTool":
    """Return what the manifest's tool called *name* takes, does and requires; what is usual if there is none."""
    from agentos.cli.calling import find_tool
    from agentos.cli.scaffolding import ANSWERING, WrappedTool
    from agentos.schema.validation import to_plain_json

    async with app.host() as host:
        ready = await find_tool(host, name)
    if ready is None:
        app.out.warn(f"no tool of this manifest is called {name}; the wrapper is written for one that takes a query")
        return ANSWERING
    tool = ready.tool
    rules = () if tool.is_public else tuple(map(str, tool.required_access))  # type: ignore[arg-type]  # not public
    return WrappedTool(schema=to_plain_json(tool.input_schema), effect=tool.effect, rules=rules)


# -- config ------------------------------------------------------------------------------------------------------------


@click.group(epilog=examples("agentos config show", "AGENTOS_MODE=auto agentos config show"))
def config() -> None:
    """Show the configuration, and where it came from."""


@config.command(
    epilog=examples("agentos config show", "agentos config show --json | jq '.settings[] | select(.path==\"mode\")'")
)
@pass_app
def show(app: App) -> None:
    """Show every value that counts and where it came from; secrets are never shown.

    Weakest first: defaults, the manifest, overrides.local.* beside it, AGENTOS_* variables, the command line.
    """
    found = app.config
    app.out.data({"manifest": found.path, "local": found.local, "settings": found.settings})
    app.out.say(f"manifest: {found.path}")
    rows = [(one.path, _value_text(one.value), one.origin) for one in found.settings]
    app.out.table(("key", "value", "from"), rows)


def _value_text(value: Any) -> str:
    return value if isinstance(value, str) else "none" if value is None else json.dumps(value, default=str)

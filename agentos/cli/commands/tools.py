"""`agentos tools`: list, show and call tools, through the same door as every other caller."""

import fnmatch
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from agentos.cli.app import App, Fail, examples, pass_app, run_async
from agentos.cli.host_session import EFFECTS, save_media_option, way_out, working_host
from agentos.cli.known_names import complete_tool
from agentos.cli.terminal.harmless_text import one_line

if TYPE_CHECKING:
    from agentos.host import AgentOS
    from agentos.tools.listing import ToolInfo
    from agentos.tools.ready import ReadyTool


@click.group(
    epilog=examples("agentos tools list", "agentos tools show add", "agentos tools call add a=1 b=2"),
)
def tools() -> None:
    """List, show and call tools.

    With --principal, what is listed and called is what that principal may call.
    """


# -- list --------------------------------------------------------------------------------------------------------------


@tools.command(
    "list",
    epilog=examples("agentos tools list", "agentos tools list 'file_*'", "agentos tools list --principal ann --json"),
)
@click.argument("pattern", default="*", shell_complete=complete_tool)
@run_async
async def list_(app: App, pattern: str) -> None:
    """List the tools that can be called; PATTERN picks some by name or pack:name."""
    async with working_host(app) as host:
        known = host.tools.list_available_tools(app.principal)
        infos = [info for info in known if _fits(info, pattern)]
        app.out.data({"tools": infos})
        rows = [_list_row(info) for info in infos]
        app.out.table(("tool", "effect", "pack", "what it does"), rows, empty=_empty_text(known, pattern))


def _empty_text(known: "Sequence[ToolInfo]", pattern: str) -> str:
    """Say that there is no such tool, and how that may be."""
    from agentos.model.field_checks import did_you_mean

    way = "`agentos stacks` shows what is there, and why it is not in force."
    if not known:
        return f"There is no tool to call. {way}"
    hint = did_you_mean(pattern, [name for info in known for name in (info.name, info.fully_qualified_id)])
    return f"No tool that can be called matches {pattern!r}{hint or f'. {way}'}"


def _list_row(info: "ToolInfo") -> tuple[Any, ...]:
    pack, first = info.fully_qualified_id.partition(":")[0], info.description.strip().partition("\n")[0]
    return (info.name, "bold"), (info.effect, EFFECTS[info.effect]), pack, one_line(first)


def _fits(info: "ToolInfo", pattern: str) -> bool:
    names = (info.name, info.fully_qualified_id, *info.aliases)
    return any(fnmatch.fnmatchcase(name, pattern) for name in names)


# -- show --------------------------------------------------------------------------------------------------------------


@tools.command(epilog=examples("agentos tools show add", "agentos tools show math:add --json"))
@click.argument("name", shell_complete=complete_tool)
@run_async
async def show(app: App, name: str) -> None:
    """Show what a tool does, what it takes, who may call it, and where it comes from."""
    async with working_host(app, tells_held_back=False, starts_servers=False) as host:
        ready = await _require_tool(app, host, name)
        app.out.data(_data(ready))
        if not app.out.is_json:
            _print_tool(app, ready)


async def _require_tool(app: App, host: "AgentOS", name: str) -> "ReadyTool":
    """Return the tool that a call of *name* would run; end with why there is none."""
    from agentos.cli.calling import find_tool

    ready = await find_tool(host, name)
    if ready is None or host.tools.get_tool(name, app.principal) is None:
        known = [info.name for info in host.tools.list_available_tools(app.principal)]
        error = host.tools.catalog.why_not(name, known, app.principal)
        hint = await way_out(app, host, name, host.tools.executor.results.failure(error.type, error.message, {}))
        raise Fail(host.extensions.masker.mask(error.message), hint=hint)
    return ready


def _data(ready: "ReadyTool") -> dict[str, Any]:
    tool, source = ready.tool, ready.entry.source
    return {
        "name": tool.name,
        "id": ready.qualified_id,
        "description": tool.description,
        "effect": tool.effect,
        "requiredAccess": "public" if tool.is_public else list(_rules(tool)),
        "inputSchema": tool.input_schema,
        "outputSchema": tool.output_schema,
        "aliases": tool.aliases,
        "category": tool.category,
        "timeout": tool.timeout,
        "isIdempotent": tool.idempotent,
        "hasDryRun": tool.dry_run is not None,
        "intervention": tool.intervention if isinstance(tool.intervention, str) else None,
        "definition": ready.definition,
        "pack": source.pack,
        "version": source.version,
        "origin": source.origin,
    }


def _rules(tool: Any) -> tuple[str, ...]:
    return () if tool.is_public else tuple(tool.required_access)


def _print_tool(app: App, ready: "ReadyTool") -> None:
    from rich.text import Text

    from agentos.schema.validation import to_plain_json

    tool, source, out, schema = ready.tool, ready.entry.source, app.out, to_plain_json(ready.tool.input_schema)
    out.say(Text.assemble((one_line(ready.qualified_id), "bold"), "  ", (tool.effect, EFFECTS[tool.effect])))
    out.say(tool.description.strip())
    out.say()
    facts = {
        "access": "everybody" if tool.is_public else ", ".join(_rules(tool)),
        "from": f"{source.pack} {source.version or ''} ({source.origin})",
        "aliases": ", ".join(tool.aliases),
        "timeout": "" if tool.timeout is None else f"{tool.timeout:g} s",
        "dry run": "yes, with --dry-run" if tool.dry_run is not None else "",
        "repeats": "are safe with --idempotency-key" if tool.idempotent else "",
    }
    for name, value in facts.items():
        if value:
            out.say(f"{name + ':':<9} {one_line(value)}")
    out.say()
    rows = [_argument_row(schema, name, said) for name, said in _properties(schema).items()]
    out.table(("argument", "type", "", "what it is"), rows, empty="It takes no arguments.")
    name = ready.qualified_id if ready.entry.state == "shadowed" else tool.name
    out.say(f"\nagentos tools call {one_line(name)}{_example(schema)}", "bright_black")


def _properties(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    found = schema.get("properties")
    return found if isinstance(found, Mapping) else {}


def _is_required(schema: Mapping[str, Any], name: str) -> bool:
    return name in schema.get("required", ())


def _argument_row(root: Mapping[str, Any], name: str, schema: Any) -> tuple[Any, ...]:
    from agentos.cli.call_arguments import types_of

    said = schema if isinstance(schema, Mapping) else {}
    kinds = " | ".join(types_of(root, said)) or "any"
    default = f"default {json.dumps(said['default'], default=str)}" if "default" in said else ""
    needed = "required" if _is_required(root, name) else default
    choices = said.get("enum")
    listed = f" One of {', '.join(map(str, choices))}." if isinstance(choices, list) else ""
    return (name, "bold"), kinds, needed, one_line(f"{said.get('description', '')}{listed}")


def _example(schema: Mapping[str, Any]) -> str:
    """Return what has to stand behind a tool's name, at least."""
    from agentos.cli.call_arguments import types_of

    words = []
    for name, said in _properties(schema).items():
        if _is_required(schema, name):
            kinds = types_of(schema, said)
            words.append(f" {one_line(name)}=<{kinds[0] if kinds else 'value'}>")
    return "".join(words)


# -- call --------------------------------------------------------------------------------------------------------------


@tools.command(
    epilog=examples(
        "agentos tools call add a=1 b=2",
        "agentos tools call tag names=red names=blue note=@note.txt",
        'agentos tools call search --args \'{"query": "rain", "limit": 3}\'',
        'echo \'{"a": 1, "b": 2}\' | agentos tools call add --args -',
        "agentos tools call delete_file path=old.txt --dry-run",
        "agentos tools call screenshot --save-media shots",
        "agentos tools call send_mail to=ann@example.org text=Hi --yes --json",
    ),
)
@click.argument("name", shell_complete=complete_tool)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.option("--args", "text", metavar="JSON", help="All arguments as a JSON object; - reads stdin, @FILE a file.")
@click.option("--dry-run", is_flag=True, help="Say what the call would do, by the tool's own dry run. Nothing runs.")
@click.option("--idempotency-key", "key", metavar="KEY", help="A call with the same key and arguments runs once.")
@click.option("--yes", "-y", is_flag=True, help="Approve what changes something; never what may destroy something.")
@click.option(
    "--approve-destructive",
    "destructive",
    is_flag=True,
    help="Approve this tool's call even if it may destroy something.",
)
@save_media_option
@pass_app
def call(app: App, /, name: str, arguments: Sequence[str], **request: Any) -> int:
    """Call a tool. ARGUMENTS are name=value, read by the tool's schema.

    name:=JSON takes JSON as it is, name=@FILE what is in a file (@- for stdin, @@ for an @). A list is given item by
    item: tag=a tag=b.

    A call that needs approval is shown and asked about at the terminal. Where there is none, it waits: exit code 4, and
    `agentos approvals` decides on it.
    """
    from agentos.cli.calling import CallRequest, run_call

    return app.run(run_call(app, CallRequest(name=name, words=tuple(arguments), **request)))

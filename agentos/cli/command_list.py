"""Which commands there are, and the help of the whole: written here, so that it costs no import.

`help_text` is used by the quick way and by click alike.
"""

import os

COMMANDS: dict[str, tuple[str, str]] = {
    "init": ("agentos.cli.commands.setup:init", "Make a working manifest and a first pack"),
    "packs": ("agentos.cli.commands.packs:packs", "List, add, remove, switch and reload packs"),
    "stacks": ("agentos.cli.commands.stacks:stacks", "Draw every stack: who is active, and why"),
    "why": ("agentos.cli.commands.stacks:why", "Say why something is, or is not, in force"),
    "tools": ("agentos.cli.commands.tools:tools", "List, show and call tools"),
    "guard": ("agentos.cli.commands.guard:guard", "Ask the guardrails about a text"),
    "secrets": ("agentos.cli.commands.secrets:secrets", "See which secrets are missing, and set them"),
    "approvals": ("agentos.cli.commands.approvals:approvals", "Decide on calls that wait for a person"),
    "grants": ("agentos.cli.commands.grants:grants", "Decide about calls in advance"),
    "memory": ("agentos.cli.commands.memory:memory", "List, search and forget what is remembered"),
    "channels": ("agentos.cli.commands.channels:channels", "Run channels, and see to what was not sent"),
    "workflows": ("agentos.cli.commands.workflows:workflows", "Start, see and decide on runs of workflows"),
    "audit": ("agentos.cli.commands.audit:audit", "List, verify and export the audit log"),
    "lock": ("agentos.cli.commands.lock:lock", "Agree on packs and tools as they are, or check that"),
    "serve": ("agentos.cli.commands.serve:serve", "Serve the tools to MCP clients"),
    "studio": ("agentos.cli.commands.studio:studio", "Open agentos in a browser"),
    "workers": ("agentos.cli.commands.workers:workers", "See, restart and read packs in processes of their own"),
    "mcp": ("agentos.cli.commands.mcp:mcp", "Take in MCP servers, and set up MCP clients"),
    "chat": ("agentos.cli.commands.chat:chat", "Talk to a model that may use the tools"),
    "config": ("agentos.cli.commands.setup:config", "Show the configuration, and where it came from"),
    "doctor": ("agentos.cli.commands.doctor:doctor", "Find what is wrong, with the cure"),
    "new": ("agentos.cli.commands.setup:new", "Begin a pack of your own"),
    "lint": ("agentos.cli.commands.lint:lint", "Find what packs could say better"),
    "watch": ("agentos.cli.commands.watch:watch", "Reload packs while they are being written"),
    "completion": ("agentos.cli.commands.completion:completion", "Print a completion script for your shell"),
}
"""Every command: where it is, and what it does in a few words."""

OLD_NAMES: dict[str, str] = {
    "audit show": "list",
    "grants revoke": "remove",
    "packs info": "show",
    "secrets set": "add",
    "secrets unset": "remove",
    "tokens issue": "add",
    "tokens revoke": "remove",
}
"""What commands of groups were called before; they answer to it, and nothing tells of it."""

OPTIONS: dict[str, str] = {
    "--manifest PATH": "The manifest file; else AGENTOS_MANIFEST, else agentos.toml, .yaml or .json here or above",
    "--principal ID": "Act for one of the manifest's principals; else for the host itself",
    "--json": "Answer with one JSON document",
    "--no-color": "Use no colours; NO_COLOR says the same",
    "-v, --verbose": "Tell more; twice for everything",
    "--version": "Print the version",
    "-h, --help": "Print this, or the help of a command",
}
"""The options of every command, which may stand before or behind its name."""

_INTRODUCTION = "Packs on stacks, one safe door for tool calls."
_EXAMPLES = ("agentos init", "agentos tools call greet name=Ada", "agentos why tool:greet", "agentos doctor")
_EXIT_CODES = {
    "0": "done",
    "1": "it was tried and failed, or something was found wrong",
    "2": "the command line can't be used",
    "3": "the configuration can't be used",
    "4": "refused, or it needs approval",
    "130": "interrupted",
    "143": "terminated",
}
WIDEST = 100
"""In how many columns help is written at most."""
_NARROWEST = 20


def terminal_width() -> int:
    """Return how many columns there are: like shutil's, which would cost more to import than all of this."""
    if (columns := os.environ.get("COLUMNS", "")).isdecimal() and int(columns) > 0:
        return int(columns)
    try:
        return os.get_terminal_size(1).columns or 80
    except (OSError, ValueError):
        return 80


def help_text(width: int) -> str:
    """Write the help of the whole command for a terminal of *width* columns."""
    width = max(_NARROWEST, min(width, WIDEST))
    commands = {name: short for name, (_, short) in COMMANDS.items()}
    lines = ["Usage: agentos [OPTIONS] COMMAND [ARGS]...", "", *_wrapped(_INTRODUCTION, width, "  ")]
    options = "Options, before or behind the command"
    for title, rows in (("Commands", commands), (options, OPTIONS), ("Exit codes", _EXIT_CODES)):
        lines += ["", f"{title}:", *_columns(rows, width)]
    lines += ["", "Examples:", *(f"  {example}" for example in _EXAMPLES)]
    return "\n".join([*lines, ""])


def _columns(rows: dict[str, str], width: int) -> list[str]:
    """Write names and what they mean side by side; in a narrow terminal, beneath each other."""
    indent = max(map(len, rows)) + 4
    lines = []
    for name, text in rows.items():
        if width < indent * 2:
            lines += [f"  {name}", *_wrapped(text, width, "    ")]
        else:
            first, *rest = _wrapped(text, width, " " * indent)
            lines += [f"  {name}".ljust(indent) + first[indent:], *rest]
    return lines


def _wrapped(text: str, width: int, indent: str) -> list[str]:
    lines = [indent]
    for word in text.split():
        if lines[-1] != indent and len(lines[-1]) + 1 + len(word) > width:
            lines.append(indent)
        lines[-1] += word if lines[-1] == indent else f" {word}"
    return lines

"""What is short enough for tables: variables, events, errors, kinds, exit codes, limits, secrets."""

import ast
import contextlib
import functools
import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs

import agentos
from _generate import api, cli
from _generate.markdown import code, first_sentence, prose, table
from agentos.cli import app as _app
from agentos.cli import command_list as _commands
from agentos.cli import host_session as _hosts
from agentos.cli.layered_config import VARIABLES
from agentos.errors import AgentOSError
from agentos.extensions.event import Event
from agentos.model.overrides import GROUPS
from agentos.secrets.catalog import SecretCatalog

HERE = Path(__file__).parent.parent
SOURCE = Path(agentos.__file__).parent

_OTHERS = {
    "NO_COLOR": "no colours, whatever the terminal can do",
    "COLUMNS": "how wide output is; without it, as wide as the terminal, and in a pipe rows are never broken",
}
_LIMITS = {
    "agentos.calls.results:CONTENT_LIMIT": "characters of a result that a model is given; the rest is cut, with a note",
    "agentos.calls.results:OUTPUT_LIMIT": "characters of JSON that are kept as output",
    "agentos.model.media:MEDIA_COUNT": "images, sounds and files that a result has",
    "agentos.access.stored_results:STORED_MEDIA": "bytes of media that are kept with a result that must last",
    "agentos.calls.results:STATE_LIMIT": "characters of JSON that are kept as state, as meta and as an error's details",
    "agentos.calls.invocation:DEPTH_LIMIT": "how deep tools may call tools",
    "agentos.access.proposals:PENDING_LIMIT": "proposals of one principal that wait at once",
    "agentos.access.idempotency:KEY_LIMIT": "characters of an idempotency key",
    "agentos.mcp.server.approval_prompts:DATA_LIMIT": (
        "characters of arguments, or of a preview, that a person at a client is shown"
    ),
    "agentos.rules.commands:LONGEST_COMMAND": "characters of a command line that a rule understands",
    "agentos.rules.intervention:LONGEST_REGEX": "characters of a regular expression in a rule",
    "agentos.model.parsing:SIZE_LIMIT": "bytes of a manifest, an override file or a catalog",
    "agentos.secrets.vaults:VALUE_LIMIT": "characters of a secret that is kept",
    "agentos.tools.search:RESULT_LIMIT": "tools that one search returns",
}
_BOUNDS = {
    "agentos.mcp.client.limits:ServerLimits": "An MCP server that was taken in",
    "agentos.mcp.http.serving:HTTPLimits": "A server over HTTP",
    "agentos.web.reach_policy:WebPolicy": "A guarded HTTP client",
    "agentos.access.budgets:Budget": "A budget",
}


def pages() -> dict[str, str]:
    """Return one page for each table."""
    return {
        "variables.md": _variables(),
        "events.md": _events(),
        "errors.md": _errors(),
        "kinds.md": _kinds(),
        "exit-codes.md": _exit_codes(),
        "limits.md": _limits(),
        "secrets.md": _secrets(),
    }


# -- variables -------------------------------------------------------------------------------------------------------


def _variables() -> str:
    options = {name: text for name, text in cli.variables().items() if name not in VARIABLES}
    ours = table(("variable", "what it says"), [(code(name), text) for name, text in VARIABLES.items()])
    more = table(("variable", "what it says"), [(code(name), text) for name, text in {**options, **_OTHERS}.items()])
    return (
        "# Environment variables\n\nA variable that is blank says nothing. `agentos doctor` names those that begin "
        f"with `AGENTOS_` and that nobody reads.\n\n{ours}\n## Others that are read\n\n{more}\n"
        "Secrets are read from variables as well: [Known secrets](secrets.md) lists them. A store at `postgresql://` "
        "reads `PGHOST`, `PGPORT` and `PGDATABASE` where its address leaves them out.\n"
    )


# -- events ----------------------------------------------------------------------------------------------------------


def events() -> list[type[Event]]:
    """Return the class of every event that is told, by its type."""
    for name in agentos.__all__:
        getattr(agentos, name)
    return sorted((one for one in _subclasses(Event) if "type" in vars(one)), key=lambda one: one.type)


def _subclasses(base: type) -> Iterator[type[Any]]:
    for one in base.__subclasses__():
        yield one
        yield from _subclasses(one)


def _events() -> str:
    rows = []
    for one in events():
        own = [field.name for field in attrs.fields(one) if field.name not in ("source", "timestamp")]
        properties = [name for name in dir(one) if isinstance(getattr(one, name, None), property)]
        carried = ", ".join(code(name) for name in (*own, *properties))
        rows.append((code(one.type), f"[{code(one.__name__)}](names/events.md)", carried, first_sentence(one.__doc__)))
    return (
        "# Events\n\n`host.extensions.on(listener)` hears all of them. Each has a `type`, a `timestamp` and a "
        "`source`: whose doing it was. They are delivered in the order in which things happened, before the call that "
        "caused them returns; a listener that raises is logged and changes nothing.\n\n"
        + table(("type", "class", "carries", "when"), rows)
    )


# -- errors ----------------------------------------------------------------------------------------------------------


@functools.cache
def tool_errors() -> frozenset[str]:
    """Return every type of error that a result is made with, anywhere in the code. All of it is read, once."""
    found = set()
    for file in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Call) and _name_of(node.func) in ("fail", "failure", "ToolError") and node.args:
                first = node.args[0]
                if isinstance(first, ast.Constant) and re.fullmatch(r"[A-Z][A-Za-z]+", str(first.value)):
                    found.add(str(first.value))
    return frozenset(found)


def _name_of(function: ast.expr) -> str:
    return str(getattr(function, "attr", getattr(function, "id", "")))


def explained() -> dict[str, str]:
    """Return what the guide to tools says of each type of error."""
    guide = (HERE / "tools.md").read_text("utf-8")
    rows = re.findall(r"^\| (`[A-Z]\w+`(?:, `[A-Z]\w+`)*) \| (.+) \|$", guide, re.MULTILINE)
    return {name: meaning for names, meaning in rows for name in re.findall(r"`(\w+)`", names)}


def _errors() -> str:
    _import_all()
    codes = vars(_hosts)["_CODES"]
    meanings = explained()
    results = [(code(one), meanings.get(one, ""), codes.get(one, 1)) for one in sorted(tool_errors())]
    lines = "\n".join(_tree(AgentOSError, 0))
    return (
        "# Errors\n\n## Of a call\n\nA call ends in a `ToolResult`; what went wrong is its `error`, whose `type` is "
        "one of these, or what a tool itself says in a `ToolResult` of its own. The last column is how the command "
        f"`agentos` exits.\n\n{table(('type', 'when', 'exit code'), results)}\n"
        f"## Exceptions\n\nWhat agentos raises on purpose is an `AgentOSError`.\n\n{lines}\n"
    )


def _import_all() -> None:
    """Import every module, so that every error is known, whoever asked for what before."""
    for found in pkgutil.walk_packages(agentos.__path__, "agentos."):
        if not found.name.endswith("__main__"):
            with contextlib.suppress(ImportError):  # an extra that is not installed
                importlib.import_module(found.name)


def _tree(error: type, depth: int) -> Iterator[str]:
    public = error.__name__ in agentos.__all__
    name = f"[{code(f'agentos.{error.__name__}')}](names/errors.md)" if public else code(_path_of(error))
    yield f"{'  ' * depth}- {name}: {first_sentence(error.__doc__)}"
    for one in sorted(set(error.__subclasses__()), key=lambda one: one.__name__):
        if one.__module__.startswith("agentos."):  # not of packs, whose modules begin with agentos_pack
            yield from _tree(one, depth + 1)


def _path_of(error: type) -> str:
    return f"{error.__module__}.{error.__name__}"


# -- kinds -----------------------------------------------------------------------------------------------------------


def _kinds() -> str:
    parts = [_kind(kind) for kind in agentos.KINDS]
    groups = table(("group", "kind"), [(code(name), code(kind)) for name, kind in GROUPS.items()])
    return (
        "# Kinds\n\nA kind is any string. Of these, agentos knows more than the name; a host makes its own known with "
        "[`declare_kind`](names/packs.md). Anything of another kind takes any payload, and is read by the host from "
        "its registry.\n\n"
        + "\n".join(parts)
        + f"\n## Names in overrides\n\nOverrides call a kind by its name, and some by "
        f"the name of a group:\n\n{groups}"
    )


def _kind(kind: agentos.Kind) -> str:
    module = importlib.import_module(kind.check.__module__)
    text = (inspect.getdoc(module) or "").partition(": ")[2]
    facts = {
        "definitions are pinned": kind.has_definitions,
        "running code may register it": kind.service is not None,
    }
    said = "\n".join(f"- {fact}: {'yes' if holds else 'no'}" for fact, holds in facts.items())
    return f"## `{kind.name}`\n\n{prose(text[:1].upper() + text[1:])}\n\n{said}\n"


# -- exit codes ------------------------------------------------------------------------------------------------------


def _exit_codes() -> str:
    known = {**vars(_commands)["_EXIT_CODES"], str(_app.TERMINATED): "terminated by SIGTERM"}
    calls: dict[int, list[str]] = {}
    for type_, number in vars(_hosts)["_CODES"].items():
        if type_ in tool_errors():
            calls.setdefault(number, []).append(code(type_))
    rows = [(code(number), text, ", ".join(calls.get(int(number), ()))) for number, text in known.items()]
    return (
        "# Exit codes\n\nThe last column is about `agentos tools call` and `approvals approve`: the types of errors "
        "that end in it. Any other type ends in 1.\n\n" + table(("code", "meaning", "errors of a call"), rows) + "\n"
        "`agentos serve` that is ended by SIGTERM exits with 0: that is how a service is ended.\n"
    )


# -- limits ----------------------------------------------------------------------------------------------------------


def _limits() -> str:
    rows = [(code(place.replace(":", ".")), f"{_value(place):,}", words) for place, words in _LIMITS.items()]
    parts = [_bound(_value(place), title) for place, title in _BOUNDS.items()]
    return (
        "# Limits\n\nEverything that comes from outside is bounded. These are the numbers in this version.\n\n"
        + table(("limit", "value", ""), rows)
        + "\n"
        + "\n".join(parts)
    )


def _value(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name)


def _bound(value: type, title: str) -> str:
    said = api.documented(value)
    rows = [
        (code(field.name), code(repr(field.default)), said.get(field.name, ""))
        for field in attrs.fields(value)
        if field.default is None or isinstance(field.default, int | float | str)
    ]
    text = prose(inspect.cleandoc(value.__doc__ or ""))
    return f"## {title}: `{value.__name__}`\n\n{text}\n\n{table(('field', 'default', ''), rows)}"


# -- secrets ---------------------------------------------------------------------------------------------------------


def _secrets() -> str:
    rows = [
        (code(one.id), ", ".join(code(name) for name in one.variables), one.description or one.label)
        for one in SecretCatalog.shipped()
    ]
    return (
        "# Known secrets\n\nThe shipped catalog: by which id packs ask for a secret, and from which variables it is "
        "read, the first that is set. A host may give a catalog of its own. [Catalog of secrets](files/secrets.md) has "
        "its format.\n\n" + table(("id", "variables", ""), rows)
    )

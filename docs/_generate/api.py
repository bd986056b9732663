"""The API: every public name, with its signature, its docstring, its fields and its methods."""

import ast
import enum
import importlib
import inspect
import re
import textwrap
from collections.abc import Iterator
from itertools import pairwise
from types import ModuleType
from typing import Any

import attrs

import agentos
from _generate.markdown import code, first_sentence, plain, prose, table
from agentos.base.lazy_exports import homes_of

_ROOMS = {
    "host": (
        "The host",
        (
            "agentos.host",
            "agentos.extensions.manager",
            "agentos.calls.orchestrator",
            "agentos.turn",
            "agentos.channels",
            "agentos._version",
        ),
    ),
    "packs": ("Packs, manifests and kinds", ("agentos.model", "agentos.kinds", "agentos.loading")),
    "stacks": ("Stacks", ("agentos.stacks",)),
    "secrets": ("Secrets", ("agentos.secrets",)),
    "tools": ("Tools", ("agentos.tools",)),
    "access": (
        "Access, approval and audit",
        ("agentos.access", "agentos.model.principal", "agentos.rules.intervention"),
    ),
    "events": (
        "Events",
        (
            *("agentos.extensions.event", "agentos.extensions.events"),
            *("agentos.tools.tool_events", "agentos.access.proposal_events"),
        ),
    ),
    "errors": ("Errors", ("agentos.errors",)),
    "more": ("More names", ("agentos",)),
}
"""The pages of the facade: a title, and whose names stand there. The longest home that fits counts."""

_MODULES = {
    "interop": ("agentos.interop", "LLM SDKs and frameworks"),
    "mcp": ("agentos.mcp", "MCP"),
    "web": ("agentos.web", "Guarded HTTP"),
    "testing": ("agentos.testing", "The kit for tests of packs"),
}
"""Modules of their own. One that is not there is left out."""

_BESIDE = {
    "interop": [
        *(f"agentos.interop.{one}:tools" for one in ("openai", "anthropic", "gemini", "mcp")),
        *(f"agentos.interop.{one}:run" for one in ("openai", "anthropic", "gemini")),
        "agentos.turn.chat:run_turn",
    ],
    "mcp": [
        "agentos.mcp.auth:Verified",
        "agentos.mcp.http.serving:HTTPLimits",
        "agentos.mcp.http.serving:root_routes",
        "agentos.mcp.http.gateway:principal_of",
    ],
    "secrets": ["agentos.secrets.vaults:SecretVault"],
    "tools": ["agentos.schema.validation:Checker", "agentos.schema.validation:BadArguments"],
}
"""What the guides use beside the public names of the packages."""

_HANDED_OUT = {
    *("Approvals", "LifecycleContext", "PackContext", "Registry", "ToolContext", "ToolOrchestrator", "ToolsService"),
}
"""What a host or a pack is handed and does not make: how it is made is nobody's business."""


def pages() -> dict[str, str]:
    """Return a page for each part of the API, and one that lists every name."""
    made = {room: _page(title, [("agentos", name) for name in names], room) for room, title, names in rooms()}
    made |= {key: _module_page(key, module) for key, module in modules().items()}
    return {f"api/{key}.md": text for key, text in made.items()} | {"api/index.md": _index(list(made))}


def kept_pages() -> dict[str, str]:
    """Return the same in Markdown that everybody renders: for whoever reads it where the code is."""
    made = {f"names/{path.removeprefix('api/')}": plain(text) for path, text in pages().items() if "index" not in path}
    return {**made, "names/index.md": _kept_index()}


def _kept_index() -> str:
    parts = [f"## {title}\n\n{_linked('agentos', names, key)}" for key, title, names in rooms()]
    parts += [
        f"## `{module.__name__}`\n\n{_linked(module.__name__, module.__all__, key)}"
        for key, module in modules().items()
    ]
    head = "# Public names\n\nWhat is not here, or begins with `_`, is private and may change.\n\n"
    return head + "\n".join(parts)


def _linked(module: str, names: list[str], page: str) -> str:
    home = importlib.import_module(module)
    ordered = sorted(names, key=str.lower)
    return table(
        ("name", ""), [(f"[{code(name)}]({page}.md#{name.lower()})", _summary(getattr(home, name))) for name in ordered]
    )


def rooms() -> Iterator[tuple[str, str, list[str]]]:
    """Yield each page of the facade: its key, its title, and the names that stand there."""
    by_room: dict[str, list[str]] = {key: [] for key in _ROOMS}
    for name in sorted(agentos.__all__, key=str.lower):
        by_room[_room_of(name)].append(name)
    for key, names in by_room.items():
        if names:
            yield key, _ROOMS[key][0], names


def modules() -> dict[str, ModuleType]:
    """Return the other public packages that are there."""
    found = {}
    for key, (name, _) in _MODULES.items():
        try:
            found[key] = importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name != name:
                raise
    return found


def _room_of(name: str) -> str:
    home = homes_of(agentos)[name]
    fits = {
        prefix: key for key, (_, homes) in _ROOMS.items() for prefix in homes if f"{home}.".startswith(f"{prefix}.")
    }
    return fits[max(fits, key=len)]


def _index(keys: list[str]) -> str:
    lists = [
        f"## `agentos`\n\n{_list('agentos', agentos.__all__)}",
        *(f"## `{module.__name__}`\n\n{_list(module.__name__, module.__all__)}" for module in modules().values()),
    ]
    toctree = "\n".join(keys)
    return (
        "# API\n\nEvery public name. What is not here, or begins with `_`, is private and may change.\n\n"
        f"```{{toctree}}\n:hidden:\n\n{toctree}\n```\n\n" + "\n\n".join(lists)
    )


def _list(module: str, names: list[str]) -> str:
    home = importlib.import_module(module)
    ordered = sorted(names, key=str.lower)
    return (
        table(
            ("name", ""), [(f"{{py:obj}}`{name} <{module}.{name}>`", _summary(getattr(home, name))) for name in ordered]
        )
        .replace("&#123;", "{")
        .replace("&lt;", "<")
    )


def _summary(value: Any) -> str:
    return first_sentence(inspect.getdoc(value)) if inspect.isclass(value) or callable(value) else "a constant"


def _page(title: str, names: list[tuple[str, str]], key: str) -> str:
    parts = [_described(*where) for where in names] + _beside(key)
    return f"# {title}\n\n" + "\n\n".join(parts) + "\n"


def _module_page(key: str, module: ModuleType) -> str:
    parts = [_described(module.__name__, name) for name in sorted(module.__all__, key=str.lower)]
    head = f"# {_MODULES[key][1]}: `{module.__name__}`\n\n{first_sentence(inspect.getdoc(module))}\n\n"
    return head + "\n\n".join(parts + _beside(key)) + "\n"


def _beside(key: str) -> list[str]:
    return [_described(*place.split(":")) for place in _BESIDE.get(key, ())]


# -- one name --------------------------------------------------------------------------------------------------------


def _described(module: str, name: str) -> str:
    value = getattr(importlib.import_module(module), name)
    if inspect.isclass(value):
        return _class(module, name, value)
    if inspect.isroutine(value):
        return _directive("function", f"{name}{signature_of(value)}", prose(inspect.getdoc(value)), value, module)
    return _directive("data", name, _constant(module, name, value), None, module)


def _directive(kind: str, head: str, body: str, value: Any, module: str = "", colons: int = 3) -> str:
    options = [f":module: {module}"] if module else []
    if inspect.iscoroutinefunction(value) or inspect.isasyncgenfunction(value):
        options.append(":async:")
    lines = [f"{':' * colons}{{py:{kind}}} {head}", *options, "", body, ":" * colons]
    return "\n".join(lines)


def _constant(module: str, name: str, value: Any) -> str:
    said = documented(importlib.import_module(homes_of(importlib.import_module(module))[name])).get(name, "")
    shown = repr(value)
    return f"{prose(said)}\n\nIts value is {code(shown)}." if len(shown) < 80 else prose(said)  # noqa: PLR2004 - a line


def _class(module: str, name: str, value: type) -> str:
    kind = "exception" if issubclass(value, BaseException) else "class"
    parts = [_bases(value), prose(_own_doc(value)), _members_of_enum(value), _fields(value), *_methods(value)]
    head = name if name in _HANDED_OUT or issubclass(value, enum.Enum) else f"{name}{signature_of(value)}"
    return _directive(kind, head, "\n\n".join(part for part in parts if part), None, module, colons=5)


def _own_doc(value: type) -> str:
    return inspect.cleandoc(value.__doc__ or "")


def _bases(value: type) -> str:
    named = [base.__name__ for base in value.__bases__ if base is not object and not base.__name__.startswith("_")]
    shown = [name for name in named if name not in ("Generic", "Protocol")]
    return f"Bases: {', '.join(code(name) for name in shown)}" if shown else ""


def _members_of_enum(value: type) -> str:
    if not issubclass(value, enum.Enum):
        return ""
    return table(("member", "value"), [(code(one.name), code(repr(one.value))) for one in value])


def _fields(value: type) -> str:
    if not attrs.has(value):
        return ""
    said = {name: text for base in reversed(value.__mro__) for name, text in documented(base).items()}
    rows = [
        (code(field.name), code(_type(field.type)), _default(field), said.get(field.name, ""))
        for field in attrs.fields(value)
        if not field.name.startswith("_")
    ]
    if not any(row[3] for row in rows):
        return table(("field", "type", "default"), [row[:3] for row in rows]) if rows else ""
    return table(("field", "type", "default", ""), rows)


def _default(field: "attrs.Attribute[Any]") -> str:
    if field.default is attrs.NOTHING:
        return "needed"
    if isinstance(field.default, attrs.Factory):  # type: ignore[arg-type]  # attrs says it is a function
        made = field.default.factory
        return code(f"{made.__name__}()") if inspect.isclass(made) else "made anew"
    return code(_value(field.default))


def _methods(value: type) -> Iterator[str]:
    for name, member in _public_members(value):
        function = member.__func__ if isinstance(member, classmethod | staticmethod) else member
        if isinstance(member, property):
            kept = inspect.signature(member.fget).return_annotation if member.fget else inspect.Signature.empty
            head = f"::::{{py:property}} {name}\n:type: {_type(kept)}\n"
            yield f"{head}\n{prose(inspect.getdoc(member))}\n::::"
        elif inspect.isfunction(function):
            kind = "classmethod" if isinstance(member, classmethod) else "method"
            kind = "staticmethod" if isinstance(member, staticmethod) else kind
            signature = signature_of(function, skip=0 if kind == "staticmethod" else 1)
            yield _directive(kind, f"{name}{signature}", prose(inspect.getdoc(function)), function, colons=4)


def _public_members(value: type) -> Iterator[tuple[str, Any]]:
    """Yield what a class and its own bases define, in the order in which it is written."""
    seen = set()
    for base in value.__mro__:
        if not base.__module__.startswith("agentos"):
            continue
        for name, member in vars(base).items():
            if not name.startswith("_") and name not in seen:
                seen.add(name)
                yield name, member


# -- signatures ------------------------------------------------------------------------------------------------------


class _Shown:
    """Something that is shown by the text it was made with."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


def signature_of(value: Any, skip: int = 0) -> str:
    """Return the signature with short names of types, and with defaults that can be written."""
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return "()"
    kept = list(signature.parameters.values())[skip:]
    shown = [
        one.replace(annotation=_annotation(one.annotation), default=_shown_default(one.default))
        for one in kept
        if not one.name.startswith("_")
    ]
    result = inspect.Signature.empty if inspect.isclass(value) else _annotation(signature.return_annotation)
    return str(inspect.Signature(shown, return_annotation=result, __validate_parameters__=False))


def _annotation(annotation: Any) -> Any:
    return annotation if annotation is inspect.Signature.empty else _Shown(_type(annotation))


def _shown_default(default: Any) -> Any:
    return default if default is inspect.Parameter.empty else _Shown(_value(default))


def _type(annotation: Any) -> str:
    if annotation in (inspect.Signature.empty, None):
        return "None" if annotation is None else ""
    if isinstance(annotation, str):
        text = annotation
    else:
        text = (
            annotation.__qualname__ if inspect.isclass(annotation) and not _has_args(annotation) else repr(annotation)
        )
    text = re.sub(r"ForwardRef\('([^']*)'\)", r"\1", text)
    text = re.sub(r"<class '([^']*)'>", r"\1", text).replace("NoneType", "None")
    return re.sub(r"(?<!['\w])(?:\w+\.)+(?=\w)", "", text).replace("~", "").strip("\"'")


def _has_args(annotation: Any) -> bool:
    return bool(getattr(annotation, "__args__", ()))


def _value(default: Any) -> str:
    if default is attrs.NOTHING:
        return "..."
    if inspect.isroutine(default) or inspect.isclass(default):
        return str(default.__name__)
    if isinstance(default, enum.Enum):
        return str(default)
    text = repr(default)
    return "..." if text.startswith("<") or len(text) > 60 else text  # noqa: PLR2004 - long ones say nothing


# -- docstrings of constants and fields ------------------------------------------------------------------------------


def documented(owner: Any) -> dict[str, str]:
    """Return the texts that stand beneath constants of a module or fields of a class."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(owner)))
    except (OSError, TypeError, SyntaxError):
        return {}
    body = tree.body[0].body if inspect.isclass(owner) and isinstance(tree.body[0], ast.ClassDef) else tree.body
    found = {}
    for before, after in pairwise(body):
        target = before.target if isinstance(before, ast.AnnAssign) else getattr(before, "targets", [None])[0]
        if isinstance(target, ast.Name) and isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            found[target.id] = inspect.cleandoc(str(after.value.value))
    return found

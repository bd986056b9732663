"""MCP servers as a manifest names them: the format of desktop clients, checked, as values and as entries of packs."""

import itertools
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

import attrs

from agentos.base.extras import import_extra
from agentos.errors import ManifestError, Problem
from agentos.mcp.client.server_spec import REFERENCE, SECRET, ServerSpec
from agentos.model.extension_pack import ExtensionPack
from agentos.model.field_checks import fault_of_name
from agentos.model.manifest import ExtensionManifest, PackEntry, fault_of_server_name
from agentos.model.parsing import check, plain, show_path
from agentos.tools.tool import PUBLIC, Access

_SOUNDS_SECRET = re.compile(
    r"token|secret|passw|credential|cookie|api[-_]?key|authoriz|auth(?!or)|_key$|^key$", re.IGNORECASE
)
_SCHEME = re.compile(r"(Basic|Bearer|Token|ApiKey)\s+", re.IGNORECASE)
_VARIABLE = re.compile(r"[^=\x00]+")
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_REFERENCE_START = "${secret:"
_OWN_HEADERS = frozenset({"accept", "accept-encoding", "content-type", "content-length", "host", "transfer-encoding"})

_REACHED = ("command", "args", "env", "cwd", "url", "headers")

# -- from a manifest ---------------------------------------------------------------------------------------------


def server_entries(manifest: ExtensionManifest, *, limits: Any = None) -> list[PackEntry]:
    """Return an entry for each MCP server that *manifest* names, in its order: the packs `mcp/<name>`."""
    return [_entry(server, limits) for server in parse_servers(manifest.mcp_servers)]


def _entry(server: ServerSpec, limits: Any) -> PackEntry:
    return PackEntry(
        factory=_PackFactory(server, limits),
        identifier=server.owner,
        options={"secrets": server.own_secrets} if server.own_secrets else {},
        priority=server.priority,
        enabled=server.enabled,
        required=server.required,
        permissions=("tools:register",),
    )


@attrs.frozen
class _PackFactory:
    """Makes the pack of a server."""

    server: ServerSpec
    limits: Any
    starts_when_called: bool = False

    @property
    def bound_to(self) -> Mapping[str, Any]:
        """Return what a proposal of one of its tools is bound to: how the server is reached, with no secret in it."""
        return {name: getattr(self.server, name) for name in _REACHED}

    def __call__(self) -> ExtensionPack:
        import_extra("mcp", "mcp")
        from agentos.mcp.client.bridge import make_pack  # the SDK takes most of a second to import

        return make_pack(self.server, self.limits, starts_when_called=self.starts_when_called)


def start_when_called(entries: Iterable[PackEntry]) -> list[PackEntry]:
    """Return *entries*, with each MCP server among them started when it is called, if its tools are known by then.

    They are known from earlier runs, by the definitions that were accepted. One that is `required` is started.
    """
    return [_started_when_called(entry) for entry in entries]


def _started_when_called(entry: PackEntry) -> PackEntry:
    if not isinstance(entry.factory, _PackFactory) or entry.required:
        return entry
    return attrs.evolve(entry, factory=attrs.evolve(entry.factory, starts_when_called=True))


def parse_servers(raw: Mapping[str, Any], origin: str = "manifest") -> list[ServerSpec]:
    """Return the servers of an `mcpServers` mapping; raise ManifestError with every mistake in it."""
    if not raw:
        return []
    data = plain({"mcpServers": raw}, origin)
    problems = check(data, "manifest") or [one for name, given in raw.items() for one in _problems(name, given)]
    if problems:
        raise ManifestError(origin, problems)
    return [_server(name, given) for name, given in data["mcpServers"].items()]


def _server(name: str, given: Mapping[str, Any]) -> ServerSpec:
    env, headers = dict(given.get("env", {})), dict(given.get("headers", {}))
    own = {**_extract_secrets(env, f"mcp.{name}.env"), **_extract_secrets(headers, f"mcp.{name}.headers")}
    plain_fields = ("command", "cwd", "url", "trust", "priority", "timeout", "required", "prefix", "elicitation")
    return ServerSpec(
        name=name,
        args=tuple(given.get("args", ())),
        env=MappingProxyType(env),
        headers=MappingProxyType(headers),
        own_secrets=MappingProxyType(own),
        enabled=given.get("enabled", not given.get("disabled", False)),
        start_timeout=given.get("startTimeout", 10.0),
        tools=_patterns(given, "tools"),
        resources=_patterns(given, "resources"),
        prompts=_patterns(given, "prompts"),
        effects=MappingProxyType(dict(given.get("effects", {}))),
        required_access=_access(name, given.get("requiredAccess")),
        **{field: given[field] for field in plain_fields if field in given},
    )


def _patterns(given: Mapping[str, Any], group: str) -> tuple[str, ...] | None:
    return tuple(given[group]) if group in given else None


def _access(name: str, given: Sequence[str] | str | None) -> Access:
    if given == "PUBLIC":
        return PUBLIC
    return tuple(given) if given is not None else (f"mcp:{name}",)


def _extract_secrets(values: dict[str, str], prefix: str) -> dict[str, str]:
    """Take values that sound secret out of *values*, leave references in their place, and return them by id."""
    found: dict[str, str] = {}
    for name, value in values.items():
        if not value.strip() or REFERENCE.search(value) or not _SOUNDS_SECRET.search(name):
            continue
        scheme = match[0] if (match := _SCHEME.match(value)) else ""
        id = _free_id(f"{prefix}.{re.sub('[^A-Za-z0-9_.-]', '-', name)}", found)
        found[id] = value[len(scheme) :]
        values[name] = f"{scheme}${{secret:{id}}}"
    return found


def _free_id(id: str, taken: Collection[str]) -> str:
    """Return *id*, or with a number what nobody has: names that differ in a sign alone are written the same."""
    numbered = (f"{id}-{number}" for number in itertools.count(2))
    return next(one for one in itertools.chain([id], numbered) if one not in taken)


# -- what a JSON Schema can't say --------------------------------------------------------------------------------


def _problems(name: str, given: Mapping[str, Any]) -> Iterator[Problem]:
    if fault := fault_of_server_name(name):
        yield Problem(show_path(("mcpServers", name)), fault)
    for path, fault in _faults(given):
        yield Problem(show_path(("mcpServers", name, *path)), fault)


def _faults(given: Mapping[str, Any]) -> Iterator[tuple[tuple[str | int, ...], str]]:
    yield from _faults_of_place(given)
    for key in ("alwaysAllow", "autoApprove"):
        if key in given:
            yield (key,), "not taken from a manifest; say with grants which calls run unasked, for each principal"
    for group, fits in (("env", _VARIABLE), ("headers", _HEADER)):
        for key, value in given.get(group, {}).items():
            if not fits.fullmatch(key):
                yield (group, key), "expected a name that can be sent"
            elif fault := _fault_of_value(value, "\0" if group == "env" else "\0\r\n"):
                yield (group, key), fault
            elif group == "headers" and key.lower() in _OWN_HEADERS:
                yield (group, key), "this header is set by the client; leave it out"
    access = given.get("requiredAccess")
    if isinstance(access, str) and access != "PUBLIC":
        yield ("requiredAccess",), 'expected a list of rules, or the word "PUBLIC"'
    elif access is not None and not isinstance(access, str):
        yield from _faults_of_rules(access)


def _faults_of_rules(rules: Sequence[str]) -> Iterator[tuple[tuple[str | int, ...], str]]:
    if not rules:
        yield ("requiredAccess",), 'expected at least one rule; say "PUBLIC" if everybody may call its tools'
    for index, rule in enumerate(rules):
        if fault := fault_of_name(rule) or ("expected a rule, not '*'" if rule == "*" else None):
            yield ("requiredAccess", index), fault


def _faults_of_place(given: Mapping[str, Any]) -> Iterator[tuple[tuple[str | int, ...], str]]:
    foreign, place = (("url", "headers"), "command") if "command" in given else (("args", "env", "cwd"), "url")
    for key in foreign:
        if key in given:
            yield (key,), f"does not go with {place}"
    for key in ("type", "transport"):
        if key in given and (given[key] == "stdio") != ("command" in given):
            yield (key,), f"does not go with {place}"
    words = [("command",), ("cwd",), ("url",)]
    words += [("args", index) for index in range(len(given.get("args", ())))]  # type: ignore[misc]
    for path in words:
        text = given.get(path[0], "") if len(path) == 1 else given["args"][path[1]]
        if "\0" in text:
            yield path, "expected text without NUL characters"
        elif _REFERENCE_START in text:
            yield path, "secrets are filled in in env and headers only: others can see what stands here"
    if "url" in given and (fault := _fault_of_url(given["url"])):
        yield ("url",), fault


def _fault_of_url(url: str) -> str | None:
    """Say what keeps *url* from being a server's address, without quoting it: it may hold a password."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return "expected an address such as https://example.com/mcp"
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        return "expected an address such as https://example.com/mcp; only http and https are spoken"
    if parts.username is not None or parts.password is not None:
        return "expected no user or password in the address; put them in headers, as ${secret:<id>}"
    if not url.isprintable() or any(char.isspace() for char in url) or "${" in url:
        return "expected an address without white space and without ${...}; nothing is filled in here"
    return None


def _fault_of_value(value: str, refused: str) -> str | None:
    if any(char in value for char in refused):
        return "expected text that can be sent, without line ends or NUL characters"
    for reference in REFERENCE.findall(value):
        if not SECRET.fullmatch(reference):
            return (
                "only ${secret:<id>} is filled in, not variables of the environment; write ${secret:<id>} and let the "
                "secret catalog name the variable"
            )
    if _REFERENCE_START in value and "}" not in value.rpartition(_REFERENCE_START)[2]:
        return "a reference has no end; write ${secret:<id>}"
    return None

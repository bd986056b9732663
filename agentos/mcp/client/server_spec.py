"""One MCP server, as an operator describes it."""

import re
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase

import attrs

from agentos.model.descriptor import SecretRequirement
from agentos.tools.tool import PUBLIC, Access, Effect

UNTRUSTED_PRIORITY = -1
"""The rank of a server that nobody vouches for: it can't take the place of a pack's tool."""
REFERENCE = re.compile(r"\$\{([^}]*)\}")
SECRET = re.compile(r"secret:([A-Za-z0-9_.-]+)")
"""What stands in a reference to a secret."""

ReadSecret = Callable[[str], str | None]


class MissingSecretError(LookupError):
    """A server needs a secret that has no value now."""


class UnfitSecretError(ValueError):
    """A server needs a secret whose value can't be sent where it is wanted."""


@attrs.frozen(kw_only=True)
class ServerSpec:
    """One MCP server: a command to start, or a url, and what the operator says of its tools.

    `env` and `headers` may refer to secrets as `${secret:<id>}`. Values that stand there in the clear and sound secret
    are kept apart in `own_secrets`, so that they are masked like all others.
    """

    name: str
    command: str | None = None
    args: tuple[str, ...] = attrs.field(default=(), repr=False)
    env: Mapping[str, str] = attrs.field(factory=dict, repr=False)
    cwd: str | None = None
    url: str | None = attrs.field(default=None, repr=False)
    headers: Mapping[str, str] = attrs.field(factory=dict, repr=False)
    own_secrets: Mapping[str, str] = attrs.field(factory=dict, repr=False)
    trust: bool = False
    enabled: bool = True
    priority: int | None = None
    timeout: float = 120.0
    start_timeout: float = 10.0
    tools: tuple[str, ...] | None = None
    prefix: str = ""
    resources: tuple[str, ...] | None = None
    prompts: tuple[str, ...] | None = None
    effects: Mapping[str, Effect] = attrs.field(factory=dict)
    required_access: Access
    required: bool = False
    elicitation: bool | None = None

    @property
    def may_ask(self) -> bool:
        """Tell whether it may put a form before the person whose call it runs: one that is trusted, unless said."""
        return self.trust if self.elicitation is None else self.elicitation

    @property
    def owner(self) -> str:
        """Return the name of the pack that the server becomes."""
        return f"mcp/{self.name}"

    @property
    def is_public(self) -> bool:
        """Tell whether every principal may use it."""
        return self.required_access is PUBLIC

    @property
    def rank(self) -> int:
        """Return the priority of its tools."""
        if self.priority is not None:
            return self.priority
        return 0 if self.trust else UNTRUSTED_PRIORITY

    @property
    def secrets(self) -> tuple[SecretRequirement, ...]:
        """Return the secrets that it can't do without."""
        values = [*self.env.values(), *self.headers.values()]
        found = (match[1] for value in values for word in REFERENCE.findall(value) if (match := SECRET.fullmatch(word)))
        return tuple(SecretRequirement(id) for id in dict.fromkeys(found))

    def shown_name(self, tool: str) -> str:
        """Return the name under which a tool of the server is offered."""
        return self.prefix + tool

    def takes(self, tool: str) -> bool:
        """Tell whether the operator lets a tool of that name in."""
        return _is_named(tool, self.tools)

    def takes_resource(self, uri: str) -> bool:
        """Tell whether the operator lets a resource of that address, or a template, in."""
        return _is_named(uri, self.resources)

    def takes_prompt(self, name: str) -> bool:
        """Tell whether the operator lets a prompt of that name in."""
        return _is_named(name, self.prompts)

    def effect_of(self, tool: str) -> Effect | None:
        """Return what the operator says that a tool does: by its name, else by the first pattern that fits."""
        if tool in self.effects:
            return self.effects[tool]
        return next((effect for pattern, effect in self.effects.items() if fnmatchcase(tool, pattern)), None)


def _is_named(name: str, patterns: tuple[str, ...] | None) -> bool:
    return patterns is None or any(fnmatchcase(name, pattern) for pattern in patterns)


def with_secrets(values: Mapping[str, str], read: ReadSecret) -> dict[str, str]:
    """Return *values* with every secret in its place; raise MissingSecretError if one has no value."""

    def value_of(match: re.Match[str]) -> str:
        id = match[1].removeprefix("secret:")
        value = read(id)
        if value is None:
            raise MissingSecretError(f"the secret {id!r} has no value")
        return value

    return {name: REFERENCE.sub(value_of, value) for name, value in values.items()}


def header_reader(read: ReadSecret) -> ReadSecret:
    """Return *read* for values that are sent as headers: without white space around them, which files often end with.

    It raises UnfitSecretError where a value can't be sent: what refuses it later would write it to a log.
    """

    def value_of(id: str) -> str | None:
        value = read(id)
        if value is None:
            return None
        if not (value := value.strip()).isascii() or not value.isprintable():
            raise UnfitSecretError(f"the secret {id!r} can't be sent in a header: expected one line of ASCII")
        return value

    return value_of

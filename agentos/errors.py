"""The one tree of errors.

AgentOSError
├── ManifestError            a manifest, override file or catalog that can't be used; `problems` lists every mistake
├── PackLoadError            a pack that could not be loaded; `key`, `origin`
│   └── UnknownPackError     no pack of that key is loaded
├── DescriptorError          a descriptor that can't be registered
├── HookError                a lifecycle hook that raised or took too long; `where`
├── SecretError              a secret that can't be read or set
│   └── SecretNotDeclaredError
├── ServiceError             a shared service that can't be made
├── ToolDefinitionError      a function that can't be a tool as it is written; `function`, `parameter`
├── RuleError                a rule over arguments that can't be used as it is written; `place`
├── NotPermittedError        a pack did what its manifest entry does not permit
├── StoreError               the store can't be opened, read or written
└── ManagerClosedError       a change asked of a manager that was shut down

Every error says what happened (`message`) and, where there is one, the way out (`hint`); str() shows both. Other data
is in attributes: nobody has to read a text again to know what it is about.
"""

from collections.abc import Sequence

import attrs


class AgentOSError(Exception):
    """The base of every error that agentos raises on purpose.

    str() is *about*, which names what it is about, *message* and *hint*: a sentence of its own if it begins with a
    capital letter, else behind a semicolon.
    """

    def __init__(self, message: str = "", *, hint: str | None = None, about: str = "") -> None:
        end = "" if hint is None else f". {hint}" if hint[:1].isupper() else f"; {hint}"
        super().__init__(f"{about}{message}{end}")
        self.message = message
        self.hint = hint


@attrs.frozen
class Problem:
    """One mistake in a file: where it is, and what is wrong with it."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path or '(top level)'}: {self.message}"


class ManifestError(AgentOSError, ValueError):
    """A manifest, an override file or a catalog that can't be used."""

    def __init__(self, origin: str, problems: Sequence[Problem]) -> None:
        lines = "\n".join(f"  {problem}" for problem in problems)
        count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
        super().__init__(f"{origin} has {count}:\n{lines}")
        self.origin = origin
        self.problems = tuple(problems)


class PackLoadError(AgentOSError):
    """A pack that could not be loaded, reloaded or enabled."""

    def __init__(self, key: str, message: str, *, origin: str | None = None) -> None:
        place = f" ({origin})" if origin and origin != key else ""
        super().__init__(message, about=f"pack {key!r}{place}: ")
        self.key = key
        self.origin = origin


class UnknownPackError(PackLoadError, LookupError):
    """No pack of that key is loaded."""

    def __init__(self, key: str, known: Sequence[str]) -> None:
        listing = ", ".join(known) if known else "none"
        super().__init__(key, f"is not loaded. Loaded packs: {listing}")
        self.known = tuple(known)


class DescriptorError(AgentOSError, ValueError):
    """A descriptor that can't be registered."""


class HookError(AgentOSError):
    """A lifecycle hook that raised or took too long."""

    def __init__(self, where: str, message: str) -> None:
        super().__init__(message, about=f"{where} ")
        self.where = where


class SecretError(AgentOSError):
    """A secret that can't be read or set."""


class SecretNotDeclaredError(SecretError, LookupError):
    """A pack asked for a secret that none of its descriptors declares."""

    def __init__(self, pack: str, id: str, why: str) -> None:
        super().__init__(why, about=f"pack {pack!r} may not read the secret {id!r}: ")
        self.pack = pack
        self.id = id


class ServiceError(AgentOSError):
    """A shared service that can't be made."""

    def __init__(self, id: str, message: str) -> None:
        super().__init__(message, about=f"service {id!r} ")
        self.id = id


class ToolDefinitionError(AgentOSError, TypeError):
    """A function that can't be a tool as it is written."""

    def __init__(self, function: str, parameter: str, message: str) -> None:
        super().__init__(message, about=f"{function}({parameter}): " if parameter else f"{function}: ")
        self.function = function
        self.parameter = parameter


class RuleError(AgentOSError, ValueError):
    """A rule over arguments that can't be used as it is written."""

    def __init__(self, place: str, message: str) -> None:
        super().__init__(message, about=f"{place}: " if place else "")
        self.place = place


class NotPermittedError(AgentOSError):
    """A pack did something that its manifest entry does not permit."""

    def __init__(self, pack: str, permission: str) -> None:
        super().__init__(
            f"pack {pack!r} lacks the permission {permission!r}", hint="add it to `permissions` of its manifest entry"
        )
        self.pack = pack
        self.permission = permission


class StoreError(AgentOSError):
    """The store can't be opened, read or written."""


class ManagerClosedError(AgentOSError):
    """A change was asked of a manager that was shut down."""

    def __init__(self) -> None:
        super().__init__("this manager was shut down", hint="make a new ExtensionManager")

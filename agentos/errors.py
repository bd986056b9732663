"""The one tree of errors.

AgentOSError
├── ManifestError            a manifest, override file or catalog that can't be used; `problems` lists every mistake
├── OptionsError             a pack's options that can't be used; `problems` lists every mistake
├── PackLoadError            a pack that could not be loaded; `key`, `origin`
│   └── UnknownPackError     no pack of that key is loaded
├── DescriptorError          a descriptor that can't be registered
│   └── KindError            a kind that can't be declared, or whose name is a known one's misspelled
├── HookError                a lifecycle hook that raised or took too long; `where`
├── SecretError              a secret that can't be read or set
│   └── SecretNotDeclaredError
├── ServiceError             a shared service that can't be made
├── ToolDefinitionError      a function that can't be a tool as it is written; `function`, `parameter`
├── RuleError                a rule over arguments that can't be used as it is written; `place`
├── NotPermittedError        a pack did what its manifest entry does not permit
├── GuardrailBlockedError    a guardrail let a text not pass; `guard`, `code`, `reason`, `stage`
├── RequiredGuardrailError   required guardrails that are not in force; `missing`
├── ResponseRefusedError     a response that a required processor could not process; `processor`
├── WorkerDiedError          the worker of a pack that died, or can't be had; `pack`, `why`, `may_have_run`
├── BusError                 a message that could not be published, or a topic that can't be subscribed to
├── MemoryProviderError      what was to be remembered or forgotten could not be; `provider`
├── PersonaError             a persona that is not in force, or whose prompt can't be made; `persona`
├── PlanningError            a plan that can't be made or kept true; `strategy`
├── WorkflowError            a workflow or a run that is unknown, or can't be used so; how a run ended; `run`
│   └── StepFailedError      a step of a run that failed; `step`, `type`, `details`
├── WrongPrincipalError      what belongs to one principal was used for another; `owner`, `given`
├── StoreError               the store can't be opened, read or written
└── ManagerClosedError       a change asked of a manager that was shut down

Every error says what happened (`message`) and, where there is one, the way out (`hint`); str() shows both. Other data
is in attributes: nobody has to read a text again to know what it is about.
"""

from collections.abc import Mapping, Sequence
from typing import Any

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


class OptionsError(AgentOSError, ValueError):
    """A pack's options that can't be used; `problems` has every mistake. Values are not told: they may be secrets."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        lines = [str(problem) for problem in problems]
        head = [] if len(lines) == 1 else [f"the options have {len(lines)} problems:"]
        super().__init__("\n  ".join([*head, *lines]))
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


class KindError(DescriptorError):
    """A kind that can't be declared, or a descriptor whose kind is a known one's misspelled."""


class GuardrailBlockedError(AgentOSError):
    """A guardrail let a text not pass. The text itself is in no attribute."""

    def __init__(self, guard: str, code: str | None, reason: str, stage: str) -> None:
        super().__init__(reason or "no reason given", about=f"the guardrail {guard!r} blocked the {stage}: ")
        self.guard = guard
        self.code = code
        self.reason = reason
        self.stage = stage


class RequiredGuardrailError(AgentOSError):
    """Required guardrails that are not in force: nothing is let through without them."""

    def __init__(self, missing: Mapping[str, str]) -> None:
        shown = "; ".join(f"{id} ({why})" for id, why in missing.items())
        hint = "Load a pack that offers each, or take it out of required_guardrails"
        super().__init__(f"required guardrails that are not in force: {shown}", hint=hint)
        self.missing = tuple(missing)


class ResponseRefusedError(AgentOSError):
    """A required response processor could not process a response."""

    def __init__(self, processor: str, why: str) -> None:
        super().__init__(why, about=f"the response was refused: its required processor {processor!r} ")
        self.processor = processor


class WorkerDiedError(AgentOSError):
    """The worker of a pack died while it was asked for something, or can't be had to be asked."""

    def __init__(self, pack: str, why: str, *, may_have_run: bool) -> None:
        effect = "what was asked for may have been done" if may_have_run else "nothing was done"
        super().__init__(f"{why}; {effect}", about=f"the worker of pack {pack!r}: ")
        self.pack = pack
        self.why = why
        self.may_have_run = may_have_run


class BusError(AgentOSError):
    """A message that could not be published, or a topic that can't be subscribed to."""


class MemoryProviderError(AgentOSError):
    """A memory-provider could not keep or delete what it was asked to, or there is none."""

    def __init__(self, provider: str | None, why: str) -> None:
        hint = "load a pack that offers one, such as sqlite-memory" if provider is None else None
        super().__init__(why, hint=hint)
        self.provider = provider


class NotSentError(AgentOSError):
    """A channel's message was certainly not sent: it is tried again, after *retry_after* seconds at the least.

    With *is_final* it is not: the service will never take it.
    """

    def __init__(self, why: str, *, retry_after: float | None = None, is_final: bool = False) -> None:
        super().__init__(why)
        self.retry_after = retry_after
        self.is_final = is_final


class ChannelError(AgentOSError, LookupError):
    """A channel or a dead letter that is not there, or can't be used so."""


class PersonaError(AgentOSError, LookupError):
    """A persona that is not in force, or whose prompt can't be made."""

    def __init__(self, persona: str, message: str) -> None:
        super().__init__(message)
        self.persona = persona


class PlanningError(AgentOSError):
    """A planning-strategy failed, or there is none."""

    def __init__(self, strategy: str | None, message: str) -> None:
        super().__init__(message)
        self.strategy = strategy


class WorkflowError(AgentOSError, LookupError):
    """A workflow or a run that is unknown, or can't be used so; or a run that failed or was cancelled.

    `problems` has every mistake in a workflow that is data.
    """

    def __init__(
        self, message: str, *, run: str | None = None, type: str = "WorkflowError", problems: Sequence[Problem] = ()
    ) -> None:
        super().__init__(message)
        self.run = run
        self.type = type
        self.problems = tuple(problems)


class StepFailedError(WorkflowError):
    """A step of a run failed. `type` is the type of the tool's error, or the class of what was raised."""

    def __init__(self, step: str, type: str, message: str, details: Mapping[str, Any] | None = None) -> None:
        super().__init__(message, type=type)
        self.step = step
        self.details = dict(details or {})


class WrongPrincipalError(AgentOSError, ValueError):
    """What was made for one principal was used for another."""

    def __init__(self, what: str, owner: str, given: str) -> None:
        super().__init__(f"{what} was made for {owner!r}, not for {given!r}", hint=f"make one for {given!r}")
        self.owner = owner
        self.given = given


class StoreError(AgentOSError):
    """The store can't be opened, read or written.

    One that is `unavailable` says nothing of what is in it: the disk is full, somebody has it locked, the key is gone.
    `full_disk` tells that it is the disk.
    """

    def __init__(
        self, message: str = "", *, hint: str | None = None, unavailable: bool = False, full_disk: bool = False
    ) -> None:
        super().__init__(message, hint=hint)
        self.unavailable = unavailable or full_disk
        self.full_disk = full_disk

    @property
    def for_callers(self) -> str:
        """End a sentence for whoever made a call, who is told of no place and no address."""
        return ": the disk is full" if self.full_disk else "; the host's log says why"


class ManagerClosedError(AgentOSError):
    """A change was asked of a manager that was shut down."""

    def __init__(self) -> None:
        super().__init__("this manager was shut down", hint="make a new ExtensionManager")

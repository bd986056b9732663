"""The pack that is examined: where it comes from, and hosts that have it loaded without letting it do harm."""

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Literal

import attrs

from agentos import (
    AgentOS,
    Descriptor,
    Entry,
    EntryState,
    ExtensionPack,
    PackContext,
    PackEntry,
    PackLoadError,
    PackOutcome,
    Tool,
    ToolCall,
    ToolResult,
)
from agentos.base.foreign import Border
from agentos.loading.finder import Finder, FoundPack
from agentos.secrets.known_secrets import needs_of
from agentos.stacks.reasons import HOLLOW
from agentos.testing._examination_settings import seed_folder
from agentos.testing._pack_sources import as_entry, folder_named
from agentos.testing._preparation import Prepare, prepared
from agentos.testing._sandbox import Sandbox, enter_sandbox, fill_placeholders
from agentos.testing._watchdog import EndlessCall, SkippedCall, Watchdog
from agentos.testing.fakes import FakeSecrets, fake_secrets
from agentos.testing.hostile import valid_arguments
from agentos.testing.hosts import Events, capture_events, make_host
from agentos.tools.lint.findings import Finding, Severity
from agentos.tools.tool import as_tool

Alter = Callable[[list[Descriptor[Any]]], Iterable[Descriptor[Any]]]
_ASKING = (None, "required", "always")


class NotLoadedError(Exception):
    """The pack could not be loaded, so that there is nothing to look at."""


@attrs.define(eq=False)
class Candidate:
    """A pack under examination, and what its author says about it."""

    source: Any
    options: Mapping[str, Any] = attrs.field(factory=dict)
    secrets: Mapping[str, str] = attrs.field(factory=dict, repr=False)
    samples: Mapping[str, Any] = attrs.field(factory=dict, repr=False)
    beneath: Sequence[Any] = ()
    seed: str | Path | None = None
    """A folder that is copied into `{tmp}` of every sandbox."""
    prepare: Prepare | None = attrs.field(default=None, repr=False)
    """What is entered in every sandbox, after *seed* was copied, and left after the check."""
    sandboxed: bool = False
    isolation: Literal["inline", "process"] = "inline"
    """Where the pack runs: in this process, or in one of its own."""
    limit: float = 5.0
    """For how many seconds a call may run."""
    grace: float = 2.0
    """For how many seconds what was told to end may take to end."""
    cases: int = 200
    said_in: Mapping[str, str] = attrs.field(factory=dict, repr=False)
    """By the names of settings, in which file they stand: what is wrong with them is told with it."""
    name: str = ""
    pack: ExtensionPack | None = None
    succeeded: set[str] = attrs.field(factory=set, repr=False)
    """The tools of which a call succeeded, in whatever check; one that was only previewed did not."""
    uncancellable: set[str] = attrs.field(factory=set, repr=False)
    """The tools that went on when they were cancelled, or could not be called again: they are called no more."""
    cache: dict[Any, Any] = attrs.field(factory=dict, repr=False)
    """What was worked out once and is of use to several checks."""
    _entry: PackEntry = attrs.field(init=False, repr=False)
    _source_found: FoundPack | None = attrs.field(default=None, init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        entry = as_entry(self.source, self.options)
        self._entry = entry if entry.base_path is not None else attrs.evolve(entry, base_path=Path.cwd())
        self.name = self.name or entry.label
        self.beneath = [as_entry(one) if isinstance(one, str | Path | Mapping) else one for one in self.beneath]
        if self.seed is not None:
            self.seed = seed_folder(self.seed, folder_named(self.source) or Path.cwd())

    # -- findings -------------------------------------------------------------------------------------------------

    def finding(self, check: str, message: str, cure: str, *, tool: str = "", severity: Severity = "error") -> Finding:
        """Return something that is wrong with the pack, or with one of its tools."""
        name = self.pack.name if self.pack is not None else self.name
        return Finding(severity, f"{name}:{tool}" if tool else name, check, message, cure)

    # -- making it ---------------------------------------------------------------------------------------------

    @property
    def values(self) -> dict[str, str]:
        """Return the values of secrets that the pack's author gave."""
        given: dict[str, str] = fill_placeholders({**self._entry.options.get("secrets", {}), **self.secrets})
        return {id: str(value) for id, value in given.items()}

    def entry(self, host: AgentOS, alter: Alter | None = None) -> PackEntry:
        """Return an entry that makes the pack as it is, but for tools that never run unasked if they change things."""
        if self.isolation == "process":
            host.extensions.isolate_by(lambda entry: self._altered(host.workers.found(entry), alter))
            return attrs.evolve(self._entry, isolation="process", options=self.options_here)
        if self._source_found is None:
            self._source_found = Finder().find(self._entry)
        return as_entry(self._altered(self._source_found, alter).maker, self.options_here)

    def _altered(self, found: FoundPack, alter: Alter | None) -> FoundPack:
        """Return what makes the pack of *found* safe and altered."""
        label = self._entry.label

        async def factory(context: PackContext) -> ExtensionPack:
            self.pack = made = await found.make(label, context)
            descriptors = [self._made_safe(one) for one in made.descriptors]
            return attrs.evolve(made, descriptors=list(alter(descriptors)) if alter else descriptors)

        factory.__qualname__ = label  # messages name the pack by it
        return attrs.evolve(found, maker=factory)

    @property
    def options_here(self) -> dict[str, Any]:
        """Return the pack's options as they are in the sandbox that was entered."""
        return {name: fill_placeholders(value) for name, value in self._entry.options.items() if name != "secrets"}

    def _made_safe(self, descriptor: Descriptor[Any]) -> Descriptor[Any]:
        tool = as_tool(descriptor.payload) if descriptor.kind == "tool" else None
        if tool is None or tool.effect == "read" or self.sandboxed:
            return attrs.evolve(descriptor, enabled_by_default=True)
        return attrs.evolve(descriptor, enabled_by_default=True, payload=attrs.evolve(tool, intervention="always"))

    def close(self) -> None:
        """Forget the modules that were made for the examination."""
        if self._source_found is not None:
            self._source_found.discard()
            self._source_found = None

    def may_run(self, tool: Tool) -> bool:
        """Tell whether a tool may really be run in an examination."""
        return tool.effect == "read" or self.sandboxed

    # -- sandboxes and hosts ---------------------------------------------------------------------------------------

    @asynccontextmanager
    async def sandbox(self) -> AsyncIterator[Sandbox]:
        """Enter a sandbox of its own for one check, with what the pack needs there."""
        seed = None if self.seed is None else Path(self.seed)
        with enter_sandbox(self._variables()) as sandbox:
            async with prepared(sandbox, seed, self.prepare):
                yield sandbox

    def _variables(self) -> list[str]:
        """Return the environment variables that the pack itself names for its secrets, once it was made."""
        descriptors = () if self.pack is None else self.pack.descriptors
        return [need.env for need in needs_of(descriptors) if need.env]

    @asynccontextmanager
    async def host(
        self, *, with_secrets: bool = True, beneath: Sequence[Any] = (), alter: Alter | None = None, load: bool = True
    ) -> AsyncIterator["CandidateHost"]:
        """Give a host that has the pack loaded, with canaries for secrets. What changes things is only ever asked."""
        secrets = fake_secrets(values=self.values) if with_secrets else FakeSecrets()
        mode = "auto" if self.sandboxed else "approve"
        ground = [_with_placeholders_filled(one) for one in self.beneath]
        async with make_host(*ground, *beneath, secrets=secrets, mode=mode) as host:
            with capture_events(host) as events, _masked_texts(host) as masked:
                session = CandidateHost(self, host, events, secrets, masked=masked)
                if load:
                    await session.load(alter)
                yield session

    def arguments(self, tool: Tool) -> list[dict[str, Any]]:
        """Return good arguments for a tool: its samples, else what can be made from its schema."""
        given = self.samples.get(tool.name)
        if given is None:
            return valid_arguments(tool.input_schema)
        return [fill_placeholders(one) for one in ([given] if isinstance(given, Mapping) else given)]


@contextmanager
def _masked_texts(host: AgentOS) -> Iterator[list[str]]:
    """Note every text in which the host finds a secret, as it was before: behind its masks no leak can be seen."""
    noted: list[str] = []
    masker = host.extensions.masker
    original = masker.mask

    def mask(text: str) -> str:
        masked = original(text)
        if masked != text and len(noted) < _MAX_NOTED:
            noted.append(text)
        return masked

    vars(masker)["mask"] = mask  # this one alone: others are of other hosts
    try:
        yield noted
    finally:
        del vars(masker)["mask"]


_MAX_NOTED = 1_000


def _with_placeholders_filled(pack: Any) -> Any:
    """Return an entry with its options as they are in the sandbox that was entered; other packs have none."""
    return attrs.evolve(pack, options=fill_placeholders(pack.options)) if isinstance(pack, PackEntry) else pack


@attrs.define(eq=False)
class CandidateHost:
    """A host with the pack in it."""

    candidate: Candidate
    host: AgentOS
    events: Events
    secrets: FakeSecrets
    key: str = ""
    masked: list[str] = attrs.field(factory=list, repr=False)
    """What had a secret in it before the host masked it."""

    async def load(self, alter: Alter | None = None) -> None:
        """Load the pack; raise if it can't be loaded."""
        outcome = await self.attempt(alter)
        if outcome.status != "loaded":
            raise NotLoadedError(str(outcome.reason))

    async def attempt(self, alter: Alter | None = None) -> PackOutcome:
        """Try to load the pack, and return what became of it."""
        with Border() as border:  # importing a pack runs foreign code
            entry = self.candidate.entry(self.host, alter)
        if (error := border.error) is not None:
            name = "" if isinstance(error, PackLoadError) else f"{type(error).__name__}: "
            raise NotLoadedError(f"{name}{error}") from error
        outcome = await self.host.extensions.load(entry)
        self.key = outcome.key
        return outcome

    def entries(self, kind: str | None = None) -> list[Entry]:
        """Return what the pack has on the stacks, in the order of kinds and of first registration."""
        manager = self.host.extensions
        pack = self.candidate.pack
        return [
            entry
            for one in manager.kinds()
            if kind in (None, one)
            for id in manager.registry(one).ids()
            for entry in manager.registry(one).stack(id)
            if pack is not None and entry.source.pack == pack.name
        ]

    def tools(self) -> list[Tool]:
        """Return the pack's tools that are in force."""
        return _tools_in([entry for entry in self.entries("tool") if entry.state.in_force])

    def all_tools(self) -> list[Tool]:
        """Return the pack's tools, in force or not, but for those that have nothing to wrap."""
        return _tools_in([entry for entry in self.entries("tool") if entry.reason != HOLLOW])

    def tool(self, name: str) -> Tool:
        """Return one of the pack's tools."""
        for tool in self.tools():
            if tool.name == name:
                return tool
        raise NotLoadedError(f"the tool {name!r} is not in force:\n{self.host.extensions.explain('tool', name)}")

    def qualified(self, tool: Tool) -> str:
        """Return the name that leads to the pack's own tool, whatever stands above it."""
        pack = self.candidate.pack
        return tool.name if pack is None else f"{pack.name}:{tool.name}"

    # -- calls -------------------------------------------------------------------------------------------------

    async def call(self, tool: Tool, arguments: Any, id: str | None = None) -> ToolResult:
        """Call a tool as far as it does no harm: one that changes things only shows what it would do."""
        call = ToolCall(self.qualified(tool), arguments, id)
        if self.candidate.may_run(tool):
            result = await self._really(call)
            if result.success:
                self.candidate.succeeded.add(tool.name)
            return result
        if tool.dry_run is not None:
            return await self.host.tools.preview(call)
        return await self.propose(tool, arguments)

    async def bounded_call(self, tool: Tool, arguments: Any) -> Any:
        """Call a tool; one that does not end in time comes to a text that says so."""
        with Watchdog() as watchdog:
            return await self.watched_call(watchdog, tool, arguments)

    async def watched_call(self, watchdog: Watchdog, tool: Tool, arguments: Any) -> Any:
        """Do the same with a watchdog that is there already. A tool that once defied its cancellation is not called."""
        candidate = self.candidate
        if tool.name in candidate.uncancellable:
            return SkippedCall("the call was not made: see the checks `cancel` and `timeout`")
        result = await watchdog.ended(self.call(tool, arguments), candidate.limit, candidate.grace)
        if isinstance(result, EndlessCall) and candidate.may_run(tool):
            candidate.uncancellable.add(tool.name)
        return result

    async def _really(self, call: ToolCall) -> ToolResult:
        result = await self.host.tools.process_tool_call(call)
        if result.error is not None and result.error.type == "ApprovalRequired" and self.candidate.sandboxed:
            return await self.host.approvals.approve(str(result.error.details["proposal_id"]))
        return result

    async def propose(self, tool: Tool, arguments: Any) -> ToolResult:
        """Have a proposal made of a call, and reject it."""
        call = ToolCall(self.qualified(tool), arguments)
        if tool.intervention not in _ASKING:  # registered while it ran: nothing keeps it from running unasked
            return await self.host.tools.preview(call)
        result = await self.host.tools.process_tool_call(call)
        if result.error is not None and result.error.type == "ApprovalRequired":
            await self.host.approvals.reject(str(result.error.details["proposal_id"]), "it was a test")
        return result


def is_excused(entry: Entry) -> bool:
    """Tell whether it can't be in force here: a handler comes later, or there is nothing for it to wrap."""
    return entry.state == EntryState.UNBOUND or entry.reason == HOLLOW


def _tools_in(entries: Iterable[Entry]) -> list[Tool]:
    return [tool for entry in entries if (tool := as_tool(entry.payload)) is not None]

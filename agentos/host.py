"""AgentOS: the one object that a host needs."""

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, overload

import attrs

from agentos.access.admission import StoreKeeper
from agentos.access.audit import Audit
from agentos.access.budgets import Budget, Budgets
from agentos.access.denials import Denials
from agentos.access.gate import Mode
from agentos.access.grants import Grants
from agentos.access.idempotency import Idempotency
from agentos.access.pins import Pins
from agentos.access.policy import Policy
from agentos.access.principals import Principals
from agentos.access.proposals import Proposals
from agentos.base.foreign import to_the_end
from agentos.bus.message_bus import MessageBus
from agentos.calls.approvals import Approvals
from agentos.calls.executor import ToolExecutor
from agentos.calls.invocation import AccessServices
from agentos.calls.media_files import MediaFiles
from agentos.calls.orchestrator import ToolOrchestrator
from agentos.calls.results import Results
from agentos.calls.steps.record import AuditRecorder
from agentos.calls.tool_catalog import ToolCatalog
from agentos.checks.unmatched import NamedThings, unmatched
from agentos.errors import AgentOSError, StoreError
from agentos.extensions.manager import ExtensionManager
from agentos.kinds.hitl_handler import ProposalHandlers
from agentos.kinds.memory_provider import Memories
from agentos.kinds.persona import Personas, persona_entries
from agentos.kinds.planning_strategy import Planning
from agentos.kinds.provenance import Provenance
from agentos.kinds.response_processor import ResponseProcessors
from agentos.kinds.workflow import workflow_entries
from agentos.loading.finder import FoundPack
from agentos.model.field_checks import fault_of_name
from agentos.model.manifest import ExtensionManifest, ManifestSource, PackEntry, as_manifest
from agentos.model.overrides import Overrides
from agentos.model.principal import Principal
from agentos.model.report import LoadReport
from agentos.model.settings import UNSET, ResultLimits
from agentos.model.trouble import Trouble
from agentos.secrets.catalog import SecretCatalog
from agentos.secrets.masking import Masker, MaskingLogger
from agentos.secrets.sources import Vault
from agentos.store import Store
from agentos.tools.service import ToolsService

if TYPE_CHECKING:
    from agentos.access.lock import Lock
    from agentos.channels.channel_router import Channels
    from agentos.checks.examination import CheckReport
    from agentos.model.response import Response
    from agentos.turn.turn_outcome import Turn, TurnEvent
    from agentos.turn.whole_turns import HostTurns, Work
    from agentos.workers.workers import Workers
    from agentos.workflows.host_workflows import Workflows


_RECORDING = 5.0
"""For how many seconds a shutdown waits for the records of calls that have ended."""


class AgentOS:
    """A host's view of agentos: hand over a manifest, initialize, use, shut down.

    `async with AgentOS(...) as host` does the first and the last for you.

    store: a path or database URL for what must last; None keeps it in memory, unless the manifest names one.
    mode, deny, budget, limits, media_folders, proposal_ttl, allow_other_approver, pins, lock, audit_arguments,
    required_guardrails, dotenv: see `agentos.model.settings.Settings`. What is given here counts, else what the
    manifest says, else the default: mode "approve", nothing denied, 60 calls a minute of each tool that changes
    something and 1,000 reads at once, pins "first-use", and proposals that wait for their proposer, ten minutes in
    memory and 24 hours in a durable store.
    clock: the time in seconds since 1970, for all that expires or is counted; the machine's own by default.
    principals: who there is now, by id, or a function of a principal as it was stored that returns it as it is now, or
    None; asked before a proposal runs. Without it, a proposal runs with what its principal held when it was made.
    carry_workflows: False for a host that lasts only for a moment: it starts no run and goes on with none by itself.
    pack_guard: makes the context manager that a pack is imported and made in; what it raises fails that pack alone.
    """

    def __init__(
        self,
        *,
        extension_manifest: ManifestSource | None = None,
        extension_secrets: Mapping[str, str] | Vault | None = None,
        extension_overrides: Overrides | Mapping[str, Any] | str | Path | None = None,
        secret_catalog: SecretCatalog | Mapping[str, Any] | str | Path | None = None,
        dotenv: str | Path | None = None,
        store: str | Path | None = None,
        store_key: bytes | str | None = None,
        mode: Mode = UNSET,
        deny: Iterable[str] = (),
        budget: Budget | Iterable[Budget] | None = UNSET,
        limits: ResultLimits | Mapping[str, int] | None = None,
        media_folders: Iterable[str | Path] = (),
        proposal_ttl: float | None = None,
        allow_other_approver: bool | None = None,
        pins: Literal["first-use", "strict", "off"] = UNSET,
        lock: "Lock | str | Path | None" = None,
        audit_arguments: bool | None = None,
        required_guardrails: Iterable[str] = (),
        principals: Principals | None = None,
        clock: Callable[[], float] | None = None,
        pack_guard: Callable[[], AbstractContextManager[None]] = contextlib.nullcontext,
        carry_workflows: bool = True,
    ) -> None:
        self._carries_workflows = carry_workflows
        now = _now if clock is None else clock
        given = as_manifest(extension_manifest)
        manifest = _with_own_packs(_with_servers(given))
        settings = manifest.settings.overlaid(
            mode=mode,
            deny=UNSET if deny == () else deny,
            budget=budget,
            limits=_unset_if_none(limits),
            media_folders=UNSET if media_folders == () else tuple(media_folders),
            proposal_ttl=_unset_if_none(proposal_ttl),
            allow_other_approver=_unset_if_none(allow_other_approver),
            pins=pins,
            lock=_unset_if_none(lock),
            audit_arguments=_unset_if_none(audit_arguments),
            required_guardrails=UNSET if required_guardrails == () else _ids(required_guardrails),
            dotenv=_unset_if_none(dotenv),
        )
        self._clock = now
        masker = Masker()
        logger = self._logger = MaskingLogger("agentos", masker)
        place = manifest.store if store is None else store
        self._store = Store(place, key=store_key)
        self._store_key = store_key
        self._said = attrs.evolve(given, settings=settings, store=None if place is None else str(place))
        self._principals = principals if isinstance(principals, Mapping) else settings.principals
        policy = Policy.of(settings, is_durable=self._store.is_durable)
        self.audit = Audit(self._store, masker, with_arguments=settings.audit_arguments, clock=now)
        agreed = _read_lock(settings.lock)
        self.pins = Pins(self._store, self.audit, mode=policy.pins, lock=agreed, masker=masker, clock=now)
        keeper = StoreKeeper(
            self._store,
            self.audit,
            self.pins,
            lock=agreed,
            is_strict=policy.pins == "strict",
            logger=logger,
            clock=now,
        )
        self.extensions = ExtensionManager(
            manifest,
            secrets=extension_secrets,
            overrides=extension_overrides,
            catalog=secret_catalog,
            dotenv=settings.dotenv,
            persistence=keeper,
            masker=masker,
            pack_guard=pack_guard,
        )
        self.pins.attach(self.extensions)
        self._stopwatch = _elapsed if clock is None else clock
        self.extensions.isolate_by(self._isolated)
        results = Results(masker, ResultLimits.of(settings.limits), MediaFiles(settings.media_folders))
        self.tools = self._door(policy, now, self._stopwatch, principals, results)
        self.guardrails = self.tools.executor.guardrails
        self.tools.executor.services.plans.require_guardrails(_ids(settings.required_guardrails))
        self._responses = ResponseProcessors(self.extensions, self.guardrails, self.tools.executor.threads)
        self.personas = Personas(self.extensions, self.tools.executor.threads)
        self.planning = Planning(self.extensions, self.tools.executor.threads, self.tools.listed)
        self.memory = Memories(self.extensions, self.tools.executor.threads)
        self.bus = MessageBus(self.extensions, self._store, self.tools.executor.threads)
        self.extensions.carry_by(self.bus)
        self.provenance = Provenance(self.extensions, self.audit, self.tools.executor.threads, now)
        services = {id: one for id, one in settings.principals.items() if one.kind == "service"}
        self.tools.executor.pack_principals = services
        keeper.after_change = self.approvals.go_on

    def _door(
        self,
        policy: Policy,
        clock: Callable[[], float],
        stopwatch: Callable[[], float],
        principals: Principals | None,
        results: Results,
    ) -> ToolOrchestrator:
        """Put together what stands between a call and its tool; *clock* dates things, *stopwatch* counts windows."""
        store, audit, masker = self._store, self.audit, self.extensions.masker
        catalog = ToolCatalog(self.extensions.registry("tool"))
        self.grants = Grants(store, audit, find=catalog.find, masker=masker, clock=clock)
        self._idempotency = Idempotency(store, clock)
        budgets = Budgets(policy.budgets, stopwatch)
        self._access = AccessServices(
            audit=audit,
            grants=self.grants,
            denials=Denials(policy, self.grants),
            policy=policy,
            budgets=budgets,
            asking_budgets=budgets.asking(),
            idempotency=self._idempotency,
            is_shared=store.is_durable,
            recorder=AuditRecorder(audit, self.grants),
        )
        executor = ToolExecutor(catalog, results=results, access=self._access)
        ask = ProposalHandlers(self.extensions).ask
        proposals = Proposals(store, audit, clock)
        self.approvals = Approvals(
            proposals, executor, self._access, store=store, clock=clock, ask=ask, principals=principals
        )
        audit.after_batch = self._look_around
        return ToolOrchestrator(self.extensions, executor=executor)

    def _isolated(self, entry: PackEntry) -> FoundPack:
        return self.workers.found(entry)

    @cached_property
    def workers(self) -> "Workers":
        """Return the workers: packs in processes of their own, their states and what they said."""
        from agentos.workers.workers import Workers

        return Workers(self.extensions, self._store, self._stopwatch)

    def tools_service(self, owner: str = "builtin") -> ToolsService:
        """Return what running code registers tools with, as *owner*: `builtin`, a pack's name, or `mcp/<server>`."""
        return ToolsService(self.extensions.port(owner))

    def lock(self) -> "Lock":
        """Return what is loaded now as a lock: packs, versions, hashes of their files, and their tools' definitions."""
        from agentos.access.lock_making import lock_of

        manager = self.extensions
        registries = [manager.registry(kind) for kind in manager.kinds()]
        return lock_of(manager.loaded(), [one for each in registries for id in each.ids() for one in each.stack(id)])

    async def run_turn(
        self, client: Any, messages: Sequence[Any], *, model: str | None = None, **request: Any
    ) -> "Turn":
        """Ask *client*'s *model*, run the calls it makes, and go on until it answers: see `agentos.turn.chat.run_turn`.

        *client* is any OpenAI-compatible one, sync or async. Further keywords: principal, session, max_steps, strict,
        transcript, respond, and what the client's `create` takes.
        """
        from agentos.turn.chat import run_turn

        return await run_turn(self, client, messages, model=model, **request)

    @overload
    def turn(
        self, client: Any, messages: "str | Sequence[Any]", *, stream: Literal[False] = False, **options: Any
    ) -> "Awaitable[Turn]": ...

    @overload
    def turn(
        self, client: Any, messages: "str | Sequence[Any]", *, stream: Literal[True], **options: Any
    ) -> "AsyncGenerator[TurnEvent, None]": ...

    def turn(self, client: Any, messages: "str | Sequence[Any]", *, stream: bool = False, **options: Any) -> Any:
        """Ask a model, run the calls it makes, and go on until it answers, has to wait, or comes to a limit.

        *client* is OpenAI's or one like it, Anthropic's or google-genai's, sync or async. Await what comes back for a
        Turn; with *stream*, iterate over it for a TurnEvent for all that happens, the last of which has the Turn.
        A turn that waits for a person ends with `stopped_by="approval"`: see `resume`. With `wait=False` it goes on
        instead, and the model is told that the call waits.
        model, principal, session, transcript, strict, respond, media: as for `run_turn`; *respond* is the default here.
        api: `chat`, `responses`, `anthropic` or `gemini`, if the client does not tell; OpenAI's is asked by `chat`.
        max_steps, max_seconds, max_calls, max_total_tokens: what ends it; calls that ran out of them are answered so.
        persona: the id of a persona, which says its prompt, narrows the tools, and may say the model, memory and plan.
        memory: True, or ids of memory-providers: what fits is recalled, quoted, and what was said is remembered.
        plan: True, or the id of a planning-strategy; the plan stands in each request, in events and in `Turn.plan`.
        What else is given goes into every request.
        """
        return _begun(self._turns.begin(client, messages, **options), stream=stream)

    @overload
    def resume(
        self, turn: "Turn | str", client: Any, *, stream: Literal[False] = False, **options: Any
    ) -> "Awaitable[Turn]": ...

    @overload
    def resume(
        self, turn: "Turn | str", client: Any, *, stream: Literal[True], **options: Any
    ) -> "AsyncGenerator[TurnEvent, None]": ...

    def resume(self, turn: "Turn | str", client: Any, *, stream: bool = False, **options: Any) -> Any:
        """Go on with a turn, or the one of that id, whose calls waited for a person, with what was decided.

        The answers stand in the conversation at the calls' own ids. While something is not decided on, the turn that
        comes back waits as well. With a store that lasts this may be another process than the one that asked. Raises
        TurnError for a turn that does not wait, or that somebody goes on with already.
        session, transcript: as for `turn`; a session is known by its id alone in another process.
        """
        return _begun(self._turns.resume(turn, client, **options), stream=stream)

    @cached_property
    def _turns(self) -> "HostTurns":
        from agentos.turn.waiting_turns import WaitingTurns
        from agentos.turn.whole_turns import HostTurns

        return HostTurns(self, WaitingTurns(self._store, self.extensions.masker, self._clock))

    @cached_property
    def channels(self) -> "Channels":
        """Return the channels that the manifest turns on: `handle` what they bring, then `start` them."""
        from agentos.channels.channel_router import Channels

        return Channels(self, self._store, self._said.settings.channels, self._principals, self._clock)

    @cached_property
    def workflows(self) -> "Workflows":
        """Return what starts workflows, says how their runs are, and decides on them."""
        from agentos.workflows.host_workflows import Workflows

        carries = self._carries_workflows
        return Workflows(self, self._store, self._idempotency, self._principals, self._clock, carries=carries)

    async def respond(
        self,
        text: "str | Response",
        *,
        principal: Principal | None = None,
        session: Mapping[str, Any] | None = None,
    ) -> "Response":
        """Run what is answered to a user through the response processors, then through the guardrails on output.

        Raises GuardrailBlockedError if one of these blocks it, and ResponseRefusedError if a required processor fails.
        """
        return await self._responses.respond(text, principal, session)

    async def initialize(self, *, strict: bool = False) -> LoadReport:
        """Load the manifest and report each entry. Calling it again loads only what is not loaded yet.

        Raises RequiredGuardrailError if a required guardrail is not in force then.

        What was being approved when an earlier host ended is looked at as well: see `approvals.recover`.
        """
        report = await self.extensions.load_manifest(strict=strict)
        if self._store.is_durable:
            await self.grants.refresh()
            await self.approvals.recover()
            self.approvals.watch()
            if self.extensions.registry("workflow").ids():
                await self.workflows.prepare()
        told = set(report.troubles)
        for trouble in await self._unmatched():
            if trouble not in told:
                report.troubles.append(trouble)
                self._logger.warning("%s", trouble)
        self.guardrails.check_required()
        return report

    async def _unmatched(self) -> list[Trouble]:
        granted = await self.grants.list() if self._store.is_durable or self.grants.version else []
        deny, principals = self._access.policy.deny, self._principals
        required = self._said.settings.required_guardrails
        named = NamedThings(deny=deny, grants=granted, principals=principals, required_guardrails=required)
        return unmatched(self.extensions, named)

    async def check(self) -> "CheckReport":
        """Find what is wrong with this host, each trouble with its cure, as `agentos doctor` does.

        Nothing is changed to find out. What only the command reads, such as its own variables, it checks itself.
        """
        from agentos.checks.examination import CHECKS, Inspected, examine
        from agentos.checks.snapshot import snapshot

        report = snapshot(self.extensions, await self.pins.pending(), await self._unmatched())
        found = Inspected(
            environ=os.environ,
            manifest=self._said,
            report=report,
            store_key=self._store_key,
            workers=self.workers.list(),
        )
        return await asyncio.to_thread(examine, found, CHECKS)

    async def _look_around(self) -> None:
        """See what others did meanwhile, and write what could not be written before: the store is at hand."""
        await self.grants.refresh()
        await self.pins.refresh()
        await self._settle()
        await self.provenance.look()

    async def _settle(self) -> None:
        """Write down what ended and could not be written then."""
        await self.approvals.settle()
        await self._idempotency.catch_up()

    async def shutdown(self) -> list[Exception]:
        """Deactivate everything in reverse order, write what is left to write; return what raised on the way.

        Then the store is closed for good: whatever would need it raises StoreError.
        """
        if "channels" in vars(self):
            await self.channels.close()
        if "workflows" in vars(self):
            await self.workflows.close()
        await self.approvals.close()
        with contextlib.suppress(StoreError):
            await self.provenance.close()
        raised = await self.extensions.shutdown()
        await self.bus.close()
        if "workers" in vars(self):
            await self.workers.ended()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_RECORDING):
                await self._access.recording.drained()
        await self._settle()
        try:
            await self.audit.close()
        except AgentOSError as error:
            raised.append(error)
        await self._store.give_up()
        return raised

    async def __aenter__(self) -> Self:
        try:
            await self.initialize()
        except BaseException:
            await to_the_end(self.shutdown())
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await to_the_end(self.shutdown())


def _begun(work: "Work", *, stream: bool) -> Any:
    from agentos.turn.whole_turns import streamed

    return streamed(work) if stream else work(None)


def _now() -> float:
    """Return the time; looked up at each call, so that whoever replaces `time.time` is heard."""
    return time.time()


def _elapsed() -> float:
    """Return the time for what is counted in windows: no clock that is set back can close one for longer."""
    return time.monotonic()


def _with_servers(manifest: ExtensionManifest) -> ExtensionManifest:
    """Return a manifest whose MCP servers are entries like all others, after its packs."""
    if not manifest.mcp_servers:
        return manifest
    from agentos.mcp.client.manifest_servers import server_entries

    return attrs.evolve(manifest, packs=(*manifest.packs, *server_entries(manifest)), mcp_servers={})


def _with_own_packs(manifest: ExtensionManifest) -> ExtensionManifest:
    """Return a manifest whose personas and workflows are entries like all others, after all others."""
    settings = manifest.settings
    entries = [*persona_entries(settings.personas), *workflow_entries(settings.workflows)]
    return attrs.evolve(manifest, packs=(*manifest.packs, *entries)) if entries else manifest


def _ids(value: Iterable[str]) -> tuple[str, ...]:
    """Return the ids of required guardrails; a text is one, not its letters."""
    if not isinstance(value, Iterable):
        raise TypeError(f"required_guardrails: expected ids, got {type(value).__name__}")
    ids = (value,) if isinstance(value, str) else tuple(value)
    for id in ids:
        if fault := fault_of_name(id):
            raise ValueError(f"required_guardrails: {fault}")
    return ids


def _unset_if_none(value: Any) -> Any:
    return UNSET if value is None else value


def _read_lock(lock: "Lock | str | Path | None") -> "Lock | None":
    if not isinstance(lock, str | Path):
        return lock
    from agentos.access.lock import Lock

    return Lock.read(lock)

"""AgentOS: the one object that a host needs."""

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self

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
from agentos.calls.approvals import Approvals
from agentos.calls.executor import ToolExecutor
from agentos.calls.invocation import AccessServices
from agentos.calls.orchestrator import ToolOrchestrator
from agentos.calls.steps.record import AuditRecorder
from agentos.calls.tool_catalog import ToolCatalog
from agentos.errors import AgentOSError
from agentos.extensions.manager import ExtensionManager
from agentos.kinds.hitl_handler import ProposalHandlers
from agentos.model.manifest import ExtensionManifest, as_manifest
from agentos.model.overrides import Overrides
from agentos.model.report import LoadReport
from agentos.model.settings import UNSET
from agentos.secrets.catalog import SecretCatalog
from agentos.secrets.masking import Masker, MaskingLogger
from agentos.secrets.sources import Vault
from agentos.store import Store
from agentos.tools.service import ToolsService

if TYPE_CHECKING:
    from agentos.access.lock import Lock
    from agentos.turn.chat import Turn


_RECORDING = 5.0
"""For how many seconds a shutdown waits for the records of calls that have ended."""


class AgentOS:
    """A host's view of agentos: hand over a manifest, initialize, use, shut down.

    `async with AgentOS(...) as host` does the first and the last for you.

    store: a path or database URL for what must last; None keeps it in memory, unless the manifest names one.
    mode, deny, budget, proposal_ttl, allow_other_approver, pins, lock, audit_arguments, dotenv: see
    `agentos.model.settings.Settings`. What is given here counts, else what the manifest says, else the default: mode
    "approve", nothing denied, 60 calls a minute, pins "first-use", and proposals that wait for their proposer, ten
    minutes in memory and 24 hours in a durable store.
    clock: the time in seconds since 1970, for all that expires or is counted; the machine's own by default.
    principals: who there is now, by id, or a function of a principal as it was stored that returns it as it is now, or
    None; asked before a proposal runs. Without it, a proposal runs with what its principal held when it was made.
    pack_guard: makes the context manager that a pack is imported and made in; what it raises fails that pack alone.
    """

    def __init__(
        self,
        *,
        extension_manifest: ExtensionManifest | Mapping[str, Any] | str | Path | None = None,
        extension_secrets: Mapping[str, str] | Vault | None = None,
        extension_overrides: Overrides | Mapping[str, Any] | str | Path | None = None,
        secret_catalog: SecretCatalog | Mapping[str, Any] | str | Path | None = None,
        dotenv: str | Path | None = None,
        store: str | Path | None = None,
        store_key: bytes | str | None = None,
        mode: Mode = UNSET,
        deny: Iterable[str] = (),
        budget: Budget | Iterable[Budget] | None = UNSET,
        proposal_ttl: float | None = None,
        allow_other_approver: bool | None = None,
        pins: Literal["first-use", "strict", "off"] = UNSET,
        lock: "Lock | str | Path | None" = None,
        audit_arguments: bool | None = None,
        principals: Principals | None = None,
        clock: Callable[[], float] | None = None,
        pack_guard: Callable[[], AbstractContextManager[None]] = contextlib.nullcontext,
    ) -> None:
        now = _now if clock is None else clock
        manifest = _with_servers(as_manifest(extension_manifest))
        settings = manifest.settings.overlaid(
            mode=mode,
            deny=UNSET if deny == () else deny,
            budget=budget,
            proposal_ttl=_unset_if_none(proposal_ttl),
            allow_other_approver=_unset_if_none(allow_other_approver),
            pins=pins,
            lock=_unset_if_none(lock),
            audit_arguments=_unset_if_none(audit_arguments),
            dotenv=_unset_if_none(dotenv),
        )
        masker = Masker()
        logger = MaskingLogger("agentos", masker)
        self._store = Store(manifest.store if store is None else store, key=store_key)
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
        self.tools = self._door(policy, now, _elapsed if clock is None else clock, principals)
        keeper.after_change = self.approvals.go_on

    def _door(
        self, policy: Policy, clock: Callable[[], float], stopwatch: Callable[[], float], principals: Principals | None
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
        executor = ToolExecutor(catalog, access=self._access)
        ask = ProposalHandlers(self.extensions).ask
        proposals = Proposals(store, audit, clock)
        self.approvals = Approvals(
            proposals, executor, self._access, store=store, clock=clock, ask=ask, principals=principals
        )
        audit.after_batch = self._look_around
        return ToolOrchestrator(self.extensions, executor=executor)

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
        transcript, and what the client's `create` takes.
        """
        from agentos.turn.chat import run_turn

        return await run_turn(self, client, messages, model=model, **request)

    async def initialize(self, *, strict: bool = False) -> LoadReport:
        """Load the manifest and report each entry. Calling it again loads only what is not loaded yet.

        What was being approved when an earlier host ended is looked at as well: see `approvals.recover`.
        """
        report = await self.extensions.load_manifest(strict=strict)
        if self._store.is_durable:
            await self.grants.refresh()
            await self.approvals.recover()
        return report

    async def _look_around(self) -> None:
        """See what others did meanwhile, and write what could not be written before: the store is at hand."""
        await self.grants.refresh()
        await self.pins.refresh()
        await self._settle()

    async def _settle(self) -> None:
        """Write down what ended and could not be written then."""
        await self.approvals.settle()
        await self._idempotency.catch_up()

    async def shutdown(self) -> list[Exception]:
        """Deactivate everything in reverse order, write what is left to write; return what raised on the way.

        Then the store is closed for good: whatever would need it raises StoreError.
        """
        await self.approvals.close()
        raised = await self.extensions.shutdown()
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


def _unset_if_none(value: Any) -> Any:
    return UNSET if value is None else value


def _read_lock(lock: "Lock | str | Path | None") -> "Lock | None":
    if not isinstance(lock, str | Path):
        return lock
    from agentos.access.lock import Lock

    return Lock.read(lock)

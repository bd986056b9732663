"""The kind `memory-provider`: keeps what is to be remembered of each principal, and finds it again.

A payload is an object with `remember(record)`, `recall(query, *, scope, limit)`, `forget(ids, *, scope)` and
`stats(scope)`, sync or async, and, if wanted, a `timeout`. An empty query recalls the newest. Its id has no colon:
`host.memory` names a memory `provider:id`.
"""

import asyncio
import inspect
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import attrs

from agentos.base.foreign import Border, is_a, type_name
from agentos.errors import DescriptorError, MemoryProviderError
from agentos.extensions.event import Event
from agentos.model.bounded_data import DATA_LIMIT, data_size, foreign_data_within
from agentos.model.descriptor import Descriptor
from agentos.model.field_checks import fault_of_owner
from agentos.model.guarding import fault_of_seconds
from agentos.model.kind import Kind, declare_own_kind
from agentos.model.memory import MemoryHit, MemoryRecord, MemoryScope, MemoryStats
from agentos.model.principal import SYSTEM, Principal
from agentos.payloads.asked_payload import ask_payload
from agentos.payloads.foreign_job import Threads, took_too_long
from agentos.payloads.payload_context import active_in_order
from agentos.secrets.masking import MaskingLogger, masked_fields, safe_str
from agentos.stacks.entry import Entry

if TYPE_CHECKING:
    from agentos.extensions.manager import ExtensionManager

LIMIT = 50
"""How many memories are recalled at once, at the most."""
_TIMEOUT = 10.0
_FLAT = 60
"""How little the first of an order counts more than the next, as rank fusion has it."""
_CALLS: Mapping[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    "remember": ((None,), {}),
    "recall": (("",), {"scope": None, "limit": 1}),
    "forget": (((),), {"scope": None}),
    "stats": ((None,), {}),
}
"""What a provider's methods are called with."""


def _timeout(payload: Any) -> Any:
    return getattr(payload, "timeout", _TIMEOUT)


def _check(descriptor: Descriptor[Any]) -> None:
    payload = descriptor.payload
    fault = "expected an object, got a class" if isinstance(payload, type) else None
    faults = (fault, *(_fault_of_method(payload, name) for name in _CALLS), fault_of_seconds(_timeout(payload)))
    fault = next((one for one in faults if one is not None), fault_of_owner(descriptor.id))
    if fault is not None:
        expected = "expected an object with remember, recall, forget and stats"
        raise DescriptorError(f"memory-provider {descriptor.id!r}: {expected}; {fault}")


def _fault_of_method(payload: Any, name: str) -> str | None:
    method = getattr(payload, name, None)
    if not callable(method):
        return f"it has no method {name}"
    positional, named = _CALLS[name]
    try:
        inspect.signature(method).bind(*positional, **named)
    except TypeError as error:
        return f"{name}: {error}"
    except ValueError:  # one of C that does not say what it takes
        return None
    return None


@attrs.frozen(kw_only=True)
class MemoryFailed(Event):
    """A memory-provider failed, and what was asked for goes on without it."""

    type: ClassVar[str] = "memory:failed"
    provider: str
    pack: str
    act: str
    reason: str
    principal: str


class Memories:
    """Remembers, recalls and forgets for a principal, by the memory-providers in force.

    Nothing of one principal is ever recalled for another: each call has one principal, by default the host itself, and
    a provider that answers with something of another is left out.
    """

    def __init__(self, manager: "ExtensionManager", threads: Threads) -> None:
        self._manager = manager
        self._registry = manager.registry(MEMORY_PROVIDER.name)
        self._threads = threads
        self._logger = MaskingLogger("agentos.memory", manager.masker)

    @property
    def providers(self) -> list[str]:
        """Return the ids of the providers in force, in the order in which they are asked."""
        return [entry.id for entry in active_in_order(self._registry)]

    async def remember(
        self,
        text: str,
        *,
        principal: Principal | None = None,
        namespace: str = "",
        tags: Iterable[str] = (),
        metadata: Mapping[str, Any] | None = None,
        seconds: float | None = None,
        provider: str | None = None,
    ) -> str:
        """Keep *text* at one provider, the first unless named, and return its id; known secrets in it are masked.

        Raises MemoryProviderError if there is no such provider, or it can't keep it, and ValueError if the metadata
        and tags are too large to be kept: they are data about a text, which goes into the text itself.
        """
        masker, scope = self._manager.masker, self._scope(principal, namespace)
        facts, marks = masker.mask_data(dict(metadata or {})), [masker.mask(tag) for tag in tags]
        if (size := data_size([facts, marks])) > DATA_LIMIT:
            raise ValueError(f"metadata and tags: expected at most {DATA_LIMIT} characters of JSON, got {size}")
        record = MemoryRecord(masker.mask(text), scope.principal, namespace, marks, facts, seconds)
        entry = self._named(provider)
        answer = await self._ask(entry, "remember", record)
        return f"{entry.id}:{str.__str__(self._required(entry, 'remember', answer, str))}"

    async def recall(
        self,
        query: str = "",
        *,
        principal: Principal | None = None,
        namespace: str = "",
        limit: int = 5,
        providers: Iterable[str] | None = None,
    ) -> list[MemoryHit]:
        """Return what fits *query* best of all providers, fused by rank; of an empty query, the newest.

        A provider that fails is left out, with the event `memory:failed`.
        """
        if type(limit) is not int or not 1 <= limit <= LIMIT:
            raise ValueError(f"limit: expected a whole number from 1 to {LIMIT}, got {limit!r}")
        scope, query = self._scope(principal, namespace), self._manager.masker.mask(query)
        asked = self._among(providers)
        answers = await asyncio.gather(*(self._ask(one, "recall", query, scope=scope, limit=limit) for one in asked))
        orders = [await self._hits(*row, scope) for row in zip(asked, answers, strict=True)]
        return _fused(orders)[:limit]

    async def forget(self, ids: Iterable[str], *, principal: Principal | None = None, namespace: str = "") -> int:
        """Delete memories of the principal by ids as `recall` returns them; return how many were there.

        Raises MemoryProviderError if a provider fails; others may have deleted theirs by then.
        """
        scope, wanted = self._scope(principal, namespace), _by_provider(ids)
        count = 0
        for entry in active_in_order(self._registry):
            if own := wanted.get(entry.id):
                answer = await self._ask(entry, "forget", own, scope=scope)
                count += self._required(entry, "forget", answer, int)
        return count

    async def stats(self, *, principal: Principal | None = None, namespace: str = "") -> dict[str, MemoryStats]:
        """Return what each provider has of the principal; without one that fails, as `recall`."""
        scope = self._scope(principal, namespace)
        found: dict[str, MemoryStats] = {}
        for entry in active_in_order(self._registry):
            answer, error = await self._ask(entry, "stats", scope)
            with Border() as border:  # as above
                if error is None and type(answer) is MemoryStats:
                    masked = masked_fields(answer, self._manager.masker)
                    found[entry.id] = attrs.evolve(masked, details=foreign_data_within(masked.details, "details"))
                    continue
            error = error or border.error
            await self._failed(entry, "stats", _fault(answer, error, MemoryStats), error, scope)
        return found

    def _scope(self, principal: Principal | None, namespace: str) -> MemoryScope:
        """Return whose memories are meant; a namespace is a name that goes out as it is."""
        if self._manager.masker.mask(str(namespace)) != namespace:
            raise ValueError("namespace: it has a known secret in it")
        return MemoryScope(_key(principal), namespace)

    # -- providers ---------------------------------------------------------------------------------------------

    def _named(self, provider: str | None) -> Entry:
        active = active_in_order(self._registry)
        found = next((one for one in active if provider in (None, one.id)), None)
        if found is None:
            named = "no memory-provider" if provider is None else f"no memory-provider {provider!r}"
            raise MemoryProviderError(provider, f"{named} is active")
        return found

    def _among(self, providers: Iterable[str] | None) -> list[Entry]:
        wanted = None if providers is None else set(providers)
        return [one for one in active_in_order(self._registry) if wanted is None or one.id in wanted]

    async def _ask(self, entry: Entry, act: str, *given: Any, **named: Any) -> tuple[Any, BaseException | None]:
        return await ask_payload(entry, act, *given, threads=self._threads, seconds=_TIMEOUT, **named)

    def _required(self, entry: Entry, act: str, outcome: tuple[Any, BaseException | None], kind: type) -> Any:
        """Return what a provider answered, or raise: what was to be kept or deleted must not be lost unnoticed."""
        answer, error = outcome
        if error is None and is_a(answer, kind) and type(answer) is not bool:
            return answer
        if error is not None and is_a(error, ValueError):  # its word for what it can't keep
            raise MemoryProviderError(entry.id, self._manager.masker.mask(safe_str(error))) from None
        why = _fault(answer, error, kind)
        self._logger.warning("memory-provider %s: %s %s", entry.id, act, why, exc_info=error)
        raise MemoryProviderError(entry.id, f"{act} {why}")

    async def _hits(
        self, entry: Entry, outcome: tuple[Any, BaseException | None], scope: MemoryScope
    ) -> Sequence[MemoryHit]:
        """Return the hits of one provider; none if it failed or answered with something that was not asked for."""
        answer, error = outcome
        fault: str | None = None
        with Border() as border:  # what it answered may have parts with code of their own
            fault = _fault_of_hits(answer, scope) if error is None else _fault(answer, error, list)
            if fault is None:
                own = (
                    attrs.evolve(hit, id=f"{entry.id}:{hit.id}", text=str.__str__(hit.text), also=()) for hit in answer
                )
                return [_bounded(masked_fields(hit, self._manager.masker)) for hit in own]
        error = error or border.error
        await self._failed(entry, "recall", fault or _fault(answer, error, list), error, scope)
        return ()

    async def _failed(self, entry: Entry, act: str, why: str, error: BaseException | None, scope: MemoryScope) -> None:
        self._logger.warning("memory-provider %s: %s %s", entry.id, act, why, exc_info=error)
        events = self._manager.events
        if events.is_heard:
            source = entry.source
            told = MemoryFailed(
                source=source, provider=entry.id, pack=source.pack, act=act, reason=why, principal=scope.principal
            )
            events.post(told)
            await events.deliver()


def _bounded(hit: MemoryHit) -> MemoryHit:
    return attrs.evolve(hit, metadata=foreign_data_within(hit.metadata, "metadata"))


def _fused(orders: Iterable[Sequence[MemoryHit]]) -> list[MemoryHit]:
    """Return the hits of several orders in one, by reciprocal rank; the same text in a namespace is one hit."""
    scores: dict[tuple[str, str], float] = {}
    found: dict[tuple[str, str], list[MemoryHit]] = {}
    for order in orders:
        for rank, hit in enumerate(order):
            key = (hit.namespace, hit.text)
            scores[key] = scores.get(key, 0.0) + 1 / (_FLAT + rank)
            found.setdefault(key, []).append(hit)
    ranked = sorted(found, key=lambda key: -scores[key])
    return [attrs.evolve(found[key][0], score=scores[key], also=[one.id for one in found[key][1:]]) for key in ranked]


def _by_provider(ids: Iterable[str]) -> dict[str, list[str]]:
    if isinstance(ids, str):
        raise TypeError(f"ids: expected several, got the string {ids!r:.80}; write [{ids!r:.80}]")
    wanted: dict[str, list[str]] = {}
    for id in dict.fromkeys(ids):
        provider, _, own = id.partition(":")
        wanted.setdefault(provider, []).append(own)
    return wanted


def _key(principal: Principal | None) -> str:
    """Return whose memories are meant. What is not a Principal is an error, never the host."""
    if principal is not None and type(principal) is not Principal:
        raise TypeError(f"principal: expected a Principal, got {type(principal).__name__}")
    return (principal or SYSTEM).key


def _fault_of_hits(answer: Any, scope: MemoryScope) -> str | None:
    if type(answer) not in (list, tuple) or not all(type(one) is MemoryHit for one in answer):
        return f"answered with a {type_name(answer)}; expected a list of MemoryHit"
    if not all(hit.is_within(scope) for hit in answer[:LIMIT]):
        return "answered with what is not of the principal and namespace that were asked for"
    return None


def _fault(answer: Any, error: BaseException | None, kind: type) -> str:
    if error is None:
        return f"answered with a {type_name(answer)}; expected a {kind.__name__}"
    return "took too long" if took_too_long(error) else f"raised {type_name(error)}"


MEMORY_PROVIDER = declare_own_kind(Kind("memory-provider", check=_check, reader="`host.memory`, and turns with memory"))

"""Which providers are asked, who takes over when one fails, and for how long one is left alone."""

import asyncio
import math
from collections.abc import Callable, Sequence

import attrs
from agentos_pack_common import WebClient, WebError, WebResponse

from agentos_pack_web_search import keyless
from agentos_pack_web_search.fusion import Found, fuse
from agentos_pack_web_search.hits import Hit, is_at
from agentos_pack_web_search.pauses import Pauses, rate_limit_reset, retry_after
from agentos_pack_web_search.providers import PROVIDERS, NotResultsError, Provider, Query, read_answer
from agentos_pack_web_search.settings import Options, check_base, policy_for

ReadSecret = Callable[[str], str | None]

_FOUND = 200
_KEY_PROBLEMS = (401, 403)
_LIMITED = (429, 432, 433)
"""432 and 433 are Tavily's: what the plan or the account allows is used up."""


@attrs.frozen(kw_only=True)
class ProviderState:
    """A provider, and whether it can be used now: `ready`, `paused` or `not set up`; `detail` says what is missing."""

    name: str
    state: str
    detail: str
    pause_seconds: int


@attrs.frozen(kw_only=True)
class SearchResults:
    """What was found, best first. `providers` answered; `problems` says what went wrong with others.

    `truncated` says that more was found than asked for.
    """

    query: str
    results: list[Found]
    providers: list[str]
    problems: list[str]
    truncated: bool


@attrs.frozen
class _Outcome:
    provider: str
    hits: tuple[Hit, ...] = ()
    problem: str | None = None


class _FailedError(Exception):
    """One provider's failure, in words; with `pause` it is left alone for so many seconds."""

    def __init__(self, words: str, pause: float | None = None) -> None:
        super().__init__(words)
        self.pause = pause


class Engine:
    """Asks providers, and remembers which of them want to be left alone."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self._pauses = Pauses(options.clock)
        self._clients: dict[str, tuple[str, WebClient]] = {}

    # -- who there is ------------------------------------------------------------------------------------------

    def states(self, secret: ReadSecret) -> list[ProviderState]:
        """Return all providers that the options allow, in the order in which they are asked."""
        return [self._state(name, secret) for name in self.options.providers]

    def _state(self, name: str, secret: ReadSecret) -> ProviderState:
        missing = _missing(name, secret)
        if missing:
            return ProviderState(name=name, state="not set up", detail=missing, pause_seconds=0)
        left = math.ceil(self._pauses.left(name, _credential(name, secret)))
        if left:
            detail = f"it asked to be left alone for {left} more seconds"
            return ProviderState(name=name, state="paused", detail=detail, pause_seconds=left)
        return ProviderState(name=name, state="ready", detail="can be used", pause_seconds=0)

    # -- searching ---------------------------------------------------------------------------------------------

    async def search(self, query: Query, asked: str, secret: ReadSecret) -> SearchResults:
        """Ask one provider, the first that answers, or all of them; raise ValueError if none does."""
        states = self.states(secret)
        ready = [state.name for state in states if state.state == "ready" and asked in ("auto", "all", state.name)]
        if not ready:
            raise ValueError(_nobody(states, asked))
        outcomes = await (self._all if asked == "all" else self._first)(ready, query, secret)
        paused = [] if asked not in ("auto", "all") else [state for state in states if state.state == "paused"]
        return _results(query, [*(_Outcome(one.name, problem=one.detail) for one in paused), *outcomes])

    async def _first(self, names: Sequence[str], query: Query, secret: ReadSecret) -> list[_Outcome]:
        outcomes: list[_Outcome] = []
        for name in names:
            outcomes.append(await self._try(name, query, secret))
            if outcomes[-1].problem is None:
                break
        return outcomes

    async def _all(self, names: Sequence[str], query: Query, secret: ReadSecret) -> list[_Outcome]:
        return list(await asyncio.gather(*(self._try(name, query, secret) for name in names)))

    async def _try(self, name: str, query: Query, secret: ReadSecret) -> _Outcome:
        credential = _credential(name, secret)
        try:
            hits = await (self._keyless(query) if name == keyless.NAME else self._ask(name, query, credential))
        except _FailedError as failure:
            if failure.pause is not None:
                self._pauses.begin(name, credential, failure.pause)
            return _Outcome(name, problem=str(failure))
        kept = [hit for hit in hits if query.site is None or is_at(hit.url, query.site)]
        return _Outcome(name, tuple(kept))

    async def _keyless(self, query: Query) -> list[Hit]:
        try:
            return await keyless.search(query, self.options.timeout)
        except keyless.LimitedError:
            failure = _FailedError("it wants to be left alone for a while", self.options.pause)
        except NotResultsError as error:
            failure = _FailedError(str(error))
        raise failure

    async def _ask(self, name: str, query: Query, credential: str) -> list[Hit]:
        provider = PROVIDERS[name]
        base = self.options.base_urls.get(name) or provider.base_url or credential  # type: ignore[call-overload]
        asking = provider.ask(query, credential)
        try:
            client = await self._client(name, base)
            response = await client.request(
                asking.method,
                f"{base.rstrip('/')}{asking.path}",
                params=asking.params,
                headers=asking.headers,
                json=asking.json,
            )
            self._check(provider, response)
            return read_answer(provider, response.json())
        except WebError as error:
            failure = _FailedError(_failure_message(error, provider))
        except NotResultsError:
            failure = _FailedError("it answered with something else than results")
        raise failure

    def _check(self, provider: Provider, response: WebResponse) -> None:
        status = response.status
        if status == _FOUND:
            return
        pause = retry_after(response.headers, self.options.clock())
        if status in _LIMITED:
            pause = rate_limit_reset(response.headers) if pause is None else pause
            raise _FailedError(f"it limits requests (status {status})", self.options.pause if pause is None else pause)
        words = provider.forbidden if status in _KEY_PROBLEMS else "try again later"
        raise _FailedError(f"it answered with status {status}: {words}", pause)

    async def _client(self, name: str, base: str) -> WebClient:
        """Return the client for one provider; SearXNG's address is a secret and may change."""
        known, client = self._clients.get(name, ("", None))
        if client is not None and known == base:
            return client
        try:
            check_base(base)
        except ValueError as error:
            raise _FailedError(f"its address can't be used: {error}") from None
        is_private = base != PROVIDERS[name].base_url
        made = WebClient(policy_for(base, is_private=is_private, timeout=self.options.timeout))
        self._clients[name] = (base, made)
        if client is not None:
            await client.aclose()
        return made

    async def aclose(self) -> None:
        """Close all connections. A search after that opens new ones."""
        clients, self._clients = self._clients, {}
        for _, client in clients.values():
            await client.aclose()


def _failure_message(error: WebError, provider: Provider) -> str:
    """Return what went wrong; without the host if it is of an address that is a secret."""
    is_secret = provider.base_url is None and error.host
    return str(error).replace(error.host, "its host") if is_secret else str(error)


def _credential(name: str, secret: ReadSecret) -> str:
    return "" if name == keyless.NAME else (secret(PROVIDERS[name].secret) or "").strip()


def _missing(name: str, secret: ReadSecret) -> str | None:
    if name == keyless.NAME:
        return None if keyless.is_installed() else f"needs no key but an extra: {keyless.INSTALL}"
    provider = PROVIDERS[name]
    return None if _credential(name, secret) else f"set the secret {provider.secret} ({provider.variable})"


def _nobody(states: Sequence[ProviderState], asked: str) -> str:
    named = [state for state in states if asked in ("auto", "all", state.name)]
    if not named:
        return f"provider: {asked} is not among those that the operator allows: {', '.join(one.name for one in states)}"
    others = [state.name for state in states if state.state == "ready"]
    words = "; ".join(f"{state.name}: {state.detail}" for state in named)
    return f"provider: no search provider can be used now. {words}" + (
        f". Ready: {', '.join(others)}" if others else ""
    )


def _results(query: Query, outcomes: Sequence[_Outcome]) -> SearchResults:
    answered = [outcome for outcome in outcomes if outcome.problem is None]
    problems = [f"{outcome.provider}: {outcome.problem}" for outcome in outcomes if outcome.problem is not None]
    if not answered:
        raise ValueError(f"no search provider answered. {'; '.join(problems)}")
    found = fuse([(outcome.provider, outcome.hits) for outcome in answered])
    return SearchResults(
        query=query.with_site,
        results=found[: query.limit],
        providers=[outcome.provider for outcome in answered],
        problems=problems,
        truncated=len(found) > query.limit,
    )

"""Requests to the http-handlers of packs: who is asked, for whom, and how an exchange with one ends.

A handler is foreign code. It has a time until its answer begins and another for all of it, it is ended when its client
is gone, its token is no longer valid, its entry leaves or the server stops, and nothing of what it raises is answered.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any, Final

from starlette.requests import Request
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from agentos.base.foreign import Border, is_a, type_name
from agentos.interop._provider_calls import NOBODY
from agentos.kinds.http_handler import HTTP_HANDLER, as_asgi, is_public
from agentos.mcp.http.gateway import Gateway, HTTPLimits, TimedChannel, refusals_answered
from agentos.mcp.http.handler_answer import HandlerAnswer, read_body
from agentos.mcp.http.request_checks import AdmittedToken, ClientGone, RequestRefused, check_query
from agentos.mcp.server.served_host import ServedHost
from agentos.model.principal import SYSTEM, Principal
from agentos.payloads.foreign_job import ForeignJob, Threads
from agentos.payloads.payload_context import PayloadContext
from agentos.secrets.masking import MaskingLogger
from agentos.stacks.entry import Entry

PREFIX: Final = "/packs/"
HANDLER_METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
_LOOK: Final = 0.5
"""After how many seconds it is looked at again whether the handlers that are asked are still in force."""
_SCOPE: Final = (
    *("type", "asgi", "http_version", "method", "scheme", "path", "raw_path", "query_string", "client", "server"),
)
_RETRY_SOON = {"Retry-After": "1"}

Caller = Principal | Callable[[Any], Principal | None] | None
"""For whom requests are made where there are no tokens."""


class AnswerTooLate(TimeoutError):  # noqa: N818 - an end like the others
    """A handler took too long."""


class ExchangeEnded(Exception):  # noqa: N818 - as above
    """An exchange was ended from outside: its handler is not in force any more, its token invalid, or all stops."""


class HandlerExchange:
    """One request at a handler, from its body to the end of its answer."""

    def __init__(self, entry: Entry, answer: HandlerAnswer, channel: TimedChannel, limits: HTTPLimits) -> None:
        self.entry = entry
        self.answer = answer
        self._channel = channel
        self._limits = limits
        self._job: ForeignJob | None = None
        self._leaving: asyncio.TimerHandle | None = None

    async def run(self, scope: Scope, threads: Threads) -> BaseException | None:
        """Ask the handler, and return what ended it before its time; None if it came to its own end."""

        def serve() -> Any:
            return as_asgi(self.entry.payload)(scope, self.answer.receive, self.answer.send)

        users = self.entry._slot.users  # noqa: SLF001 - the slot is our own
        self._job = ForeignJob(serve, is_async=True, seconds=None, threads=threads, users=users)
        loop = asyncio.get_running_loop()
        clocks = [
            loop.call_later(self._limits.answer, self._end_unless_begun),
            loop.call_later(self._limits.stream, self.end, AnswerTooLate()),
        ]
        gone = asyncio.create_task(self._end_when_gone())
        try:
            return (await self._job.start().outcome())[1]
        finally:
            gone.cancel()
            self.answer.close()
            for clock in (*clocks, self._leaving):
                if clock is not None:
                    clock.cancel()

    def end(self, why: BaseException) -> None:
        """End the exchange: the handler is cancelled, and nobody waits for it."""
        if self._job is not None:
            self._job.give_up(why)

    def leave(self) -> None:
        """End the exchange of a handler that leaves: a stream of events at once, another answer soon."""
        if self.answer.is_event_stream:
            self.end(ExchangeEnded())
        elif self._leaving is None:
            later = asyncio.get_running_loop().call_later
            self._leaving = later(self._limits.stop, self.end, ExchangeEnded())

    def _end_unless_begun(self) -> None:
        if not self.answer.has_started:
            self.end(AnswerTooLate())

    async def _end_when_gone(self) -> None:
        with Border():  # a connection that fails is one whose client is gone
            while (await self._channel.receive())["type"] != "http.disconnect":
                pass
        if not self.answer.is_complete:  # a server says the same once all is sent
            self.end(ClientGone())

    async def finish(self, error: BaseException | None) -> None:
        """End the answer in good order where that is possible; else it is cut off, so that its reader sees it."""
        if not self.answer.has_started:
            raise _refusal(error)
        if self.answer.is_event_stream and is_a(error, (AnswerTooLate, ExchangeEnded)):
            await self._channel.finish()


def _refusal(error: BaseException | None) -> RequestRefused:
    if is_a(error, AnswerTooLate):
        return RequestRefused(504, "handler_timeout", "The handler took too long")
    if is_a(error, ExchangeEnded):
        return RequestRefused(503, "unavailable", "The handler is not in force any more", _RETRY_SOON)
    return RequestRefused(500, "handler_failed", "The handler failed")


class PackHandlers:
    """Finds the handler of a request, checks who asks, and bounds the exchange.

    caller: for whom requests are made where there are no tokens; the host itself unless said.
    """

    def __init__(self, host: ServedHost, gateway: Gateway, limits: HTTPLimits, caller: Caller) -> None:
        self._registry = host.extensions.registry(HTTP_HANDLER.name)
        self._threads = host.tools.executor.threads
        self._logger = MaskingLogger("agentos.http", host.extensions.masker)
        self._gateway = gateway
        self._limits = limits
        self._caller = caller
        self._under_way: set[HandlerExchange] = set()
        self._look: asyncio.TimerHandle | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request to its handler, or answer why it is refused."""
        async with refusals_answered(scope, receive, send):
            entry = self._entry_of(scope)
            admitted = await self._admit(entry, scope)
            if entry is None:
                raise RequestRefused(404, "not_found", "There is no such handler")
            who = self._principal_of(entry, admitted, scope)
            with self._gateway.counted(admitted):
                self._check_share(entry)
                await self._exchange(entry, admitted, who, scope, TimedChannel(receive, send, self._limits))

    def end_streams(self) -> None:
        """End the streams of events, which have no end of their own."""
        for exchange in list(self._under_way):
            if exchange.answer.is_event_stream:
                exchange.end(ExchangeEnded())

    # -- who is asked, and for whom ----------------------------------------------------------------------------

    def _entry_of(self, scope: Scope) -> Entry | None:
        path = _path_within(scope)
        return next((one for one in self._registry.list_active() if f"{path}/".startswith(_prefix(one))), None)

    async def _admit(self, entry: Entry | None, scope: Scope) -> AdmittedToken | None:
        """Check the token before anything is said of what there is, but for what is open to everybody."""
        if scope["method"] not in HANDLER_METHODS:
            expected = {"Allow": ", ".join(HANDLER_METHODS)}
            raise RequestRefused(405, "method_not_allowed", "This method is not known here", expected)
        if entry is not None and is_public(entry):
            check_query(scope)
            return None
        return await self._gateway.admit_caller(scope)

    def _principal_of(self, entry: Entry, admitted: AdmittedToken | None, scope: Scope) -> Principal:
        if admitted is not None:
            return admitted.verified.principal
        if is_public(entry):
            return NOBODY
        if not callable(self._caller):
            return self._caller or SYSTEM
        found = self._caller(SimpleNamespace(request=Request(scope)))
        if not isinstance(found, Principal):
            raise RequestRefused(403, "forbidden", "Its principal is unknown")
        return found

    def _check_share(self, entry: Entry) -> None:
        if entry._slot.users.count >= self._limits.requests_per_handler:  # noqa: SLF001 - the slot is our own
            raise RequestRefused(503, "unavailable", "Too many requests at once for one handler", _RETRY_SOON)

    # -- the exchange ------------------------------------------------------------------------------------------

    async def _exchange(
        self, entry: Entry, admitted: AdmittedToken | None, who: Principal, scope: Scope, channel: TimedChannel
    ) -> None:
        body = await read_body(channel, self._limits.body)
        answer = HandlerAnswer(channel, body, is_head=scope["method"] == "HEAD")
        exchange = HandlerExchange(entry, answer, channel, self._limits)
        watch = asyncio.create_task(self._gateway.recheck_token(admitted, partial(exchange.end, ExchangeEnded())))
        self._under_way.add(exchange)
        self._look_again()
        try:
            error = await exchange.run(_scope_for(entry, who, scope), self._threads)
        finally:
            watch.cancel()
            self._under_way.discard(exchange)
        if is_a(error, ClientGone):
            return
        if error is not None or not answer.is_complete:
            self._note(exchange, error)
        if not answer.is_complete:
            await exchange.finish(error)

    def _note(self, exchange: HandlerExchange, error: BaseException | None) -> None:
        name = f"{exchange.entry.source.pack}:{exchange.entry.id}"
        if is_a(error, ExchangeEnded):
            self._logger.debug("http-handler %s: an answer was ended", name)
        elif error is None:
            self._logger.warning("http-handler %s: it came to its end without a whole answer", name)
        else:
            why = "took too long" if is_a(error, AnswerTooLate) else f"raised {type_name(error)}"
            self._logger.warning("http-handler %s: it %s", name, why, exc_info=error)

    # -- handlers that leave -----------------------------------------------------------------------------------

    def _look_again(self) -> None:
        if self._look is None and self._under_way:
            self._look = asyncio.get_running_loop().call_later(_LOOK, self._end_of_those_that_left)

    def _end_of_those_that_left(self) -> None:
        for exchange in list(self._under_way):
            if self._registry.get_active(exchange.entry.id) != exchange.entry:
                exchange.leave()
        self._look = None
        self._look_again()


def _path_within(scope: Scope) -> str:
    path: str = scope["path"]
    return path.removeprefix(scope.get("root_path", ""))


def _prefix(entry: Entry) -> str:
    return f"{PREFIX}{entry.source.pack}/{entry.id}/"


def _scope_for(entry: Entry, who: Principal, scope: Scope) -> Scope:
    """Return what a handler is told of a request: nothing of this server, and no token."""
    said: Scope = {name: scope[name] for name in _SCOPE if name in scope}
    said["headers"] = [(name, value) for name, value in scope["headers"] if name != b"authorization"]
    said["root_path"] = scope.get("root_path", "") + _prefix(entry).removesuffix("/")
    said["state"] = {"context": PayloadContext(entry, who, {})}
    return said


def handler_route(app: ASGIApp) -> Route:
    """Return the route to all handlers."""
    return Route(PREFIX + "{rest:path}", app)

"""Whether the server lives and takes requests, and figures about its work: for supervisors and for Prometheus.

Figures name no tool, no principal and nothing of a request: whoever may read them learns how much is done, not what.
"""

import re
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final, Literal, TypeAlias

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agentos._version import __version__
from agentos.mcp.http.request_checks import RequestRefused
from agentos.mcp.server.served_host import ServedHost
from agentos.tools.tool_events import ToolFinished

HEALTH: Final = "/health"
READY: Final = "/ready"
METRICS: Final = "/metrics"
OPEN_PATHS: Final = frozenset({HEALTH, READY})
"""What says one word to anybody, by whatever name it is asked: probes know a machine by its address."""

Readers: TypeAlias = Literal["callers", "anybody", "off"]
"""Who may read the figures: whoever may call the endpoint, anybody who reaches the server, or nobody."""
READERS: Final[tuple[Readers, ...]] = ("callers", "anybody", "off")

Admit: TypeAlias = Callable[[Scope], Awaitable[object]]

_FORMAT = "text/plain; version=0.0.4; charset=utf-8"
_FRESH = {"Cache-Control": "no-store"}
_OUTCOME = re.compile(r"[A-Za-z]{1,40}")
_MOST_OUTCOMES = 50


class ServerStatus:
    """What a server knows of itself: whether it takes requests, and how many of what there were."""

    def __init__(self, host: ServedHost | None) -> None:
        self._host = host
        self._began = time.time()
        self.is_ready = False
        self.answers: Counter[str] = Counter()
        self._outcomes: Counter[str] = Counter()
        self._seconds = 0.0

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Be ready, and count calls, for the time of the block."""
        extensions = None if self._host is None else self._host.extensions
        if extensions is not None:
            extensions.on(self._count_call)
        self.is_ready = True
        try:
            yield
        finally:
            self.is_ready = False
            if extensions is not None:
                extensions.off(self._count_call)

    def _count_call(self, event: object) -> None:
        if isinstance(event, ToolFinished):
            outcome = "success" if event.success else event.error or ""
            is_new = outcome not in self._outcomes
            if not _OUTCOME.fullmatch(outcome) or (is_new and len(self._outcomes) >= _MOST_OUTCOMES):
                outcome = "other"  # what a pack calls its errors is its own business
            self._outcomes[outcome] += 1
            self._seconds += event.seconds

    def figures(self, *, requests: int, sessions: int) -> str:
        """Return all figures in the text format of Prometheus; *requests* are under way, *sessions* are open."""
        lines = [
            *_figure("info", "gauge", "Version of agentos.", {f'{{version="{__version__}"}}': 1}),
            *_figure("start_time_seconds", "gauge", "When the server was made, in seconds since 1970.", self._began),
            *_figure(
                "http_requests_total",
                "counter",
                "Requests answered, by status.",
                self._by_status(),
            ),
            *_figure(
                "http_requests_active",
                "gauge",
                "Requests that are under way.",
                requests,
            ),
            *_figure("mcp_sessions", "gauge", "Open sessions of the handshake era.", sessions),
            *self._figures_of_host(),
        ]
        return "\n".join([*lines, ""])

    def _by_status(self) -> dict[str, float]:
        return {f'{{status="{status}"}}': count for status, count in sorted(self.answers.items())}

    def _figures_of_host(self) -> Iterator[str]:
        if self._host is None:
            return
        packs = Counter("enabled" if one.enabled else "disabled" for one in self._host.extensions.packs())
        states = {f'{{state="{state}"}}': packs[state] for state in ("enabled", "disabled")}
        outcomes = {f'{{outcome="{one}"}}': count for one, count in sorted(self._outcomes.items())}
        timed = {"_sum": self._seconds, "_count": self._outcomes.total()}
        yield from _figure("packs", "gauge", "Loaded packs.", states)
        yield from _figure(
            "tools", "gauge", "Tools in force.", len(self._host.extensions.registry("tool").list_active())
        )
        yield from _figure("tool_calls_total", "counter", "Calls of tools that ran, by outcome.", outcomes)
        yield from _figure("tool_call_seconds", "summary", "How long calls of tools ran.", timed)


def _figure(name: str, kind: str, meaning: str, values: float | Mapping[str, float]) -> Iterator[str]:
    name = f"agentos_{name}"
    yield f"# HELP {name} {meaning}"
    yield f"# TYPE {name} {kind}"
    for rest, value in values.items() if isinstance(values, Mapping) else [("", values)]:
        yield f"{name}{rest} {value}"


class CountedApp:
    """An app whose answers are counted by their status."""

    def __init__(self, app: ASGIApp, answers: Counter[str]) -> None:
        self._app = app
        self._answers = answers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and note how it is answered."""

        async def counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._answers[str(message["status"])] += 1
            await send(message)

        await self._app(scope, receive, counted)


def status_routes(status: ServerStatus) -> list[Route]:
    """Return the routes that say whether the server lives, and whether it takes requests."""

    async def health(_: Request) -> Response:
        return JSONResponse({"status": "ok"}, headers=_FRESH)

    async def ready(_: Request) -> Response:
        if status.is_ready:
            return JSONResponse({"status": "ready"}, headers=_FRESH)
        return JSONResponse({"status": "not ready"}, 503, headers=_FRESH)

    return [Route(HEALTH, health, methods=["GET"]), Route(READY, ready, methods=["GET"])]


def metrics_route(figures: Callable[[], str], admit: Admit) -> Route:
    """Return the route to the figures, for those whom *admit* does not refuse by RequestRefused."""

    async def metrics(request: Request) -> Response:
        try:
            await admit(request.scope)
        except RequestRefused as refused:
            return refused.response()
        return PlainTextResponse(figures(), headers=_FRESH, media_type=_FORMAT)

    return Route(METRICS, metrics, methods=["GET"])

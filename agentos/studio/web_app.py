"""The pages of a host as one app, to be served alone or mounted beside MCP."""

import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from agentos.access.pins import PinError
from agentos.errors import AgentOSError
from agentos.mcp.http.gateway import DEFAULT_LIMITS, HTTPLimits
from agentos.mcp.http.request_checks import BearerTokens, allowed_host_names
from agentos.model.principal import Principal
from agentos.studio.live_events import LiveEvents, event_stream
from agentos.studio.markup import templates
from agentos.studio.page import Answering, Page
from agentos.studio.pages import PAGES
from agentos.studio.request_guard import GuardedApp
from agentos.studio.sign_in import SignIn, StudioSession, Who, is_operator
from agentos.studio.static_files import static_file
from agentos.studio.studio_chats import ChatModel
from agentos.studio.view import FIELDS_LIMIT, PageView

if TYPE_CHECKING:
    from agentos.host import AgentOS

_COOKIE: Final = "agentos_studio"
_STATIC: Final = Path(__file__).parent / "static"
_DIGITS: Final = 15
"""Of how many digits the number of an event is at most."""
_SMALLEST: Final = 500
"""Of how many bytes on an answer is compressed."""
_logger = logging.getLogger("agentos.studio")


def studio_app(
    host: "AgentOS",
    *,
    principal: Who | None = None,
    bearer: BearerTokens | None = None,
    token: str | None = None,
    is_secure: bool = False,
    allowed_hosts: Sequence[str] | None = None,
    url: str | None = None,
    checks_host: bool = True,
    limits: HTTPLimits = DEFAULT_LIMITS,
    settings: Mapping[str, Any] | None = None,
) -> Starlette:
    """Return the studio of *host* as an app.

    principal: for whom the link lets in that `app.state.sign_in` has a token for: a Principal, or what finds it as it
        is now. It is never left out silently: without it, *bearer* has to say who each token stands for.
    bearer: accepts bearer tokens; who has one signs in with it.
    is_secure: whether browsers come by https, so that the cookie is never sent in the clear.
    allowed_hosts, url: what Host may say: this machine and the address *url*, unless names are given.
    checks_host: False where the app is mounted in one that checks Host itself.
    settings: what pages are told of how the studio was started.

    A parent that mounts the app enters `app.router.lifespan_context(app)` in its own lifespan.
    """
    sign_in = SignIn(principal=principal, bearer=bearer, token=token)
    studio = _StudioRoutes(host, sign_in, is_secure=is_secure, settings=settings or {})
    hosts = allowed_host_names(allowed_hosts, url, is_open=False) if checks_host else frozenset[str]()
    app = Starlette(
        routes=list(studio.routes()),
        middleware=[
            Middleware(GuardedApp, hosts=hosts, limits=limits),
            Middleware(GZipMiddleware, minimum_size=_SMALLEST, compresslevel=6),
        ],
        lifespan=lambda _: studio.running(),
    )
    app.router.redirect_slashes = False
    app.state.sign_in = sign_in
    app.state.end_streams = studio.live.end_streams
    return app


class _StudioRoutes:
    """Routes requests to pages, once it is certain who asks and that they may."""

    def __init__(self, host: "AgentOS", sign_in: SignIn, *, is_secure: bool, settings: Mapping[str, Any]) -> None:
        self._host = host
        self._sign_in = sign_in
        self._is_secure = is_secure
        self._settings = settings
        self._templates = templates(host.extensions.masker)
        self.live = LiveEvents(host)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Listen to the host for the time of the block."""
        with self.live.listening():
            yield
        await self.live.end_streams()
        if isinstance(chat := self._settings.get("chat"), ChatModel):
            await chat.end()

    def routes(self) -> list[Route]:
        """Return all addresses."""
        routes = [
            Route("/", self._home),
            Route("/sign-in", self._sign_in_page, methods=["GET"]),
            Route("/sign-in", self._enter, methods=["POST"]),
            Route("/sign-out", self._leave, methods=["POST"]),
            Route("/events", self._events),
            Route("/static/{path:path}", partial(static_file, _STATIC)),
        ]
        for page in PAGES:
            base = f"/{page.id}"
            routes.append(Route(base, self._answering(page, page.show), methods=["GET"]))
            routes += [self._route(page, base, path, one, "GET") for path, one in page.parts.items()]
            routes += [self._route(page, base, path, one, "POST") for path, one in page.changes.items()]
        return routes

    def _route(self, page: Page, base: str, path: str, answer: Answering, method: str) -> Route:
        return Route(f"{base}/{path}", self._answering(page, answer), methods=[method])

    # -- pages -------------------------------------------------------------------------------------------------

    def _answering(self, page: Page, answer: Answering) -> Any:
        async def respond(request: Request) -> Response:
            session, principal = await self._signed_in(request)
            if session is None or principal is None:
                return self._to_sign_in(request)
            view = self._view(request, page, session, principal)
            if (page.is_for_operators and not view.is_operator) or not page.is_there(self._host):
                return view.problem(f"{principal.id} may not see this", "It is for operators of this host.", 403)
            if request.method == "POST" and not await _is_own_form(request, session):
                return view.problem("Nothing was changed", "The form is of another session; load the page anew.", 403)
            return await _contained(view, answer)

        return respond

    def _view(self, request: Request, page: Page, session: StudioSession, principal: Principal) -> PageView:
        return PageView(
            request=request,
            host=self._host,
            live=self.live,
            principal=principal,
            session=session,
            page=page,
            navigation=self._navigation(principal),
            templates=self._templates,
            settings=self._settings,
            since=self.live.last,
        )

    def _navigation(self, principal: Principal) -> list[tuple[str, list[Page]]]:
        groups: dict[str, list[Page]] = {}
        for page in PAGES:
            if page.is_there(self._host) and (is_operator(principal) or not page.is_for_operators):
                groups.setdefault(page.group, []).append(page)
        return list(groups.items())

    # -- who is signed in --------------------------------------------------------------------------------------

    def _cookie_name(self, request: Request) -> str:
        """Return the cookie's name: browsers send a cookie to every port of a machine, so the name has the port."""
        return f"{_COOKIE}_{request.url.port or 0}"

    async def _signed_in(self, request: Request) -> tuple[StudioSession | None, Principal | None]:
        session = self._sign_in.session(request.cookies.get(self._cookie_name(request)))
        return session, None if session is None else await self._sign_in.principal_of(session)

    def _to_sign_in(self, request: Request) -> Response:
        there = f"{request.scope.get('root_path', '')}/sign-in"
        if request.headers.get("hx-request") == "true":
            return Response(status_code=401, headers={"HX-Redirect": there})
        if request.method == "GET":
            return RedirectResponse(there, 303)
        return self._sign_in_form(request, 401)

    async def _home(self, request: Request) -> Response:
        _, principal = await self._signed_in(request)
        if principal is None:
            return self._to_sign_in(request)
        pages = [page for _, group in self._navigation(principal) for page in group]
        return RedirectResponse(f"{request.scope.get('root_path', '')}/{pages[0].id}", 303)

    async def _sign_in_page(self, request: Request) -> Response:
        if token := request.query_params.get("token"):
            return await self._let_in(request, token)
        return self._sign_in_form(request, 200)

    async def _enter(self, request: Request) -> Response:
        form = await request.form(max_files=0, max_fields=2)
        return await self._let_in(request, str(form.get("token", "")))

    async def _let_in(self, request: Request, token: str) -> Response:
        value = await self._sign_in.enter(token)
        if value is None:
            return self._sign_in_form(request, 401, refused=True)
        root = request.scope.get("root_path", "")
        response = RedirectResponse(f"{root}/", 303)
        response.set_cookie(
            self._cookie_name(request), value, path=f"{root}/", secure=self._is_secure, httponly=True, samesite="strict"
        )
        return response

    async def _leave(self, request: Request) -> Response:
        session, _ = await self._signed_in(request)
        if session is not None and await _is_own_form(request, session):
            self._sign_in.leave(session)
        response = self._to_sign_in(request) if request.method == "GET" else self._sign_in_form(request, 200)
        response.delete_cookie(self._cookie_name(request), path=f"{request.scope.get('root_path', '')}/")
        return response

    def _sign_in_form(self, request: Request, status: int, *, refused: bool = False) -> Response:
        root = request.scope.get("root_path", "")
        template = self._templates.get_template("sign_in.html")
        return HTMLResponse(template.render(root=root, refused=refused, has_link=self._sign_in.has_link), status)

    # -- what happens ------------------------------------------------------------------------------------------

    async def _events(self, request: Request) -> Response:
        session, principal = await self._signed_in(request)
        if session is None or principal is None:
            return Response(status_code=401)
        topics = frozenset(request.query_params.get("topics", "").split(","))
        said = request.query_params.get("since", "")
        since = int(said) if said.isdecimal() and len(said) <= _DIGITS else self.live.last

        async def still() -> Principal | None:
            return await self._sign_in.principal_of(session)

        return event_stream(self.live, session, principal, topics, still, self._templates, since)


async def _is_own_form(request: Request, session: StudioSession) -> bool:
    if (said := request.headers.get("x-csrf-token")) is None:
        form = await request.form(max_files=0, max_fields=FIELDS_LIMIT, max_part_size=1024 * 1024)
        said = str(form.get("csrf", ""))
    return session.is_own(said)


async def _contained(view: PageView, answer: Answering) -> Response:
    """Answer; what the host refuses is said in its own words."""
    try:
        return await answer(view)
    except (AgentOSError, PinError) as error:
        return view.problem("That did not work", str(error))

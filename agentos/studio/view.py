"""A request for a page: for whom, what was asked, and how it is answered."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlencode, urlsplit

import attrs
from jinja2 import Environment
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from agentos.model.principal import SYSTEM, Principal
from agentos.studio.page import Page
from agentos.studio.sign_in import StudioSession, is_operator

if TYPE_CHECKING:
    from agentos.host import AgentOS
    from agentos.studio.live_events import LiveEvents

FIELDS_LIMIT = 5_000
"""How many fields a form may have."""


@attrs.frozen(kw_only=True)
class PageView:
    """One request of somebody who is signed in."""

    request: Request
    host: "AgentOS"
    live: "LiveEvents"
    principal: Principal
    session: StudioSession
    page: Page
    navigation: Sequence[tuple[str, Sequence[Page]]]
    """The pages that this principal may see, by their groups."""
    templates: Environment
    settings: Mapping[str, Any]
    """What whoever starts the studio says of it, such as the endpoint of a model."""
    notice: str = ""
    """What a change came to, for whoever made it."""
    since: int = 0
    """The number of the newest event before anything was read for this page."""

    @property
    def is_operator(self) -> bool:
        """Tell whether what is the host's may be seen and changed."""
        return is_operator(self.principal)

    @property
    def by(self) -> Principal | None:
        """Return who decides, as the command says it: nobody is named where the host itself does."""
        return None if self.principal == SYSTEM else self.principal

    @property
    def wants_part(self) -> bool:
        """Tell whether htmx asks, which puts a part into the page."""
        return self.request.headers.get("hx-request") == "true" and (
            self.request.headers.get("hx-history-restore-request") != "true"
        )

    def asked(self, name: str, default: str = "") -> str:
        """Return what the address says of *name*: for a change, the address of the page that it was made on."""
        if self.request.method == "POST":
            page = urlsplit(self.request.headers.get("hx-current-url", ""))
            return parse_qs(page.query, max_num_fields=50).get(name, [default])[0]
        return self.request.query_params.get(name, default)

    def path(self, name: str) -> str:
        """Return a part of the address that names something."""
        return str(self.request.path_params[name])

    async def form(self) -> Mapping[str, str]:
        """Return the fields of a submitted form; of a name that is there several times, the last."""
        return dict(await self.fields())

    async def fields(self) -> list[tuple[str, str]]:
        """Return the fields of a submitted form, in their order."""
        form = await self.request.form(max_files=0, max_fields=FIELDS_LIMIT, max_part_size=1024 * 1024)
        return [(name, value) for name, value in form.multi_items() if isinstance(value, str)]

    def address(self, path: str, **query: Any) -> str:
        """Return the address of *path* within the studio, wherever it is mounted."""
        said = {name: value for name, value in query.items() if value not in (None, "", ())}
        rest = f"?{urlencode(said, doseq=True)}" if said else ""
        return f"{self.request.scope.get('root_path', '')}{path}{rest}"

    def whole(self, template: str, status: int = 200, **values: Any) -> Response:
        """Answer with a whole page."""
        notice = self.notice
        if not notice and not self.wants_part:
            notice, self.session.notice = self.session.notice, ""
        return HTMLResponse(self.markup(template, notice=notice, **values), status)

    def part(self, template: str, status: int = 200, **values: Any) -> Response:
        """Answer with a part, for htmx to put into the page."""
        return HTMLResponse(self.markup(f"parts/{template}", **values), status)

    def markup(self, template: str, **values: Any) -> str:
        """Return what a template makes of *values*."""
        return self.templates.get_template(template).render(view=self, page=self.page, **values)

    def go(self, path: str, **query: Any) -> Response:
        """Send the browser on, after a change."""
        return RedirectResponse(self.address(path, **query), 303)

    def problem(self, title: str, message: str, status: int = 409) -> Response:
        """Say what did not work: in the page that asked for it, or on a page of its own."""
        if not self.wants_part:
            return self.whole("problem.html", status, title=title, message=message)
        response = self.part("problem.html", status, title=title, message=message)
        response.headers.update({"HX-Retarget": "#notice", "HX-Reswap": "innerHTML", "HX-Reselect": ".problem"})
        return response

    async def changed(self, notice: str) -> Response:
        """Answer to a change: with the page as it is now, and with what the change came to."""
        if self.wants_part:
            response: Response = await self.page.show(attrs.evolve(self, notice=notice))
            return response
        self.session.notice = notice
        return self.go(f"/{self.page.id}")

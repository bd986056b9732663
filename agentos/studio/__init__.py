"""The studio: agentos in a browser. It shows and does what the command does, through the same calls of the host.

web_app.py         studio_app: the pages of a host as one app, to be served alone or mounted beside MCP
studio_server.py   serve_studio: the app on a port of its own, and the link that lets its operator in
page.py            what a page is: its address, who may see it, what it shows and changes
pages/             one module for each page, in the order of the navigation
view.py            a request for a page: for whom, what was asked, and how it is answered
sign_in.py         who is signed in: tokens exchanged for a cookie, and the principal behind it
request_guard.py   what a request must be before a page sees it, and the headers of every answer
live_events.py     what happens in the host, kept within bounds, and the streams that tell pages of it
markup.py          templates: foreign text is text, secrets are masked, times and JSON are readable
static/            the style sheet, our script, and htmx with its licence; nothing comes from outside
templates/         a page each, and parts/ that are fetched alone

A page shows foreign text (descriptions, arguments, results) as text, never as markup. Needs the extra `studio`.
"""

from agentos.base.extras import import_extra
from agentos.base.lazy_exports import lazy_exports


def _need_extra() -> None:
    for module in ("mcp", "jinja2"):
        import_extra(module, "studio")


__all__, __getattr__, __dir__ = lazy_exports(globals(), before=_need_extra)

"""Guarded HTTP: every hop is checked, what was checked is connected to, and everything is bounded.

http_client.py    WebClient: a request, its redirects, its answer
reach_policy.py   WebPolicy: which hosts, ports and private networks, and how much of them
web_errors.py     WebError and PolicyError
_addresses.py     which addresses are public
_urls.py          addresses of requests, read strictly
_outgoing.py      what is sent
_responses.py     what came back, within bounds
_connections.py   the connections, over httpcore

Nothing here imports httpx or httpcore before a request is sent; they come with the extra `http`.
"""

from agentos.web._responses import Headers, WebResponse
from agentos.web._urls import Target, parse_url
from agentos.web.http_client import WebClient
from agentos.web.reach_policy import WebPolicy
from agentos.web.web_errors import PolicyError, WebError

__all__ = ["Headers", "PolicyError", "Target", "WebClient", "WebError", "WebPolicy", "WebResponse", "parse_url"]

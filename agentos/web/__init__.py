"""Guarded HTTP: every hop is checked, what was checked is connected to, and everything is bounded.

client.py       WebClient: a request, its redirects, its answer
policy.py       WebPolicy: which hosts, ports and private networks, and how much of them
errors.py       WebError and PolicyError
_addresses.py   which addresses are public
_urls.py        addresses of requests, read strictly
_outgoing.py    what is sent
_answers.py     what came back, within bounds
_wire.py        the connections, over httpcore
_forms.py       forms with files, over httpx

Nothing here imports httpx or httpcore before a request is sent; they come with the extra `http`.
"""

from agentos.web._answers import Headers, WebResponse
from agentos.web._urls import Target
from agentos.web._urls import parse as parse_url
from agentos.web.client import WebClient
from agentos.web.errors import PolicyError, WebError
from agentos.web.policy import WebPolicy

__all__ = ["Headers", "PolicyError", "Target", "WebClient", "WebError", "WebPolicy", "WebResponse", "parse_url"]

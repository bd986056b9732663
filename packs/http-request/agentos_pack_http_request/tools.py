"""The two tools: one that only reads, and one that does everything else too."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import attrs
from agentos_pack_common import WebClient

from agentos import Descriptor, InterventionRule, Schema, SecretRequirement, ToolContext, tool
from agentos_pack_http_request.answers import HttpAnswer, answer_of
from agentos_pack_http_request.requests import (
    MAX_BODY,
    MAX_HEADER,
    MAX_HEADERS,
    Preview,
    Request,
    filled,
    prepare,
    preview,
)
from agentos_pack_http_request.settings import Settings

MAX_CHARS = 50_000
_GRACE = 10.0
_JSON = ["object", "array", "string", "number", "boolean"]
_ANYTHING = {"description": "Any JSON value"}

_Url = Annotated[
    str,
    "The whole address, such as https://api.example.org/items?page=2. Its host must be one that the operator allowed",
    Schema(minLength=1, maxLength=8_000),
]
_Headers = Annotated[
    dict[str, Annotated[str, Schema(maxLength=MAX_HEADER)]] | None,
    'Headers to send, such as {"Accept": "application/json"}. Leave out credentials that the operator set up for the '
    "host, and Host, Content-Length, Connection and the like",
    Schema(maxProperties=MAX_HEADERS),
]
_Json = Annotated[
    Any,
    "What to send as JSON, for POST, PUT, PATCH or DELETE; the media type is set. Not together with `body`",
    Schema(
        type=[*_JSON, "null"],
        additionalProperties=_ANYTHING,
        maxProperties=1_000,
        maxItems=10_000,
        maxLength=MAX_BODY,
    ),
]
_Body = Annotated[
    str | None,
    "Text to send as it is, for POST, PUT, PATCH or DELETE; say its Content-Type in `headers`",
    Schema(maxLength=MAX_BODY),
]
_MaxChars = Annotated[int, "How many characters of the body to return at most", Schema(minimum=1, maximum=MAX_CHARS)]
_Timeout = Annotated[
    float, "How many seconds to wait for the whole answer; the operator's limit holds", Schema(minimum=0.1, maximum=120)
]


@attrs.frozen
class HttpTools:
    """The tools on a client and the hosts that it may ask."""

    settings: Settings
    client: WebClient

    async def http_get(
        self,
        url: _Url,
        headers: _Headers = None,
        method: Annotated[Literal["GET", "HEAD"], "GET for the whole answer, HEAD for its status and headers"] = "GET",
        max_chars: _MaxChars = 20_000,
        timeout: _Timeout = 30,  # noqa: ASYNC109 - of the request
        *,
        context: ToolContext,
    ) -> HttpAnswer:
        """Read from an HTTP API at an allowed host, by GET or HEAD, and return status, headers and body as text.

        Use it for APIs that answer in JSON or text. It changes nothing; to create, change or delete use http_request.
        To read a web page as an article, a page-reading tool gives cleaner text. Any status is an answer: look at
        `status`. Redirects are followed to allowed hosts only. There are no cookies, and binary bodies are left out.
        """
        request = prepare(self.settings, method, url, headers)
        return await self._send(request, max_chars, timeout, context)

    async def http_request(
        self,
        method: Annotated[
            Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"],
            "The method; prefer http_get for GET and HEAD. A person is always asked before a DELETE",
        ],
        url: _Url,
        headers: _Headers = None,
        json: _Json = None,
        body: _Body = None,
        max_chars: _MaxChars = 20_000,
        timeout: _Timeout = 30,  # noqa: ASYNC109 - of the request
        *,
        context: ToolContext,
    ) -> HttpAnswer:
        """Send an HTTP request to an allowed host, also one that changes something there, and return the answer.

        Use it to create, change or delete through an HTTP API; to only read, use http_get. A request that was sent
        can't be taken back, and is not sent again if no answer comes: see what happened before you repeat it. Any
        status is an answer: look at `status`. There are no cookies, no files, and binary bodies are left out.
        """
        request = prepare(self.settings, method, url, headers, json, body)
        return await self._send(request, max_chars, timeout, context)

    def preview(self, args: Mapping[str, Any], context: ToolContext) -> Preview:  # noqa: ARG002 - a dry run's signature
        """Say what a call of http_request would send."""
        named = {name: args.get(name) for name in ("headers", "json", "body")}
        return preview(prepare(self.settings, args["method"], args["url"], **named))

    async def _send(self, request: Request, max_chars: int, seconds: float, context: ToolContext) -> HttpAnswer:
        secret = None if request.credential is None else context.secret(request.credential.secret)
        headers, masker = filled(request, secret)
        response = await self.client.request(
            request.method, request.url, headers=headers, json=request.json, content=request.body, timeout=seconds
        )
        return answer_of(response, masker, max_chars)


def create_descriptors(settings: Settings, client: WebClient) -> list[Descriptor[Any]]:
    """Return the tools, each with the secrets that the options name; one that is missing only bars its own host."""
    tools = HttpTools(settings, client)
    seconds = settings.policy.timeout + _GRACE
    reads = tool(effect="read", required_access="http:read", timeout=seconds, idempotent=True, category="web")
    sends = tool(
        effect="mutate",
        required_access="http:request",
        timeout=seconds,
        category="web",
        dry_run=tools.preview,
        intervention=[
            InterventionRule("never", {"$.method": "GET"}),
            InterventionRule("never", {"$.method": "HEAD"}),
            InterventionRule("always", {"$.method": "DELETE"}),
        ],
    )
    secrets = [SecretRequirement(id, optional=True) for id in settings.secrets]
    made = (reads(tools.http_get), sends(tools.http_request))
    return [Descriptor("tool", one.name, one, required_secrets=secrets) for one in made]

"""The server of an OpenAPI pack: which it is, and how requests are sent to it."""

from collections.abc import Iterable
from urllib.parse import quote, urlencode, urljoin

import attrs

from agentos.errors import ManifestError, Problem, ToolDefinitionError
from agentos.openapi.document import OpenAPIOperation
from agentos.openapi.pack_options import Auth, Options
from agentos.openapi.requests import Request
from agentos.tools.tool_context import ToolContext
from agentos.web import WebClient, WebError, WebPolicy, WebResponse, parse_url


def base_of_api(options: Options, named: str | None, url: str | None, origin: str) -> str:
    """Return the address that paths are put after: what the operator says, else what the document does."""
    said = options.server or named
    if options.server is None and url is not None:
        said = urljoin(url, said or "/")  # as the standard has it
    try:
        base = _address_of(said or "")
    except WebError as error:
        where = "the server that the document names" if options.server is None else "the address"
        message = f"{error}; say `server`, such as https://api.example.org/v1 ({where} can't be used)"
        raise ManifestError(origin, [Problem("options.server", message)]) from None
    if options.auth and options.server is None and url is not None and not _is_same_origin(base, url):
        message = (
            f"say `server`: the document was fetched from {parse_url(url).host} and names a server elsewhere, "
            "which would get the credentials"
        )
        raise ManifestError(origin, [Problem("options.server", message)])
    return base


def _address_of(server: str) -> str:
    target = parse_url(server)
    if "?" in target.path or "#" in server:
        raise WebError("refused", f"{target.host} is refused: expected an address without ? and #", target.host)
    return str(target).rstrip("/")


def _is_same_origin(one: str, other: str) -> bool:
    return parse_url(one).origin == parse_url(other).origin


class Api:
    """The server of a pack: sends what operations write, with the credentials of now."""

    def __init__(self, base: str, named: str | None, options: Options) -> None:
        target = parse_url(base)
        self.base = base
        self._named = named
        """What the document calls its server; None if the operator says which it is."""
        self._auth = options.auth
        self._client = WebClient(
            WebPolicy(
                allow=(f"{target.scheme}://{target.authority}",),
                allow_private=options.private_with(target.host),
                timeout=options.timeout,
                max_redirects=options.redirects,
            )
        )

    def base_for(self, operation: OpenAPIOperation) -> str:
        """Return the address for one operation, which may have a server of its own at the same host."""
        own = operation.servers[0] if self._named is not None and operation.servers else self._named
        if own is None or own == self._named:
            return self.base
        base = _address_of(own)
        if not _is_same_origin(base, self.base):
            raise ToolDefinitionError(
                str(operation), "", f"it has a server of its own, {parse_url(base).host}; say `server` for all"
            )
        return base

    async def send(self, base: str, request: Request, context: ToolContext) -> WebResponse:
        """Send a request with its credentials; what a server repeats of them is taken out of its answer."""
        values = [(auth, auth.value(context.secret)) for auth in self._auth]
        response = await self._client.request(
            request.method,
            _with_query(f"{base}{request.target}", values),
            headers=_with_headers(request.header_lines, values),
            content=request.body,
            max_redirects=None if request.method in ("GET", "HEAD") else 0,
        )
        packed = [value.partition(" ")[2] for auth, value in values if auth.type == "basic"]
        return _scrubbed(response, packed)

    async def close(self) -> None:
        """Close the connections; a request after that opens new ones."""
        await self._client.aclose()


def _with_query(url: str, values: Iterable[tuple[Auth, str]]) -> str:
    pairs = [(auth.name, value) for auth, value in values if auth.place == "query"]
    return f"{url}{'&' if '?' in url else '?'}{urlencode(pairs, quote_via=quote)}" if pairs else url


def _with_headers(lines: Iterable[tuple[str, str]], values: Iterable[tuple[Auth, str]]) -> list[tuple[str, str]]:
    values = list(values)
    cookies = [f"{auth.name}={value}" for auth, value in values if auth.place == "cookie"]
    cookies += [value for name, value in lines if name == "Cookie"]
    made = [(name, value) for name, value in lines if name != "Cookie"]
    made += [(auth.name, value) for auth, value in values if auth.place == "header"]
    return [*made, ("Cookie", "; ".join(cookies))] if cookies else made


def _scrubbed(response: WebResponse, packed: Iterable[str]) -> WebResponse:
    """Take user and password, packed together, out of an answer: as a whole they are no secret that others know of."""
    body = response.body
    for text in packed:
        core = text.rstrip("=")
        for form in (core, core.replace("/", "\\/"), quote(core, safe="")):
            body = body.replace(form.encode(), b"***")
    return response if body is response.body else attrs.evolve(response, body=body)

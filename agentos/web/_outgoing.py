"""What is sent: method, headers and body, checked so that no value becomes a header or a request of its own."""

import json as json_module
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlencode

import attrs

from agentos.base.extras import import_extra
from agentos.web._urls import Target
from agentos.web.web_errors import WebError

Pairs = Iterable[tuple[str, Any]]
File = bytes | tuple[str, bytes] | tuple[str, bytes, str]

_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"})
_WITH_BODY = frozenset({"POST", "PUT", "PATCH"})
_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,200}")
_SIGNS = re.compile(r"[^a-z0-9]")
"""What some servers take for one another in the name of a header: `Content_Length` too says where a request ends."""
_VALUE = re.compile(r"([!-~]([\t -~]*[!-~])?)?")
_COUNT_LIMIT = 100
_SIZE_LIMIT = 32_768

_OURS = frozenset(
    {
        *("host", "content-length", "transfer-encoding", "connection", "keep-alive", "te", "trailer", "upgrade"),
        *("expect", "accept-encoding"),
    }
)
"""Headers that say whom a request reaches and where it ends, or what is unpacked here."""
_KEPT = frozenset({"accept", "accept-language", "user-agent", "content-type"})
"""Headers that may follow a redirect to another origin: any other may be a credential."""


@attrs.frozen
class OutgoingRequest:
    """A request without its address."""

    method: str
    headers: tuple[tuple[str, str], ...] = attrs.field(repr=False)
    body: bytes | None = attrs.field(default=None, repr=False)

    def lines(self, target: Target, user_agent: str) -> list[tuple[bytes, bytes]]:
        """Return all headers as they are sent to *target*."""
        said = {name.lower() for name, _ in self.headers}
        ours = [("Host", target.authority), ("Accept-Encoding", "gzip, deflate")]
        ours += [pair for pair in (("User-Agent", user_agent), ("Accept", "*/*")) if pair[0].lower() not in said]
        if self.body is not None or self.method in _WITH_BODY:
            ours.append(("Content-Length", str(len(self.body or b""))))
        return [(name.encode(), value.encode()) for name, value in (*ours, *self.headers)]

    def as_get(self) -> "OutgoingRequest":
        """Return the GET that a redirect makes of a request: what was sent is not sent again."""
        return OutgoingRequest("GET", tuple(pair for pair in self.headers if pair[0].lower() != "content-type"))

    def without_credentials(self) -> "OutgoingRequest":
        """Return the request with nothing in its headers that another origin should not see."""
        return attrs.evolve(self, headers=tuple(pair for pair in self.headers if pair[0].lower() in _KEPT))


@attrs.define
class Departure:
    """Whether anything of a request has left."""

    is_sent: bool = False

    async def note(self, event: str, _: Mapping[str, Any]) -> None:
        """Take what httpcore says that it does; a connection and its encryption are made before the headers go."""
        if event.endswith("send_request_headers.started"):
            self.is_sent = True


def make_request(
    method: str,
    headers: Mapping[str, str] | Pairs | None,
    *,
    json: Any = None,
    content: bytes | str | None = None,
    data: Mapping[str, Any] | Pairs | None = None,
    files: Mapping[str, File] | None = None,
) -> OutgoingRequest:
    """Check and encode what a caller wants to send; at most one of json, content, and data with files."""
    if not isinstance(method, str) or method.upper() not in _METHODS:
        raise _refused(f"the method is not sent; use one of {', '.join(sorted(_METHODS))}")
    if sum((json is not None, content is not None, data is not None or files is not None)) > 1:
        raise _refused("say only one of json, content, and data with files")
    body, media = _body(json, content, data, files)
    lines = _checked(headers)
    if media is not None and not any(name.lower() == "content-type" for name, _ in lines):
        lines.append(("Content-Type", media))
    return OutgoingRequest(method.upper(), tuple(lines), body)


def _checked(headers: Mapping[str, str] | Pairs | None) -> list[tuple[str, str]]:
    lines = _pairs(headers)
    if len(lines) > _COUNT_LIMIT or sum(len(str(name)) + len(str(value)) for name, value in lines) > _SIZE_LIMIT:
        raise _refused(f"expected at most {_COUNT_LIMIT} headers of {_SIZE_LIMIT} characters in all")
    for name, value in lines:
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise _refused("a header has a name that can't be sent")
        if (folded := _SIGNS.sub("-", name.lower())) in _OURS or folded.startswith("proxy-"):
            raise _refused(f"the header {name} is set by the client; leave it out")
        check_value(value, f"the header {name}")
    return lines


def check_value(value: object, what: str) -> None:
    """Refuse what would not stay one header; the message does not quote the value: it may be a credential."""
    if not isinstance(value, str) or not _VALUE.fullmatch(value):
        raise _refused(f"{what} has a value that can't be sent; expected one line of ASCII, no blank at either end")


def _pairs(given: Mapping[str, Any] | Pairs | None) -> list[tuple[str, Any]]:
    if given is None:
        return []
    return list(given.items()) if isinstance(given, Mapping) else [(name, value) for name, value in given]


# -- queries and bodies ------------------------------------------------------------------------------------------


def with_params(url: str, params: Mapping[str, Any] | Pairs | None) -> str:
    """Return *url* with *params* added to its query, each encoded; a list stands for several, None for none."""
    if not (encoded := _encoded(params)):
        return url
    address, hash_sign, fragment = url.partition("#")
    return f"{address}{'&' if '?' in address else '?'}{encoded}{hash_sign}{fragment}"


def _encoded(given: Mapping[str, Any] | Pairs | None) -> str:
    flat = [(name, each) for name, value in _pairs(given) for each in _several(value)]
    try:
        return urlencode([(str(name), _text(value)) for name, value in flat], quote_via=quote)
    except UnicodeEncodeError:
        raise _refused("a parameter has half of a surrogate pair in it") from None


def _several(value: Any) -> Sequence[Any]:
    if isinstance(value, list | tuple):
        return [each for each in value if each is not None]
    return [] if value is None else [value]


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value)):
        return str(value)
    raise _refused(f"expected text, numbers, true or false as parameters, got {type(value).__name__}")


def _body(json: Any, content: Any, data: Any, files: Any) -> tuple[bytes | None, str | None]:
    if json is not None:
        try:
            return json_module.dumps(json, ensure_ascii=False, allow_nan=False).encode(), "application/json"
        except (TypeError, ValueError, RecursionError):
            pass
        raise _refused("`json` has values that are not JSON")
    if content is not None:
        if not isinstance(content, bytes | str):
            raise _refused(f"expected bytes or text as `content`, got {type(content).__name__}")
        return (content, None) if isinstance(content, bytes) else (content.encode(), "text/plain; charset=utf-8")
    if files is not None:
        return _multipart(data, files)
    return (None, None) if data is None else (_encoded(data).encode(), "application/x-www-form-urlencoded")


def _multipart(data: Any, files: Mapping[str, File]) -> tuple[bytes, str]:
    """Return a form with files as httpx encodes it: names of fields and files can't leave their place."""
    fields = {name: [_text(each) for each in _several(value)] for name, value in _pairs(data)}
    named = {name: _file(name, value) for name, value in files.items()}
    request = import_extra("httpx", "http").Request("POST", "http://localhost/", data=fields, files=named)
    return request.read(), request.headers["Content-Type"]


def _file(name: str, value: File) -> tuple[str, bytes] | tuple[str, bytes, str]:
    if isinstance(value, bytes):
        return name, value
    if not isinstance(value, tuple) or len(value) not in (2, 3) or not isinstance(value[1], bytes):
        raise _refused("expected files as bytes, (name, bytes) or (name, bytes, media type)")
    if len(value) == 3:  # noqa: PLR2004 - name, bytes, media type
        check_value(value[2], "a file's media type")
    return (str(value[0]), *value[1:])


def _refused(why: str) -> WebError:
    return WebError("refused", f"the request is refused: {why}")

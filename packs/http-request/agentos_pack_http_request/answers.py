"""What came back: plain text without secrets, within bounds."""

from collections.abc import Iterable

import attrs
from agentos_pack_common import WebResponse, clip, decode, plain

from agentos import Masker

_HEADER_COUNT = 60
_HEADER_LENGTH = 500
_TEXT = frozenset(
    {
        *("application/json", "application/xml", "application/javascript", "application/x-javascript"),
        *("application/x-www-form-urlencoded", "application/yaml", "application/x-yaml", "application/toml"),
        *("application/x-ndjson", "application/jsonl", "application/graphql", "application/sql", "image/svg+xml"),
    }
)
_UNSAID = ("", "application/octet-stream")
_FIRST_ERROR = 400


@attrs.frozen(kw_only=True)
class HttpAnswer:
    """An answer of a server, whatever its status.

    `url` is where it came from after redirects. The body is text; a binary one is left out, and `is_binary` says so.
    `truncated` says that the body was cut to `max_chars` of `total_chars`, or that headers were left out or cut.
    """

    status: int
    ok: bool
    url: str
    media_type: str
    headers: dict[str, str]
    body: str
    is_binary: bool
    body_bytes: int
    total_chars: int
    truncated: bool


def answer_of(response: WebResponse, masker: Masker, max_chars: int) -> HttpAnswer:
    """Return what a model is given of a response. What is hidden is hidden before anything is cut."""
    declared = response.headers.get("content-type", "")
    media = _media(declared)
    is_binary = not _is_text(media, response.body)
    text = "" if is_binary else masker.mask(plain(decode(response.body, _charset(declared))))
    body = clip(text, max_chars)
    headers, is_cut = _headers(response.headers.items(), masker)
    return HttpAnswer(
        status=response.status,
        ok=response.status < _FIRST_ERROR,
        url=masker.mask(plain(response.url)),
        media_type=_media(masker.mask(plain(declared)))[:_HEADER_LENGTH],
        headers=headers,
        body=body.text,
        is_binary=is_binary,
        body_bytes=len(response.body),
        total_chars=len(text),
        truncated=body.truncated or is_cut,
    )


def _media(declared: str) -> str:
    return declared.partition(";")[0].strip().lower()


def _is_text(media: str, body: bytes) -> bool:
    if media.startswith("text/") or media in _TEXT or media.endswith(("+json", "+xml")):
        return True
    if media not in _UNSAID or b"\0" in body:
        return not body
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return True


def _charset(declared: str) -> str | None:
    for part in declared.split(";")[1:]:
        name, _, value = part.partition("=")
        if name.strip().lower() == "charset":
            return value.strip().strip("\"'") or None
    return None


def _headers(pairs: Iterable[tuple[str, str]], masker: Masker) -> tuple[dict[str, str], bool]:
    """Return the headers that may be shown, and whether some are missing. A cookie is a credential: it is not shown."""
    told = [(name, masker.mask(plain(value))) for name, value in pairs if name.lower() != "set-cookie"]
    shown = {plain(name)[:_HEADER_LENGTH]: value[:_HEADER_LENGTH] for name, value in told[:_HEADER_COUNT]}
    return shown, len(told) > _HEADER_COUNT or any(len(value) > _HEADER_LENGTH for _, value in told)

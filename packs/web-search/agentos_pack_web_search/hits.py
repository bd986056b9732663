"""One result of a search: foreign text made plain, its address checked."""

import html
import re
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import attrs
from agentos_pack_common import WebError, clip, parse_url, plain

_TITLE = 300
_SNIPPET = 1_500
_DATE = 60
_URL = 2_000
_RAW = 20_000

_MARKUP = re.compile(r"</?(?:b|strong|em|i|mark|br|span)(?:\s[^<>]{0,200})?/?>", re.IGNORECASE)
_TRACKING = re.compile(r"utm_\w+|gclid|fbclid|msclkid|dclid|yclid|igshid|mc_[ce]id|_hsenc|_hsmi", re.IGNORECASE)


@attrs.frozen
class Hit:
    """One result, as one provider has it."""

    title: str
    url: str
    snippet: str = ""
    published: str | None = None

    @property
    def key(self) -> str:
        """Return what two addresses of the same page have in common."""
        parts = urlsplit(self.url)
        host = parts.netloc.lower().removeprefix("www.")
        said = sorted(
            pair for pair in parse_qsl(parts.query, keep_blank_values=True) if not _TRACKING.fullmatch(pair[0])
        )
        return f"{host}{parts.path.rstrip('/')}?{urlencode(said)}"


def read_hit(title: Any, url: Any, snippet: Any, published: Any = None) -> Hit | None:
    """Return a result, or None if it has no address that can be opened."""
    address = _address(url)
    if address is None:
        return None
    return Hit(_line(title, _TITLE) or address, address, _line(snippet, _SNIPPET), _line(published, _DATE) or None)


def _line(value: Any, limit: int) -> str:
    """Return foreign text as one plain line, without the marks that providers put around what was found."""
    if not isinstance(value, str):
        return ""
    text = html.unescape(_MARKUP.sub("", value[:_RAW]))
    return clip(" ".join(plain(text).split()), limit).text


def _address(value: Any) -> str | None:
    if not isinstance(value, str) or len(value) > _URL:
        return None
    try:
        return str(parse_url(value.strip()))
    except WebError:
        return None


def is_at(url: str, site: str) -> bool:
    """Tell whether an address is of a site, or of one beneath it."""
    host = parse_url(url).host
    return host == site or host.endswith(f".{site}")

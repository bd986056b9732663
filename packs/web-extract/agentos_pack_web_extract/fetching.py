"""What a server sent: fetched through the guarded client, and as text."""

import re
from http import HTTPStatus

import attrs
from agentos_pack_common import WebClient, WebResponse, decode, plain

_ACCEPT = "text/html,application/xhtml+xml,application/pdf;q=0.9,text/plain;q=0.9,*/*;q=0.5"
_FIRST_ERROR = 400
_SNIFFED = 2_048
_CHARSET = re.compile(r"charset\s*=\s*[\"']?([A-Za-z0-9_.:-]{1,40})", re.IGNORECASE)
_META = re.compile(rb"<meta\s[^>]{0,300}?charset\s*=\s*[\"']?([A-Za-z0-9_.:-]{1,40})", re.IGNORECASE)
_NOT_UTF_8 = ("utf-16", "utf-32", "iso-2022")
"""Charsets whose bytes can be taken for UTF-8 by mistake."""


@attrs.frozen
class Document:
    """What was fetched."""

    url: str
    media_type: str
    charset: str | None
    body: bytes = attrs.field(repr=False)

    @property
    def is_pdf(self) -> bool:
        """Tell whether it is a PDF, by its content: what servers say of PDFs is often wrong."""
        return b"%PDF-" in self.body[:1_024]

    @property
    def is_html(self) -> bool:
        """Tell whether it is a page."""
        if self.media_type in ("text/html", "application/xhtml+xml"):
            return True
        return self.media_type in ("", "application/octet-stream") and self.body[:200].lstrip().startswith(b"<")

    @property
    def is_text(self) -> bool:
        """Tell whether it can be read as it is."""
        media = self.media_type
        if media.startswith("text/") or media.endswith(("+json", "+xml")):
            return True
        if media in ("application/json", "application/xml", "application/javascript", "application/x-ndjson"):
            return True
        return media == "" and b"\0" not in self.body[:_SNIFFED]

    @property
    def text(self) -> str:
        """Return it as text: UTF-8 if it is that whatever is said, else by what the server or the page says."""
        said = self.charset or _declared_charset(self.body)
        if not (said or "").lower().startswith(_NOT_UTF_8):
            try:
                return self.body.decode("utf-8-sig")
            except UnicodeDecodeError:
                pass
        # Pages that say nothing, or wrongly UTF-8, are mostly of the kind that Western Windows wrote.
        return decode(self.body, said if said and said.lower() not in ("utf-8", "utf8") else "windows-1252")


def _declared_charset(body: bytes) -> str | None:
    found = _META.search(body[:_SNIFFED])
    return found[1].decode("ascii") if found else None


async def fetch(client: WebClient, url: str) -> Document:
    """Return what is at *url*; raise ValueError for an answer that is an error of the server's."""
    response = await client.request("GET", url, headers={"Accept": _ACCEPT})
    if response.status >= _FIRST_ERROR:
        raise ValueError(f"url: {response.host} answered {_status(response)}; see whether the address is right")
    declared = response.headers.get("content-type", "")
    found = _CHARSET.search(declared)
    media = plain(declared.partition(";")[0]).strip().lower()[:100]
    return Document(response.url, media, found[1] if found else None, response.body)


def _status(response: WebResponse) -> str:
    try:
        return f"{response.status} {HTTPStatus(response.status).phrase}"
    except ValueError:
        return str(response.status)

"""A mail as it came, read with care: who wrote it, in which thread, what it says, what is attached."""

import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from email import message_from_bytes
from email.errors import HeaderParseError
from email.header import decode_header
from email.message import Message
from email.utils import parsedate_to_datetime
from typing import Any

import attrs
from agentos_pack_common import clip, decode, plain

from agentos import Media
from agentos_pack_email.addresses import sender_of
from agentos_pack_email.html_text import text_of_html
from agentos_pack_email.settings import Options

_ID = re.compile(r"<[!#-;=?-\[\]-~]{1,480}>")
_NESTING = re.compile(rb"(?:^|[\r\n])content-type:\s{0,100}(?:multipart|message)/", re.IGNORECASE)
_MIME = re.compile(r"[A-Za-z0-9!#$&^_.+-]{1,100}/[A-Za-z0-9!#$&^_.+-]{1,100}")
_MOST_NESTED = 50
_MOST_PARTS = 200
_MOST_MEDIA = 32
_MOST_IDS = 100
_FIELD = 2_000
_LINE = 300
_NAME = 200


class MailError(ValueError):
    """A mail that can't be shown, in words for whoever asked for it."""


class UnreadableError(MailError):
    """A mail that can't be read: it is nested too deep, or has too many parts."""


@attrs.frozen(kw_only=True)
class Attached:
    """What is attached to a mail; `data` is None if it was left out for its size."""

    name: str
    mime: str
    size: int
    data: bytes | None = attrs.field(repr=False)


@attrs.frozen(kw_only=True)
class Mail:
    """A mail: its `id` is the Message-ID, or a digest; its `conversation` the first mail of its thread."""

    id: str
    conversation: str
    references: tuple[str, ...]
    """The mails before it in its thread, oldest first, without itself."""
    sender: str | None
    """The bare address that it says it is from, in lower case; None if that is unclear. It is no proof."""
    from_field: str
    to_field: str
    subject: str
    date: str
    results: tuple[str, ...] = attrs.field(repr=False)
    """Its Authentication-Results, topmost first."""
    automatic: str | None
    """Why it was not written by a person; None if nothing says so."""
    text: str = attrs.field(repr=False, default="")
    truncated: bool = False
    attached: tuple[Attached, ...] = attrs.field(repr=False, default=())

    @property
    def is_reply(self) -> bool:
        """Tell whether it answers another mail."""
        return self.conversation != self.id


def read_head(data: bytes) -> Mail:
    """Read a mail's header alone. Raise UnreadableError for one that is made to be unreadable."""
    return _guarded(lambda: _mail(message_from_bytes(data), data))


def read_mail(data: bytes, options: Options) -> Mail:
    """Read a whole mail, within the bounds of *options*. Raise UnreadableError for one that can't be read."""
    return _guarded(lambda: _whole(data, options))


def _guarded(read: Callable[[], Mail]) -> Mail:
    try:
        return read()
    except MailError:
        raise
    except Exception:  # noqa: BLE001 - whatever the parser raises on a mail that is made for it: others come after it
        raise UnreadableError("it can't be parsed") from None


def _whole(data: bytes, options: Options) -> Mail:
    if sum(1 for _ in zip(_NESTING.finditer(data), range(_MOST_NESTED + 1), strict=False)) > _MOST_NESTED:
        raise UnreadableError("it is nested too deep")
    message = message_from_bytes(data)
    parts = list(_leaves(message))
    text = clip(_text_of(parts, with_quotes=options.keep_quotes), options.max_text)
    attached = tuple(_attached(parts, options.max_attached_bytes))
    return attrs.evolve(_mail(message, data), text=text.text, truncated=text.truncated, attached=attached)


def media_of(mail: Mail) -> list[Media]:
    """Return what is attached and was not left out."""
    return [Media(one.mime, data=one.data, name=one.name) for one in mail.attached if one.data is not None]


def ids_in(field: str) -> list[str]:
    """Return the message ids that a field names."""
    return _ID.findall(field[: _MOST_IDS * 500])[:_MOST_IDS]


# -- the header ------------------------------------------------------------------------------------------------------


def _mail(message: Message, data: bytes) -> Mail:
    own = ids_in(_raw(message, "Message-ID"))
    id = own[0] if own else f"sha256:{hashlib.sha256(data).hexdigest()}"
    before = ids_in(_raw(message, "References")) or ids_in(_raw(message, "In-Reply-To"))[:1]
    before = [one for one in before if one != id]
    sender = sender_of(_raw(message, "From")) if len(message.get_all("From", [])) == 1 else None
    return Mail(
        id=id,
        conversation=before[0] if before else id,
        references=tuple(before),
        sender=sender,
        from_field=_shown(message, "From"),
        to_field=_shown(message, "To"),
        subject=_shown(message, "Subject"),
        date=_date(_raw(message, "Date")),
        results=tuple(str(one) for one in message.get_all("Authentication-Results", [])[:_MOST_PARTS]),
        automatic=_why_automatic(message, sender),
    )


def _raw(message: Message, name: str) -> str:
    return str(message.get(name, ""))


def _shown(message: Message, name: str) -> str:
    """Return a field as people read it: decoded, on one line, without what can't be seen."""
    text = " ".join(_raw(message, name)[:_FIELD].split())
    try:
        pieces = decode_header(text)
    except (HeaderParseError, ValueError):
        pieces = [(text, None)]
    words = [piece if isinstance(piece, str) else decode(piece, charset) for piece, charset in pieces]
    return clip(" ".join(plain("".join(words)).split()), _LINE).text


def _date(field: str) -> str:
    try:
        return parsedate_to_datetime(field[:_LINE]).isoformat()
    except (ValueError, TypeError, IndexError, OverflowError):
        return ""


_MACHINES = frozenset({"mailer-daemon", "postmaster", "no-reply", "noreply", "donotreply", "do-not-reply"})
_LIST_FIELDS = ("List-Id", "List-Post", "List-Unsubscribe", "List-Help", "List-Owner", "Mailing-List")
_ROBOT_FIELDS = ("X-Autoreply", "X-Autorespond", "X-Auto-Response-Suppress", "X-Failed-Recipients", "X-Loop")


def _why_automatic(message: Message, sender: str | None) -> str | None:
    """Say why a mail is one that nobody should answer; whoever answers those makes loops (RFC 3834)."""
    submitted = _raw(message, "Auto-Submitted").partition(";")[0].strip().lower()
    if submitted not in ("", "no"):
        return "it is marked Auto-Submitted"
    if _raw(message, "Precedence").strip().lower() in ("bulk", "list", "junk", "auto_reply"):
        return "its Precedence is that of bulk or list mail"
    if found := next((name for name in (*_LIST_FIELDS, *_ROBOT_FIELDS) if name in message), None):
        return f"it has the field {found}"
    if "Return-Path" in message and _raw(message, "Return-Path").strip() in ("<>", ""):
        return "its return path is empty, as a bounce's is"
    if message.get_content_type() in ("multipart/report", "message/delivery-status"):
        return "it is a report"
    if sender is not None and sender.partition("@")[0] in _MACHINES:
        return "it is from a machine"
    return None


# -- the body --------------------------------------------------------------------------------------------------------


def _leaves(message: Message) -> Iterator[Message]:
    """Yield the parts that have no parts, in order; a mail within a mail is one."""
    waiting, seen = [message], 0
    while waiting:
        part = waiting.pop()
        seen += 1
        if seen > _MOST_PARTS:
            raise UnreadableError(f"it has more than {_MOST_PARTS} parts")
        inner = part.get_payload()
        if part.get_content_maintype() == "multipart" and isinstance(inner, list):
            waiting += [one for one in reversed(inner) if isinstance(one, Message)]
        else:
            yield part


def _is_text(part: Message) -> bool:
    is_own = part.get_content_disposition() != "attachment" and part.get_filename() is None
    return is_own and part.get_content_type() in ("text/plain", "text/html")


def _bytes_of(part: Message) -> bytes:
    if part.get_content_maintype() == "message":
        inner: Any = part.get_payload()
        return b"\n".join(one.as_bytes() for one in inner) if isinstance(inner, list) else str(inner).encode()
    found = part.get_payload(decode=True)
    return found if isinstance(found, bytes) else b""


def _text_of(parts: Sequence[Message], *, with_quotes: bool) -> str:
    """Return the plain parts, or else the HTML ones as text."""
    texts = [part for part in parts if _is_text(part)]
    chosen = [part for part in texts if part.get_content_type() == "text/plain"]
    words = [plain(_decoded(part)) for part in chosen]
    if any(word.strip() for word in words):
        text = "\n\n".join(words)
        return (text if with_quotes else without_quotes(text)).strip()
    pages = [_decoded(part) for part in texts if part not in chosen]
    fresh = [plain(text_of_html(page, with_quotes=with_quotes)) for page in pages]
    if not any(page.strip() for page in fresh):
        fresh = [plain(text_of_html(page)) for page in pages]
    return "\n\n".join(fresh).strip()


def _decoded(part: Message) -> str:
    charset = part.get_param("charset")
    return decode(_bytes_of(part), charset if isinstance(charset, str) else None)


_INTRODUCES = ("On ", "Am ", "Le ", "El ", "Il ")


def without_quotes(text: str) -> str:
    """Return *text* without the lines that quote an earlier mail and those that introduce them.

    A line introduces a quote if it ends in a colon and the next line with something in it is quoted. Text of which
    nothing would be left is returned as it is.
    """
    kept: list[str] = []
    for line in text.split("\n"):
        if not line.startswith(">"):
            kept.append(line)
            continue
        while kept and not kept[-1].strip():
            kept.pop()
        if kept and kept[-1].rstrip().endswith(":"):
            is_whole = kept.pop().startswith(_INTRODUCES)
            if kept and not is_whole and kept[-1].startswith(_INTRODUCES):  # it was wrapped
                kept.pop()
        kept.append("")
    left = "\n".join(kept).strip()
    return left or text


def _attached(parts: Sequence[Message], most_bytes: int) -> Iterator[Attached]:
    """Yield what is attached, as long as there is room for it; of the rest only what it is."""
    room, kept = most_bytes, 0
    for part in parts:
        if _is_text(part):
            continue
        data = _bytes_of(part)
        mime = part.get_content_type()
        name = _file_name(part)
        fits = len(data) <= room and kept < _MOST_MEDIA
        room, kept = (room - len(data), kept + 1) if fits else (room, kept)
        mime = mime if _MIME.fullmatch(mime) else "application/octet-stream"
        yield Attached(name=name, mime=mime, size=len(data), data=data if fits else None)


def _file_name(part: Message) -> str:
    found = part.get_filename() or ""
    text = "".join(char if char.isprintable() else " " for char in plain(" ".join(found[:_FIELD].split())))
    return clip(text.rpartition("/")[2].rpartition("\\")[2].strip(), _NAME).text or "attachment"

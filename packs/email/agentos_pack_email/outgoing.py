"""Mail that goes out: made so that nothing in it can become a header, and sent so that it is known what is known."""

import asyncio
import contextlib
import hashlib
import re
import ssl
from collections.abc import Sequence
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP as SMTP_POLICY
from email.utils import format_datetime, localtime
from typing import TYPE_CHECKING, Any, Literal

import attrs
from agentos_pack_common import clip, plain

from agentos import Media
from agentos_pack_email.addresses import domain_of, is_address
from agentos_pack_email.mails import ids_in
from agentos_pack_email.settings import Server

if TYPE_CHECKING:
    from aiosmtplib import SMTP

Step = Literal["login", "envelope", "mail"]

MAX_SUBJECT = 200
_MOST_REFERENCES = 20
_POLICY = SMTP_POLICY.clone(cte_type="7bit")
_ENCODED_WORD = re.compile(r"=\?[^?]*\?[BbQq]\?")
_ANSWERED = re.compile(r"(?:re|aw|sv|antw)\s?:", re.IGNORECASE)
_GOODBYE_SECONDS = 2.0
_WORDS = 200
_TRANSIENT, _PERMANENT, _BEYOND = 400, 500, 600


class UnsentError(ValueError):
    """A mail that was certainly not sent; `is_final` if the server will never take it."""

    def __init__(self, why: str, *, is_final: bool = False) -> None:
        super().__init__(why)
        self.is_final = is_final


class UncertainError(ValueError):
    """A mail that may have been sent: it is not to be sent again by itself."""


@attrs.frozen(kw_only=True)
class Outgoing:
    """A mail to send."""

    key: str
    """What its Message-ID is made of: a mail that is sent again has the same."""
    sender: str
    sender_name: str = ""
    recipients: tuple[str, ...]
    subject: str
    text: str = attrs.field(repr=False)
    attachments: tuple[Media, ...] = attrs.field(default=(), repr=False)
    answers: str | None = None
    """The Message-ID of the mail that it answers."""
    references: tuple[str, ...] = ()
    """The mails before that one in the thread, oldest first."""
    automatic: str = "auto-generated"
    """What it says of itself, so that no robot answers it: auto-generated or auto-replied (RFC 3834)."""

    @property
    def id(self) -> str:
        """Return its Message-ID."""
        return f"<{hashlib.sha256(self.key.encode()).hexdigest()[:40]}@{domain_of(self.sender)}>"


def one_line(text: str) -> str:
    """Return a subject: on one line, without what can't be seen, and within its length."""
    return clip(" ".join(plain(text).split()), MAX_SUBJECT).text


def answering_subject(subject: str) -> str:
    """Return the subject of an answer."""
    return one_line(subject if _ANSWERED.match(subject) else f"Re: {subject}".strip())


def bytes_of(mail: Outgoing) -> bytes:
    """Return a mail as it is sent. Raise ValueError for an address, or an id, that is not one."""
    if not all(is_address(one) for one in (mail.sender, *mail.recipients)) or not mail.recipients:
        raise ValueError("expected bare addresses, such as ann@example.org")
    message = EmailMessage(policy=_POLICY)
    name = _ENCODED_WORD.sub("", one_line(mail.sender_name))
    message["From"] = Address(display_name=name, addr_spec=mail.sender)
    message["To"] = [Address(addr_spec=one) for one in mail.recipients]
    message["Subject"] = _ENCODED_WORD.sub("", one_line(mail.subject))
    message["Date"] = format_datetime(localtime())
    message["Auto-Submitted"] = mail.automatic
    message.set_content("\n".join([plain(mail.text), *_links(mail.attachments)]) + "\n")
    for one in mail.attachments:
        if one.data is not None:
            main, _, sub = one.type.partition("/")
            name = one_line(one.name or "attachment")
            if main in ("multipart", "message"):  # which are not bytes to the library
                main, sub = "application", "octet-stream"
            message.add_attachment(one.data, maintype=main, subtype=sub, filename=name)
    # The library would encode long ids as words, so that nobody finds the thread: they are written as they are.
    return _thread_of(mail) + message.as_bytes()


def _links(attachments: Sequence[Media]) -> list[str]:
    return [str(one.url) for one in attachments if one.url is not None]


def _thread_of(mail: Outgoing) -> bytes:
    lines = [f"Message-ID: {mail.id}"]
    if mail.answers is not None and ids_in(mail.answers) == [mail.answers]:
        before = [one for one in mail.references if ids_in(one) == [one]]
        if len(before) > _MOST_REFERENCES:
            before = [before[0], *before[-_MOST_REFERENCES + 1 :]]
        chain = "\r\n ".join([*before, mail.answers])
        lines += [f"In-Reply-To: {mail.answers}", f"References: {chain}"]
    return ("\r\n".join(lines) + "\r\n").encode("ascii")


async def transmit(server: Server, mail: Outgoing, seconds: float) -> str:
    """Send a mail to all of its recipients or to none; return its Message-ID.

    Raise UnsentError if it is certain that the server did not take it, UncertainError if that is not known.
    """
    data = bytes_of(mail)
    client = _client(server, mail, seconds)
    step: Step = "login"
    try:
        async with asyncio.timeout(seconds):
            await _log_in(client, server)
            step = "envelope"
            await client.mail(mail.sender)
            for one in mail.recipients:
                await client.rcpt(one)
            step = "mail"
            await client.data(data)
    except Exception as error:  # noqa: BLE001 - foreign code on what a foreign server says
        raise _failure(error, step, seconds) from None
    finally:
        await _leave(client)
    return mail.id


def _client(server: Server, mail: Outgoing, seconds: float) -> "SMTP":
    from aiosmtplib import SMTP

    return SMTP(
        hostname=server.host,
        port=server.port,
        local_hostname=domain_of(mail.sender),
        timeout=seconds,
        use_tls=server.tls == "implicit",
        start_tls=server.tls == "starttls",
        tls_context=server.tls_context(),
    )


async def _log_in(client: "SMTP", server: Server) -> None:
    await client.connect()
    if server.user is not None and server.password is not None:
        await client.login(server.user, server.password)


def _failure(error: Exception, step: Step, seconds: float) -> Exception:
    """Say what an error means for the mail. A refusal is final if it is of the mail, not of whoever logs in."""
    from aiosmtplib import SMTPAuthenticationError, SMTPResponseException

    code = error.code if isinstance(error, SMTPResponseException) else 0
    if isinstance(error, SMTPAuthenticationError):
        return UnsentError(f"SMTP: the login was refused ({code}); check email.smtpUser and email.smtpPassword")
    if isinstance(error, SMTPResponseException) and _TRANSIENT <= code < _BEYOND:
        said = clip(" ".join(plain(str(error.message)).split()), _WORDS).text
        is_final = code >= _PERMANENT and step != "login"
        return UnsentError(f"SMTP: the server refused with {code}: {said}", is_final=is_final)
    why = _words(error, seconds)
    if step == "mail":
        return UncertainError(f"SMTP: {why} after the mail was handed over; it may have been sent")
    return UnsentError(f"SMTP: {why}; nothing was sent")


def _words(error: Exception, seconds: float) -> str:
    if isinstance(error.__cause__, ssl.SSLCertVerificationError) or isinstance(error, ssl.SSLCertVerificationError):
        return "the server's certificate is not one that is trusted (see the option caFile)"
    if isinstance(error, TimeoutError):
        return f"the server did not answer within {seconds:g} s"
    if isinstance(error, OSError):
        return f"the connection failed ({type(error).__name__})"
    return f"the server can't be used so ({type(error).__name__})"


async def _leave(client: Any) -> None:
    """Say goodbye; whatever becomes of that changes nothing."""
    if client.is_connected:
        with contextlib.suppress(Exception):
            async with asyncio.timeout(_GOODBYE_SECONDS):
                await client.quit()
    client.close()

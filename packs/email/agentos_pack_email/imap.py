"""The mailbox by IMAP: one connection on a thread of its own, with limits on what a server may send and how long.

`MailSession` is sync, on imap-tools. `MailboxConnection` runs what is to be done with it, and can end it at any moment.
"""

import asyncio
import contextlib
import imaplib
import re
import socket
import ssl
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import attrs
from imap_tools import BaseMailBox, ImapToolsError

from agentos_pack_email.mails import MailError
from agentos_pack_email.settings import Options, Server, ServerError

T = TypeVar("T")

MOST_FOUND = 20_000
"""How many mails of a folder are considered: the newest."""
_IDLE_SECONDS = 300.0
_OVERHEAD = 8_000_000
"""How many bytes a server may say in one step, besides a whole mail."""
_LINE_COST = 200
"""For how many bytes a line counts besides its own: to read one takes longer than to read what is in it."""
_GOODBYE_SECONDS = 2.0
_LISTED_FIELDS = "(FROM TO SUBJECT DATE MESSAGE-ID REFERENCES IN-REPLY-TO AUTHENTICATION-RESULTS)"
_MESSAGE = re.compile(rb"[0-9]+ \(")
_UID = re.compile(rb"\bUID ([0-9]+)")
_SIZE = re.compile(rb"\bRFC822\.SIZE ([0-9]+)")
_FLAGS = re.compile(rb"\bFLAGS \(([^)]*)\)")


class SilentError(ServerError):
    """A server that did not answer in time, or was left."""


@attrs.frozen(kw_only=True)
class Fetched:
    """What a server says of one mail."""

    uid: int
    size: int
    is_seen: bool
    data: bytes = attrs.field(repr=False)


class _Bounded:
    """Counts what a server sends, and refuses more than the limit; mixed into the clients of imaplib."""

    limit: int
    received = 0

    def __init__(self, opened: Callable[[Any], None], limit: int, *args: Any, **named: Any) -> None:
        self._opened = opened
        self.limit = limit
        super().__init__(*args, **named)

    def open(self, *args: Any, **named: Any) -> None:
        """Connect, and tell of the socket before the server has said a word."""
        super().open(*args, **named)  # type: ignore[misc]
        self._opened(self.sock)  # type: ignore[attr-defined]

    def read(self, size: int) -> bytes:
        """Read so many bytes; none of them if they are too many."""
        self._count(size)
        data: bytes = super().read(size)  # type: ignore[misc]
        return data

    def readline(self) -> bytes:
        """Read a line."""
        try:
            line: bytes = super().readline()  # type: ignore[misc]
        except imaplib.IMAP4.error:
            raise imaplib.IMAP4.abort("a line has no end") from None
        self._count(len(line) + _LINE_COST)
        return line

    def _count(self, size: int) -> None:
        self.received += size
        if self.received > self.limit:
            raise imaplib.IMAP4.abort("it sends more than it may")


class _PlainClient(_Bounded, imaplib.IMAP4):
    """Begins without TLS."""


class _TlsClient(_Bounded, imaplib.IMAP4_SSL):
    """Begins with TLS."""


class MailSession(BaseMailBox):
    """A mailbox with one folder open. Every method blocks."""

    _validity = 0

    def __init__(self, server: Server, options: Options, opened: Callable[[Any], None], *, can_write: bool) -> None:
        self._server = server
        self._options = options
        self._opened = opened
        super().__init__()
        try:
            self._log_in()
            self.folder.set(options.folder, readonly=not can_write)
        except BaseException:
            _drop(self.client)
            raise

    def _get_mailbox_client(self) -> imaplib.IMAP4:
        server = self._server
        given: dict[str, Any] = {"host": server.host, "port": server.port, "timeout": self._options.timeout}
        context, limit = server.tls_context(), self._options.max_message_bytes + _OVERHEAD
        if server.tls == "implicit":
            return _TlsClient(self._opened, limit, ssl_context=context, **given)
        client = _PlainClient(self._opened, limit, **given)
        if server.tls == "starttls":
            try:
                client.starttls(context)
            except BaseException:
                _drop(client)
                raise
            self._opened(client.sock)
        return client

    def _log_in(self) -> None:
        user, password = str(self._server.user), str(self._server.password)
        log_in = self.login if (user + password).isascii() else self.login_utf8
        log_in(user, password, initial_folder=None)

    @property
    def validity(self) -> int:
        """Return the number within which UIDs mean the same mails."""
        said = self.client.response("UIDVALIDITY")[1]
        last = said[-1] if said else None
        if isinstance(last, bytes) and last.isdigit():
            self._validity = int(last)
        return self._validity

    def find(self, criteria: object) -> list[int]:
        """Return the UIDs of the mails that fit, oldest first; of very many the newest."""
        self._begin()
        self.client.noop()
        self.client.response("EXISTS")  # what was told until now is found below
        text = str(criteria)
        found = self.uids(text.encode(), charset=None if text.isascii() else "UTF-8")
        return sorted(int(uid) for uid in found if uid.isdigit())[-MOST_FOUND:]

    def heads(self, uids: Sequence[int]) -> list[Fetched]:
        """Return the fields to list of these mails, in their order."""
        found = self._fetch(uids, f"(UID FLAGS RFC822.SIZE BODY.PEEK[HEADER.FIELDS {_LISTED_FIELDS}])")
        return [found[uid] for uid in uids if uid in found]

    def head(self, uid: int) -> Fetched | None:
        """Return the header of a mail; None if it is gone."""
        return self._fetch([uid], "(UID FLAGS RFC822.SIZE BODY.PEEK[HEADER])").get(uid)

    def whole(self, uid: int) -> Fetched | None:
        """Return a mail; None if it is gone. Ask for its size first."""
        return self._fetch([uid], "(UID FLAGS RFC822.SIZE BODY.PEEK[])").get(uid)

    def size(self, uid: int) -> int | None:
        """Return how large a mail is; None if it is gone."""
        found = self._fetch([uid], "(UID RFC822.SIZE)").get(uid)
        return None if found is None else found.size

    def mark_seen(self, uid: int) -> None:
        """Mark a mail as read."""
        self._begin()
        # imap-tools' own method would expunge what other programs have marked as deleted.
        self._check(self.client.uid("STORE", str(uid), "+FLAGS.SILENT", r"(\Seen)"))

    @property
    def can_idle(self) -> bool:
        """Tell whether the server tells of new mail by itself."""
        return "IDLE" in self.client.capabilities

    def wait(self) -> None:
        """Wait until the server tells of something, or for a while; not at all if it did since `find`."""
        self._begin()
        if self.client.response("EXISTS")[1][-1] is not None:
            return
        with self.idle as idle:
            if not self._has_more():
                idle.poll(timeout=_IDLE_SECONDS)

    def _has_more(self) -> bool:
        """Tell whether what the server said was read already, with what came before it: polling would not see that."""
        client: Any = self.client
        before = client.sock.gettimeout()
        client.sock.settimeout(0)
        try:
            return bool((client._file if hasattr(client, "_file") else client.file).peek(1))  # noqa: SLF001 - 3.14's name
        except OSError:  # nothing is there, as TLS tells it
            return False
        finally:
            client.sock.settimeout(before)

    def _fetch(self, uids: Iterable[int], what: str) -> dict[int, Fetched]:
        self._begin()
        text = ",".join(map(str, uids))
        return fetched(self._check(self.client.uid("FETCH", text, what))) if text else {}

    def _begin(self) -> None:
        self.client.received = 0  # type: ignore[attr-defined]

    @staticmethod
    def _check(answer: tuple[str, list[Any]]) -> list[Any]:
        if answer[0] != "OK":
            raise imaplib.IMAP4.error("the server refused a command")
        return answer[1]


def _drop(client: imaplib.IMAP4) -> None:
    """Close a client's socket, whatever state it is in: after a failed handshake it is not its own any more."""
    with contextlib.suppress(Exception):
        client.shutdown()


def fetched(answer: Iterable[Any]) -> dict[int, Fetched]:
    """Return what a FETCH was answered with, by UID; what it does not name in full is left out."""
    records: list[tuple[bytes, bytes]] = []
    for item in answer:
        if isinstance(item, tuple):
            records.append((bytes(item[0]), bytes(item[1])))
        elif isinstance(item, bytes):
            if _MESSAGE.match(item) or not records:
                records.append((item, b""))
            else:
                records[-1] = (records[-1][0] + b" " + item, records[-1][1])
    found = {}
    for said, data in records:
        uid, size, flags = _UID.search(said), _SIZE.search(said), _FLAGS.search(said)
        if uid and size:
            is_seen = flags is not None and rb"\seen" in flags[1].lower()
            found[int(uid[1])] = Fetched(uid=int(uid[1]), size=int(size[1]), is_seen=is_seen, data=data)
    return found


class MailboxConnection:
    """A connection to a mailbox, made when it is first used. What goes wrong is a ServerError without any secret."""

    def __init__(self, server: Callable[[], Server], options: Options, *, can_write: bool = False) -> None:
        self._server = server
        self._options = options
        self._can_write = can_write
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="agentos-email")
        self._session: MailSession | None = None
        self._socket: socket.socket | None = None
        self._is_left = False

    async def run(self, work: Callable[[MailSession], T], *, idles: bool = False) -> T:
        """Do *work* with the session on its thread. Whoever stops waiting ends the connection."""
        server = self._server() if self._session is None else None
        future = asyncio.get_running_loop().run_in_executor(self._thread, self._work, work, server)
        seconds = self._options.timeout + (_IDLE_SECONDS if idles else 0)
        try:
            async with asyncio.timeout(seconds):
                return await future
        except TimeoutError:
            self.abort()
            raise SilentError(f"IMAP: no whole answer within {seconds:g} s") from None
        except asyncio.CancelledError:
            self.abort()
            raise

    def abort(self) -> None:
        """End the connection, from any thread: what waits for the server fails at once."""
        self._is_left = True
        if self._socket is not None:
            with contextlib.suppress(OSError):
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)  # not SSLSocket's, which is not for two threads

    async def close(self) -> None:
        """Say goodbye, if the server still listens, and end the connection."""
        try:
            if not self._is_left and self._session is not None:
                with contextlib.suppress(ServerError):
                    async with asyncio.timeout(_GOODBYE_SECONDS):
                        await self.run(lambda session: session.client.logout())
        except TimeoutError:
            pass
        finally:
            self.abort()
            self._thread.submit(self._dispose)
            self._thread.shutdown(wait=False)

    def _work(self, work: Callable[[MailSession], T], server: Server | None) -> T:
        try:
            if self._session is None:
                if server is None:
                    raise ServerError("IMAP: the connection was ended")
                self._session = MailSession(server, self._options, self._note, can_write=self._can_write)
            return work(self._session)
        except (ServerError, MailError):
            raise
        except Exception as error:  # noqa: BLE001 - foreign code on what a foreign server says
            raise ServerError(f"IMAP: {_words(error)}") from None

    def _note(self, sock: socket.socket) -> None:
        self._socket = sock
        if self._is_left:
            self.abort()

    def _dispose(self) -> None:
        if self._session is not None:
            _drop(self._session.client)


def _words(error: Exception) -> str:
    """Say what went wrong in words of our own: what a server says may repeat what it was told."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return "the server's certificate is not one that is trusted; see the option caFile"
    if isinstance(error, TimeoutError):
        return "the server does not answer"
    if isinstance(error, OSError):
        return f"the server can't be reached ({type(error).__name__})"
    if isinstance(error, ImapToolsError) or type(error) is imaplib.IMAP4.error:
        return f"the server refused: {_REFUSED.get(type(error).__name__, 'a command')}"
    if isinstance(error, imaplib.IMAP4.abort):
        return "the connection was lost, or the server said what it may not"
    return f"the server's answer can't be used ({type(error).__name__})"


_REFUSED = {
    "MailboxLoginError": "the login; check email.imapUser and email.imapPassword",
    "MailboxFolderSelectError": "to open the folder; see the option `folder`",
    "MailboxStarttlsError": "STARTTLS",
    "MailboxUidsError": "the search",
}

"""Mail that comes in: looked for, judged, handed on, and only then marked as read."""

import asyncio
import datetime as dt
import math
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

import attrs
from imap_tools import AND

from agentos import ChannelMessage
from agentos.model.pack_context import PackLogger
from agentos_pack_email.imap import MailboxConnection, MailSession
from agentos_pack_email.mails import Mail, UnreadableError, media_of, read_head, read_mail
from agentos_pack_email.settings import Options, ServerError
from agentos_pack_email.trust import is_verified

Deliver = Callable[[ChannelMessage], Awaitable[bool]]
Connect = Callable[[], MailboxConnection]

_HOUR = 3_600.0
_MOST_SENDERS = 10_000
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 60.0


def why_refused(mail: Mail, options: Options, own: str) -> str | None:
    """Say why a mail is not taken in; None if it is. It is not answered either: nobody hears of it but the log."""
    if mail.sender is None:
        return "it does not say clearly who one sender is"
    if mail.sender == own:
        return "it is from this mailbox's own address"
    if mail.automatic is not None:
        return mail.automatic
    if options.trust == "any":
        return None
    if options.trust == "authentication-results" and is_verified(mail.sender, mail.results, options):
        return None
    return f"its sender is not verified by {options.trust_method} of the trusted server"


def look_at(session: MailSession, uid: int, options: Options, own: str) -> Mail | str | None:
    """Read a mail, its header first; return why it is refused in place of it, or None if it is gone."""
    head = session.head(uid)
    if head is None:
        return None
    if head.size > options.max_message_bytes:
        return f"it has {head.size:,} bytes, more than maxMessageBytes"
    try:
        if (why := why_refused(read_head(head.data), options, own)) is not None:
            return why
        whole = session.whole(uid)
        if whole is None:
            return None
        mail = read_mail(whole.data, options)
        as_message(mail)
    except UnreadableError as error:
        return str(error)
    except ValueError:  # it is not for a channel; were it tried later, it would hold up those behind it
        return "it can't be a message of a channel"
    return why_refused(mail, options, own) or mail


def as_message(mail: Mail) -> ChannelMessage:
    """Return a mail as a message: its subject if it begins a thread, its text, and what was left out in brackets."""
    lines = [f"Subject: {mail.subject}", ""] if mail.subject and not mail.is_reply else []
    lines.append(mail.text)
    lines += ["[the rest of the text was left out]"] if mail.truncated else []
    lines += [
        f"[attachment left out: {one.name}, {one.mime}, {one.size:,} bytes]"
        for one in mail.attached
        if one.data is None
    ]
    return ChannelMessage(
        channel="email",
        conversation=mail.conversation,
        sender=mail.sender or "",
        text="\n".join(lines).strip(),
        attachments=tuple(media_of(mail)),
        id=mail.id,
    )


@attrs.define
class _Pace:
    """How many mails of each sender were taken within the last hour; what bounds a loop that nothing else stops."""

    most: int
    _times: dict[str, deque[float]] = attrs.field(factory=dict)

    def wait_for(self, sender: str, now: float) -> float:
        """Return for how many seconds nothing more of a sender is taken; 0.0 if something is, which then counts."""
        if len(self._times) > _MOST_SENDERS:
            self._times.clear()
        times = self._times.setdefault(sender, deque())
        while times and times[0] <= now - _HOUR:
            times.popleft()
        if len(times) >= self.most:
            return times[0] + _HOUR - now
        times.append(now)
        return 0.0


class Receiver:
    """Looks for unread mail, again and again, by a connection that is made anew when it is lost."""

    def __init__(
        self, options: Options, own: str, connect: Connect, logger: PackLogger, taken: Callable[[Mail], None]
    ) -> None:
        self._options = options
        self._own = own
        self._connect = connect
        self._logger = logger
        self._taken = taken
        self._pace = _Pace(options.max_per_hour)
        self._validity = 0
        self._passed: dict[int, float] = {}
        """The unread mails that are left alone, and until when, by their UID."""

    async def run(self, deliver: Deliver, first: MailboxConnection) -> None:
        """Take mails in until cancelled, by the connection *first* as long as it lasts."""
        pause, connection = _FIRST_PAUSE, first
        while True:
            try:
                while True:
                    await self._look(connection, deliver)
                    pause = _FIRST_PAUSE
                    await self._wait(connection)
            except ServerError as error:
                self._logger.warning("email: the mailbox is looked at again in %.0f s: %s", pause, error)
            except Exception:  # what the host raises while it keeps a message; the mail stays unread
                self._logger.exception("email: a mail could not be handed on and stays unread; tried again")
            finally:
                await connection.close()
            await asyncio.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)
            connection = self._connect()

    async def _wait(self, connection: MailboxConnection) -> None:
        if await connection.run(lambda session: session.can_idle):
            await connection.run(lambda session: session.wait(), idles=True)
        else:
            await asyncio.sleep(self._options.poll_seconds)

    async def _look(self, connection: MailboxConnection, deliver: Deliver) -> None:
        """Take in what is unread, oldest first."""
        validity, unread = await connection.run(self._unread)
        if validity != self._validity:  # what the server counted before means nothing any more
            self._passed.clear()
            self._validity = validity
        self._passed = {uid: until for uid in unread if (until := self._passed.get(uid)) is not None}
        for uid in unread:
            if self._passed.get(uid, -math.inf) <= asyncio.get_running_loop().time():
                await self._take(connection, uid, deliver)

    def _unread(self, session: MailSession) -> tuple[int, Sequence[int]]:
        days = dt.timedelta(days=self._options.max_age_days)
        since = dt.datetime.now(dt.UTC).date() - days
        return session.validity, session.find(AND(seen=False, date_gte=since))

    async def _take(self, connection: MailboxConnection, uid: int, deliver: Deliver) -> None:
        found = await connection.run(partial(look_at, uid=uid, options=self._options, own=self._own))
        if not isinstance(found, Mail):
            self._passed[uid] = math.inf
            if found is not None:
                self._logger.info("email: mail %d stays unread: %s", uid, found)
            return
        now = asyncio.get_running_loop().time()
        if (seconds := self._pace.wait_for(found.sender or "", now)) > 0:
            self._passed[uid] = now + seconds
            self._logger.warning("email: %s wrote more than %d mails in an hour", found.sender, self._pace.most)
            return
        if await deliver(as_message(found)):
            self._taken(found)
        await connection.run(lambda session: session.mark_seen(uid))
        self._passed[uid] = math.inf

"""The channel `email`: mails of people come in by IMAP, and answers go out by SMTP, to the sender and nobody else."""

import asyncio
from collections import OrderedDict
from functools import partial
from typing import Any

import attrs
from imap_tools import AND, NOT, H

from agentos import ChannelMessage, NotSentError, Trouble
from agentos.model.pack_context import PackLogger
from agentos_pack_email.addresses import is_address
from agentos_pack_email.imap import MailboxConnection, MailSession
from agentos_pack_email.mails import Mail, ids_in
from agentos_pack_email.outgoing import Outgoing, UnsentError, answering_subject, one_line, transmit
from agentos_pack_email.receiving import Deliver, Receiver, look_at
from agentos_pack_email.settings import Options, ReadSecret, ServerError, imap_server, own_address, smtp_server

_MOST_REMEMBERED = 1_000
_MOST_CANDIDATES = 20
_SUBJECT = 70


@attrs.frozen(kw_only=True)
class Origin:
    """What an answer has to know of the mail that it answers."""

    id: str
    conversation: str
    sender: str
    subject: str
    references: tuple[str, ...]


def origin_of(mail: Mail) -> Origin:
    """Return what an answer to *mail* has to know of it."""
    return Origin(
        id=mail.id,
        conversation=mail.conversation,
        sender=mail.sender or "",
        subject=mail.subject,
        references=mail.references,
    )


class EmailChannel:
    """A mailbox as a channel. An answer goes to the address that the mail is from; Reply-To is not heeded."""

    def __init__(self, options: Options, secret: ReadSecret, logger: PackLogger) -> None:
        self.timeout = 2 * options.timeout + 15
        self._options = options
        self._secret = secret
        self._logger = logger
        self._origins: OrderedDict[str, Origin] = OrderedDict()
        self._task: asyncio.Task[None] | None = None

    async def start(self, deliver: Deliver) -> None:
        """Log in to the mailbox, and take in what is unread from then on."""
        if (fault := self._options.fault_of_trust()) is not None:
            raise ServerError(f"email: {fault}")
        await self.stop()
        own = own_address(self._options, self._secret)
        smtp_server(self._options, self._secret)
        receiver = Receiver(self._options, own, self._connect, self._logger, self._remember)
        connection = self._connect()
        try:
            await connection.run(lambda session: session.validity)
        except BaseException:
            await connection.close()
            raise
        self._task = asyncio.create_task(receiver.run(deliver, connection))

    async def send(self, message: ChannelMessage) -> str:
        """Send an answer, or a mail to the address that the conversation is; return its Message-ID."""
        try:
            server = smtp_server(self._options, self._secret)
            mail = await self._outgoing(message)
        except (UnsentError, ServerError) as error:
            raise NotSentError(str(error), is_final=getattr(error, "is_final", False)) from None
        try:
            return await transmit(server, mail, self._options.timeout)
        except UnsentError as error:
            raise NotSentError(str(error), is_final=error.is_final) from None

    async def stop(self) -> None:
        """Stop taking mail in, and end the connection."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])

    def troubles(self) -> list[Trouble]:
        """Say what keeps the channel from being started."""
        cure = "see `Who wrote a mail` in the pack's README"
        fault = self._options.fault_of_trust()
        return [] if fault is None else [Trouble("warning", "channel:email", f"it can't be started: {fault}", cure)]

    def _connect(self) -> MailboxConnection:
        return MailboxConnection(partial(imap_server, self._options, self._secret), self._options, can_write=True)

    def _remember(self, mail: Mail) -> None:
        self._origins[mail.id] = origin_of(mail)
        while len(self._origins) > _MOST_REMEMBERED:
            self._origins.popitem(last=False)

    # -- answering -----------------------------------------------------------------------------------------------

    async def _outgoing(self, message: ChannelMessage) -> Outgoing:
        sender = own_address(self._options, self._secret)
        said: dict[str, Any] = {
            "key": message.id,
            "sender": sender,
            "sender_name": self._options.from_name,
            "text": message.text,
            "attachments": message.attachments,
        }
        if message.reply_to is None and is_address(message.conversation):
            subject = one_line(message.text.strip().partition("\n")[0][:_SUBJECT])
            return Outgoing(**said, recipients=(message.conversation,), subject=subject)
        origin = await self._origin(message.reply_to or message.conversation, message.conversation)
        return Outgoing(
            **said,
            recipients=(origin.sender,),
            subject=answering_subject(origin.subject),
            answers=origin.id,
            references=origin.references,
            automatic="auto-replied",
        )

    async def _origin(self, id: str, conversation: str) -> Origin:
        """Return the mail that is answered: what is remembered of it, or what the mailbox has."""
        known = self._origins.get(id)
        if known is not None and known.conversation == conversation:
            return known
        connection = self._connect()
        try:
            own = own_address(self._options, self._secret)
            found = await connection.run(partial(_candidates, id=id, options=self._options, own=own))
        finally:
            await connection.close()
        fitting = [origin_of(mail) for mail in found if (mail.id, mail.conversation) == (id, conversation)]
        if not fitting:
            folder = self._options.folder
            raise UnsentError(f"the mail that it answers is not in the folder {folder!r} any more", is_final=True)
        if len({one.sender for one in fitting}) > 1:
            raise UnsentError("mails of several senders have the id of the one that it answers", is_final=True)
        return fitting[0]


def _candidates(session: MailSession, id: str, options: Options, own: str) -> list[Mail]:
    """Return the mails that may have an id, which would be taken in: a search finds parts of ids too."""
    is_named = ids_in(id) == [id]
    named = AND(header=H("Message-ID", id if is_named else ""))
    uids = session.find(named if is_named else NOT(named))
    found = [look_at(session, uid, options, own) for uid in uids[-_MOST_CANDIDATES:]]
    return [one for one in found if isinstance(one, Mail)]

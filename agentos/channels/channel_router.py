"""Channels: what came in is answered once, in order within a conversation, and what is answered is sent once.

All of it stands in the store. Hosts that share one look at the same inbox and outbox, and each row has one of them.
"""

import asyncio
import contextlib
import math
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from functools import partial
from typing import Any, TypeVar

import attrs

from agentos.base.foreign import Border, is_a, to_the_end
from agentos.channels.channel_events import ChannelLetterKept, ChannelSenderUnknown
from agentos.channels.channel_turns import ChannelAnswer, ChannelTurns, reply_to
from agentos.channels.inbox import Inbox, Taken
from agentos.channels.outbox import Outbox, ToSend
from agentos.channels.running_channels import RunningChannels, ask_channel
from agentos.channels.stored_messages import message_of
from agentos.errors import ChannelError, NotSentError, StoreError
from agentos.extensions.event import Event
from agentos.kinds.messaging_channel import MESSAGING_CHANNEL
from agentos.model.channels import ChannelMessage, ChannelSettings, unknown_principals
from agentos.model.guarding import fault_of_parameters
from agentos.model.principal import Principal
from agentos.payloads.foreign_job import ForeignJob, is_async, took_too_long
from agentos.processes.backoff import Backoff
from agentos.secrets.masking import MaskingLogger, safe_str
from agentos.stacks.in_use import Users
from agentos.store import Store

T = TypeVar("T")
Handler = Callable[[ChannelMessage, Principal], Any]
"""Answers a message for a principal: with a text, a ChannelMessage, or nothing (None)."""

_LOOK_EVERY = 1.0
"""After how many seconds it is looked for what other hosts left."""
_AT_ONCE = 64
"""How many messages a host answers or sends at once."""
_DEATHS = 3
"""How often hosts may end while they answer a message, before it is kept as a dead letter."""
_FIRST, _LONGEST, _JITTER = 1.0, 600.0, 0.2
_ENDING = 5.0
"""For how many seconds a shutdown waits for what is being sent, and for channels that stop."""
_LEAST_ENDING = 1.0
"""How many of them are left for stopping, however long sending took."""
_REASON_LIMIT = 500
_LONGEST_WISH = 24 * 3600.0
"""For how many seconds a channel may have a message wait."""


@attrs.frozen(kw_only=True)
class ChannelInfo:
    """A channel: whether it is on, who brings it, and how much of it waits."""

    id: str
    pack: str | None
    """The pack that brings it; None if none that is in force does."""
    is_on: bool
    is_running: bool
    """Whether it is at work in this host."""
    senders: int
    answered_by: str
    """The model whose turns answer, or `handler`."""
    waiting: int
    """How many messages wait to be answered."""
    to_send: int
    letters: int


@attrs.frozen(kw_only=True)
class DeadLetter:
    """A message that was not answered (`failed`), was not sent (`dead`), or perhaps was (`uncertain`)."""

    id: str
    state: str
    reason: str
    attempts: int
    message: ChannelMessage


class Channels:
    """The channels that the manifest turns on. `start` begins; the host's shutdown ends."""

    def __init__(
        self,
        host: Any,
        store: Store,
        settings: Mapping[str, ChannelSettings],
        principals: Mapping[str, Principal],
        clock: Callable[[], float],
    ) -> None:
        manager = host.extensions
        self._events = manager.events
        self._masker = manager.masker
        self._store = store
        self._settings = settings
        self._principals = principals
        self._threads = host.tools.executor.threads
        self._registry = manager.registry(MESSAGING_CHANNEL.name)
        self._logger = MaskingLogger("agentos.channels", manager.masker)
        self._outbox = Outbox(store, manager.masker, clock)
        self._inbox = Inbox(store, self._outbox, manager.masker, clock)
        self._turns = ChannelTurns(host, self._inbox, settings)
        self._running = RunningChannels(
            self._registry, settings, self._threads, self._deliver, self._send_now, self._logger
        )
        self._clock = clock
        self._approvals = host.approvals
        self._handler: Handler | None = None
        self._handling = Users()
        self._tasks: dict[str, asyncio.Task[None]] = {}
        """What is being answered or sent here, by the id of its row."""
        self._sending: dict[str, tuple[str, str]] = {}
        """The channel and the conversation of what is being sent here, by the id of its row."""
        self._resumed: set[tuple[str, str]] = set()
        """Those of them for which somebody could be reached again meanwhile."""
        self._strangers: set[tuple[str, str]] = set()
        self._wake = asyncio.Event()
        self._loop: asyncio.Task[None] | None = None

    # -- for hosts ---------------------------------------------------------------------------------------------

    def handle(self, function: Handler) -> Handler:
        """Answer by *function*, of a message and the principal that its sender is, sync or async.

        It returns the answer: a text, a ChannelMessage for attachments, or None for no answer. It is called again with
        the same message if its host ends before the answer is stored. What it raises is kept as a dead letter.
        Channels with a model of their own in the manifest answer by that. Returns the function, so it decorates too.
        """
        if fault := fault_of_parameters(function, 2):
            raise TypeError(f"handle: {fault}")
        self._handler = function
        self._wake.set()
        return function

    async def start(self) -> None:
        """Start the channels that the manifest turns on, and answer from now on. Without one there is nothing to do."""
        if self._loop is None and any(map(self._is_on, self._settings)):
            for channel, sender, who in unknown_principals(self._settings, self._principals):
                self._logger.warning("channel %s: sender %s is %r, and no principal is", channel, sender, who)
            await self._store.open()
            self._loop = asyncio.create_task(self._work())

    async def send(self, message: ChannelMessage) -> str:
        """Have a message sent by its channel, as an answer is; return the id that it has in the outbox."""
        if not self._is_on(message.channel):
            raise ChannelError(f"no channel {message.channel!r} is turned on", hint="the manifest's `channels` does")
        id = await self._outbox.put(attrs.evolve(message, sender=""))
        self._wake.set()
        return id

    async def known(self) -> list[ChannelInfo]:
        """Return the channels there are: those of packs in force, and those that the manifest names."""
        active = {entry.id: entry for entry in self._registry.list_active()}
        inbox, outbox = _by_channel(await self._inbox.counts()), _by_channel(await self._outbox.counts())
        found = []
        for id in sorted({*active, *self._settings}):
            said, came, left = self._settings.get(id), inbox.get(id, {}), outbox.get(id, {})
            info = ChannelInfo(
                id=id,
                pack=active[id].source.pack if id in active else None,
                is_on=self._is_on(id),
                is_running=self._running.get(id) is not None,
                senders=0 if said is None else len(said.senders),
                answered_by=(said and said.model) or "handler",
                waiting=sum(came.get(state, 0) for state in ("waiting", "taken", "parked", "resumed")),
                to_send=sum(left.get(state, 0) for state in ("waiting", "sending")),
                letters=came.get("failed", 0) + left.get("dead", 0) + left.get("uncertain", 0),
            )
            found.append(info)
        return found

    async def letters(self) -> list[DeadLetter]:
        """Return what was not answered or sent, and what perhaps was sent, oldest first."""
        rows = [*await self._inbox.letters(), *await self._outbox.letters()]
        return [
            DeadLetter(
                id=row["id"],
                state=row["state"],
                reason=row["reason"] or "",
                attempts=row["attempts"],
                message=message_of(row),
            )
            for row in rows
        ]

    async def retry(self, id: str) -> None:
        """Answer or send a dead letter again: one that is uncertain may arrive twice."""
        if not (await self._inbox.retry(id) or await self._outbox.retry(id)):
            raise _no_letter(id)
        self._wake.set()

    async def drop(self, id: str) -> None:
        """Give a dead letter up."""
        if not (await self._inbox.drop(id) or await self._outbox.drop(id)):
            raise _no_letter(id)

    async def close(self, seconds: float = _ENDING) -> None:
        """Stop: what is being sent gets *seconds*, and what is being answered is left to the next host."""
        if self._loop is None:
            return
        now = asyncio.get_running_loop().time
        end = now() + seconds
        self._loop.cancel()
        await asyncio.wait([self._loop])
        sending = [task for id, task in self._tasks.items() if id in self._sending]
        for id, task in self._tasks.items():
            if id not in self._sending:
                task.cancel()
        if sending:
            await asyncio.wait(sending, timeout=seconds)
        for task in sending:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks.values())
        await self._running.close(max(end - now(), _LEAST_ENDING))
        await self._turns.close()
        self._loop = None

    # -- taking in ---------------------------------------------------------------------------------------------

    async def _deliver(self, message: ChannelMessage) -> bool:
        is_known = self._principal(message) is not None
        is_new = await self._inbox.put(message, is_known=is_known)
        if is_new and not is_known:
            await self._tell_stranger(message)
        self._wake.set()
        return is_new

    async def _send_now(self, channel: str, conversation: str) -> None:
        if (place := (channel, conversation)) in self._sending.values():
            self._resumed.add(place)
        if await self._outbox.hurry(channel, conversation):
            self._wake.set()

    async def _tell_stranger(self, message: ChannelMessage) -> None:
        who = (message.channel, message.sender)
        if who not in self._strangers and len(self._strangers) < _STRANGERS:
            self._strangers.add(who)
            hint = f"[channels.{message.channel}.senders] in the manifest says who is who"
            self._logger.warning("channel %s: nobody knows the sender %s; %s", message.channel, message.sender, hint)
        place: dict[str, Any] = {"channel": message.channel, "conversation": message.conversation}
        await self._tell(ChannelSenderUnknown(**place, sender=message.sender, message=message.id))

    def _principal(self, message: ChannelMessage) -> Principal | None:
        said = self._settings.get(message.channel)
        return None if said is None else self._principals.get(said.senders.get(message.sender, ""))

    def _is_on(self, channel: str) -> bool:
        return channel in self._settings and self._settings[channel].enabled

    # -- the loop ----------------------------------------------------------------------------------------------

    async def _work(self) -> None:
        while True:
            self._wake.clear()
            try:
                await self._running.look()
                await self._look()
            except StoreError as error:
                self._logger.warning("channels wait, because the store can't be used: %s", error)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_EVERY):
                    await self._wake.wait()

    async def _look(self) -> None:
        """Begin whatever can be begun."""
        for head in await self._inbox.heads():
            if self._can_answer(head["channel"]) and await self._is_free(head):
                self._begin(head["id"], self._answer(head))
        await self._look_at_parked()
        now = float(self._clock())
        for head in await self._outbox.heads():
            if not await self._is_free(head):
                continue
            if head["state"] == "sending":
                await self._tell_uncertain(head)
            elif head["due_at"] <= now and self._running.get(head["channel"]) is not None:
                self._sending[head["id"]] = head["channel"], head["conversation"]
                self._begin(head["id"], self._send(head))

    async def _look_at_parked(self) -> None:
        parked = await self._inbox.parked()
        undecided = {one.id for one in await self._approvals.pending()} if parked else set()
        for head, waits_for in parked:
            if not self._can_answer(head["channel"]) or undecided.intersection(waits_for.pending):
                continue
            if await self._is_free(head) and await self._turns.is_decided(waits_for):
                self._begin(head["id"], self._resume(head))

    def _can_answer(self, channel: str) -> bool:
        return self._is_on(channel) and (self._settings[channel].model is not None or self._handler is not None)

    async def _is_free(self, head: Mapping[str, Any]) -> bool:
        """Tell whether nobody has a row in hand: neither we nor another host that runs."""
        owner = head["owner"]
        if head["id"] in self._tasks or len(self._tasks) >= _AT_ONCE:
            return False
        return owner is None or owner == self._store.instance or not await self._store.is_alive(owner)

    def _begin(self, id: str, work: Coroutine[Any, Any, None]) -> None:
        task = self._tasks[id] = asyncio.create_task(work)
        task.add_done_callback(lambda task: self._ended(id, task))

    def _ended(self, id: str, task: "asyncio.Task[None]") -> None:
        del self._tasks[id]
        if (place := self._sending.pop(id, None)) is not None:
            self._resumed.discard(place)
        self._wake.set()
        if not task.cancelled() and (error := task.exception()) is not None:
            self._logger.warning("a message of a channel has to wait", exc_info=error)

    # -- answering ---------------------------------------------------------------------------------------------

    async def _answer(self, head: Mapping[str, Any]) -> None:
        taken = await self._inbox.claim(head)
        if taken is not None:
            await self._settled(taken, self._asked(taken.message))

    async def _resume(self, head: Mapping[str, Any]) -> None:
        taken = await self._inbox.claim_parked(head)
        if taken is not None and taken.turn is not None:
            await self._settled(taken, self._turns.resume(taken.message, taken.turn))

    async def _settled(self, taken: Taken, asking: Coroutine[Any, Any, ChannelAnswer]) -> None:
        """Store what a message comes to. Whoever is cancelled meanwhile leaves it to the next."""
        if taken.attempts > _DEATHS:
            asking.close()
            await self._fail(taken, f"hosts ended {_DEATHS} times while they answered it")
            return
        try:
            with Border() as border:  # a handler, a model's client and tools are foreign code
                answer = await asking
        except asyncio.CancelledError:
            await to_the_end(self._inbox.release(taken.id))
            raise
        if border.error is not None:
            self._logger.warning(
                "a message of channel %s was not answered", taken.message.channel, exc_info=border.error
            )
            await self._fail(taken, self._masker.describe(border.error))
            return
        state = "done" if answer.waits_for is None else "parked"
        settle = self._inbox.settle
        await self._stored(lambda: settle(taken.id, state, reply=answer.reply, waits_for=answer.waits_for))

    async def _fail(self, taken: Taken, reason: str) -> None:
        why = self._masker.mask(reason)[:_REASON_LIMIT]
        if await self._stored(lambda: self._inbox.settle(taken.id, "failed", reason=why)):
            await self._tell_letter(taken.message, taken.id, "failed", why)

    async def _asked(self, message: ChannelMessage) -> ChannelAnswer:
        principal = self._principal(message)
        if principal is None:
            raise ChannelError(f"nobody knows the sender {message.sender!r} any more")
        principal = await self._approvals.present(principal)
        if (decided := await self._turns.decide(message, principal)) is not None:
            return ChannelAnswer(reply=reply_to(message, decided))
        if self._settings[message.channel].model is not None:
            return await self._turns.answer(message, principal)
        return ChannelAnswer(reply=_reply(message, await self._handled(message, principal)))

    async def _handled(self, message: ChannelMessage, principal: Principal) -> Any:
        handler = self._handler
        if handler is None:
            raise ChannelError("the host has no handler any more")
        if is_async(handler):
            return await handler(message, principal)
        job = ForeignJob(
            partial(handler, message, principal),
            is_async=False,
            seconds=None,
            threads=self._threads,
            users=self._handling,
        )
        answer, error = await job.start().outcome()
        if error is not None:
            raise error
        return answer

    async def _stored(self, write: Callable[[], Awaitable[T]]) -> T:
        """Write what happened, as soon as the store can be written."""
        while True:
            try:
                return await write()
            except StoreError as error:
                self._logger.warning("what became of a message can't be written yet: %s", error)
                await asyncio.sleep(_LOOK_EVERY)

    # -- sending -----------------------------------------------------------------------------------------------

    async def _send(self, head: Mapping[str, Any]) -> None:
        entry = self._running.get(head["channel"])
        taken = None if entry is None else await self._outbox.claim(head)
        if entry is None or taken is None:
            return
        try:
            receipt, error = await ask_channel(entry, self._threads, "send", taken.message)
        except asyncio.CancelledError:
            await to_the_end(self._outbox.settle(taken.id, "uncertain", reason="the host ended while it was sent"))
            raise
        if error is None:
            kept = self._masker.mask(safe_str(receipt))[:_REASON_LIMIT]
            await self._stored(lambda: self._outbox.settle(taken.id, "sent", receipt=kept))
        elif is_a(error, NotSentError):
            await self._not_sent(taken, error)
        else:
            self._logger.warning("channel %s: whether a message was sent is uncertain", head["channel"], exc_info=error)
            await self._keep(taken, "uncertain", self._words(error))

    async def _not_sent(self, taken: ToSend, error: NotSentError) -> None:
        channel = taken.message.channel
        is_final, retry_after = _said_of(error)
        if is_final or taken.attempts >= self._settings[channel].attempts:
            await self._keep(taken, "dead", self._words(error))
            return
        backoff = Backoff(_FIRST, _LONGEST, _JITTER)
        backoff.attempts = taken.attempts - 1
        seconds, why = max(backoff.next(), retry_after), self._words(error)[:_REASON_LIMIT]
        if (channel, taken.message.conversation) in self._resumed:
            seconds = 0.0
        self._logger.info("channel %s: a message is sent again in %.0f s: %s", channel, seconds, why)
        await self._stored(lambda: self._outbox.settle(taken.id, "waiting", reason=why, seconds=seconds))

    async def _keep(self, taken: ToSend, state: str, reason: str) -> None:
        why = self._masker.mask(reason)[:_REASON_LIMIT]
        if await self._stored(lambda: self._outbox.settle(taken.id, state, reason=why)):
            await self._tell_letter(taken.message, taken.id, state, why)

    def _words(self, error: BaseException) -> str:
        """Return why something was not sent, masked."""
        if took_too_long(error):
            return "it took too long"
        words: str = self._masker.mask(safe_str(error)) if is_a(error, NotSentError) else self._masker.describe(error)
        return words

    async def _tell_uncertain(self, head: Mapping[str, Any]) -> None:
        """Keep a message whose host ended while it was sent."""
        why = "the host ended while it was sent"
        if await self._outbox.settle(head["id"], "uncertain", reason=why, owner=head["owner"]):
            await self._tell_letter(head, head["id"], "uncertain", why)

    # -- telling -----------------------------------------------------------------------------------------------

    async def _tell_letter(self, where: ChannelMessage | Mapping[str, Any], id: str, state: str, why: str) -> None:
        of = attrs.asdict(where, recurse=False) if isinstance(where, ChannelMessage) else where
        place = {name: of[name] for name in ("channel", "conversation")}
        self._logger.warning("channel %s: message %s is kept as %s: %s", place["channel"], id, state, why)
        await self._tell(ChannelLetterKept(**place, letter=id, state=state, reason=why))

    async def _tell(self, event: Event) -> None:
        if self._events.is_heard:
            self._events.post(event)
            await self._events.deliver()


_STRANGERS = 10_000
"""Of how many senders whom nobody knows the log tells."""


def _reply(message: ChannelMessage, answer: Any) -> ChannelMessage | None:
    """Return what a handler answered as a reply to the message, in its conversation."""
    if answer is None or isinstance(answer, str):
        return reply_to(message, answer) if answer else None
    if not isinstance(answer, ChannelMessage):
        raise TypeError(f"a handler answers with a text, a ChannelMessage or None, not with {type(answer).__name__}")
    back = reply_to(message, answer.text)
    return attrs.evolve(back, attachments=answer.attachments, reply_to=answer.reply_to or message.id)


def _said_of(error: NotSentError) -> tuple[bool, float]:
    """Return whether a message will never be sent, and after how many seconds it may be tried again."""
    with Border():  # a channel may raise an error of its own making
        seconds: Any = error.retry_after
        is_number = type(seconds) in (int, float) and math.isfinite(seconds)
        return error.is_final is True, min(max(seconds, 0.0), _LONGEST_WISH) if is_number else 0.0
    return False, 0.0


def _by_channel(rows: list[dict[str, Any]]) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for row in rows:
        found.setdefault(row["channel"], {})[row["state"]] = row["number"]
    return found


def _no_letter(id: str) -> ChannelError:
    return ChannelError(f"there is no dead letter {id[:64]!r}", hint="`agentos channels letters` shows those there are")

"""The tools. They name targets, never addresses."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Annotated, Any

import attrs
from agentos_pack_common import plain
from agentos_pack_common.sqlite import storable

from agentos import Schema, Tool, ToolContext, tool
from agentos_pack_notify.delivery import START
from agentos_pack_notify.schedule import Message, Schedule
from agentos_pack_notify.targets import MAX_BODY, MAX_TITLE, Targets

MAX_LISTED = 100
FARTHEST = timedelta(days=3_660)
_ENDING = 2.0
"""Seconds for a delivery whose time is up to end, so that what is known of it is told."""

_ENCODED_WORD = re.compile(r"=\?[^?]*\?[BbQq]\?")

TargetName = Annotated[str, "The name of a target, as notify_targets lists it", Schema(minLength=1, maxLength=64)]
Title = Annotated[str, "A short subject on one line; may be empty", Schema(maxLength=MAX_TITLE)]
Body = Annotated[str, "The message, as plain text", Schema(minLength=1, maxLength=MAX_BODY, pattern=r"\S")]
Id = Annotated[str, "The message's id, as notify_schedule returned it", Schema(minLength=1, maxLength=64)]


@attrs.frozen(kw_only=True)
class TargetInfo:
    """A target: its name, and the service it uses."""

    name: str
    service: str


@attrs.frozen(kw_only=True)
class TargetList:
    """The targets there are."""

    targets: list[TargetInfo]


@attrs.frozen(kw_only=True)
class Sent:
    """A message that the target's service has taken."""

    target: str
    title: str
    characters: int


@attrs.frozen(kw_only=True)
class Waiting:
    """Messages that wait, soonest first. `total` counts them all; `truncated` says that some are not listed."""

    messages: list[Message]
    total: int
    truncated: bool


@attrs.frozen
class NotifyTools:
    """The tools on targets and a schedule."""

    targets: Targets
    schedule: Schedule

    def notify_targets(self) -> TargetList:
        """List the targets that messages can be sent to, by name, with the service that each uses.

        Only the operator can add targets. To send to one of them use notify_send, or notify_schedule for later.
        """
        return TargetList(targets=[TargetInfo(name=one.name, service=one.schema) for one in self.targets.all()])

    async def notify_send(self, target: TargetName, title: Title, body: Body) -> Sent:
        """Send a message now to one named target, such as a mailbox or a chat room.

        Success means that the service took the message, not that somebody read it. It can't be taken back. For a
        message at a later time use notify_schedule.
        """
        line, text = _checked(title, body)
        await self.targets.deliver(target, line, text)
        return Sent(target=target, title=line, characters=len(text))

    async def preview_send(self, args: Mapping[str, Any], _: ToolContext) -> dict[str, Any]:
        """Say what would be sent where."""
        target = self.targets.find(args["target"])
        line, text = _checked(args["title"], args["body"])
        return {"would": f"send to {target.name} by {target.schema} now", "title": line, "body": text}

    async def notify_schedule(
        self,
        target: TargetName,
        title: Title,
        body: Body,
        at: Annotated[
            str,
            "When to send it: a date and time with its offset from UTC, such as 2030-05-01T09:00:00+02:00",
            Schema(minLength=10, maxLength=40),
        ],
        *,
        context: ToolContext,
    ) -> Message:
        """Send a message at a later time to one named target.

        It goes out if the host is running then, or when it next runs. notify_cancel takes it back until then. For a
        message at once use notify_send.
        """
        found, due = self.targets.find(target), _due(at)
        line, text = _checked(title, body)
        return await self.schedule.add(context.principal.id, found.name, line, text, due)

    async def preview_schedule(self, args: Mapping[str, Any], _: ToolContext) -> dict[str, Any]:
        """Say what would be sent where and when."""
        target, due = self.targets.find(args["target"]), _due(args["at"])
        line, text = _checked(args["title"], args["body"])
        return {"would": f"send to {target.name} by {target.schema} at {due.isoformat()}", "title": line, "body": text}

    async def notify_scheduled(
        self,
        limit: Annotated[int, "How many messages to list at most", Schema(minimum=1, maximum=MAX_LISTED)] = 20,
        *,
        context: ToolContext,
    ) -> Waiting:
        """List the messages that you scheduled and that have not gone out yet, soonest first."""
        messages, total = await self.schedule.waiting(
            context.principal.id, everybody=context.principal.kind == "system", limit=limit
        )
        return Waiting(messages=messages, total=total, truncated=total > len(messages))

    async def notify_cancel(self, id: Id, *, context: ToolContext) -> Message:
        """Cancel a message that you scheduled and that has not gone out yet."""
        return await self.schedule.cancel(id, context.principal.id, everybody=context.principal.kind == "system")

    async def preview_cancel(self, args: Mapping[str, Any], context: ToolContext) -> dict[str, Any]:
        """Say which message would not go out."""
        message = await self.schedule.find(
            args["id"], context.principal.id, everybody=context.principal.kind == "system"
        )
        return {
            "would": f"cancel the message {message.id} to {message.target}, due {message.due}",
            "title": message.title,
        }


def tools_of(targets: Targets, schedule: Schedule) -> list[Tool]:
    """Return the pack's tools."""
    made = NotifyTools(targets, schedule)
    seconds = targets.timeout + START + _ENDING
    reads = tool(effect="read", required_access=("notify:read",), timeout=15, category="channels")
    access = ("notify:send",)
    sends = partial(tool, effect="mutate", required_access=access, category="channels")
    return [
        reads(made.notify_targets),
        sends(timeout=seconds, dry_run=made.preview_send)(made.notify_send),
        sends(timeout=15, dry_run=made.preview_schedule)(made.notify_schedule),
        reads(made.notify_scheduled),
        sends(timeout=15, dry_run=made.preview_cancel)(made.notify_cancel),
    ]


def _checked(title: str, body: str) -> tuple[str, str]:
    """Return the title on one line and the body, both without invisible characters."""
    line = " ".join(plain(storable(title, "title")).split())
    text = plain(storable(body, "body")).strip()
    if not text:
        raise ValueError("body: has no visible character; write a message")
    if _ENCODED_WORD.search(line):
        raise ValueError("title: has =?...?= in it, which a mail program shows as other text; write that text itself")
    return line, text


def _due(at: str) -> datetime:
    try:
        due = datetime.fromisoformat(at.strip())
    except ValueError:
        raise ValueError(
            "at: expected a date and time such as 2030-05-01T09:00:00+02:00, got " + repr(plain(at)[:40])
        ) from None
    if due.tzinfo is None:
        raise ValueError("at: has no offset from UTC; add one, such as Z or +02:00")
    now = datetime.now(UTC)
    try:
        due = due.astimezone(UTC)
    except OverflowError:
        raise ValueError("at: is out of range") from None
    if due <= now:
        raise ValueError(f"at: {due.isoformat()} has passed; it is {now:%Y-%m-%dT%H:%M:%SZ}. Use notify_send for now")
    if due - now > FARTHEST:
        raise ValueError("at: is more than ten years away")
    return due

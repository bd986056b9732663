"""What Slack says of a message, read. Whatever is not a person's message is left out."""

import re
from collections.abc import Mapping
from typing import Any

from agentos_pack_common import clip, plain

from agentos import ChannelMessage
from agentos_pack_slack.slack_options import SlackPlace

_TYPES = ("message", "app_mention")
_SUBTYPES = (None, "file_share", "thread_broadcast")
"""What people write; every other subtype is a change, a notice or a message of a program."""
_ID = re.compile(r"[A-Z0-9]{2,30}")
_TIME = re.compile(r"[0-9]{1,12}\.[0-9]{1,9}")
_DIRECT = "D"
"""What the id of a conversation between the app and one person begins with."""
_FILES = 10
_NAME = 120


def read_event(envelope: Mapping[str, Any]) -> ChannelMessage | None:
    """Return the message of an event; None for those of programs, for our own, for changes, and for the rest.

    A message that comes as two events, since it is in a channel and names the app, has one id. In a channel its
    answer goes into its thread; between the app and one person it does not.
    """
    event = envelope.get("event")
    if not isinstance(event, dict) or event.get("type") not in _TYPES or event.get("subtype") not in _SUBTYPES:
        return None
    own = _own_users(envelope)
    user, channel, time = _match(_ID, event.get("user")), _match(_ID, event.get("channel")), event.get("ts")
    team = next((one for one in (event.get("user_team"), event.get("team"), envelope.get("team_id")) if one), None)
    if "bot_id" in event or user is None or user in own or channel is None:
        return None
    if _match(_TIME, time) is None or _match(_ID, team) is None:
        return None
    thread = _match(_TIME, event.get("thread_ts"))
    if thread is None and not channel.startswith(_DIRECT):
        thread = str(time)
    text = _text(event, own)
    if not text.strip():
        return None
    return ChannelMessage(
        channel="slack",
        conversation=str(SlackPlace(channel, thread)),
        sender=f"{team}/{user}",
        text=text,
        id=f"{channel}/{time}",
    )


def _own_users(envelope: Mapping[str, Any]) -> set[str]:
    """Return the users that the app itself is, where the event was sent to it."""
    said = envelope.get("authorizations")
    found = [one.get("user_id") for one in said if isinstance(one, dict)] if isinstance(said, list) else []
    return {one for one in found if isinstance(one, str)}


def _text(event: Mapping[str, Any], own: set[str]) -> str:
    """Return what was written: without the name of the app before it, and with files named."""
    text = event.get("text")
    written = text if isinstance(text, str) else ""
    for user in own:
        written = written.removeprefix(f"<@{user}>").lstrip() if written.startswith(f"<@{user}>") else written
    for entity, sign in (("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&")):
        written = written.replace(entity, sign)
    files = event.get("files")
    named = [f"[file {_name(one)}: not fetched]" for one in files[:_FILES]] if isinstance(files, list) else []
    return "\n".join(filter(None, [written, *named]))


def _name(file: Any) -> str:
    name = file.get("name") if isinstance(file, dict) else None
    words = " ".join(plain(name).split()) if isinstance(name, str) else ""
    return clip(words, _NAME).text or "without a name"


def _match(pattern: re.Pattern[str], value: Any) -> str | None:
    return value if isinstance(value, str) and pattern.fullmatch(value) else None

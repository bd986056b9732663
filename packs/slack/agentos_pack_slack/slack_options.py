"""What a manifest may say of Slack, and where messages go."""

import re
from collections.abc import Mapping
from typing import Any

import attrs
from agentos_pack_common import WebPolicy, is_base_url, service_policy

BASE_URL = "https://slack.com/api"
_MAX_ANSWER = 4_000_000
_PLACE = re.compile(r"(?P<channel>[A-Z0-9]{2,30})(/(?P<thread>[0-9]{1,12}\.[0-9]{1,9}))?")


@attrs.frozen
class SlackPlace:
    """A channel, and a thread within it if there is one."""

    channel: str
    thread: str | None = None

    @classmethod
    def read(cls, text: str) -> "SlackPlace | None":
        """Read `channel` or `channel/thread`; None for anything else."""
        match = _PLACE.fullmatch(text)
        return None if match is None else cls(match["channel"], match["thread"])

    def __str__(self) -> str:
        return self.channel if self.thread is None else f"{self.channel}/{self.thread}"

    def parameters(self) -> dict[str, str]:
        """Return what says so in a call."""
        return {"channel": self.channel} if self.thread is None else {"channel": self.channel, "thread_ts": self.thread}


def _are_channels(_: Any, __: Any, value: Mapping[str, str]) -> None:
    for name, place in value.items():
        if SlackPlace.read(place) is None:
            raise ValueError(f"{name[:64]!r}: expected the id of a channel or person such as 'C024BE91L'")


@attrs.frozen(kw_only=True)
class SlackOptions:
    """What a manifest may say."""

    base_url: str = attrs.field(default=BASE_URL, validator=is_base_url)
    channels: Mapping[str, str] = attrs.field(factory=dict, validator=_are_channels)
    """The channels that the tool may write to, by name; the channel answers where it was written to."""
    timeout: float = attrs.field(default=20.0, validator=[attrs.validators.gt(0), attrs.validators.le(60)])

    def policy(self) -> WebPolicy:
        """Return a policy for the Web API alone."""
        return service_policy(self.base_url, BASE_URL, max_bytes=_MAX_ANSWER, timeout=self.timeout)

    def fault_of_channels(self) -> str | None:
        """Say why the tool can't be used."""
        return None if self.channels else "the option `channels` names none that it may write to"

"""Named targets: what the secret says, checked, and messages delivered to them.

An address leaves this module for the process that sends, and by no other way: not in an error, a result or a log.
"""

import difflib
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import attrs
from agentos_pack_common import plain

from agentos_pack_notify.delivery import send

SECRET = "apprise.urls"  # noqa: S105 - the secret's name
MAX_TARGETS = 100
MAX_TITLE = 250
MAX_BODY = 10_000
MAX_ATTEMPTS = 10

SCHEMAS = (
    "discord",
    "gotify",
    "gotifys",
    "json",
    "jsons",
    "mailto",
    "mailtos",
    "matrix",
    "matrixs",
    "mmost",
    "mmosts",
    "ntfy",
    "ntfys",
    "pover",
    "rocket",
    "rockets",
    "slack",
    "tgram",
    "workflows",
    "zulip",
)
"""Services that send a message somewhere else. What shows it on the host's desktop or writes to its log stays out
unless the operator names it."""

_NEVER = frozenset({"script", "exec", "file", "macosx", "custom", "schema"})
"""What runs a program or writes a file, or would if apprise had it; not even the operator can name it."""
_TARGET = re.compile(r"(?P<name>[A-Za-z0-9][A-Za-z0-9_.-]{0,63})=(?P<schema>[A-Za-z0-9]{1,30})://\S+")


def _are_schemas(_: Any, __: Any, value: tuple[str, ...]) -> None:
    for schema in value:
        if not re.fullmatch(r"[a-z0-9]{1,30}", schema) or schema in _NEVER:
            raise ValueError(f"expected schemas of apprise such as mailto, got {schema[:40]!r}")
    if unknown := set(value).difference(SCHEMAS):
        _check_known(sorted(unknown))


def _check_known(schemas: list[str]) -> None:
    """Refuse what is no schema of apprise. To ask takes a moment, so it is not asked about those that are usual."""
    from apprise import NotificationManager

    known = {*NotificationManager().schemas()} - _NEVER  # type: ignore[no-untyped-call]
    for schema in schemas:
        if schema not in known:
            near = difflib.get_close_matches(schema, sorted(known), n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise ValueError(f"{schema!r} is no schema of apprise{hint}")


@attrs.frozen(kw_only=True)
class Options:
    """What a manifest may say."""

    path: Path | None = None
    schemas: tuple[str, ...] = attrs.field(default=SCHEMAS, validator=_are_schemas)
    timeout: float = attrs.field(default=20.0, validator=[attrs.validators.gt(0), attrs.validators.le(120)])
    attempts: int = attrs.field(default=4, validator=[attrs.validators.ge(1), attrs.validators.le(MAX_ATTEMPTS)])


class DeliveryError(ValueError):
    """A message that did not arrive, told without any address."""


class UncertainError(DeliveryError):
    """A message that may have arrived: it is not to be sent again by itself."""


@attrs.frozen
class Target:
    """Where messages may go: a name for people and models; the address stays out of the repr."""

    name: str
    schema: str
    address: str = attrs.field(repr=False)


class Targets:
    """The targets of now: the secret is read at every call, so that a changed one counts at once."""

    def __init__(self, options: Options, secret: Callable[[], str | None]) -> None:
        self._options = options
        self._secret = secret

    @property
    def timeout(self) -> float:
        """Return for how many seconds a delivery may take."""
        return self._options.timeout

    def all(self) -> list[Target]:
        """Return the targets, in the order of the secret."""
        return list(read_targets(self._secret() or "", self._options.schemas).values())

    def find(self, name: str) -> Target:
        """Return the target called *name*."""
        targets = read_targets(self._secret() or "", self._options.schemas)
        if name not in targets:
            known = ", ".join(targets) or "none"
            raise ValueError(f"target: {plain(name)[:64]!r} is not known; targets are {known}")
        return targets[name]

    async def deliver(self, name: str, title: str, body: str) -> None:
        """Deliver a message, or raise DeliveryError."""
        target = self.find(name)
        outcome = await send(target.address, title, body, self.timeout)
        if outcome != "taken":
            kind, words = _FAILURES[outcome]
            raise kind(f"{name}: {words.format(schema=target.schema, seconds=self.timeout)}")


_FAILURES: Mapping[str, tuple[type[DeliveryError], str]] = {
    "refused": (DeliveryError, "the service did not take the message; check its address and its account"),
    "unusable": (DeliveryError, "its address is not one that {schema} understands; correct the secret"),
    "unstarted": (DeliveryError, "nothing was sent, since apprise did not start on this machine; try again later"),
    "unanswered": (UncertainError, "no answer within {seconds:g} s; it may still arrive"),
    "broken": (UncertainError, "the delivery broke off, as one does whose answer has no end; it may have arrived"),
}


def read_targets(text: str, schemas: tuple[str, ...]) -> Mapping[str, Target]:
    """Read `name=address` entries, separated by white space. No message repeats an address."""
    found: dict[str, Target] = {}
    for number, entry in enumerate(text.split(), 1):
        match = _TARGET.fullmatch(entry)
        if match is None:
            raise ValueError(f"{SECRET}: entry {number} is not of the form name=schema://...")
        name, schema = match["name"], match["schema"].lower()
        if name in found:
            raise ValueError(f"{SECRET}: the name {name!r} stands twice")
        if schema not in schemas:
            raise ValueError(f"{SECRET}: {name!r} uses {schema!r}, which the option `schemas` does not allow")
        found[name] = Target(name, schema, entry.partition("=")[2])
        if len(found) > MAX_TARGETS:
            raise ValueError(f"{SECRET}: more than {MAX_TARGETS} targets")
    return found

"""Named targets: what the secret says, checked, and messages delivered to them.

An address never leaves this module: not in an error, not in a result, not in a log.
"""

import asyncio
import difflib
import logging
import re
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
from agentos_pack_common import plain

if TYPE_CHECKING:
    from apprise import NotifyBase

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
"""Services that send a message somewhere else. What shows it on the host's desktop, runs a program or writes a file
stays out unless the operator names it."""

_LINGERING = 1.0
"""For how many seconds a thread waits on for an answer after it was given up."""
_NEVER = frozenset({"script", "exec", "file", "custom", "schema"})
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
        try:
            async with asyncio.timeout(self.timeout):
                is_delivered = await asyncio.to_thread(_send_in_silence, target, title, body, self.timeout)
        except TimeoutError:
            raise UncertainError(f"{name}: no answer within {self.timeout:g} s; it may still arrive") from None
        if not is_delivered:
            raise DeliveryError(f"{name}: the service did not take the message; check its address and its account")


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


_SPEAKERS = ("apprise", "urllib3", "requests", "charset_normalizer")


class _Silence(logging.Filter):
    """Drops what is logged by a thread that is sending: services log addresses, tokens and payloads as they are."""

    def __init__(self) -> None:
        super().__init__()
        self._threads: set[int] = set()

    def filter(self, record: logging.LogRecord) -> bool:  # noqa: ARG002 - a filter's signature
        """Let pass what is logged by others."""
        return threading.get_ident() not in self._threads

    def __enter__(self) -> None:
        self._threads.add(threading.get_ident())
        # A filter holds for the one logger that is written to, and not for those beneath it.
        known = [name for name in list(logging.root.manager.loggerDict) if name.partition(".")[0] in _SPEAKERS]
        for name in (*_SPEAKERS, *known):
            logging.getLogger(name).addFilter(self)

    def __exit__(self, *_: object) -> None:
        self._threads.discard(threading.get_ident())


_silence = _Silence()


def _send_in_silence(target: Target, title: str, body: str, timeout: float) -> bool:
    import apprise  # noqa: F401 - so that all who log are there before they are silenced
    import requests  # noqa: F401 - as above

    # Some services log in again or out when they are disposed of: that is within the silence too.
    with _silence:
        return _send(target, title, body, timeout)


def _send(target: Target, title: str, body: str, timeout: float) -> bool:
    """Send by apprise: as text, with nothing in it interpreted, no attachments, no retries of its own."""
    from apprise import NotifyFormat

    service = _service(target)
    service.socket_connect_timeout = min(service.socket_connect_timeout, timeout)
    # Apprise takes a service that is slow to answer for one that refused. The caller's limit comes first, and knows.
    service.socket_read_timeout = timeout + _LINGERING
    # Services know no failure but False; whatever one raises is no delivery either, and its words may hold the address.
    try:
        return service.notify(body=body, title=title, body_format=NotifyFormat.TEXT) is True
    except Exception:  # noqa: BLE001 - foreign code, one of a hundred services
        return False


def _service(target: Target) -> "NotifyBase":
    from apprise import Apprise, AppriseAsset

    asset = AppriseAsset(  # without a storage_path it keeps nothing on disk
        allow_templates=False,
        interpret_escapes=False,
        interpret_emojis=False,
        http_redirects=0,
        pgp_autogen=False,
        pem_autogen=False,
        secure_logging=True,
        plugin_paths=[],
    )
    service = Apprise.instantiate(target.address, asset=asset)
    if service is None:
        raise DeliveryError(
            f"{target.name}: its address is not one that {target.schema} understands; correct the secret"
        )
    return service

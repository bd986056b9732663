"""The options of the pack: which hosts may be asked, and which secret goes to which of them."""

import base64
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import attrs
from agentos_pack_common import Target, WebError, WebOptions, WebPolicy, parse_url, read_options

Origin = tuple[str, str, int]

_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
_PLACE = re.compile(r"\{(base64)?\}")
_CONNECTION = frozenset(
    {
        *("host", "content-length", "transfer-encoding", "connection", "keep-alive", "te", "trailer", "upgrade"),
        *("expect", "accept-encoding"),
    }
)
_FOLLOWING = frozenset({"accept", "accept-language", "user-agent", "content-type"})
"""Headers that follow a redirect to another origin."""


def folded(name: str) -> str:
    """Return a header's name as servers may compare it: behind CGI and WSGI every other sign counts as a dash."""
    return re.sub(r"[^a-z0-9]", "-", name.lower())


def is_of_connection(name: str) -> bool:
    """Tell whether a header says whom a request reaches and where it ends."""
    return folded(name) in _CONNECTION or folded(name).startswith("proxy-")


def _is_named(_: Any, __: Any, value: str) -> None:
    if not value.strip():
        raise ValueError("name the id of a secret, such as github.token")


def _can_carry(_: Any, __: Any, value: str) -> None:
    if not _HEADER.fullmatch(value) or is_of_connection(value) or folded(value) in _FOLLOWING:
        raise ValueError("this header can't carry a secret; use Authorization, or the one that the API asks for")


def _has_a_place(_: Any, __: Any, value: str) -> None:
    if value and (len(_PLACE.findall(value)) != 1 or not value.isascii() or not value.isprintable()):
        raise ValueError("expected one line of ASCII with one {} or {base64} in it, such as Bearer {}")


@attrs.frozen(kw_only=True)
class Credential:
    """A secret by its id, and how it is written into a header."""

    secret: str = attrs.field(validator=_is_named)
    header: str = attrs.field(default="Authorization", validator=_can_carry)
    format: str = attrs.field(default="", validator=_has_a_place)

    def value(self, secret: str) -> str:
        """Return the value of the header; a brace in the secret itself stays what it is."""
        written = self.format or ("Bearer {}" if self.header.lower() == "authorization" else "{}")
        return _PLACE.sub(lambda place: _encoded(secret) if place[1] else secret, written)

    def password_in(self, secret: str) -> str:
        """Return the password of `user:password`, which a server may tell by itself; nothing if it is another kind."""
        return secret.partition(":")[2] if "{base64}" in self.format else ""


def _encoded(secret: str) -> str:
    return base64.b64encode(secret.encode()).decode()


def _can_be_reached(options: "Options", _: Any, hosts: Mapping[str, Credential]) -> None:
    policy = options.policy()
    seen: dict[Origin, str] = {}
    for host in hosts:
        target = _target(host)
        if not options.allow:
            raise ValueError(f"{host!r} may not be reached; name it in `allow` too")
        try:
            policy.check(target)
        except WebError as error:
            raise ValueError(f"{host!r}: {error}") from None
        if seen.setdefault(target.origin, host) != host:
            raise ValueError(f"{host!r} is the same place as {seen[target.origin]!r}; keep one of the two")


def _target(host: str) -> Target:
    """Return what a secret is meant for: https and its usual port, unless something else is written."""
    try:
        target = parse_url(host if "://" in host else f"https://{host}")
    except WebError as error:
        raise ValueError(f"{host!r}: expected a host such as api.example.org; {error}") from None
    if target.path != "/":
        raise ValueError(f"{host!r}: expected a host without a path; a secret is for all of it")
    return target


@attrs.frozen(kw_only=True)
class Options(WebOptions):
    """What a manifest may say."""

    max_bytes: int = attrs.field(default=1_000_000, validator=attrs.fields(WebOptions).max_bytes.validator)
    max_redirects: int = attrs.field(default=5, validator=[attrs.validators.ge(0), attrs.validators.le(20)])
    hosts: Mapping[str, Credential] = attrs.field(default=MappingProxyType({}), validator=_can_be_reached)


@attrs.frozen
class Settings:
    """The options, made ready for use."""

    policy: WebPolicy
    is_open: bool
    """Whether any host may be asked at all."""
    credentials: Mapping[Origin, Credential]

    @property
    def secrets(self) -> list[str]:
        """Return the ids of all secrets, each once."""
        return list(dict.fromkeys(credential.secret for credential in self.credentials.values()))


def read_settings(given: Mapping[str, Any]) -> Settings:
    """Read the options of the pack; raise OptionsError with the place of what is wrong."""
    options = read_options(Options, given)
    credentials = {_target(host).origin: credential for host, credential in options.hosts.items()}
    return Settings(options.policy(max_redirects=options.max_redirects), bool(options.allow), credentials)

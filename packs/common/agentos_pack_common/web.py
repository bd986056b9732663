"""Guarded HTTP: the names of agentos.web, and the options by which a pack lets its operator set the policy."""

from collections.abc import Callable
from typing import Any

import attrs

from agentos.web import Headers, PolicyError, Target, WebClient, WebError, WebPolicy, WebResponse, parse_url

__all__ = [
    "Headers",
    "PolicyError",
    "Target",
    "WebClient",
    "WebError",
    "WebOptions",
    "WebPolicy",
    "WebResponse",
    "is_base_url",
    "parse_url",
    "service_policy",
]


def _of_policy(field: str) -> Callable[[Any, "attrs.Attribute[Any]", Any], None]:
    """Return a validator that lets the policy itself judge a value of its *field*."""

    def check(_: Any, __: Any, value: Any) -> None:
        try:
            WebPolicy(**{field: value})
        except PolicyError as error:
            fault = str(error).removeprefix(f"WebPolicy.{field}: ")
        else:
            return
        raise ValueError(fault)

    return check


def is_base_url(_: Any, __: "attrs.Attribute[str]", value: str) -> None:
    """Check an option that is the address of a service: paths are added to it."""
    try:
        target = parse_url(value)
    except WebError as error:
        raise ValueError(str(error)) from None
    if "?" in target.path or "#" in value:
        raise ValueError("expected an address without a query, such as https://api.example.org")


def service_policy(base_url: str, usual: str, **fields: Any) -> WebPolicy:
    """Return a policy for one service alone, without redirects.

    An address other than the *usual* one is the operator's own choice, so it may be private.
    """
    target = parse_url(base_url)
    private = () if base_url == usual else (target.authority,)
    place = f"{target.scheme}://{target.authority}"
    return WebPolicy(allow=(place,), allow_private=private, max_redirects=0, **fields)


@attrs.frozen(kw_only=True)
class WebOptions:
    """What an operator may say of a pack's requests; made to be subclassed, or to be the type of a field.

    allow: the only hosts that are asked; nothing means any public one. allow_private: places that are not public and
    may be reached all the same. timeout: seconds for a whole exchange. max_bytes: of an answer.
    """

    allow: tuple[str, ...] = attrs.field(default=(), validator=_of_policy("allow"))
    allow_private: tuple[str, ...] = attrs.field(default=(), validator=_of_policy("allow_private"))
    timeout: float = attrs.field(default=30.0, validator=_of_policy("timeout"))
    max_bytes: int = attrs.field(default=10_000_000, validator=_of_policy("max_bytes"))

    def policy(self, **fields: Any) -> WebPolicy:
        """Return the policy that these options ask for; *fields* are those of WebPolicy that the pack itself sets."""
        said = {name: getattr(self, name) for name in ("allow", "allow_private", "timeout", "max_bytes")}
        return WebPolicy(**{**said, **fields})

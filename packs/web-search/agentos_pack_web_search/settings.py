"""The options of the pack."""

import time
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Literal

import attrs
from agentos_pack_common import WebError, WebPolicy, parse_url

Name = Literal["brave", "tavily", "serper", "searxng", "ddgs"]

MAX_BYTES = 2_000_000


def check_base(value: str) -> None:
    """Raise ValueError if *value* can't be the beginning of an address; it is not told, since it may be a secret."""
    try:
        target = parse_url(value)
    except WebError as error:
        raise ValueError(str(error)) from None
    if "?" in target.path or "#" in value:
        raise ValueError("expected an address without a query, such as https://search.example.org")


def policy_for(base: str, *, is_private: bool, timeout: float) -> WebPolicy:
    """Return a policy for one provider alone. What the operator set up by address may be private."""
    target = parse_url(base)
    return WebPolicy(
        allow=(f"{target.scheme}://{target.authority}",),
        allow_private=(target.authority,) if is_private else (),
        max_bytes=MAX_BYTES,
        timeout=timeout,
        max_redirects=0,  # keys are in headers of ours, and no provider redirects
    )


def _are_bases(_: Any, __: Any, value: Mapping[str, str]) -> None:
    for name, base in value.items():
        try:
            check_base(base)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None


def _are_distinct(_: Any, __: Any, value: tuple[str, ...]) -> None:
    if not value or len(set(value)) < len(value):
        raise ValueError("expected one or more providers, each once")


@attrs.frozen(kw_only=True)
class Options:
    """What a manifest may say; `clock` is for Python, and tells the time in seconds since 1970."""

    providers: tuple[Name, ...] = attrs.field(
        default=("brave", "tavily", "serper", "searxng", "ddgs"), validator=_are_distinct
    )
    timeout: float = attrs.field(default=10.0, validator=[attrs.validators.gt(0), attrs.validators.le(60)])
    pause: float = attrs.field(default=60.0, validator=[attrs.validators.ge(1), attrs.validators.le(3_600)])
    base_urls: Mapping[Literal["brave", "tavily", "serper"], str] = attrs.field(
        default=MappingProxyType({}), validator=_are_bases
    )
    clock: Callable[[], float] = time.time

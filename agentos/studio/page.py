"""What a page is: its address, who may see it, what it shows and what it changes."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

import attrs
from starlette.responses import Response

Answering: TypeAlias = Callable[[Any], Awaitable[Response]]
"""Answers a PageView: a request for a page, for a part of it, or for a change."""


def _always(host: Any) -> bool:  # noqa: ARG001 - a predicate's signature
    return True


@attrs.frozen(kw_only=True)
class Page:
    """A page of the studio.

    id: the first part of its address. question: what it answers, for whoever looks for it.
    show: answers GET of the address. parts: answer GET of addresses beneath it, by what follows. changes: answer POST
    of addresses beneath it; by then it is certain that the form came from a page of ours.
    is_for_operators: whether only an operator sees it; others see what is their own on the rest.
    is_there: whether a host has what the page shows.
    """

    id: str
    title: str
    question: str
    group: str
    show: Answering
    parts: Mapping[str, Answering] = attrs.field(factory=dict)
    changes: Mapping[str, Answering] = attrs.field(factory=dict)
    is_for_operators: bool = True
    is_there: Callable[[Any], bool] = _always

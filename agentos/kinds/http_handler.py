"""The kind `http-handler`: answers HTTP requests, under `/packs/<pack>/<id>/` of `agentos serve --http`.

A payload is an ASGI application, or an async function of a Starlette request that returns a response. Callers need the
token that they need for MCP, unless the descriptor's metadata says `public=True` and the manifest entry of its pack has
the permission `http:public`. `scope["state"]["context"]`, which is `request.state.context`, says for whom it is asked.
"""

import inspect
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from agentos.base.foreign import settled
from agentos.errors import DescriptorError
from agentos.extensions.loaded import is_permitted
from agentos.model.crossing import Crossing, Function
from agentos.model.descriptor import Descriptor
from agentos.model.guarding import fault_of_parameters
from agentos.model.kind import Kind, declare_own_kind
from agentos.payloads.foreign_job import is_async
from agentos.payloads.payload_context import owner_of
from agentos.stacks.entry import Entry

PUBLIC_HANDLERS = "http:public"
"""The permission that lets a pack answer whoever asks."""
_ASGI, _REQUEST = 3, 1
"""How many arguments each form takes."""
_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._~-]*")

ASGIHandler = Callable[[Any, Any, Any], Awaitable[None]]


def _check(descriptor: Descriptor[Any]) -> None:
    fault = _fault(descriptor.payload)
    if fault is not None:
        expected = "expected an ASGI application, or an async function of a request"
        raise DescriptorError(f"http-handler {descriptor.id!r}: {expected}; {fault}")
    if not _ID.fullmatch(descriptor.id):
        raise DescriptorError(f"http-handler {descriptor.id!r}: its id is part of an address: letters, digits and -._~")
    if type(descriptor.metadata.get("public", False)) is not bool:
        raise DescriptorError(f"http-handler {descriptor.id!r}: metadata public: expected True or False")


def _fault(payload: Any) -> str | None:
    if isinstance(payload, type):
        return "got a class"
    if fault_of_parameters(payload, _ASGI) is None:
        return "got a function that is not async" if inspect.isroutine(payload) and not is_async(payload) else None
    return fault_of_parameters(payload, _REQUEST) or (None if is_async(payload) else "got a function that is not async")


def as_asgi(payload: Any) -> ASGIHandler:
    """Return a payload of either form as an ASGI application."""
    if fault_of_parameters(payload, _ASGI) is None:
        return _application(payload)
    return _function_of_request(payload)


def _application(payload: Any) -> ASGIHandler:
    async def serve(scope: Any, receive: Any, send: Any) -> None:
        await settled(payload(scope, receive, send))

    return serve


def _function_of_request(payload: Any) -> ASGIHandler:
    async def serve(scope: Any, receive: Any, send: Any) -> None:
        from starlette.requests import Request

        response = await payload(Request(scope, receive, send))
        if not callable(response):
            raise TypeError(f"expected a response, got {type(response).__name__}")
        await response(scope, receive, send)

    return serve


def is_public(entry: Entry) -> bool:
    """Tell whether a handler answers whoever asks: it says so, and its pack may."""
    return _permission(entry.descriptor) is not None and is_permitted(owner_of(entry), PUBLIC_HANDLERS)


def _permission(descriptor: Descriptor[Any]) -> str | None:
    return PUBLIC_HANDLERS if descriptor.metadata.get("public") is True else None


def _describe(payload: Any) -> Mapping[str, Any]:  # noqa: ARG001 - nothing of it is told
    return {}


def _functions(payload: Any) -> Mapping[str, Function]:
    return {"serve": as_asgi(payload)}


def _proxy(said: Mapping[str, Any], functions: Mapping[str, Function]) -> Any:  # noqa: ARG001 - as above
    return functions["serve"]


HTTP_HANDLER = declare_own_kind(
    Kind(
        "http-handler",
        check=_check,
        permission=_permission,
        reader="`agentos serve --http`, under /packs/<pack>/<id>/",
        crossing=Crossing(_describe, _functions, _proxy),
    )
)

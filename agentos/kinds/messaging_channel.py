"""The kind `messaging-channel`: brings messages of people in, and takes answers out.

A payload is an object with `async start(deliver)`, `async send(message)`, which returns a receipt, and `async stop()`,
and, if wanted, a `timeout` for each of them. `start` returns when the channel is at work. `await deliver(message)`
returns when a message is stored: only then may the service be told that it arrived. `send` raises NotSentError if it
is certain that nothing was sent; whatever else it raises leaves open whether the message arrived. After
`await deliver.resume(conversation)` what waits for that conversation is sent at once.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from agentos.base.foreign import settled
from agentos.errors import DescriptorError
from agentos.model.crossing import Crossing
from agentos.model.descriptor import Descriptor
from agentos.model.guarding import fault_of_parameters, fault_of_seconds
from agentos.model.kind import Kind, declare_own_kind
from agentos.payloads.foreign_job import is_async
from agentos.payloads.held_calls import kept, taken_back

CHANNEL_TIMEOUT = 30.0
"""How many seconds each method of a channel may take that says nothing of it."""
_METHODS = {"start": 1, "send": 1, "stop": 0}


def channel_timeout(payload: Any) -> Any:
    """Return how many seconds each method of a channel may take."""
    return getattr(payload, "timeout", CHANNEL_TIMEOUT)


def _check(descriptor: Descriptor[Any]) -> None:
    payload = descriptor.payload
    fault = "expected an object, got a class" if isinstance(payload, type) else None
    faults = (
        fault,
        *(_fault_of_method(payload, name) for name in _METHODS),
        fault_of_seconds(channel_timeout(payload)),
    )
    fault = next((one for one in faults if one is not None), None)
    if fault is not None:
        expected = "expected an object with async start(deliver), send(message) and stop()"
        raise DescriptorError(f"messaging-channel {descriptor.id!r}: {expected}; {fault}")


def _fault_of_method(payload: Any, name: str) -> str | None:
    method = getattr(payload, name, None)
    if method is None:
        return f"it has no method {name}"
    fault = fault_of_parameters(method, _METHODS[name])
    if fault is None and not is_async(method):
        fault = "it is not async"
    return None if fault is None else f"{name}: {fault}"


# -- from a process of its own ---------------------------------------------------------------------------------


class _RemoteDelivery:
    """What a channel in a process of its own is given at its start; see `ChannelDelivery`."""

    def __init__(self, deliver: Callable[[Any], Awaitable[bool]], resume: Callable[[str], Awaitable[None]]) -> None:
        self._deliver = deliver
        self.resume = resume

    async def __call__(self, message: Any) -> bool:
        return await self._deliver(message)


def _describe(payload: Any) -> dict[str, Any]:
    return {"timeout": channel_timeout(payload)}


def _functions(payload: Any) -> dict[str, Callable[..., Any]]:
    """Return what may be asked of a payload. It can deliver as long as the call of `start` lasts."""

    async def start(deliver: Any, resume: Any, began: Callable[[], Any]) -> None:
        await payload.start(_RemoteDelivery(deliver, resume))
        await settled(began())
        await asyncio.Event().wait()

    return {"start": start, "send": payload.send, "stop": payload.stop}


class _RemoteMessagingChannel:
    """A channel of a pack in another process; started again in a new one if the last one ended."""

    def __init__(self, said: Mapping[str, Any], functions: Mapping[str, Callable[..., Any]]) -> None:
        self.timeout = said["timeout"]
        self._functions = functions
        self._lasting: asyncio.Task[None] | None = None

    async def start(self, deliver: Any) -> None:
        begin = self._functions["start"]
        self._lasting = await kept(lambda began: begin(deliver.__call__, deliver.resume, began))

    async def send(self, message: Any) -> Any:
        return await self._functions["send"](message)

    async def stop(self) -> None:
        if self._lasting is not None:
            await taken_back(self._lasting)
            self._lasting = None
            await self._functions["stop"]()


MESSAGING_CHANNEL = declare_own_kind(
    Kind(
        "messaging-channel",
        check=_check,
        reader="`host.channels`, for the channels that the manifest turns on",
        crossing=Crossing(describe=_describe, functions=_functions, proxy=_RemoteMessagingChannel),
    )
)

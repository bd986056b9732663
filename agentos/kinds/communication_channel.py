"""The kind `communication-channel`: carries the messages of `host.bus` between programs, in place of the built-in way.

A payload is an object with `async publish(topic, message)` and `async subscribe(topic, listener)`, which returns what
ends the subscription, sync or async; and, if wanted, a `timeout` for each of them. `listener(message)` is a plain
function that returns at once, may be awaited, and may be called from any thread. What is published has to reach every
subscriber of its topic, those of the same program too, each at most once and in the order of its sender.
"""

import asyncio
from collections.abc import Callable, Generator, Mapping
from typing import Any

from agentos.base.foreign import settled
from agentos.errors import DescriptorError
from agentos.model.crossing import Crossing
from agentos.model.descriptor import Descriptor
from agentos.model.guarding import fault_of_parameters, fault_of_seconds
from agentos.model.kind import Kind, declare_own_kind
from agentos.payloads.foreign_job import is_async
from agentos.payloads.held_calls import kept, taken_back

BUS_TIMEOUT = 10.0
"""How many seconds each method of a channel may take that says nothing of it."""
_METHODS = ("publish", "subscribe")


def bus_timeout(payload: Any) -> Any:
    """Return how many seconds each method of a channel may take."""
    return getattr(payload, "timeout", BUS_TIMEOUT)


def _check(descriptor: Descriptor[Any]) -> None:
    payload = descriptor.payload
    fault = "expected an object, got a class" if isinstance(payload, type) else None
    faults = (fault, *(_fault_of_method(payload, name) for name in _METHODS), fault_of_seconds(bus_timeout(payload)))
    fault = next((one for one in faults if one is not None), None)
    if fault is not None:
        expected = "expected an object with async publish(topic, message) and subscribe(topic, listener)"
        raise DescriptorError(f"communication-channel {descriptor.id!r}: {expected}; {fault}")


def _fault_of_method(payload: Any, name: str) -> str | None:
    method = getattr(payload, name, None)
    if method is None:
        return f"it has no method {name}"
    fault = fault_of_parameters(method, 2)
    if fault is None and not is_async(method):
        fault = "it is not async"
    return None if fault is None else f"{name}: {fault}"


# -- from a process of its own ---------------------------------------------------------------------------------


class Heard:
    """What a listener that returned at once is answered with: there is nothing to wait for, but it may be awaited."""

    def __await__(self) -> Generator[Any, None, None]:
        return
        yield


HEARD = Heard()


def _describe(payload: Any) -> dict[str, Any]:
    return {"timeout": bus_timeout(payload)}


def _functions(payload: Any) -> dict[str, Callable[..., Any]]:
    """Return what may be asked of a payload. A subscription lasts as long as the call that made it."""

    async def subscribe(topic: str, listener: Any, began: Callable[[], Any]) -> None:
        tell = getattr(listener, "tell", listener)

        def hear(message: Any) -> Heard:
            tell(message)
            return HEARD

        ends = await payload.subscribe(topic, hear)
        try:
            await settled(began())
            await asyncio.Event().wait()
        finally:
            await settled(ends())

    return {"publish": payload.publish, "subscribe": subscribe}


class _RemoteChannel:
    """A channel of a pack in another process."""

    def __init__(self, said: Mapping[str, Any], functions: Mapping[str, Callable[..., Any]]) -> None:
        self.timeout = said["timeout"]
        self._publish = functions["publish"]
        self._subscribe = functions["subscribe"]

    async def publish(self, topic: str, message: Any) -> None:
        await self._publish(topic, message)

    async def subscribe(self, topic: str, listener: Callable[[Any], Any]) -> Callable[[], Any]:
        """Subscribe, and again in a new process if the last one ended; raise if it can't be done at first."""
        lasting = await kept(lambda began: self._subscribe(topic, listener, began))
        return lambda: taken_back(lasting)


COMMUNICATION_CHANNEL = declare_own_kind(
    Kind(
        "communication-channel",
        check=_check,
        reader="`host.bus`, in place of the built-in way",
        crossing=Crossing(describe=_describe, functions=_functions, proxy=_RemoteChannel),
    )
)

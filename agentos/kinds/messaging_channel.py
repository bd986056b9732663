"""The kind `messaging-channel`: brings messages of people in, and takes answers out.

A payload is an object with `async start(deliver)`, `async send(message)`, which returns a receipt, and `async stop()`,
and, if wanted, a `timeout` for each of them. `start` returns when the channel is at work. `await deliver(message)`
returns when a message is stored: only then may the service be told that it arrived. `send` raises NotSentError if it
is certain that nothing was sent; whatever else it raises leaves open whether the message arrived. After
`await deliver.resume(conversation)` what waits for that conversation is sent at once.
"""

from typing import Any

from agentos.errors import DescriptorError
from agentos.model.descriptor import Descriptor
from agentos.model.guarding import fault_of_parameters, fault_of_seconds
from agentos.model.kind import Kind, declare_own_kind
from agentos.payloads.foreign_job import is_async

_TIMEOUT = 30.0
_METHODS = {"start": 1, "send": 1, "stop": 0}


def channel_timeout(payload: Any) -> Any:
    """Return how many seconds each method of a channel may take."""
    return getattr(payload, "timeout", _TIMEOUT)


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


MESSAGING_CHANNEL = declare_own_kind(
    Kind("messaging-channel", check=_check, reader="`host.channels`, for the channels that the manifest turns on")
)

"""How a payload of a kind is told to another process, and what stands for it there.

Said by the kind's own module, where it says what else is special about it. A kind that says nothing crosses as most
payloads can: plain JSON as itself, a function as one to await, an object with its plain attributes and its methods.
"""

from collections.abc import Callable, Mapping
from typing import Any

import attrs

Function = Callable[..., Any]
_JSON = (str, int, float, bool, type(None), list, dict, tuple)
_WHOLE = "value"
_ITSELF = "itself"


class RemotePayload:
    """An object of a pack in another process: its plain attributes, and its methods to be awaited."""

    def __init__(self, parts: Mapping[str, Any]) -> None:
        self.__dict__.update(parts)


def _public(payload: Any) -> dict[str, Any]:
    names = [name for name in dir(payload) if not name.startswith("_")]
    return {name: getattr(payload, name) for name in names}


def describe_any(payload: Any) -> dict[str, Any]:
    """Say of a payload what is plain: all of it, or its attributes."""
    if isinstance(payload, _JSON):
        return {_WHOLE: payload}
    return {name: value for name, value in _public(payload).items() if isinstance(value, _JSON)}


def functions_of_any(payload: Any) -> dict[str, Function]:
    """Return what of a payload can be called: itself, and its public methods."""
    if isinstance(payload, _JSON):
        return {}
    itself = {_ITSELF: payload} if callable(payload) and not isinstance(payload, type) else {}
    methods = {name: value for name, value in _public(payload).items() if callable(value)}
    return {**itself, **({} if _is_function(payload) else methods)}


def _is_function(payload: Any) -> bool:
    return hasattr(payload, "__code__") or hasattr(payload, "__func__")


def proxy_of_any(said: Mapping[str, Any], functions: Mapping[str, Function]) -> Any:
    """Return what stands for a payload in another process."""
    if _WHOLE in said and not functions:
        return said[_WHOLE]
    itself = functions.get(_ITSELF)
    if itself is None:
        return RemotePayload({**said, **functions})
    for name, value in (*said.items(), *functions.items()):
        if name != _ITSELF:
            setattr(itself, name, value)
    return itself


@attrs.frozen
class Crossing:
    """How payloads of one kind cross.

    Where the pack runs, `describe` says what is to be known of a payload, and `functions` what of it may be called, by
    name: an async one on the event loop, a sync one in a thread. In the host, `proxy` makes a payload of what was
    said and of async functions of the same names.
    """

    describe: Callable[[Any], Mapping[str, Any]] = describe_any
    functions: Callable[[Any], Mapping[str, Function]] = functions_of_any
    proxy: Callable[[Mapping[str, Any], Mapping[str, Function]], Any] = proxy_of_any

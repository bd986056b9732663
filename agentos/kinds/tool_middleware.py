"""The kind `tool-middleware`: runs around the tools that it names, inside of the gate.

A payload is a function of a call and of what is next, such as one with `@middleware`, or an object that can be called
so. The step `wrap` of every call asks it.
"""

from collections.abc import Sequence
from typing import Any

import attrs

from agentos.errors import DescriptorError
from agentos.model.crossing import Crossing
from agentos.model.descriptor import Descriptor
from agentos.model.kind import Kind, declare_own_kind
from agentos.model.middleware import MIDDLEWARE_MARK, MiddlewareSettings, middleware, middleware_settings


def _check(descriptor: Descriptor[Any]) -> None:
    try:
        middleware_settings(descriptor.payload)
    except DescriptorError as error:
        raise DescriptorError(f"tool-middleware {descriptor.id!r}: {error.message}") from error


def _adapt(offered: object) -> Sequence[Descriptor[Any]]:
    if not isinstance(getattr(offered, MIDDLEWARE_MARK, None), MiddlewareSettings):
        return ()
    return [Descriptor("tool-middleware", getattr(offered, "__name__", type(offered).__name__), offered)]


_CROSSING = Crossing(
    describe=lambda payload: attrs.asdict(middleware_settings(payload)),
    functions=lambda payload: {"run": payload},
    proxy=lambda said, functions: middleware(**said)(functions["run"]),
)

TOOL_MIDDLEWARE = declare_own_kind(
    Kind(
        "tool-middleware",
        check=_check,
        adapt=_adapt,
        reader="every call of the tools that it names",
        crossing=_CROSSING,
    )
)

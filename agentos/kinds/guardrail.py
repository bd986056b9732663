"""The kind `guardrail`: asked about what a user says, a model says, a tool is called with, and what it gives back.

A payload is a function with `@guardrail`, or an object with any of evaluate_input, evaluate_output, evaluate_tool_call
and evaluate_tool_result. `agentos.guards` asks it.
"""

from collections.abc import Sequence
from typing import Any

import attrs

from agentos.errors import DescriptorError
from agentos.model.crossing import Crossing, RemotePayload
from agentos.model.descriptor import Descriptor
from agentos.model.guarding import MARK, GuardSettings, functions_of, settings_of
from agentos.model.kind import Kind, declare_own_kind


def _check(descriptor: Descriptor[Any]) -> None:
    try:
        functions_of(descriptor.payload)
    except DescriptorError as error:
        raise DescriptorError(f"guardrail {descriptor.id!r}: {error.message}") from error


def _adapt(offered: object) -> Sequence[Descriptor[Any]]:
    if not isinstance(getattr(offered, MARK, None), GuardSettings):
        return ()
    return [Descriptor("guardrail", getattr(offered, "__name__", type(offered).__name__), offered)]


_CROSSING = Crossing(
    describe=lambda payload: attrs.asdict(attrs.evolve(settings_of(payload), stage=None)),
    functions=lambda payload: {f"evaluate_{stage}": function for stage, function in functions_of(payload).items()},
    proxy=lambda said, functions: RemotePayload({**attrs.asdict(GuardSettings(**said)), **functions}),
)

GUARDRAIL = declare_own_kind(
    Kind(
        "guardrail",
        check=_check,
        adapt=_adapt,
        reader="every call, `host.guardrails` and turns",
        crossing=_CROSSING,
    )
)

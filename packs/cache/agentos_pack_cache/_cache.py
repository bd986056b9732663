"""The middleware."""

import fnmatch
import hashlib
import json
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal

import attrs

from agentos import Descriptor, ToolResult, Trouble, middleware, read_options
from agentos_pack_cache._answers import Answers

Next = Callable[..., Awaitable[ToolResult]]


@attrs.frozen
class KeptTool:
    """How long the answers of some tools are kept, and for whom."""

    seconds: float = attrs.field(validator=attrs.validators.gt(0))
    scope: Literal["session", "principal", "all"] = "session"
    """Who gets an answer that was kept: the same session, the same principal, or everybody who may call the tool."""


@attrs.frozen
class CacheOptions:
    """The options of the pack."""

    tools: Mapping[str, KeptTool] = attrs.field(factory=dict)
    """Patterns of tools, of which the first that fits counts: `{"web-search:*": {"seconds": 300}}`."""
    max_entries: int = attrs.field(default=1_000, validator=[attrs.validators.ge(1), attrs.validators.le(1_000_000)])
    max_bytes: int = attrs.field(
        default=20_000_000, validator=[attrs.validators.ge(1), attrs.validators.le(1_000_000_000)]
    )


def create_descriptors(
    options: Mapping[str, Any], clock: Callable[[], float] = time.monotonic
) -> tuple[Descriptor[Any], ...]:
    """Return the middleware, if there is a tool whose answers are kept."""
    chosen = read_options(CacheOptions, options)
    answers: Answers[ToolResult] = Answers(chosen.max_entries, chosen.max_bytes, clock)

    @middleware(tools=tuple(chosen.tools) or ("*",), timeout=5)
    async def cache(invocation: Any, next: Next) -> ToolResult:
        """Answer from what is kept, else keep the answer if it is a success."""
        if invocation.effect != "read":
            return await next()
        said = _of(chosen.tools, invocation)
        key = _key(invocation, said.scope)
        if (kept := answers.get(key)) is not None:
            return kept
        result = await next()
        if result.success:
            answers.keep(key, _marked(result), _size(result), said.seconds)
        return result

    return (Descriptor("tool-middleware", "cache", cache),) if chosen.tools else ()


def troubles(options: Mapping[str, Any]) -> list[Trouble]:
    """Say so if the pack does nothing: no tool's answers are kept."""
    if read_options(CacheOptions, options).tools:
        return []
    cure = 'say `tools` in its options, such as {"web-search:*": {"seconds": 300}}, or leave the pack out'
    return [
        Trouble("warning", "pack cache", "it does nothing: its options name no `tools` whose answers are kept", cure)
    ]


def _of(tools: Mapping[str, KeptTool], invocation: Any) -> KeptTool:
    """Return what is said of a tool; the host has seen already that a pattern fits."""
    names = invocation.tool, invocation.name
    fitting = (said for pattern, said in tools.items() if any(fnmatch.fnmatchcase(one, pattern) for one in names))
    return next(fitting, next(iter(tools.values())))


def _key(invocation: Any, scope: str) -> str:
    principal = "" if scope == "all" else invocation.principal.id
    session = str(invocation.session.get("id", "")) if scope == "session" else ""
    arguments = json.dumps(invocation.arguments, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(json.dumps([invocation.tool, principal, session, arguments]).encode()).hexdigest()


def _marked(result: ToolResult) -> ToolResult:
    return attrs.evolve(result, meta={**result.meta, "cached": True}, call_id=None)


def _size(result: ToolResult) -> int:
    return len(result.content) + len(json.dumps([result.output, result.state], default=str))

"""Requests sent, and what a server answered as the result of a call."""

import http
import inspect
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from agentos.model.tool_call import ToolResult
from agentos.openapi.plan import is_json
from agentos.openapi.requests import Request
from agentos.schema.validation import problems_of
from agentos.schema.work import TooMuchWorkError
from agentos.tools.tool import is_async
from agentos.web._responses import decoded, parse_json

BODY_LIMIT = 2_000_000
"""How much of a body is read, in bytes or characters."""
SHOWN_LIMIT = 2_000
"""How many characters of the body of a refusal are told."""
_PATH_SHOWN = 200
_PHRASES = {int(status): f" {status.phrase}" for status in http.HTTPStatus}
_NOTHING: Any = object()

Mask = Callable[[str], str]


def sender_of(
    write: Callable[[Any], Request], send: Callable[[Request, Any], Any], expected: Any = None
) -> Callable[[Any, Any], Any]:
    """Return what sends the request of some arguments: on the loop if *send* is async, else in a thread.

    An answer that does not fit *expected*, a validator, is given with a warning.
    """

    def finish(response: Any, request: Request, context: Any) -> Any:
        answer = answer_of(response, request, context.mask)
        return answer if expected is None else with_warning(answer, expected, request, context)

    async def finish_later(response: Any, request: Request, context: Any) -> Any:
        return finish(await response, request, context)

    async def execute(arguments: Any, context: Any) -> Any:
        request = write(arguments)
        return finish(await send(request, context), request, context)

    def execute_in_thread(arguments: Any, context: Any) -> Any:
        request = write(arguments)
        response = send(request, context)
        if inspect.isawaitable(response):
            return finish_later(response, request, context)
        return finish(response, request, context)

    return execute if is_async(send) else execute_in_thread


def answer_of(response: Any, request: Request, mask: Mask) -> Any:
    """Return the output of a success, or a result that says how the server refused.

    What is cut is masked before: half a secret would not be found.

    *response* is an object or a mapping with `status`, `headers` and `body`: bytes, text, or JSON that is parsed
    already. `status_code` and `content` are understood too.
    """
    status = _part(response, "status", "status_code")
    if not isinstance(status, int) or isinstance(status, bool):
        raise TypeError(
            f"`send` returned a {type(response).__name__} without a status; return an object or a mapping with status, "
            "headers and body"
        )
    body, media = _part(response, "body", "content"), _media_type(_part(response, "headers"))
    if not http.HTTPStatus.OK <= status < http.HTTPStatus.MULTIPLE_CHOICES:
        return _refusal(status, body, media, request, mask)
    if isinstance(body, bytes | bytearray | str) and len(body) > BODY_LIMIT:
        return _cut(body, media, mask)
    return _output(body, media)


def with_warning(answer: Any, expected: Any, request: Request, context: Any) -> Any:
    """Return *answer*, and say in its `meta` and to the log where it does not fit what is *expected*."""
    if isinstance(answer, ToolResult) or (why := _misfit(answer, expected, context.mask)) is None:
        return answer
    asked = f"{request.method} {context.mask(request.url_path)[:_PATH_SHOWN]}"
    context.logger.warning("%s answered what does not fit its output schema: %s", asked, why)
    return ToolResult(success=True, output=answer, meta={"output_warning": why})


def _misfit(answer: Any, expected: Any, mask: Mask) -> str | None:
    """Say where an answer does not fit. Its texts are masked before any is cut: half a secret would not be found."""
    try:
        if expected.is_valid(answer):
            return None
        found = problems_of(expected, expected.schema, _masked(answer, mask))
    except TooMuchWorkError:
        return "it was not checked against its output schema, which takes too much work"
    return "; ".join(str(problem) for problem in found) or "it does not fit its output schema"


def _masked(value: Any, mask: Mask) -> Any:
    if isinstance(value, dict):
        return {mask(key): _masked(inner, mask) for key, inner in value.items()}
    if isinstance(value, list):
        return [_masked(inner, mask) for inner in value]
    return mask(value) if isinstance(value, str) else value


def _part(response: Any, *names: str) -> Any:
    """Return a part of a response by one of its names; None if it has none of them."""
    for name in names:
        found = response.get(name, _NOTHING) if isinstance(response, Mapping) else getattr(response, name, _NOTHING)
        if found is not _NOTHING:
            return found
    return None


def _media_type(headers: Any) -> str:
    """Return the content type, whatever headers are: a mapping, or pairs."""
    pairs: Iterable[Any] = headers.items() if hasattr(headers, "items") else headers or ()
    for name, value in pairs:
        if str(name).lower() == "content-type":
            return str(value)
    return ""


def _output(body: Any, media: str) -> Any:
    if isinstance(body, bytes | bytearray):
        body = decoded(body, media)
    if not isinstance(body, str):
        return body
    if not body.strip() and (not media or is_json(media)):
        return None
    return _parsed(body) if not media or is_json(media) else body


def _parsed(body: str) -> Any:
    """Return JSON as values; what says that it is JSON and is not stays text."""
    try:
        return parse_json(body)
    except (ValueError, RecursionError):
        return body


def _cut(body: bytes | bytearray | str, media: str, mask: Mask) -> ToolResult:
    """Return the beginning of a body that is too large, as text; there is no output to be checked."""
    unit = "characters" if isinstance(body, str) else "bytes"
    text = mask(body if isinstance(body, str) else decoded(body, media))[:BODY_LIMIT]
    note = f"[Cut: the answer has {len(body)} {unit}, of which {BODY_LIMIT} were read. Ask for less.]"
    return ToolResult(success=True, content=f"{note}\n{text}", meta={"output_dropped": len(body)})


def _refusal(status: int, body: Any, media: str, request: Request, mask: Mask) -> ToolResult:
    message = f"{request.method} {mask(request.url_path)[:_PATH_SHOWN]} answered {status}{_PHRASES.get(status, '')}"
    if http.HTTPStatus.MULTIPLE_CHOICES <= status < http.HTTPStatus.BAD_REQUEST:
        message += "; a redirect is not followed"
    if shown := _body_text(body, media, mask):
        message += f": {shown}"
    return ToolResult.fail("ToolRaised", message, {"status": status})


def _body_text(body: Any, media: str, mask: Mask) -> str:
    if body is None:
        return ""
    if isinstance(body, bytes | bytearray):
        body = decoded(body, media)
    if not isinstance(body, str):
        body = json.dumps(body, ensure_ascii=False, default=lambda value: type(value).__name__)
    text = mask(body).strip()
    return text if len(text) <= SHOWN_LIMIT else f"{text[: SHOWN_LIMIT - 1]}…"

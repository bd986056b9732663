"""Results as JSON text and back, for what must last."""

import base64
import json
from typing import Any

from agentos.base.canonical import in_order
from agentos.model.media import Media
from agentos.model.tool_call import ToolError, ToolResult

STORED_MEDIA = 2_000_000
"""How many bytes of media are kept with a result that must last; of more, the content says that it was there."""


def result_to_text(result: ToolResult) -> str:
    """Return a result, which is masked and bounded already, as JSON."""
    error = result.error
    media, left_out = _kept_media(result)
    return in_order(
        {
            "success": result.success,
            "output": result.output,
            "content": "\n".join([result.content, *left_out]),
            "state": result.state,
            "error": None if error is None else [error.type, error.message, _kept(error)],
            "stop": result.stop,
            "meta": dict(result.meta),
            **({"media": media} if media else {}),
        }
    )


def _kept_media(result: ToolResult) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the media that are kept, and of the others that they were there: the first ones that fit are kept."""
    kept: list[dict[str, Any]] = []
    left_out: list[str] = []
    room = STORED_MEDIA
    for one in result.media:
        size = one.size or 0
        if size > room:
            left_out.append(f"{one.in_words()} [It was too large to be kept with the result.]")
            continue
        room -= size
        data = None if one.data is None else base64.b64encode(one.data).decode()
        kept.append({"mime": one.mime, "data": data, "url": one.url, "name": one.name})
    return kept, left_out


def _media(stored: dict[str, Any]) -> Media:
    data = stored["data"]
    encoded = None if data is None else base64.b64decode(data)
    return Media(stored["mime"], encoded, url=stored["url"], name=stored["name"])


def _kept(error: ToolError) -> dict[str, Any]:
    """Return the details of an error without the token of a proposal, which is shown once and never written."""
    return {key: value for key, value in error.details.items() if key != "token"}


def result_from_text(text: str, **meta: object) -> ToolResult:
    """Return the result that `result_to_text` wrote, with *meta* added to its own."""
    data = json.loads(text)
    error = data["error"]
    return ToolResult(
        success=data["success"],
        output=data["output"],
        content=data["content"],
        state=data["state"],
        error=None if error is None else ToolError(*error),
        stop=data["stop"],
        meta={**data["meta"], **meta},
        media=map(_media, data.get("media", ())),
    )

"""The page: three files, with nothing from elsewhere, and headers that let it load nothing else."""

import json
from collections.abc import Awaitable, Callable, Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Final

from agentos_pack_webchat.chat_requests import ChatRefusedError

Send = Callable[[dict[str, Any]], Awaitable[None]]
_FILES: Final = {
    "": ("index.html", "text/html; charset=utf-8"),
    "chat.js": ("chat.js", "text/javascript; charset=utf-8"),
    "chat.css": ("chat.css", "text/css; charset=utf-8"),
}
_PAGE_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
_DATA_POLICY: Final = "default-src 'none'; frame-ancestors 'none'; sandbox"
_COMMON: Final = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}


async def begin_answer(send: Send, status: int, headers: Mapping[str, str]) -> None:
    """Send the status and the headers of what is no page."""
    said = {**_COMMON, "cache-control": "no-store", "content-security-policy": _DATA_POLICY, **headers}
    pairs = [(name.encode(), value.encode("latin-1")) for name, value in said.items()]
    await send({"type": "http.response.start", "status": status, "headers": pairs})


async def send_answer(send: Send, status: int, body: bytes, headers: Mapping[str, str]) -> None:
    """Send a whole answer."""
    await begin_answer(send, status, {"content-length": str(len(body)), **headers})
    await send({"type": "http.response.body", "body": body})


async def send_json(send: Send, status: int, said: Any, headers: Mapping[str, str] | None = None) -> None:
    """Send an answer as JSON."""
    kind = {"content-type": "application/json"}
    await send_answer(send, status, json.dumps(said).encode(), {**kind, **(headers or {})})


async def send_refusal(send: Send, refused: ChatRefusedError) -> None:
    """Say why a request is refused."""
    later = {} if refused.retry_after is None else {"retry-after": str(refused.retry_after)}
    await send_json(send, refused.status, refused.body, later)


def path_within(scope: Mapping[str, Any]) -> str:
    """Return the path of a request beneath its handler, with the slash before it, if there is one."""
    path: str = scope["path"]
    return path.removeprefix(scope.get("root_path", ""))


@cache
def _content(name: str) -> bytes:
    return files("agentos_pack_webchat").joinpath("page", name).read_bytes()


class PageHandler:
    """An ASGI application that serves the page. It says the same to everybody."""

    async def __call__(self, scope: Mapping[str, Any], receive: Any, send: Send) -> None:  # noqa: ARG002 - as ASGI has it
        """Answer a request for a file of the page."""
        if not await self.has_served(scope, send):
            await send_refusal(send, ChatRefusedError(404, "not_found", "There is no such file"))

    async def has_served(self, scope: Mapping[str, Any], send: Send) -> bool:
        """Answer a request if it is for a file of the page; tell whether it was."""
        path = path_within(scope)
        if path and path.removeprefix("/") not in _FILES:
            return False
        if scope["method"] not in ("GET", "HEAD"):
            refusal = ChatRefusedError(405, "method_not_allowed", "Expected GET")
            await send_json(send, refusal.status, refusal.body, {"allow": "GET, HEAD"})
        elif not path:  # what the page names is beneath it
            await send_answer(send, 308, b"", {"location": f"{scope.get('root_path', '')}/"})
        else:
            name, kind = _FILES[path.removeprefix("/")]
            headers = {"content-type": kind, "content-security-policy": _PAGE_POLICY, "cache-control": "no-cache"}
            await send_answer(send, 200, _content(name), headers)
        return True

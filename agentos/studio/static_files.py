"""Files that pages need, known by their content: a browser keeps each until it changes."""

import hashlib
from functools import cache
from pathlib import Path
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

_KINDS: Final = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}


@cache
def _content(folder: Path, path: str) -> tuple[bytes, str] | None:
    """Return a file with its mark; None if there is none of that name."""
    if path not in names(folder):
        return None
    content = folder.joinpath(*path.split("/")).read_bytes()
    return content, f'"{hashlib.sha256(content).hexdigest()[:20]}"'


@cache
def names(folder: Path) -> frozenset[str]:
    """Return the names of all files that are served."""
    found = {one.name for one in folder.iterdir() if one.is_file()}
    return frozenset(found | {f"vendor/{one.name}" for one in (folder / "vendor").iterdir() if one.is_file()})


async def static_file(folder: Path, request: Request) -> Response:
    """Answer with a file, or with nothing if the browser has it."""
    path = request.path_params["path"]
    found = _content(folder, path)
    if found is None:
        return Response("There is no such file", 404, media_type="text/plain")
    content, mark = found
    headers = {"ETag": mark, "Cache-Control": "no-cache"}
    if request.headers.get("if-none-match", "").removeprefix("W/") == mark:
        return Response(status_code=304, headers=headers)
    return Response(content, headers=headers, media_type=_KINDS.get(path.rpartition(".")[2], "text/plain"))

"""Forms with files, as httpx encodes them: names of fields and files can't leave their place."""

from collections.abc import Mapping
from typing import Any

import httpx


def multipart(fields: Mapping[str, Any], files: Mapping[str, Any]) -> tuple[bytes, str]:
    """Return a form with files as a body, and its media type."""
    request = httpx.Request("POST", "http://localhost/", data=fields, files=files)
    return request.read(), request.headers["Content-Type"]

"""Calls of the Bot API. The token stands in their addresses and leaves by nothing else: no error has one in it."""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from agentos_pack_common import WebClient, WebError, WebResponse, clip, plain

from agentos_pack_telegram.telegram_options import MAX_ANSWER, TelegramOptions

TOKEN = "telegram.botToken"  # noqa: S105 - the secret's name
_NOT_FOUND = 404
OK, REQUEST_TIMEOUT, TOO_MANY = 200, 408, 429
_REFUSALS = range(400, 500)
_BAD_TOKEN = (401, _NOT_FOUND)
_TOKEN = re.compile(r"[A-Za-z0-9:_-]{1,200}")
_FILE_PATH = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*(/[A-Za-z0-9_-][A-Za-z0-9_.-]*)*")
_PATH_LIMIT = 300
_WORDS = 200
_LONGEST_WAIT = 3_600


class BotApiError(Exception):
    """The Bot API answered a call with something else than its result."""

    def __init__(self, method: str, status: int, why: str, retry_after: float | None = None) -> None:
        super().__init__(f"Telegram answered {method} with status {status}: {why}")
        self.status = status
        self.retry_after = retry_after

    @property
    def is_refusal(self) -> bool:
        """Tell whether it is certain that nothing was done."""
        return self.status in _REFUSALS and self.status != REQUEST_TIMEOUT


class BotTokenError(BotApiError):
    """The token is missing, or not accepted."""

    def __init__(self, method: str, status: int, why: str) -> None:
        super().__init__(method, status, f"{why}; set another {TOKEN}, as BotFather gives it")


class BotApi:
    """The Bot API as the bot of a token; the token is read for every call, so that another one counts at once."""

    def __init__(self, options: TelegramOptions, client: WebClient, token: Callable[[], str | None]) -> None:
        self._options = options
        self._client = client
        self._read_token = token

    def token(self) -> str | None:
        """Return the token of now."""
        return self._read_token()

    async def call(
        self,
        method: str,
        parameters: Mapping[str, Any],
        *,
        files: Mapping[str, tuple[str, bytes]] | None = None,
        seconds: float | None = None,
    ) -> Any:
        """Call a method and return its result; raise WebError if no answer came, and BotApiError for any other."""
        token = self._usable_token(method)
        body: dict[str, Any] = {"json": dict(parameters)} if files is None else _form(parameters, files)
        response = await self._client.request(
            "POST",
            f"{self._options.base_url.rstrip('/')}/bot{token}/{method}",
            timeout=seconds or self._options.timeout,
            max_bytes=MAX_ANSWER,
            **body,
        )
        return _result(method, response, token)

    async def download(self, path: str, limit: int) -> bytes:
        """Return a file that getFile told the path of; raise WebError if it has more than *limit* bytes."""
        if len(path) > _PATH_LIMIT or not _FILE_PATH.fullmatch(path):
            raise BotApiError("a download", _NOT_FOUND, "its path can't be asked for")
        token = self._usable_token("a download")
        address = f"{self._options.base_url.rstrip('/')}/file/bot{token}/{path}"
        response = await self._client.request("GET", address, timeout=self._options.timeout, max_bytes=limit)
        if response.status != OK:
            raise BotApiError("a download", response.status, "the file is not given")
        return response.body

    def _usable_token(self, method: str) -> str:
        token = self._read_token()
        if token is None or not _TOKEN.fullmatch(token):
            raise BotTokenError(method, _BAD_TOKEN[0], "the token is missing, or has characters that no token has")
        return token


def _form(parameters: Mapping[str, Any], files: Mapping[str, tuple[str, bytes]]) -> dict[str, Any]:
    data = {
        name: value if isinstance(value, str | int) else json.dumps(value) for name, value in parameters.items()
    }  # fmt: skip
    return {"data": data, "files": files}


def _result(method: str, response: WebResponse, token: str) -> Any:
    try:
        answer = response.json()
    except WebError:
        answer = None
    if isinstance(answer, dict) and answer.get("ok") is True and response.status == OK:
        return answer.get("result")
    if not isinstance(answer, dict) or answer.get("ok") is not False:
        raise BotApiError(method, response.status, "it is not what the Bot API answers")
    status = _whole(answer.get("error_code"), 999) or response.status
    words = answer.get("description")
    why = _words(words, token) if isinstance(words, str) else "no reason is given"
    if status in _BAD_TOKEN:
        raise BotTokenError(method, status, why)
    raise BotApiError(method, status, why, _retry_after(answer) if status == TOO_MANY else None)


def _words(text: str, token: str) -> str:
    """Return foreign words on one line, short, and without the token, should they repeat it."""
    return clip(" ".join(plain(text).replace(token, "***").split()), _WORDS).text


def _retry_after(answer: Mapping[str, Any]) -> float:
    said = answer.get("parameters")
    return float(_whole(said.get("retry_after") if isinstance(said, dict) else None, _LONGEST_WAIT) or 1)


def _whole(value: Any, most: int) -> int | None:
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return min(value, most) if is_number and value > 0 else None

"""Calls of Slack's Web API, with the bot's token in a header."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from agentos_pack_common import WebClient, WebError, WebResponse

from agentos_pack_slack.slack_options import SlackOptions

TOKEN = "slack.botToken"  # noqa: S105 - the secret's name
TOO_MANY = 429
_OK, _REQUEST_TIMEOUT = 200, 408
_REFUSALS = range(400, 500)
_TOKEN = re.compile(r"[!-~]{1,300}")
_CODE = re.compile(r"[a-z0-9_]{1,60}")
_UNCLEAR = frozenset({"fatal_error", "internal_error", "request_timeout", "service_unavailable", "unknown"})
"""What Slack says when it does not know itself how far it came."""
RATE_LIMITS = frozenset({"ratelimited", "rate_limited", "message_limit_exceeded"})
_LONGEST_WAIT = 3_600


class SlackApiError(Exception):
    """Slack answered a call with something else than its result."""

    def __init__(self, method: str, status: int, code: str, retry_after: float | None = None) -> None:
        super().__init__(f"Slack answered {method} with status {status}: {code}")
        self.status = status
        self.code = code
        self.retry_after = retry_after

    @property
    def is_refusal(self) -> bool:
        """Tell whether it is certain that nothing was done."""
        is_status = self.status == _OK or (self.status in _REFUSALS and self.status != _REQUEST_TIMEOUT)
        return is_status and self.code not in _UNCLEAR


class SlackApi:
    """The Web API as the bot of a token, which is read for every call."""

    def __init__(self, options: SlackOptions, client: WebClient, token: Callable[[], str | None]) -> None:
        self._options = options
        self._client = client
        self._token = token

    async def call(self, method: str, parameters: Mapping[str, Any]) -> Mapping[str, Any]:
        """Call a method and return its answer; raise WebError if none came, and SlackApiError for any other."""
        token = self._token()
        if token is None or not _TOKEN.fullmatch(token):
            raise SlackApiError(method, _OK, "not_authed")
        response = await self._client.request(
            "POST",
            f"{self._options.base_url.rstrip('/')}/{method}",
            headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json; charset=utf-8"},
            json=dict(parameters),
        )
        return _result(method, response)


def _result(method: str, response: WebResponse) -> Mapping[str, Any]:
    try:
        answer = response.json()
    except WebError:
        answer = None
    said = answer if isinstance(answer, dict) else {}
    if said.get("ok") is True and response.status == _OK:
        return said
    code = said.get("error") if said.get("ok") is False else None
    is_code = isinstance(code, str) and _CODE.fullmatch(code) is not None
    known = str(code) if is_code else "ratelimited" if response.status == TOO_MANY else "unknown"
    if known == "unknown" and response.status in _REFUSALS:
        known = "refused"
    wait = _retry_after(response) if known in RATE_LIMITS else None
    raise SlackApiError(method, response.status, known, wait)


def _retry_after(response: WebResponse) -> float:
    text = response.headers.get("retry-after", "")
    seconds = int(text) if text.isascii() and text.isdecimal() and len(text) <= len(str(_LONGEST_WAIT)) else 1
    return float(min(max(seconds, 1), _LONGEST_WAIT))

"""What the host answers to a pack in another process: its own secrets, by its own scope, and nothing of others."""

import logging
from typing import Any

from agentos.model.pack_context import PackContext
from agentos.secrets.masking import MaskingLogger
from agentos.workers.wire_values import RemoteError

_NAME_LIMIT, _TEXT_LIMIT = 100, 10_000
_LEVELS = range(1, logging.CRITICAL + 1)


class HostAnswers:
    """Answers what the process of one pack asks for beside the calls under way: `handle` is its peer's."""

    def __init__(self, context: PackContext) -> None:
        self._secrets = context._secrets  # noqa: SLF001 - a context of our own
        self._logger: Any = context.logger

    def call_it(self, name: str) -> None:
        """Write to the log of the pack of that *name*, once the pack has said it."""
        if isinstance(self._logger, MaskingLogger):
            self._logger = self._logger.called(f"agentos.packs.{name}")

    async def handle(self, op: str, body: Any) -> Any:
        """Answer one request."""
        if op == "secret":
            return self._secrets.read(str(body))
        if op == "mask":
            return self._secrets.mask(str(body))
        if op == "log":
            return self._log(body)
        raise RemoteError("RemoteError", f"the host knows no operation {op!r:.60}")

    def _log(self, said: Any) -> None:
        """Write a record of the pack's process into the pack's log, where known secret values are masked."""
        level = said["level"] if type(said["level"]) is int and said["level"] in _LEVELS else logging.INFO
        name, text = (self._secrets.mask(str(said[part])) for part in ("name", "text"))  # half a value would be left
        name, text = name[:_NAME_LIMIT], text[:_TEXT_LIMIT]
        self._logger.log(level, "%s%s", f"{name}: " if name else "", text)

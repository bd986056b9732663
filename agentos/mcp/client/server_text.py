"""What a server says, as others may read it: on one line, not too much of it, and without the secrets it was given."""

from typing import Any

import attrs

from agentos.mcp.client.server_spec import ReadSecret
from agentos.secrets.masking import MASK, Masker

_SHOWN = 300
_ENCODED = ("data", "blob")
_LONGEST_FORM = 6
"""How many characters a byte of a secret takes at most, however it is quoted."""


class ServerText:
    """Shows what one server says. The values that it was given as secrets are known here and are hidden."""

    def __init__(self) -> None:
        self._masker = Masker()
        self._longest = 0

    def reading(self, read: ReadSecret) -> ReadSecret:
        """Return *read*, with every value that it returns hidden from now on."""

        def value_of(id: str) -> str | None:
            value = read(id)
            if value is not None:
                self._learn(value)
            return value

        return value_of

    def _learn(self, value: str) -> None:
        """Hide a value, and each of its lines: a process may write them one by one."""
        for one in (value, *value.splitlines()):
            self._masker.learn(one)
        self._longest = max(self._longest, _LONGEST_FORM * len(value.encode("utf-8", "surrogatepass")))

    def mask(self, text: str) -> str:
        """Return foreign text with nothing in it that is secret."""
        return self._masker.mask(text)

    def mask_data(self, value: Any) -> Any:
        """Return JSON data with nothing in it that is secret; what is encoded, such as an image, is left as it is."""
        if isinstance(value, str):
            return self.mask(value)
        if isinstance(value, dict):
            return {key: one if key in _ENCODED else self.mask_data(one) for key, one in value.items()}
        return [self.mask_data(one) for one in value] if isinstance(value, list) else value

    def cut(self, text: str, limit: int) -> str:
        """Return the same, and not too much of it. It is masked before it is cut: half a secret would not be found."""
        masked = self.mask(text)
        return masked if len(masked) <= limit else f"{masked[:limit]}..."

    def clip(self, text: str, limit: int = _SHOWN) -> str:
        """Return the same on one line, and with nothing in it that can't be seen."""
        return "".join(char if char.isprintable() else " " for char in self.cut(text, limit))

    def clip_beginning(self, text: str, limit: int = _SHOWN) -> str:
        """Return the same of the beginning of a text whose rest is lost, without an end that may be half a secret."""
        masked = self.mask(text)
        before, mask, _ = masked.rpartition(MASK)
        return self.clip(max(before + mask, masked[: -self._longest or None], key=len) + "...", limit)


@attrs.frozen
class DisconnectReason:
    """Why a connection is over: `brief` for models, `whole` with the server's own text for the log and for people."""

    brief: str
    whole: str

    @classmethod
    def plain(cls, text: str) -> "DisconnectReason":
        """Return a reason without any text of the server."""
        return cls(text, text)

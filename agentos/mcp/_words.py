"""What a server says, as others may read it: on one line, not too much of it, and without the secrets it was given."""

from agentos.mcp._spec import Read
from agentos.secrets.masking import Masker

_SHOWN = 300
_LOOKED_AT = 20_000
"""How much of a text is searched for secrets; what is shown of it is far shorter."""


class Words:
    """Shows what one server says. The values that it was given as secrets are known here and are hidden."""

    def __init__(self) -> None:
        self._masker = Masker()

    def reading(self, read: Read) -> Read:
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

    def clip(self, text: str, limit: int = _SHOWN) -> str:
        """Return foreign text on one line, with nothing in it that is secret or can't be seen, and not too much of it.

        It is masked before it is cut: half a secret would not be found.
        """
        masked = self._masker.mask(text[:_LOOKED_AT])[: limit + 1]
        shown = "".join(char if char.isprintable() else " " for char in masked)
        return shown if len(shown) <= limit else f"{shown[:limit]}..."

"""Text that comes in parts, masked: of a known value no part leaves before the rest of it has come."""

import contextlib
import re
from collections.abc import Iterator

from agentos.secrets.masking import Masker
from agentos.secrets.spellings import UNSPACED, UnreadableTextError

_LIMIT = 16_384
"""How many characters are held back at the most."""
_RUN = re.compile(rf"(?:\A|(?<=[\s{UNSPACED}]))(?:[A-Za-z0-9+/=_-]{{16,}}\s{{1,4}})*[^\s{UNSPACED}]*\Z")
"""What may go on: the last word and, as a value in base64 or hex may have line breaks, long words before it."""


class MaskedStream:
    """One text on its way out. It leaves word by word; a value of several words is waited for as well.

    That is one as it is, in JSON or in HTML; an encoding without spaces is one word, whatever the value has.
    """

    def __init__(self, masker: Masker) -> None:
        self._masker = masker
        self._waiting = ""

    def feed(self, text: str) -> str:
        """Take the next part; return what can leave."""
        text = self._waiting + text
        if not self._masker.knows_any:
            self._waiting = ""
            return text
        cut = self._cut(text[-_LIMIT:]) + max(0, len(text) - _LIMIT)
        if len(text) - cut >= _LIMIT:  # it seems to have no end: what was masked already can be cut anywhere
            text = self._masker.mask(text)
            cut = max(0, len(text) - _LIMIT // 2)
        self._waiting = text[cut:]
        return self._masker.mask(text[:cut])

    def rest(self) -> str:
        """Return what is left at the end."""
        text, self._waiting = self._waiting, ""
        return self._masker.mask(text)

    def _cut(self, text: str) -> int:
        run = _RUN.search(text)
        places = [len(text) if run is None else run.start()]
        for form in self._masker.forms_in_parts:
            places += _begun(form, text)
        cut = min(places)
        with contextlib.suppress(UnreadableTextError):  # all of it will be hidden
            cut = min([start for start, end in self._masker.places(text) if start < cut < end], default=cut)
        return cut


def _begun(form: str, text: str) -> Iterator[int]:
    """Yield where *form* begins in *text* whose end it has not reached."""
    at = text.find(form[0], max(0, len(text) - len(form) + 1))
    while at >= 0:
        if form.startswith(text[at:]):
            yield at
            return
        at = text.find(form[0], at + 1)

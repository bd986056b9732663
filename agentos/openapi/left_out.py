"""Which operations of a document are not offered, and why: what `agentos doctor` tells of them."""

from collections.abc import Iterator, Sequence

from agentos.model.trouble import Trouble

_TOLD = 20
_CURE = "mend the document, or agree to it by naming the operation in the option `exclude`"


def left_out(pack: str, reasons: Sequence[str]) -> Iterator[Trouble]:
    """Yield a trouble for each of the first operations that are left out of *pack*, and one for all others."""
    for why in reasons[:_TOLD]:
        yield Trouble("error", f"pack {pack}", f"an operation is left out: {why}", _CURE)
    if (more := len(reasons) - _TOLD) > 0:
        yield Trouble("error", f"pack {pack}", f"{more} more operations are left out", _CURE)

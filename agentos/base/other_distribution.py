"""The distribution `agentos`, which is another project's: ours is `agentos-host`, and both write into one folder."""

import warnings
from pathlib import Path

NAME = "agentos"
OURS = "agentos-host"
CURE = f"pip uninstall {NAME}, then install {OURS} again: what both have is taken away with it"


def warn_of_other(package: str) -> None:
    """Warn whoever imports us if the other `agentos` is installed where the folder *package* of ours is."""
    for found in sorted(Path(package).parent.glob(f"{NAME}-*.*-info")):
        told = f"{NAME} {found.stem.removeprefix(f'{NAME}-')}"
        message = f"another project's distribution, {told}, is installed in the same folder as {OURS}; {CURE}"
        warnings.warn(message, stacklevel=3)

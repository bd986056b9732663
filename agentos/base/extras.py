"""Libraries that come with an extra, imported when they are needed."""

from importlib import import_module
from typing import Any


def import_extra(module: str, extra: str) -> Any:
    """Import *module*; say which extra to install if it is not there."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != module.partition(".")[0]:
            raise
        way = f"pip install 'agentos-host[{extra}]'"
        raise ImportError(f"{error.name} is not installed; install it with: {way}") from None

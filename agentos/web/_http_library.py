"""The modules that need the extra `http`, imported when a request is sent."""

from importlib import import_module
from typing import Any


def needed(module: str) -> Any:
    """Import a module of this package; say which extra to install if what it needs is not there."""
    try:
        return import_module(f"agentos.web.{module}")
    except ModuleNotFoundError as error:
        missing = error.name
    raise ImportError(f"{missing} is not installed; install it with: pip install 'agentos[http]'")

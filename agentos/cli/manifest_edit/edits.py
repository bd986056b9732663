"""What an edit is about."""

from typing import Any

Keys = tuple[str | int, ...]
"""The path of what is edited; -1 at its end adds to a list."""

GONE: Any = object()
"""As a value: take the key away."""

"""Tools that fail now and then, tried again; tools that go on failing, left alone for a while.

_retry    RetryOptions  the middleware `retry` and `circuit-breaker`
_breaker  Breaker       when a tool is left alone

Only what reads or is idempotent is tried again: nothing is done twice that may not be.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentos import ExtensionPack, PackContext

__version__ = "0.1.0"

__all__ = ["create_extension_pack"]


def create_extension_pack(context: "PackContext") -> "ExtensionPack":
    """Return the pack `retry` with its middleware."""
    from agentos import ExtensionPack
    from agentos_pack_retry._retry import RetryOptions, create_descriptors, troubles

    return ExtensionPack(
        name="retry",
        version=__version__,
        description="Tries reads and idempotent tools again when they fail, and leaves alone what goes on failing.",
        descriptors=create_descriptors(context.options),
        options=RetryOptions,
        check=lambda: troubles(context.options),
    )

"""Answers of tools that only read, kept for a while.

_answers  Answers        what is kept, within limits on time, number and size
_cache    CacheOptions   the middleware `cache`

What changes something is never answered from here. Nothing is written to a disk.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentos import ExtensionPack, PackContext

__version__ = "0.1.0"

__all__ = ["create_extension_pack"]


def create_extension_pack(context: "PackContext") -> "ExtensionPack":
    """Return the pack `cache` with its middleware."""
    from agentos import ExtensionPack
    from agentos_pack_cache._cache import CacheOptions, create_descriptors, troubles

    return ExtensionPack(
        name="cache",
        version=__version__,
        description="Keeps the answers of tools that only read, for as long as the operator says.",
        descriptors=create_descriptors(context.options),
        options=CacheOptions,
        check=lambda: troubles(context.options),
    )

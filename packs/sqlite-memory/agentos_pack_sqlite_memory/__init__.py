"""A memory for agents in one SQLite file.

provider SqliteMemory, the memory-provider
store    MemoryStore: store, query, delete, stats
values   Memory, Saved, Forgotten, Stats
_schema  the tables, version by version
_search  words into matches, matches into an order
_meaning word vectors, and what is near a query
_scope   whose a memory is and who may see it
_tools   memory_save, memory_search, memory_forget

A principal sees what it saved itself and what was shared. Without a path everything is gone with the process.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentos import ExtensionPack, PackContext

__version__ = "0.1.0"

__all__ = ["create_extension_pack"]


def create_extension_pack(context: "PackContext") -> "ExtensionPack":
    """Return the pack `sqlite-memory`: a memory-provider, and three tools that use it."""
    from agentos_pack_common import read_options

    from agentos import Descriptor, ExtensionPack, with_displays
    from agentos_pack_sqlite_memory._displays import DISPLAYS
    from agentos_pack_sqlite_memory._tools import MemoryTools
    from agentos_pack_sqlite_memory.provider import SqliteMemory
    from agentos_pack_sqlite_memory.store import MemoryOptions, MemoryStore

    store = MemoryStore.from_options(read_options(MemoryOptions, context.options))

    async def open_store(given: "PackContext") -> None:
        await store.open()
        if not store.is_durable:
            given.logger.warning("sqlite-memory has no option `path`: what it remembers is gone with the process")

    return ExtensionPack(
        name="sqlite-memory",
        version=__version__,
        description="A memory in one SQLite file, searched by words; each principal has its own.",
        options=MemoryOptions,
        descriptors=with_displays(
            [Descriptor("memory-provider", "sqlite-memory", SqliteMemory(store)), *MemoryTools(store).all()], DISPLAYS
        ),
        on_activate=open_store,
        on_deactivate=store.close,
    )

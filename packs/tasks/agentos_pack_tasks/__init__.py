"""Tasks that depend on each other; and an example of a toolset, of batches, and of a tool that calls tools.

tools      task_list, task_view                                          read         needs tasks:read
           task_create, task_edit, task_run, and _many of the first two  mutate       needs tasks:write
           task_delete, task_delete_many                                 destructive  needs tasks:write
arguments  what the tools take
previews   what each of those that change something would do, for whoever is asked to approve it
batches    many changes as one call, each done or refused by itself
runs       how a task is started, and what becomes of it when its tool has answered
records    the tasks in a SQLite database, with a version number for each
graph      dependencies: where a cycle would be
values     what a task is, what the tools return, and what they refuse

Two things hold always: no task depends on itself, not even by way of others; and whatever is running or done has only
dependencies that are done.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentos import ExtensionPack, PackContext

__version__ = "0.1.0"

__all__ = ["create_extension_pack"]


def create_extension_pack(context: "PackContext") -> "ExtensionPack":
    """Return the pack `tasks`; the option `path` names the SQLite file, which is made if it is not there."""
    from agentos_pack_common import read_options

    from agentos import ExtensionPack, with_displays
    from agentos_pack_tasks._displays import DISPLAYS
    from agentos_pack_tasks.records import open_book
    from agentos_pack_tasks.tools import Options, create_tools

    options = read_options(Options, context.options)
    book = open_book(options.path)

    async def open_tasks(given: "PackContext") -> None:
        await book.open()
        if not book.is_durable:
            given.logger.warning("tasks has no option `path`: its tasks are gone with the process")

    return ExtensionPack(
        name="tasks",
        version=__version__,
        description="Tasks with dependencies, each principal its own, kept in a SQLite file.",
        options=Options,
        descriptors=with_displays([create_tools(book, options.max_tasks)], DISPLAYS),
        on_activate=open_tasks,
        on_deactivate=book.close,
    )

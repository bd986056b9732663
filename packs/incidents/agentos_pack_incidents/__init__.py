"""Incidents for agents, and an example of a pack whose tools read, change and destroy.

tools     incident_list, incident_get          read         needs incidents:read
          incident_open, _update, _resolve     mutate       needs incidents:write
          incident_purge                       destructive  needs incidents:admin
previews  what each of the last four would do, for whoever is asked to approve it
records   the incidents in a SQLite file, with a version number for each
values    what an incident is, and what the tools return

Every change names the version that it was made for. A call that waited for its approval while somebody else changed
the incident does nothing and says so.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentos import ExtensionPack, PackContext

__version__ = "0.1.0"

__all__ = ["create_extension_pack"]


def create_extension_pack(context: "PackContext") -> "ExtensionPack":
    """Return the pack `incidents`; the option `path` names the SQLite file, which is made if it is not there."""
    from agentos_pack_common import read_options

    from agentos import ExtensionPack, with_displays
    from agentos_pack_incidents._displays import DISPLAYS
    from agentos_pack_incidents.records import open_book
    from agentos_pack_incidents.tools import Options, create_tools

    options = read_options(Options, context.options)
    if options.path is None:
        context.logger.warning("incidents has no option `path`: what it keeps is gone with the process")
    book = open_book(options.path)
    return ExtensionPack(
        name="incidents",
        version=__version__,
        description="Incidents with severity, status and timeline, kept in a SQLite file.",
        options=Options,
        descriptors=with_displays([create_tools(book)], DISPLAYS),
        on_activate=book.open,
        on_deactivate=book.close,
    )

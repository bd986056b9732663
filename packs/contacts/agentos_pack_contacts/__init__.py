"""An address book, and an example of tools that get their handlers while the program runs.

declarations  the five tools of the book, without handlers
handlers      what runs when they are called
binding       Binder: opens the database, binds the handlers through ToolsService, says why not; contacts_status
book          ContactBook: the table, and the search over it
values        Contact, Match, Matches, Status

Declared is not bound: until the database is open the five tools are listed as unbound, offered to no model, and a call
says HandlerMissing. contacts_status is always there; it says why, and tries again.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentos import ExtensionPack, PackContext

__version__ = "0.1.0"

__all__ = ["create_extension_pack"]


def create_extension_pack(context: "PackContext") -> "ExtensionPack":
    """Return the pack `contacts`: five tools that are declared, and one that tells of them."""
    from agentos_pack_common import read_options

    from agentos import ExtensionPack
    from agentos_pack_contacts.binding import Binder
    from agentos_pack_contacts.book import BookOptions, ContactBook

    binder = Binder(ContactBook.from_options(read_options(BookOptions, context.options)))
    return ExtensionPack(
        name="contacts",
        version=__version__,
        description="An address book in SQLite; its tools are bound when the database is there.",
        options=BookOptions,
        descriptors=[*binder.declared, binder.status],
    )

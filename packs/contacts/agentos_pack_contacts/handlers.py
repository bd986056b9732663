"""What runs when a tool of the book is called, once it is bound; and what its dry run shows."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import attrs

from agentos_pack_contacts.book import FIELDS, ContactBook

Handler = Callable[[Mapping[str, Any], Any], Awaitable[Any]]


def handlers(book: ContactBook) -> dict[str, Handler]:
    """Return the handler of each tool, by its name."""

    async def search(args: Mapping[str, Any], _context: Any) -> Any:
        return await book.search(args["query"], args["limit"])

    async def get(args: Mapping[str, Any], _context: Any) -> Any:
        return await book.get(args["id"])

    async def create(args: Mapping[str, Any], _context: Any) -> Any:
        return await book.create(args)

    async def update(args: Mapping[str, Any], _context: Any) -> Any:
        return await book.update(args["id"], _fields(args))

    async def delete(args: Mapping[str, Any], _context: Any) -> Any:
        return await book.delete(args["id"])

    made = {"search": search, "get": get, "create": create, "update": update, "delete": delete}
    return {f"contacts_{name}": handler for name, handler in made.items()}


def previews(book: ContactBook) -> dict[str, Handler]:
    """Return the dry run of each tool that changes something: the real change, taken back."""

    async def create(args: Mapping[str, Any], _context: Any) -> Any:
        made = await book.create(args, rehearse=True)
        return {"action": f"add {made.name!r} to the book", "contact": _contact_fields(made)}

    async def update(args: Mapping[str, Any], _context: Any) -> Any:
        before = _contact_fields(await book.get(args["id"]))
        after = _contact_fields(await book.update(args["id"], _fields(args), rehearse=True))
        changes = {
            field: {"from": before[field], "to": after[field]} for field in after if before[field] != after[field]
        }
        return {"action": f"change {before['name']!r}", "changes": changes}

    async def delete(args: Mapping[str, Any], _context: Any) -> Any:
        before = await book.get(args["id"])
        await book.delete(args["id"], rehearse=True)
        return {"action": f"delete {before.name!r} for good", "contact": _contact_fields(before)}

    return {"contacts_create": create, "contacts_update": update, "contacts_delete": delete}


def _fields(args: Mapping[str, Any]) -> dict[str, Any]:
    return {field: args[field] for field in FIELDS if field in args}


def _contact_fields(contact: Any) -> dict[str, Any]:
    return attrs.asdict(contact, filter=lambda field, _: field.name in FIELDS)

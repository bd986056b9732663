"""The five tools of the book, as hosts and models see them. None has a handler yet.

They are written as JSON Schema by hand: that is one of the ways to define a tool, and the one for tools whose handlers
come from elsewhere.
"""

from collections.abc import Callable, Mapping
from typing import Any

from agentos import Tool

MAX_NAME = 200
MAX_EMAIL = 254
MAX_PHONE = 40
MAX_NOTES = 4_000
MAX_QUERY = 200
MAX_RESULTS = 50

Preview = Callable[[Any, Any], Any]

_ID = {"type": "string", "description": "The id of a contact, as contacts_search returns it", "maxLength": 40}
_TEXTS = {
    "email": ("E-mail address, such as ada@example.org", MAX_EMAIL),
    "phone": ("Phone number, such as +49 30 1234567", MAX_PHONE),
    "organisation": ("Company or other organisation", MAX_NAME),
    "notes": ("Anything else worth knowing", MAX_NOTES),
}
_NAME = {"type": "string", "description": "Full name of the person", "minLength": 1, "maxLength": MAX_NAME}


def _optional(description: str, most: int) -> dict[str, Any]:
    return {"type": ["string", "null"], "description": description, "maxLength": most}


def _object(properties: Mapping[str, Any], required: list[str]) -> dict[str, Any]:
    return {"type": "object", "properties": dict(properties), "required": required, "additionalProperties": False}


_CONTACT = _object(
    {
        "id": {"type": "string"},
        "name": {"type": "string"},
        **{field: {"type": ["string", "null"]} for field in _TEXTS},
        "changed_at": {"type": "string"},
    },
    ["id", "name", *_TEXTS, "changed_at"],
)
_MATCH = _object(
    {"contact": _CONTACT, "by": {"enum": ["words", "similar name"]}, "score": {"type": "number"}},
    ["contact", "by", "score"],
)


def declare(previews: Mapping[str, Preview]) -> list[Tool]:
    """Return the five tools without handlers. *previews* are the dry runs of those that change something, by name."""
    return [
        Tool.from_schema(**{"timeout": 30, "category": "contacts", "dry_run": previews.get(one["name"]), **one})
        for one in (_SEARCH, _GET, _CREATE, _UPDATE, _DELETE)
    ]


_SEARCH: dict[str, Any] = {
    "name": "contacts_search",
    "description": (
        "Find contacts by words, or beginnings of words, of any of their fields, and by names that are spelled nearly "
        "so. Use it to get the id that the other contacts tools need. It does not search by meaning."
    ),
    "input_schema": _object(
        {
            "query": {
                "type": "string",
                "description": "Words to look for, such as a name, part of an address or a company",
                "minLength": 1,
                "maxLength": MAX_QUERY,
            },
            "limit": {
                "type": "integer",
                "description": "How many contacts to return at most",
                "minimum": 1,
                "maximum": MAX_RESULTS,
                "default": 10,
            },
        },
        ["query"],
    ),
    "output_schema": _object(
        {"matches": {"type": "array", "items": _MATCH}, "truncated": {"type": "boolean"}}, ["matches", "truncated"]
    ),
    "effect": "read",
    "required_access": "contacts:read",
}
_GET: dict[str, Any] = {
    "name": "contacts_get",
    "description": "Return all that is known of one contact, by its id. To find the id, use contacts_search.",
    "input_schema": _object({"id": _ID}, ["id"]),
    "output_schema": _CONTACT,
    "effect": "read",
    "required_access": "contacts:read",
}
_CREATE: dict[str, Any] = {
    "name": "contacts_create",
    "description": (
        "Put a new person into the address book. Search first: it does not look whether the person is there already. "
        "To change somebody who is, use contacts_update."
    ),
    "input_schema": _object(
        {
            "name": _NAME,
            **{field: {**_optional(*said), "default": None} for field, said in _TEXTS.items()},
        },
        ["name"],
    ),
    "output_schema": _CONTACT,
    "effect": "mutate",
    "required_access": "contacts:write",
}
_UPDATE: dict[str, Any] = {
    "name": "contacts_update",
    "description": (
        "Change fields of a contact that exists. Fields that are left out stay as they are; null empties a field. It "
        "makes no new contact: that is contacts_create."
    ),
    "input_schema": {
        **_object(
            {
                "id": _ID,
                "name": _NAME,
                **{field: _optional(f"{said}; null to empty it", most) for field, (said, most) in _TEXTS.items()},
            },
            ["id"],
        ),
        "minProperties": 2,
    },
    "output_schema": _CONTACT,
    "effect": "mutate",
    "required_access": "contacts:write",
}
_DELETE: dict[str, Any] = {
    "name": "contacts_delete",
    "description": (
        "Take one contact out of the address book for good, by its id. There is no way back; to empty single fields, "
        "use contacts_update."
    ),
    "input_schema": _object({"id": _ID}, ["id"]),
    "output_schema": _object({"id": {"type": "string"}, "name": {"type": "string"}}, ["id", "name"]),
    "effect": "destructive",
    "required_access": "contacts:write",
}

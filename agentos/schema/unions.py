"""Unions that are written out in many places of a schema, put into one definition."""

import copy
import json
from collections.abc import Mapping
from typing import Any

from agentos.schema.parts import Pointer
from agentos.schema.references import at_path, pointer_text

_WORDS = ("anyOf", "oneOf")


def with_shared_unions(root: dict[str, Any], subschemas: Mapping[Pointer, dict[str, Any]]) -> dict[str, Any] | None:
    """Return a schema that means the same as *root*, with each union that is used again defined once; None if none is.

    The validator remembers its verdict at a reference that leads back. Ten classes that each have a union of all ten
    are checked along every path from one to another; if the union has a name, all paths lead through it.
    """
    is_other_draft = "2020-12" not in str(root.get("$schema", "2020-12"))
    if is_other_draft or any("$id" in schema for schema in subschemas.values()):
        return None
    whole = copy.deepcopy(root)
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for pointer, schema in subschemas.items():
        for word in _WORDS:
            if _refers_twice(schema.get(word)):
                key = (word, json.dumps(schema[word], sort_keys=True))
                groups.setdefault(key, []).append(at_path(whole, pointer))
    again = [(word, users) for (word, _), users in groups.items() if len(users) > 1]
    for number, (word, users) in enumerate(again):
        _share(whole, word, users, f"{word} of several, {number}")
    return whole if again else None


def _refers_twice(options: Any) -> bool:
    return isinstance(options, list) and sum(isinstance(one, dict) and "$ref" in one for one in options) > 1


def _share(whole: dict[str, Any], word: str, users: list[dict[str, Any]], name: str) -> None:
    whole.setdefault("$defs", {})[name] = {word: users[0][word]}
    for user in users:
        del user[word]
        user["allOf"] = [*user.get("allOf", ()), {"$ref": pointer_text(("$defs", name))}]

"""Asking single subschemas of a schema whether a value fits them, with one compiled validator for all of them."""

from collections.abc import Callable, Iterable
from typing import Any

from agentos.errors import ToolDefinitionError
from agentos.schema.references import pointer_text
from agentos.schema.work import TooMuchWorkError

Pointer = tuple[str | int, ...]

_HOME = "urn:agentos:whole"


class SchemaParts:
    """Some subschemas of *root*, by where they stand; *compile* makes a validator."""

    def __init__(self, root: dict[str, Any], pointers: Iterable[Pointer], compile: Callable[[Any, str], Any]) -> None:
        references = {str(number): {"$ref": _HOME + pointer_text(one)} for number, one in enumerate(pointers)}
        whole = {"$defs": {"whole": {**root, "$id": _HOME}}, "properties": references}
        try:
            self._is_valid = compile(whole, "the parts of a schema").is_valid
        except ToolDefinitionError:  # it refers to itself by a name of its own
            raise TooMuchWorkError("its parts can't be told apart") from None

    def fits(self, number: int, value: Any) -> bool:
        """Tell whether *value* fits the subschema with this number."""
        return bool(self._is_valid({str(number): value}))

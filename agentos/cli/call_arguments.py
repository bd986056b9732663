"""Arguments of a tool as people write them: `a=1 tags=x tags=y text=@notes.txt filter:='{"kind": "todo"}'`.

What a text means is for the tool's schema to say: where it allows text, it is text; else it is read as the type that is
asked for. `name:=` takes JSON as it is, `@file` what is in a file, `@-` what is on stdin, `@@` is an @.
"""

import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from agentos.cli.app import Fail
from agentos.schema.references import pointed, resolved
from agentos.schema.validation import to_plain_json

SIZE_LIMIT = 1_000_000
"""How many bytes of a file are taken: as many characters as a call may bring."""
_TRUE = ("true", "yes", "on", "1")
_FALSE = ("false", "no", "off", "0")
_DEPTH = 16
_KINDS: Mapping[str, type[Any]] = {
    "boolean": bool,
    "null": type(None),
    "string": str,
    "integer": int,
    "number": float,
    "array": list,
}

Schema = Mapping[str, Any]


class Misread(ValueError):  # noqa: N818 - becomes a Fail with the argument's name
    """A text that can't be what the schema asks for."""


def read_arguments(schema: Schema, words: Sequence[str], text: str | None = None) -> dict[str, Any]:
    """Return arguments: those of *text*, a JSON object, with the assignments in *words* over them."""
    schema, arguments = to_plain_json(schema), {} if text is None else read_object(text)
    seen: set[str] = set()
    for word in words:
        name, is_raw, value = _split(word)
        wanted = _property(schema, name)
        is_list = isinstance(arguments.get(name), list) and "array" in types_of(schema, wanted)
        if name in seen and not is_list:
            raise Fail(f"{name} is given twice, and it is no list", code=2)
        try:
            content = _text_or_file(value)
            made = _json(content) if is_raw else _read(schema, wanted, content)
        except Misread as misread:
            raise Fail(f"{name}: {misread}", code=2) from None
        more = made if isinstance(made, list) else [made]
        arguments[name] = [*arguments[name], *more] if name in seen else made
        seen.add(name)
    return arguments


def read_object(text: str) -> dict[str, Any]:
    """Return the JSON object that `--args` gives: in itself, in a file (`@file`), or on stdin (`-`)."""
    try:
        found = _json(_text_or_file("@-" if text == "-" else text))
    except Misread as misread:
        raise Fail(f"--args: {misread}", code=2) from None
    if not isinstance(found, dict):
        raise Fail(f"--args: expected a JSON object, got {_type_text(found)}", code=2)
    return found


def _split(word: str) -> tuple[str, bool, str]:
    name, equals, value = word.partition("=")
    is_raw = name.endswith(":")
    name = name.removesuffix(":")
    if not equals or not name:
        raise Fail(f"{word!r} is no argument", code=2, hint="write name=value, name:=JSON or name=@file")
    return name, is_raw, value


# -- what a schema asks for --------------------------------------------------------------------------------------------


def _property(schema: Schema, name: str) -> Any:
    """Return the schema of one argument; nothing is known of one that is not declared."""
    properties = schema.get("properties")
    if isinstance(properties, Mapping) and name in properties:
        return properties[name]
    return schema.get("additionalProperties", {})


def types_of(root: Schema, schema: Any, depth: int = 0) -> list[str]:
    """Return the types that a schema allows, in its order, by references and alternatives too; none if it says none."""
    if not isinstance(schema, Mapping) or depth > _DEPTH:
        return []
    said = schema.get("type")
    if said is not None:
        return [said] if isinstance(said, str) else [str(one) for one in said]
    if "const" in schema or "enum" in schema:
        return list(dict.fromkeys(_type(value) for value in schema.get("enum", [schema.get("const")])))
    if isinstance(schema.get("$ref"), str):
        return types_of(root, pointed(root, schema["$ref"]), depth + 1)
    parts = [part for key in ("anyOf", "oneOf", "allOf") for part in schema.get(key, ())]
    return list(dict.fromkeys(type for part in parts for type in types_of(root, part, depth + 1)))


def _type(value: Any) -> str:
    return next((name for name, kind in _KINDS.items() if isinstance(value, kind)), "object")


# -- reading -----------------------------------------------------------------------------------------------------------


def _read(root: Schema, schema: Any, text: str) -> Any:
    types = types_of(root, schema)
    if "string" in types or not _READERS.keys() & set(types):
        return text
    misread = []
    for type in filter(_READERS.get, types):
        try:
            return _READERS[type](root, schema, text)
        except Misread as error:
            misread.append(error)
        except ValueError:
            misread.append(Misread(_expected([type], text)))
    raise misread[0] if len(misread) == 1 else Misread(_expected(types, text))


def _number(text: str) -> float:
    return int(text) if text.strip().lstrip("+-").isdigit() else float(text)


def _boolean(text: str) -> bool:
    word = text.strip().lower()
    if word not in _TRUE + _FALSE:
        raise ValueError(text)
    return word in _TRUE


def _null(text: str) -> None:
    if text.strip() not in ("null", ""):
        raise ValueError(text)


def _array(root: Schema, schema: Any, text: str) -> list[Any]:
    """Read a JSON array, or one item: an argument that is given again adds to the list."""
    if text.lstrip().startswith("["):
        found = _json(text)
        return found if isinstance(found, list) else [found]
    return [_read(root, resolved(schema, root).get("items", {}), text)]


def _object(root: Schema, schema: Any, text: str) -> dict[str, Any]:  # noqa: ARG001
    found = _json(text)
    if not isinstance(found, dict):
        raise Misread(f"expected a JSON object, got {_type_text(found)}")
    return found


_READERS: Mapping[str, Callable[[Schema, Any, str], Any]] = {
    "integer": lambda _root, _schema, text: int(text),
    "number": lambda _root, _schema, text: _number(text),
    "boolean": lambda _root, _schema, text: _boolean(text),
    "null": lambda _root, _schema, text: _null(text),
    "array": _array,
    "object": _object,
}
_NOUNS = {
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "null": "null",
    "array": "a list",
    "object": "an object",
    "string": "text",
}


def _type_text(value: Any) -> str:
    return _NOUNS[_type(value)]


def _expected(types: Iterable[str], text: str) -> str:
    wanted = " or ".join(_NOUNS.get(type, type) for type in types)
    return f"expected {wanted}, got {text[:60]!r}"


def _json(text: str) -> Any:
    from agentos.model.parsing import _unique_keys

    try:
        return json.loads(text, object_pairs_hook=_unique_keys)
    except (ValueError, RecursionError) as error:
        raise Misread(f"expected JSON, got {text[:60]!r} ({error})") from None


def _text_or_file(text: str) -> str:
    """Return the text itself, or what is in the file that it names."""
    if text.startswith("@@") or not text.startswith("@"):
        return _decoded(text).removeprefix("@")
    name = text[1:]
    try:
        raw = sys.stdin.buffer.read(SIZE_LIMIT + 1) if name == "-" else _bytes_of(Path(name))
        found = raw.decode("utf-8")
    except OSError as error:
        raise Misread(f"{name} can't be read: {error.strerror or error}; write @@ for an @") from None
    except UnicodeDecodeError:
        raise Misread(f"{name} holds no text in UTF-8") from None
    if len(raw) > SIZE_LIMIT:
        raise Misread(f"{name} has more than {SIZE_LIMIT:,} bytes")
    return found


def _decoded(text: str) -> str:
    """Return a word of the command line as the UTF-8 that was written, whatever the locale made of it."""
    try:
        return os.fsencode(text).decode("utf-8")
    except UnicodeError:
        raise Misread("that is no text in UTF-8") from None


def _bytes_of(path: Path) -> bytes:
    with path.expanduser().open("rb") as stream:
        return stream.read(SIZE_LIMIT + 1)

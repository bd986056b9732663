"""The files: every key that a JSON Schema knows, with its type, its default and what it says."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from _generate.markdown import as_json, cell, code, table

SCHEMAS = Path(__file__).parent.parent / "schemas"

_FILES = {
    "manifest": ("Manifest", "`agentos.toml`, `.yaml`, `.yml` or `.json`"),
    "overrides": (
        "Overrides",
        "`overrides.local.*` beside the manifest, or what a host gives as `extension_overrides`",
    ),
    "secrets": ("Catalog of secrets", "`extension-secrets.json`"),
    "lock": ("Lock file", "`agentos.lock`; agentos writes it"),
}

Schema = Mapping[str, Any]


def pages() -> dict[str, str]:
    """Return a page for each kind of file, and one that leads to them."""
    made = {f"files/{key}.md": _page(key, *words) for key, words in _FILES.items()}
    rows = [(f"[{title}]({key}.md)", where) for key, (title, where) in _FILES.items()]
    index = (
        "# Files\n\nUnknown keys are errors that name the key and the nearest known one. Editors that know JSON Schema "
        "check files as you write.\n\n"
        f"{table(('file', 'where it is'), rows)}"
    )
    return {**made, "files/index.md": index}


def schema_of(key: str) -> dict[str, Any]:
    """Return the JSON Schema of one kind of file."""
    found: dict[str, Any] = json.loads((SCHEMAS / f"{key}.schema.json").read_text("utf-8"))
    return found


def _page(key: str, title: str, where: str) -> str:
    root = schema_of(key)
    parts = [f"# {title}\n", f"{cell(root['description'])}\n", f"Where: {where}.\n"]
    parts.append(f"[JSON Schema of it](../../schemas/{key}.schema.json)\n")
    for path, schema in objects(root):
        parts.append(f"## {code(path) if path else 'Top level'}\n")
        parts.append(cell(schema.get("description", "")) + "\n" if path else "")
        parts.append(table(("key", "type", "default", ""), _rows(schema, root)))
        parts += [f"For example:\n\n{as_json(one)}" for one in schema.get("examples", ())[:1]]
    return "\n".join(part for part in parts if part)


def objects(root: Schema) -> Iterator[tuple[str, Schema]]:
    """Yield every object that has keys of its own, with the path at which it stands."""
    waiting: list[tuple[str, Schema]] = [("", root)]
    while waiting:
        path, schema = waiting.pop(0)
        if schema.get("properties"):
            yield path, schema
        for name, part in _parts(schema):
            inner = resolved(part, root)
            if name != "$schema" and _is_container(inner):
                dot = "" if name == "[]" or not path else "."
                waiting.append((f"{path}{dot}{name}", inner))


def _parts(schema: Schema) -> Iterator[tuple[str, Schema]]:
    yield from schema.get("properties", {}).items()
    if isinstance(schema.get("items"), Mapping):
        yield "[]", schema["items"]
    if isinstance(schema.get("additionalProperties"), Mapping):
        yield "<name>", schema["additionalProperties"]


def _is_container(schema: Schema) -> bool:
    return bool(schema.get("properties")) or any(_is_container(part) or "$ref" in part for _, part in _parts(schema))


def resolved(schema: Schema, root: Schema) -> Schema:
    """Return what a reference within the schema leads to, with what stands beside the reference."""
    reference = schema.get("$ref", "")
    if not reference.startswith("#/"):
        return schema
    found: Any = root
    for part in reference[2:].split("/"):
        found = found[part]
    return {**found, **{key: value for key, value in schema.items() if key != "$ref"}}


def _rows(schema: Schema, root: Schema) -> Iterator[tuple[str, str, str, str]]:
    needed = schema.get("required", ())
    for name, part in schema.get("properties", {}).items():
        found = resolved(part, root)
        default = code(json.dumps(found["default"])) if "default" in found else "needed" if name in needed else ""
        yield code(name), _type(found, root), default, found.get("description", "")


def _type(schema: Schema, root: Schema) -> str:
    if "enum" in schema:
        return ", ".join(code(json.dumps(one)) for one in schema["enum"])
    said = schema.get("type", "anything")
    words = " or ".join(said) if isinstance(said, list) else said
    if isinstance(schema.get("items"), Mapping) and "array" in words:
        inner = _type(resolved(schema["items"], root), root)
        return words.replace("array", f"list of {inner}")
    return str(words)

"""The options of curated packs in the manifest's JSON Schema, as the packs declare them, for editors.

Run as `python docs/_generate/option_schemas.py`, it writes both copies of the schema.
"""

import asyncio
import json
import re
from pathlib import Path
from typing import Any

from agentos import ExtensionManager, PackEntry
from agentos.loading.curated_packs import CURATED

ROOT = Path(__file__).parent.parent.parent
COPIES = [ROOT / folder / "schemas" / "manifest.schema.json" for folder in ("agentos", "docs")]
_FIRST, _LAST = '      "allOf": [', "      ],"
_BLOCK = re.compile(rf"^{re.escape(_FIRST)}\n(?:        .*\n)*{re.escape(_LAST)}\n", re.MULTILINE)
_SECRETS = {"$ref": "#/$defs/pack/properties/options/properties/secrets"}


async def declared() -> dict[str, dict[str, Any]]:
    """Return the JSON Schema of the options of every curated pack, by its name."""
    found: dict[str, dict[str, Any]] = {}
    async with ExtensionManager() as manager:
        for pack in CURATED:
            outcome = await manager.load(PackEntry(package=pack.name, permissions=pack.permissions, required=True))
            found[pack.name] = dict(manager.options_of(outcome.key) or {})
    return found


def with_options(text: str, options: dict[str, dict[str, Any]]) -> str:
    """Return the text of the manifest's schema with what *options* say of each pack, each in a line of its own."""
    lines = _BLOCK.sub("", text).splitlines()
    conditions = ",\n".join(f"        {json.dumps(_condition(name, one))}" for name, one in options.items())
    at = lines.index('    "pack": {') + 1
    return "\n".join([*lines[:at], f"{_FIRST}\n{conditions}\n{_LAST}", *lines[at:]]) + "\n"


def _condition(name: str, options: dict[str, Any]) -> dict[str, Any]:
    meant = {"properties": {"package": {"const": name}}, "required": ["package"]}
    taken = {**options, "properties": {**options["properties"], "secrets": _SECRETS}}
    return {"if": meant, "then": {"properties": {"options": taken}}}


def main() -> None:
    """Write both copies."""
    options = asyncio.run(declared())
    for file in COPIES:
        file.write_text(with_options(file.read_text("utf-8"), options), "utf-8")


if __name__ == "__main__":
    main()

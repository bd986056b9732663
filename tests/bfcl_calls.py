"""The single-turn calls of the Berkeley Function-Calling Leaderboard, as the wheel of `bfcl-eval` carries them.

`python tests/bfcl_calls.py` puts the wheel into the environment it runs in, once; the tests read it from there.
"""

import json
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

VERSION = "2026.3.23"
ARCHIVE = Path(sys.prefix) / f"bfcl_eval-{VERSION}-py3-none-any.whl"
MISSING = "the calls of BFCL are not here: `python tests/bfcl_calls.py` fetches them"
SECONDS = 300
_DATA = "bfcl_eval/data/"
_GROUPS = (
    *("simple_python", "multiple", "parallel", "parallel_multiple"),
    *("live_simple", "live_multiple", "live_parallel", "live_parallel_multiple"),
)
_TYPES = {"dict": "object", "float": "number", "tuple": "array", "any": None, "list": "array"}


def read():
    """Return (id, schema, arguments) of each call; none if the wheel is not here."""
    if not ARCHIVE.exists():
        return []
    with zipfile.ZipFile(ARCHIVE) as archive:
        return [call for group in _GROUPS for call in _calls_of(archive, group)]


def _lines(archive, name):
    return {one["id"]: one for one in map(json.loads, archive.read(_DATA + name).decode().splitlines())}


def _calls_of(archive, group):
    questions = _lines(archive, f"BFCL_v4_{group}.json")
    for id, answer in _lines(archive, f"possible_answer/BFCL_v4_{group}.json").items():
        functions = {one["name"]: one["parameters"] for one in questions[id]["function"]}
        for number, call in enumerate(answer["ground_truth"]):
            for name, given in call.items():
                yield f"{id}.{number}", _schema(functions[name]), _arguments(given)


def _schema(said):
    """Return JSON Schema of what BFCL says, whose names of types are those of Python."""
    if isinstance(said, list):
        return [_schema(one) for one in said]
    if not isinstance(said, dict):
        return said
    found = {key: _schema(value) for key, value in said.items()}
    if isinstance(kind := said.get("type"), str):
        found["type"] = _TYPES.get(kind.lower(), kind.lower())
        if found["type"] is None:
            del found["type"]
    return found


def _arguments(given):
    """Return the first of the values that each argument may have; an empty text says that it is left out."""
    return {name: _first(values[0]) for name, values in given.items() if values and values[0] != ""}


def _first(value):
    if isinstance(value, dict):
        named = {name: one[0] if isinstance(one, list) and one else one for name, one in value.items()}
        return {name: _first(one) for name, one in named.items()}
    return [_first(one) for one in value] if isinstance(value, list) else value


def fetch():
    """Take the wheel from where pip takes packages, if it is not here yet."""
    if ARCHIVE.exists():
        return
    with tempfile.TemporaryDirectory(dir=sys.prefix) as folder:
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
        options = ["--timeout", "10", "--retries", "1", "--dest", folder]
        subprocess.run([*pip, *options, f"bfcl-eval=={VERSION}"], check=True, timeout=SECONDS)
        (Path(folder) / ARCHIVE.name).replace(ARCHIVE)


if __name__ == "__main__":
    try:
        fetch()
    except (subprocess.SubprocessError, OSError) as error:
        sys.stderr.write(f"its tests are skipped, since {MISSING} ({type(error).__name__})\n")

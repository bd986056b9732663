"""The settings of an examination: by keywords, by a table of a file, by files in the pack's own folder."""

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from agentos.errors import AgentOSError
from agentos.loading.modules import is_path
from agentos.model.field_checks import did_you_mean
from agentos.model.manifest import ISOLATIONS
from agentos.model.parsing import read_file
from agentos.testing._preparation import PREPARE_FILE, read_prepare

Rule = Callable[[Any], str | None]
"""Says what is wrong with a value; None if it is valid."""

OWN_FILE = "conformance.toml"
"""What a distribution's folder says of its pack, if it is named by that folder."""


class SettingsError(ValueError):
    """Invalid settings of an examination: everything that is wrong, each with its place and the way out."""

    def __init__(self, faults: Sequence[str], where: str = "") -> None:
        several = f"{len(faults)} settings are invalid:\n  " if len(faults) > 1 else ""
        super().__init__(f"{where}{several}" + "\n  ".join(faults))
        self.faults = tuple(faults)


def refuse(faults: Iterable[str], where: str = "") -> None:
    """Raise an error with all *faults*, if there are any; *where* is the file that they are in."""
    if found := list(faults):
        raise SettingsError(found, where)


def folder_settings(folder: Path) -> dict[str, Any]:
    """Return what the folder of a distribution says of its pack, in `conformance.toml` and `conformance.py`."""
    file, preparing = folder / OWN_FILE, folder / PREPARE_FILE
    settings = settings_in(file, read_table(file)) if file.is_file() else {}
    if preparing.is_file():
        settings.setdefault("prepare", read_prepare(preparing))
    return settings


def read_table(file: Path) -> dict[str, Any]:
    """Read a .toml or .json file."""
    try:
        found: dict[str, Any] = read_file(file)
    except (AgentOSError, OSError) as error:
        raise SettingsError([str(error)]) from None
    return found


def settings_in(file: Path, given: Mapping[str, Any], place: str = "") -> dict[str, Any]:
    """Return the settings of a table in *file*, checked, with its paths as they are meant there."""
    faults = list(faults_of(given))
    settings = {key: value for key, value in given.items() if not list(faults_of({key: value}))}
    try:
        if "seed" in settings:
            settings["seed"] = seed_folder(settings["seed"], file.parent)
        if isinstance(settings.get("prepare"), str):
            settings["prepare"] = read_prepare(file.parent / settings["prepare"])
    except ValueError as error:
        faults.append(str(error))
    refuse(faults, f"{file}: {place}")
    if "beneath" in settings:
        settings["beneath"] = [_from(file.parent, one) for one in settings["beneath"]]
    return settings


def _from(base: Path, pack: Any) -> Any:
    """Return a pack that is named by a path as it is meant in *base*."""
    return base / pack if isinstance(pack, str) and is_path(pack) else pack


def seed_folder(seed: str | Path, base: Path) -> Path:
    """Return the folder that *seed* names, seen from *base*."""
    folder = base / seed
    if not folder.is_dir():
        raise SettingsError([f"seed: there is no folder {str(seed)!r} in {base}"])
    return folder.absolute()


# -- what each of them may be ------------------------------------------------------------------------------------------


def check_settings(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return *given* if its keys are known and its values are valid."""
    refuse(faults_of(given))
    return dict(given)


def faults_of(given: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is wrong with each setting."""
    for key, value in given.items():
        if key not in _RULES:
            yield f"unknown key {key!r}{did_you_mean(key, _RULES)}; known: {', '.join(_RULES)}"
        elif (fault := _RULES[key](value)) is not None:
            yield f"{key}{fault}"


def _rule(expected: str, is_valid: Callable[[Any], bool], *, by_type: bool = False) -> Rule:
    """Return what says how a value differs from what is expected: itself, or only its type."""

    def fault(value: Any) -> str | None:
        found = type(value).__name__ if by_type else f"{value!r:.60}"
        return None if is_valid(value) else f": expected {expected}, got {found}"

    return fault


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < math.inf


_a_mapping = _rule("a table", lambda value: isinstance(value, Mapping), by_type=True)
_a_list = _rule("a list", lambda value: isinstance(value, list | tuple), by_type=True)
_a_flag = _rule("true or false", lambda value: isinstance(value, bool))
_seconds = _rule("seconds above 0", _is_number)
_a_count = _rule("a whole number above 0", lambda value: _is_number(value) and isinstance(value, int))
_a_path = _rule("the path of a folder", lambda value: isinstance(value, str | Path) and bool(str(value).strip()))
_preparing = _rule(
    "a function, or the path of a Python file that has it",
    lambda value: callable(value) or (isinstance(value, str) and value.endswith(".py")),
)


def _texts_by_name(value: Any) -> str | None:
    if not isinstance(value, Mapping):
        return _a_mapping(value)
    wrong = next((name for name, one in value.items() if not isinstance(one, str)), None)
    return None if wrong is None else f".{wrong}: expected a text, got {type(value[wrong]).__name__}"


def _samples(value: Any) -> str | None:
    if not isinstance(value, Mapping):
        return _a_mapping(value)
    for name, given in value.items():
        if isinstance(given, Mapping):
            continue
        if not isinstance(given, list | tuple) or not all(isinstance(one, Mapping) for one in given):
            return f".{name}: expected arguments by their names, or a list of such"
        if not given:
            return f".{name}: the list is empty; give at least one sample, or leave {name!r} out"
    return None


def _ids(value: Any) -> str | None:
    if isinstance(value, str) or not isinstance(value, Collection):
        return f": expected a list of ids of checks, or a table of ids and reasons, got {type(value).__name__}"
    for id in value:
        if not isinstance(id, str):
            return f": expected ids of checks, got {id!r:.60}"
        if isinstance(value, Mapping) and (not isinstance(value[id], str) or not value[id].strip()):
            return f'."{id}": expected a reason in words'
    return None


_RULES: dict[str, Rule] = {
    "options": _a_mapping,
    "secrets": _texts_by_name,
    "samples": _samples,
    "beneath": _a_list,
    "seed": _a_path,
    "prepare": _preparing,
    "sandboxed": _a_flag,
    "isolation": _rule("inline or process", lambda value: value in ISOLATIONS),
    "limit": _seconds,
    "grace": _seconds,
    "cases": _a_count,
    "skip": _ids,
    "only": _ids,
    "strict": _a_flag,
}


# -- names that only a loaded pack knows -------------------------------------------------------------------------------


def unknown_names(names: Iterable[str], known: Collection[str], where: str, what: str) -> Iterator[str]:
    """Say of each name that is not among *known* so, with the nearest one."""
    for name in names:
        if name not in known:
            listed = ", ".join(known) or "none"
            yield f"{where}: there is no {what} {name!r}{did_you_mean(name, known)}; known: {listed}"

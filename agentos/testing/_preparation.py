"""What is put into a sandbox before a pack is loaded: a copied folder, and what its author prepares."""

import contextlib
import importlib.util
import inspect
import shutil
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

from agentos.testing._sandbox import FOLDER_PLACEHOLDER, Sandbox

Prepare = Callable[[Path], contextlib.AbstractAsyncContextManager[Mapping[str, Any] | None]]
PREPARE_FILE = "conformance.py"
"""The file beside `conformance.toml` that has `prepare`."""
_HOW = "decorate `async def prepare(tmp)` with @contextlib.asynccontextmanager"


class PreparationError(Exception):
    """What the pack's author prepares could not be prepared, so the pack can't be examined."""


@contextlib.asynccontextmanager
async def prepared(sandbox: Sandbox, seed: Path | None, prepare: Prepare | None) -> AsyncIterator[None]:
    """Put *seed* into the folder of a sandbox and enter *prepare* there, until the end of the block."""
    if seed is not None:
        shutil.copytree(seed, sandbox.data, symlinks=True, dirs_exist_ok=True)
    if prepare is None:
        yield
        return
    async with contextlib.AsyncExitStack() as undo:
        with _preparation_errors():
            given = await undo.enter_async_context(_context_manager(prepare, sandbox.data))
            sandbox.names.update(_names(given))
        sandbox.forget_notes()  # what was logged and tried until now was not done by the pack
        yield
        undo_all = undo.pop_all()
        with _preparation_errors():
            await undo_all.aclose()


def _context_manager(prepare: Prepare, folder: Path) -> contextlib.AbstractAsyncContextManager[Any]:
    made = prepare(folder)
    if not hasattr(made, "__aenter__"):
        if inspect.iscoroutine(made):
            made.close()
        raise TypeError(f"it gives {type(made).__name__}, no async context manager; {_HOW}")
    return made


@contextlib.contextmanager
def _preparation_errors() -> Any:
    try:
        yield
    except Exception as error:  # foreign code, though of the pack's author
        raise PreparationError(f"prepare() raised {type(error).__name__}: {error}") from error


def _names(given: Any) -> dict[str, Any]:
    """Return the names that samples and options may use, if they are names of plain values."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise TypeError(f"it yields {type(given).__name__}; expected a mapping of names to values")
    for name, value in given.items():
        if not isinstance(name, str) or not name.isidentifier() or f"{{{name}}}" == FOLDER_PLACEHOLDER:
            raise ValueError(f"it yields the name {name!r}; expected letters, digits and _, and not 'tmp'")
        if not isinstance(value, str | int | float | Path):
            raise TypeError(f"it yields {type(value).__name__} as {name!r}; expected a text or a number")
    return {name: str(value) if isinstance(value, Path) else value for name, value in given.items()}


def read_prepare(file: Path) -> Prepare:
    """Return the function `prepare` of a Python file."""
    spec = importlib.util.spec_from_file_location(f"agentos_conformance_{abs(hash(str(file)))}", file)
    if spec is None or spec.loader is None:
        raise ValueError(f"{file}: expected a Python file")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise ValueError(f"{file}: it can't be imported: {type(error).__name__}: {error}") from error
    found = getattr(module, "prepare", None)
    if not callable(found):
        raise ValueError(f"{file}: expected a function `prepare`; {_HOW}")  # noqa: TRY004 - what is wrong is the file
    prepare: Prepare = found
    return prepare

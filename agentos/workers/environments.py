"""Environments that agentos makes for packs: one for each Python and set of requirements, made once and kept.

Each is a folder of the user's cache, named by the hash of what it is made of. A file in it that is written last says
that it is whole; what lacks it is made anew. Who makes one, or removes one, holds a lock on a file beside it, and so
does every worker that runs in it, for as long as it lives.
"""

import asyncio
import json
import os
import re
import shutil
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import attrs

from agentos.base.atomic_files import replace_file
from agentos.base.canonical import digest
from agentos.base.foreign import to_the_end
from agentos.base.full_disks import reason
from agentos.errors import PackLoadError
from agentos.model.manifest import PackEntry
from agentos.processes.programs import ProgramLimits, run_process
from agentos.workers.interpreters import Interpreter, minimal_environment

MARK = "agentos-environment.json"
_LIMITS = ProgramLimits(seconds=900, output_bytes=10_000_000)
"""What each step of making an environment may take."""
_LOOK_AGAIN = 0.1
_TAIL = 12
_LINE = 500
_INSTALLERS_OWN = re.compile(
    r"(PIP|UV)_\w+|(HTTPS?|ALL|NO)_PROXY|SSL_CERT_(FILE|DIR)|REQUESTS_CA_BUNDLE|NETRC", re.IGNORECASE
)
"""The variables that say where packages come from and how to get there."""
_CREDENTIALS = re.compile(r"(?<=://)[^\s/@]+(?=@)")


@attrs.frozen
class MadeEnvironment:
    """An environment that is whole: its Python, and the file whose lock keeps it from being removed."""

    key: str
    interpreter: Interpreter
    lock: Path


def environments_folder() -> Path:
    """Return where environments are kept: beneath `AGENTOS_DATA` if that is set, else in the user's cache."""
    if given := os.environ.get("AGENTOS_DATA"):
        return Path(given).expanduser().absolute() / "environments"
    import platformdirs

    return Path(platformdirs.user_cache_dir("agentos", appauthor=False)) / "environments"


class Environments:
    """The environments in one folder."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = environments_folder() if folder is None else folder

    async def made_for(
        self, entry: PackEntry, base: Interpreter, *, report: Callable[[str], None], mask: Callable[[str], str]
    ) -> MadeEnvironment:
        """Return the environment for *entry*'s requirements and *base*; make it if it is not there yet."""
        key = _key(base, entry.requirements)
        whole = self.found_for(entry, base)
        if whole is None:
            try:
                self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
                async with _locked(self._lock_of(key)):
                    whole = self._whole(key, base)  # another host may have made it meanwhile
                    if whole is None:
                        await self._make(key, entry, base, report, mask)
            except OSError as error:
                message = f"its environment can't be made in {self._folder}: {reason(error)}"
                raise PackLoadError(entry.label, message) from error
        return whole or MadeEnvironment(key, self._interpreter(key, base), self._lock_of(key))

    def found_for(self, entry: PackEntry, base: Interpreter) -> MadeEnvironment | None:
        """Return the environment for *entry*'s requirements and *base*; None if it is not made yet."""
        return self._whole(_key(base, entry.requirements), base)

    def _lock_of(self, key: str) -> Path:
        return self._folder / f"{key}.lock"

    def _whole(self, key: str, base: Interpreter) -> MadeEnvironment | None:
        found = self._interpreter(key, base)
        is_whole = (self._folder / key / MARK).is_file() and os.access(found.path, os.X_OK)
        return MadeEnvironment(key, found, self._lock_of(key)) if is_whole else None

    def _interpreter(self, key: str, base: Interpreter) -> Interpreter:
        place = self._folder / key
        return Interpreter(
            str(place / "bin" / "python"), base.version, os.path.realpath(place), _installed_agentos(place)
        )

    async def _make(
        self, key: str, entry: PackEntry, base: Interpreter, report: Callable[[str], None], mask: Callable[[str], str]
    ) -> None:
        place = self._folder / key
        await asyncio.to_thread(remove_folder, place)  # what somebody began and did not end
        wanted = _CREDENTIALS.sub("***", mask(", ".join(entry.requirements)))
        try:
            for told, argv in _steps(place, base.path, entry.requirements):
                report(f"{told} for {wanted}")
                if (said := await _installed(argv)) is not None:
                    raise PackLoadError(entry.label, _failure(told, said, mask))
            about = {"python": base.path, "requirements": list(entry.requirements)}
            replace_file(place / MARK, json.dumps(about, indent=2).encode(), private=True)
        except BaseException:
            await to_the_end(asyncio.to_thread(remove_folder, place))
            raise
        report("its environment is made")

    def remove(self) -> list[str]:
        """Remove every environment that no worker runs in; return the requirements of each, without credentials."""
        removed = []
        for place in sorted(path for path in self._folder.glob("*") if path.is_dir()):
            with _lock_if_free(self._lock_of(place.name)) as is_free:
                if is_free:
                    removed.append(_requirements_of(place))
                    remove_folder(place)
        return removed


def remove_folder(place: Path) -> None:
    """Remove a folder with all that is in it, its mark first, so that a half of it never counts as whole."""
    (place / MARK).unlink(missing_ok=True)
    if place.exists():
        shutil.rmtree(place)


def _key(base: Interpreter, requirements: Sequence[str]) -> str:
    return digest([os.path.realpath(base.path), base.prefix, list(base.version), sorted(requirements)])[:32]


def _requirements_of(place: Path) -> str:
    try:
        return _CREDENTIALS.sub("***", ", ".join(json.loads((place / MARK).read_bytes())["requirements"]))
    except (OSError, ValueError, LookupError, TypeError):
        return "one that was not finished"


def _installed_agentos(place: Path) -> str | None:
    found = next(place.glob("lib/python3.*/site-packages/agentos_host-*.dist-info"), None)
    return None if found is None else found.name.removeprefix("agentos_host-").removesuffix(".dist-info")


# -- installing --------------------------------------------------------------------------------------------------


def _steps(place: Path, python: str, requirements: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield what has to be run, and what each is for: by uv if there is one, which is much faster, else by pip."""
    inside, uv = str(place / "bin" / "python"), find_uv()
    if uv is not None:
        yield "making an environment with uv", [uv, "venv", "--no-project", "--python", python, str(place)]
        yield "installing with uv", [uv, "pip", "install", "--python", inside, *requirements]
    else:
        yield "making an environment", [python, "-I", "-m", "venv", str(place)]
        yield "installing with pip", [inside, "-I", "-m", "pip", "install", "--no-input", *requirements]


def find_uv() -> str | None:
    """Return where uv is: beside our Python, where the extra `workers` puts it, else on PATH; None if nowhere."""
    return shutil.which("uv", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}")


async def _installed(argv: Sequence[str]) -> list[str] | None:
    """Run an installer; return the last lines it said if it failed, else None. It is ended with whoever waits."""
    env = minimal_environment() | {name: value for name, value in os.environ.items() if _INSTALLERS_OWN.fullmatch(name)}
    done = await run_process(argv, env=env, limits=_LIMITS)
    if done.exit_code == 0:
        return None
    lines = (done.stdout + done.stderr).decode("utf-8", "replace").splitlines()
    last = [f"it took more than {_LIMITS.seconds:.0f} seconds"] if done.timed_out else []
    return [*(line for line in lines if line.strip()), *last][-_TAIL:]


def _failure(told: str, said: Sequence[str], mask: Callable[[str], str]) -> str:
    text = "\n".join(f"  {line.strip()[:_LINE]}" for line in said)
    return f"{told} failed:\n{_CREDENTIALS.sub('***', mask(text))}"


# -- locks -------------------------------------------------------------------------------------------------------


@asynccontextmanager
async def _locked(file: Path) -> AsyncIterator[None]:
    """Hold a lock on *file* that the system gives back whatever happens to this process; others are waited for."""
    while True:
        with _lock_if_free(file) as is_free:
            if is_free:
                yield
                return
        await asyncio.sleep(_LOOK_AGAIN)


@contextmanager
def _lock_if_free(file: Path) -> Iterator[bool]:
    """Give whether a lock on *file* could be had, and hold it for the block."""
    import fcntl

    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        is_free = False
    else:
        is_free = True
    try:
        yield is_free
    finally:
        os.close(descriptor)

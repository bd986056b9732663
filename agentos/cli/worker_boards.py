"""What served hosts tell of their workers, for commands in other processes: a file for each host.

A worker lives in the process that serves its host, and that alone knows of it. So `agentos serve` keeps a file in the
data folder, beside those of other hosts of the same manifest and user on this machine, and holds a lock for as long as
it runs. It says what its workers did when it last looked, once a second. To ask it for something, a command puts a
file beside it. Hosts that are not served by the command tell nothing there.
"""

import contextlib
import hashlib
import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import attrs

from agentos.base.atomic_files import replace_file
from agentos.model.isolation import WorkerInfo, WorkerState
from agentos.store.alive import FilePresence
from agentos.store.locations import data_folder

if TYPE_CHECKING:
    from agentos.host import AgentOS

_LOOK_AGAIN = 10.0
"""After how many seconds what changes all the time, such as how many calls there were, is told anew."""
_LINES_KEPT = 200


def boards_folder(manifest: Path) -> Path:
    """Return where the hosts of *manifest* tell of their workers."""
    name = hashlib.sha256(str(manifest.absolute()).encode("utf-8", "surrogateescape")).hexdigest()[:16]
    return data_folder() / "workers" / name


# -- of a served host ----------------------------------------------------------------------------------------------


class WorkerBoard:
    """What one host tells of its workers."""

    def __init__(self, manifest: Path, host: "AgentOS") -> None:
        self._folder = boards_folder(manifest)
        self._running = host
        self._host = uuid4().hex
        self._presence = FilePresence(self._folder, self._host)
        self._since = time.time()
        self._told: Any = None
        self._told_at = 0.0
        self._answers: dict[str, str | None] = {}

    async def look(self) -> None:
        """Do what was asked for, and tell what changed. A host without workers tells nothing."""
        workers = self._running.workers
        if not workers.list() and self._told is None:
            return
        await self._answer_all()
        found = workers.list()
        logs = {one.pack: list(workers.logs(one.pack))[-_LINES_KEPT:] for one in found}
        lasting = [_lasting(one) for one in found], logs, dict(self._answers)
        if lasting != self._told or time.time() - self._told_at > _LOOK_AGAIN:
            await self._tell(found, logs)
            self._told, self._told_at = lasting, time.time()

    async def _tell(self, found: Iterable[WorkerInfo], logs: Mapping[str, list[str]]) -> None:
        if self._told is None:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            await self._presence.renew()
        said = {
            "pid": os.getpid(),
            "since": self._since,
            "at": time.time(),
            "workers": [_as_json(one) for one in found],
            "keys": {one.name: one.key for one in self._running.extensions.packs()},
            "logs": logs,
            "answers": self._answers,
        }
        replace_file(self._folder / f"{self._host}.json", json.dumps(said).encode(), private=True)

    async def _answer_all(self) -> None:
        for file in sorted(self._folder.glob(f"{self._host}.ask-*")):
            with contextlib.suppress(OSError, ValueError):
                asked = json.loads(file.read_bytes())
                file.unlink()
                self._answers[asked["id"]] = await self._restarted(asked["restart"])

    async def _restarted(self, pack: str) -> str | None:
        """Restart a worker; return what kept it from being ready."""
        try:
            await self._running.workers.restart(pack)
        except Exception as error:  # noqa: BLE001 - whatever it is, whoever asked is told
            return str(error) or type(error).__name__
        return None

    async def close(self) -> None:
        """Take back what was told."""
        for file in (self._folder / f"{self._host}.json", *self._folder.glob(f"{self._host}.ask-*")):
            with contextlib.suppress(OSError):
                file.unlink()
        await self._presence.release()


def _lasting(one: WorkerInfo) -> WorkerInfo:
    return attrs.evolve(one, calls=0, rss=None)


def _as_json(one: WorkerInfo) -> dict[str, Any]:
    return {**attrs.asdict(one), "since": None if one.since is None else one.since.timestamp()}


# -- of a command ----------------------------------------------------------------------------------------------------


@attrs.frozen(kw_only=True)
class HostOnBoard:
    """What a served host told of its workers last."""

    id: str
    pid: int
    since: datetime
    at: datetime
    workers: tuple[WorkerInfo, ...]
    keys: Mapping[str, str]
    """The keys of packs in the manifest, by their names."""
    logs: Mapping[str, list[str]] = attrs.field(repr=False)
    answers: Mapping[str, str | None] = attrs.field(repr=False)

    @classmethod
    def parse(cls, id: str, said: Mapping[str, Any]) -> "HostOnBoard":
        """Read what a host told."""
        times: dict[str, Any] = {name: datetime.fromtimestamp(said[name], UTC) for name in ("since", "at")}
        workers = tuple(_worker(one) for one in said["workers"])
        rest = {name: said[name] for name in ("pid", "keys", "logs", "answers")}
        return cls(id=id, workers=workers, **rest, **times)

    def worker(self, pack: str) -> WorkerInfo | None:
        """Return what is known of the worker of *pack*, by its name or its key in the manifest."""
        return next((one for one in self.workers if pack in (one.pack, self.keys.get(one.pack))), None)


def _worker(said: Mapping[str, Any]) -> WorkerInfo:
    since = None if said["since"] is None else datetime.fromtimestamp(said["since"], UTC)
    return WorkerInfo(**{**said, "since": since, "state": WorkerState(said["state"])})


async def served_hosts(manifest: Path) -> list[HostOnBoard]:
    """Return what the hosts of *manifest* that are served now told last, the oldest first."""
    return sorted([one async for one in _hosts(boards_folder(manifest))], key=lambda one: (one.since, one.id))


async def _hosts(folder: Path) -> Any:
    presence = FilePresence(folder, uuid4().hex)  # not ours to hold: only to ask about others
    for file in _files(folder):
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):  # gone meanwhile, or of another version
            if await presence.is_alive(file.stem):
                yield HostOnBoard.parse(file.stem, json.loads(file.read_bytes()))
            else:
                file.unlink()


def _files(folder: Path) -> Iterator[Path]:
    with contextlib.suppress(OSError):
        yield from sorted(folder.glob("*.json"))


def ask_for_restart(manifest: Path, host: HostOnBoard, pack: str) -> str:
    """Ask a host to restart a worker; return the id by which it will answer."""
    id = uuid4().hex
    file = boards_folder(manifest) / f"{host.id}.ask-{id}"
    replace_file(file, json.dumps({"id": id, "restart": pack}).encode(), private=True)
    return id

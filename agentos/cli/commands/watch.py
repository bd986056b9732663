"""`agentos watch`: packs are reloaded while they are being written, and what changes on the stacks is told."""

import asyncio
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from agentos.base.canonical import digest
from agentos.cli.app import App, Fail, examples, foreign_code, pass_app
from agentos.cli.host_session import reason_of
from agentos.cli.manifest_files import files_read_for
from agentos.cli.terminal.harmless_text import counted
from agentos.errors import AgentOSError, PackLoadError
from agentos.loading.pack_files import files_of
from agentos.model.kind import kind_of
from agentos.model.manifest import PackEntry

if TYPE_CHECKING:
    from agentos.cli.layered_config import Config
    from agentos.host import AgentOS

Signature = Mapping[Path, tuple[int, int]]
States = Mapping[str, tuple[str, str]]
_SIGNS = {"+": "green", "-": "red", "~": "yellow"}


@click.command(epilog=examples("agentos watch", "agentos watch --interval 0.2", "agentos watch --json"))
@click.option(
    "--interval", type=click.FloatRange(min=0.02), default=0.5, show_default=True, help="Seconds between looks."
)
@pass_app
def watch(app: App, *, interval: float) -> None:
    """Reload packs when their files change, and tell what changes on the stacks, until Ctrl-C.

    Packs that are files or modules are watched, and the manifest. Definitions are not pinned meanwhile: what you write
    is let in. With --json, every event is one line.
    """
    app.run(_watch(app, interval), logs=False)


async def _watch(app: App, interval: float) -> None:
    states: States = {}
    while True:
        watcher = _Watcher(app, app.config, interval)
        try:
            async with app.host(pins="off") as host:
                states = await watcher.until_manifest_changes(host, states)
        except Fail as error:  # such as a pack that is required, and can't be loaded
            _print_event(app, app.config.path.name, "failed", error.message)
            await watcher.until_anything_changes()
        await _reload_config(app, interval)


async def _reload_config(app: App, interval: float) -> None:
    """Read the configuration anew; one that can't be used is told of, and waited for until it can."""
    files = files_read_for(app.config.path)
    del app.config
    while True:
        seen = signature_of(files)
        try:
            app.config  # noqa: B018 - read now
        except Fail as error:
            _print_event(app, "manifest", "failed", error.message)
        else:
            return
        while signature_of(files) == seen:  # noqa: ASYNC110 - files do not tell when they change
            await asyncio.sleep(interval)


class _Watcher:
    """Looks at files between two readings of the manifest. The first look is before anything is loaded."""

    def __init__(self, app: App, config: "Config", interval: float) -> None:
        self._app = app
        self._config = config
        self._interval = interval
        self._entries = {entry.label: entry for entry in config.manifest.packs if entry.enabled and entry.module}
        self._manifest = self._manifest_signature()
        self._files = self._pack_signatures()

    async def until_manifest_changes(self, host: "AgentOS", before: States) -> States:
        """Reload what changes; return the last states when the manifest itself changed."""
        report = host.extensions.report
        for outcome in () if report is None else report.failed:
            _print_event(self._app, outcome.key, "failed", reason_of(outcome))
        states = self._print_changes(host, before)
        _print_event(self._app, self._config.path.name, "watching", counted(len(self._entries), "pack"))
        while self._manifest_signature() == self._manifest:
            if changed := await self._changed():
                for key in changed:
                    await self._reload(host, key)
                states = self._print_changes(host, states)
            await asyncio.sleep(self._interval)
        _print_event(self._app, self._config.path.name, "changed", None)
        return states

    async def until_anything_changes(self) -> None:
        """Wait for another manifest, or for another state of a pack's files: what failed may be mended in either."""
        seen = (self._manifest, self._files)
        while (self._manifest_signature(), self._pack_signatures()) == seen:  # noqa: ASYNC110 - as above
            await asyncio.sleep(self._interval)

    async def _changed(self) -> list[str]:
        """Return the packs whose files changed since the last look, when nobody writes to them any more."""
        before, now = self._files, self._pack_signatures()
        while now not in (before, self._files):  # an editor may write a file in several steps
            self._files = now
            await asyncio.sleep(min(self._interval, 0.1))
            now = self._pack_signatures()
        self._files = now
        return [key for key in now if now[key] != before[key]]

    def _manifest_signature(self) -> Signature:
        return signature_of(files_read_for(self._config.path))

    def _pack_signatures(self) -> dict[str, Signature]:
        return {key: signature_of(_files(entry)) for key, entry in self._entries.items()}

    async def _reload(self, host: "AgentOS", key: str) -> None:
        manager = host.extensions
        try:
            loaded = any(entry is not None and entry.label == key for _, entry in manager.loaded())
            with foreign_code():
                outcome = await (manager.reload(key) if loaded else manager.load(self._entries[key]))
            _print_event(
                self._app, key, "reloaded" if outcome.status == "loaded" else outcome.status, reason_of(outcome)
            )
        except (AgentOSError, Fail) as error:
            _print_event(self._app, key, "failed", error.message)

    def _print_changes(self, host: "AgentOS", before: States) -> States:
        now = dict(_stack_states(host))
        for name in sorted(before.keys() | now.keys()):
            old, new = before.get(name), now.get(name)
            if old != new:
                sign = "+" if old is None else "-" if new is None else "~"
                _print_change(self._app, sign, name, old, new)
        return now


def _files(entry: PackEntry) -> list[Path]:
    """Return the files of a pack; of one that is not there, the place where it would be."""
    try:
        found = files_of(entry)
    except PackLoadError:
        return [(entry.base_path or Path.cwd()) / str(entry.module)] if entry.module else []
    return [] if found is None else list(found.files.values())


def signature_of(paths: list[Path]) -> Signature:
    """Return what tells one state of files from another."""
    found = {}
    for path in paths:
        try:
            state = path.stat()
        except OSError:
            found[path] = (0, -1)
        else:
            found[path] = (state.st_mtime_ns, state.st_size)
    return found


def _stack_states(host: "AgentOS") -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield the state of every entry, and a hash of its definition where it has one."""
    manager = host.extensions
    for kind in manager.kinds():
        for id in manager.registry(kind).ids():
            for entry in manager.registry(kind).stack(id):
                definition = kind_of(kind).definition(entry.payload)
                yield (
                    f"{kind}:{id} of {entry.source}",
                    (str(entry.state), "" if definition is None else digest(definition)),
                )


def _print_change(app: App, sign: str, name: str, old: tuple[str, str] | None, new: tuple[str, str] | None) -> None:
    if old is None or new is None:
        said = (new or old or ("", ""))[0]
    else:
        said = f"{old[0]} -> {new[0]}" if old[0] != new[0] else "its definition changed"
    app.out.line({"change": sign, "entry": name, "state": None if new is None else new[0]})
    app.out.say(f"  {sign} {name}: {said}", _SIGNS[sign])


def _print_event(app: App, what: str, status: str, reason: str | None) -> None:
    app.out.line({"event": status, "what": what, "reason": reason})
    app.out.say(f"{what} {status}" + (f": {reason}" if reason else ""), "bold red" if status == "failed" else "bold")

"""What an operator changes while a host is served reaches it: overrides, secrets, principals, and which packs run.

Files do not tell when they change, so they are looked at, once a second. What can't be changed without a new start is
said once.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from agentos.cli.app import App, foreign_code
from agentos.cli.commands.watch import Signature, signature_of
from agentos.cli.host_session import working_host
from agentos.cli.layered_config import Config, ConfigError, load_config
from agentos.cli.manifest_files import files_read_for
from agentos.cli.worker_boards import WorkerBoard
from agentos.errors import AgentOSError, OptionsError
from agentos.model.manifest import PackEntry
from agentos.model.principal import Principal
from agentos.model.settings import KEYS
from agentos.secrets.sources import Fallback
from agentos.secrets.vaults import SecretVault
from agentos.store.locations import place_of

if TYPE_CHECKING:
    from agentos.host import AgentOS

INTERVAL = 1.0


@contextlib.asynccontextmanager
async def followed(app: App) -> AsyncIterator[tuple["AgentOS", dict[str, Principal]]]:
    """Give a host that follows what the operator changes, and the manifest's principals as they are at any time."""
    following = LiveChanges(app)
    async with (
        working_host(
            app,
            principals=following.principals,
            extension_secrets=following.kept_secret,
            dotenv=following.dotenv,
            carry_workflows=True,
        ) as host,
        following.watching(host),
    ):
        yield host, following.principals


class LiveChanges:
    """Knows what the files of one configuration said last, and brings a host in step with what they say now."""

    def __init__(self, app: App) -> None:
        self._out = app.out
        self._config: Config = app.config
        self._place = place_of(app.config.manifest.store)
        self.principals: dict[str, Principal] = dict(app.config.manifest.settings.principals)
        self.dotenv = _dotenv(app.config)
        self.kept_secret = Fallback(SecretVault())  # also if nothing is kept yet
        self._seen = self._file_signatures()
        self._last_warning = ""

    @contextlib.asynccontextmanager
    async def watching(self, host: "AgentOS") -> AsyncIterator[None]:
        """Keep *host* in step for as long as the block lasts."""
        board = WorkerBoard(self._config.path, host)
        task = asyncio.create_task(self._watch(host, board))
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait([task])
            await board.close()

    async def _watch(self, host: "AgentOS", board: WorkerBoard) -> None:
        while True:
            await self._tell_of_workers(board)
            await asyncio.sleep(INTERVAL)
            await self.look(host)

    async def _tell_of_workers(self, board: WorkerBoard) -> None:
        try:
            await board.look()
        except (AgentOSError, OSError) as error:  # a convenience: serving goes on
            self._warn_once(f"what workers do can't be told to `agentos workers`: {error}")

    async def look(self, host: "AgentOS") -> None:
        """Look once, and apply what changed. What fails is said, and the host goes on as it was."""
        now = self._file_signatures()
        changed = {path for path in now if now[path] != self._seen.get(path)}
        self._seen = now
        try:
            if changed & set(files_read_for(self._config.path)):
                await self._reload_config(host)
            if changed & {self.dotenv, SecretVault().path}:
                for id in await host.extensions.refresh_secrets():
                    self._out.note(f"the secret {id} changed")
            if self._place.path is None or changed & set(self._files_of_store()):
                await self._apply_flags(host)
        except Exception as error:  # noqa: BLE001 - packs are foreign code: serving goes on
            self._warn_once(f"what changed could not be applied: {error}")

    # -- files -------------------------------------------------------------------------------------------------

    def _file_signatures(self) -> Signature:
        said_in = files_read_for(self._config.path)
        return signature_of([*said_in, self.dotenv, SecretVault().path, *self._files_of_store()])

    def _files_of_store(self) -> list[Path]:
        path = self._place.path
        return [] if path is None else [path, path.with_name(f"{path.name}-wal")]

    # -- the manifest and local overrides ----------------------------------------------------------------------

    async def _reload_config(self, host: "AgentOS") -> None:
        before = self._config
        try:
            now = await asyncio.to_thread(load_config, before.path)
        except ConfigError as error:
            self._warn_once(f"{error}\nWhat it said before counts until that is corrected.")
            return
        self._config = now
        self.principals.clear()
        self.principals.update(now.manifest.settings.principals)
        await self._replace_overrides(host, now)
        for entry in _toggled(before, now):
            await self._load_or_unload(host, entry)
        if others := sorted(_changed_keys(before, now)):
            self._warn_once(f"{now.path.name} changed: what it says of {', '.join(others)} counts after the next start")

    async def _replace_overrides(self, host: "AgentOS", now: Config) -> None:
        manager = host.extensions
        try:
            changed = await manager.replace_overrides(host=now.overrides, manifest=now.manifest.overrides)
        except OptionsError as error:
            self._warn_once(f"{error}\nWhat the overrides said before counts until that is corrected.")
            return
        for kind, id in changed:
            self._out.note(f"the override of {kind}:{id} changed")

    async def _load_or_unload(self, host: "AgentOS", entry: PackEntry) -> None:
        if not entry.enabled:
            await host.extensions.unload(str(entry.key))
        else:
            with foreign_code():
                outcome = await host.extensions.load(entry)
            if outcome.error is not None:
                raise outcome.error
        self._out.note(f"{entry.label} is {'enabled' if entry.enabled else 'disabled'}")

    # -- the store ---------------------------------------------------------------------------------------------

    async def _apply_flags(self, host: "AgentOS") -> None:
        """Enable and disable packs as the store says now: somebody wrote that there."""
        with foreign_code():
            switched = await host.extensions.refresh_packs()
        for record in switched:
            self._out.note(f"{record.key} is {'enabled' if record.enabled else 'disabled'}")

    def _warn_once(self, text: str) -> None:
        """Say what needs somebody, once."""
        if text != self._last_warning:
            self._out.warn(text)
        self._last_warning = text


def _dotenv(config: Config) -> Path:
    """Return the file that secrets are read from, also if it is not there yet."""
    said = config.manifest.settings.dotenv
    return config.folder / ".env" if said is None else Path(said)


def _toggled(before: Config, now: Config) -> Iterator[PackEntry]:
    """Yield the entries that are as they were but for `enabled`."""
    old = {entry.key: (entry.enabled, said) for entry, said in _entries(before)}
    for entry, said in _entries(now):
        was, said_before = old.get(entry.key, (entry.enabled, said))
        if was != entry.enabled and said == said_before:
            yield entry


def _entries(config: Config) -> Iterator[tuple[PackEntry, Any]]:
    """Yield every entry with what the manifest says of it besides whether it is enabled."""
    servers = [_without_switch(one) for one in config.manifest.mcp_servers.values()]
    packs = [attrs.evolve(entry, enabled=True) for entry in config.manifest.packs]
    yield from zip(config.entries, [*packs, *servers], strict=True)


def _without_switch(server: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in server.items() if key != "enabled"}


def _changed_keys(before: Config, now: Config) -> set[str]:
    """Return what else the manifest says differently, by its keys: what a running host can't take over."""
    was, is_now = _fixed_values(before), _fixed_values(now)
    return {key for key in was if was[key] != is_now[key]}


def _fixed_values(config: Config) -> dict[str, Any]:
    settings = config.manifest.settings
    return {
        **{key: getattr(settings, field) for key, field in KEYS.items() if key != "principals"},
        "name": config.manifest.name,
        "dotenv": _dotenv(config),
        "store": config.manifest.store,
        "packs": [attrs.evolve(entry, enabled=True) for entry in config.manifest.packs],
        "mcpServers": {name: _without_switch(said) for name, said in config.manifest.mcp_servers.items()},
    }

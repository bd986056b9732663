"""`agentos workers`: packs in processes of their own, as hosts that are served tell of them. No pack is loaded."""

import asyncio
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from agentos.cli.app import App, Fail, completing, examples, run_async
from agentos.cli.host_session import FAILED
from agentos.cli.terminal.harmless_text import counted
from agentos.model.isolation import MIB, WorkerInfo

if TYPE_CHECKING:
    from agentos.cli.worker_boards import HostOnBoard

_STYLES = {"ready": "green", "mounting": "yellow", "degraded": "bold red", "not running": "bright_black"}
_NOT_RUNNING = "not running"
_LOOK = 0.1
_PATIENCE = 60.0
"""For how many seconds a host may take to answer, besides the time that a pack may take to mount."""


@click.group(epilog=examples("agentos workers list", "agentos workers restart search", "agentos workers logs search"))
def workers() -> None:
    """List, restart and read packs that run in processes of their own (isolation = "process").

    A worker lives as long as the host that started it. These commands know of hosts that `agentos serve` runs from the
    same manifest, as the same user, on this machine; what they show is what such a host told within the last seconds.
    A program that has a host of its own asks that: host.workers.
    """


def _keys(app: App) -> list[str]:
    """Return the keys of the manifest's packs that have a process of their own."""
    return [entry.label for entry in app.config.manifest.packs if entry.isolation == "process"]


complete_worker = completing(_keys)


# -- list --------------------------------------------------------------------------------------------------------------


@workers.command(
    "list",
    short_help="List workers: their state, process and strikes",
    epilog=examples("agentos workers list", "agentos workers list --json | jq '.hosts[].workers[].state'"),
)
@run_async
async def list_(app: App) -> None:
    """List the workers of every host that is served, and those of the manifest that no host runs now."""
    from agentos.cli.worker_boards import served_hosts

    hosts, keys = await served_hosts(app.config.path), _keys(app)
    idle = [key for key in keys if not any(host.worker(key) for host in hosts)]
    app.out.data({"manifest": app.config.path, "hosts": [_host_data(one) for one in hosts], "notRunning": idle})
    rows = [row for host in hosts for row in _rows(host)]
    rows += [(key, (_NOT_RUNNING, _STYLES[_NOT_RUNNING]), "", "", "", "", "no served host runs it") for key in idle]
    columns = ("pack", "state", "host", "process", "memory", "calls", "why")
    app.out.table(columns, rows, empty="No pack of this manifest has a process of its own.")
    if keys and not hosts:
        app.out.note("No `agentos serve` runs from this manifest here; other programs tell only by host.workers.")


def _host_data(host: "HostOnBoard") -> dict[str, Any]:
    return {"pid": host.pid, "since": host.since, "at": host.at, "workers": list(host.workers)}


def _rows(host: "HostOnBoard") -> Iterator[tuple[Any, ...]]:
    for one in host.workers:
        state = str(one.state)
        memory = "" if one.rss is None else f"{one.rss / MIB:.0f} MiB"
        pid = "" if one.pid is None else str(one.pid)
        yield one.pack, (state, _STYLES.get(state, "")), str(host.pid), pid, memory, str(one.calls), _why(one)


def _why(one: WorkerInfo) -> str:
    """Put into words since when a worker is as it is, what it died of, and how often it was started again."""
    said = [] if one.since is None else [f"for {_duration(datetime.now(UTC) - one.since)}"]
    said += [counted(one.restarts, "restart")] if one.restarts else []
    said += [counted(one.strikes, "strike")] if one.strikes else []
    return "; ".join([*said, *([one.reason] if one.reason else [])])


def _duration(passed: Any) -> str:
    seconds = max(0, int(passed.total_seconds()))
    for size, unit in ((86_400, "day"), (3_600, "hour"), (60, "minute")):
        if seconds >= size:
            return counted(seconds // size, unit)
    return counted(seconds, "second")


# -- restart -----------------------------------------------------------------------------------------------------------


@workers.command(
    short_help="End a pack's process and mount it anew",
    epilog=examples("agentos workers restart search", "agentos workers restart search --json"),
)
@click.argument("pack", shell_complete=complete_worker)
@run_async
async def restart(app: App, pack: str) -> int:
    """End a pack's process in every host that is served, and mount it anew; a degraded worker is tried at once.

    Calls that run in it end with WorkerDied. Exits 1 if a host could not mount it.
    """
    from agentos.cli.worker_boards import ask_for_restart

    hosts = await _hosts_with(app, pack)
    asked = [(host, ask_for_restart(app.config.path, host, pack)) for host in hosts]
    answers = {host.pid: await _answer(app, host, id) for host, id in asked}
    failed = {pid: said for pid, said in answers.items() if said is not None}
    app.out.data({"pack": pack, "hosts": [{"pid": pid, "error": said} for pid, said in answers.items()]})
    for pid, said in answers.items():
        if said is None:
            app.out.say(f"{pack} is mounted anew in host {pid}.", "green")
        elif not app.out.is_json:
            app.out.fail(f"host {pid}: {said}", f"`agentos workers logs {pack}` says what it said last")
    return FAILED if failed else 0


async def _hosts_with(app: App, pack: str) -> "list[HostOnBoard]":
    """Return the hosts that have a worker of *pack*; end the command if there are none."""
    from agentos.cli.worker_boards import served_hosts
    from agentos.model.field_checks import did_you_mean

    keys = _keys(app)
    found = [host for host in await served_hosts(app.config.path) if host.worker(pack) is not None]
    if not found and pack not in keys:
        known = did_you_mean(pack, keys) or f"; there are {', '.join(keys) or 'none'}"
        raise Fail(f"no pack {pack!r} of this manifest has a process of its own{known}", code=2)
    if not found:
        hint = "a worker lives as long as its host; `agentos serve` starts one, other programs have host.workers"
        raise Fail(f"no host that is served here runs a worker of {pack}", hint=hint)
    return found


async def _answer(app: App, host: "HostOnBoard", id: str) -> str | None:
    """Wait for what a host answers: None, or what kept it from doing what was asked."""
    end = time.monotonic() + _PATIENCE + _longest_mount(app)
    while time.monotonic() < end:
        now = await _look_again(app, host.id)
        if now is None:
            return "the host ended meanwhile"
        if id in now.answers:
            return now.answers[id]
        await asyncio.sleep(_LOOK)
    return "the host does not answer"


def _longest_mount(app: App) -> float:
    return max((entry.mount_timeout for entry in app.config.manifest.packs), default=0.0)


async def _look_again(app: App, id: str) -> "HostOnBoard | None":
    from agentos.cli.worker_boards import served_hosts

    return next((one for one in await served_hosts(app.config.path) if one.id == id), None)


# -- logs --------------------------------------------------------------------------------------------------------------


@workers.command(
    short_help="Print the last lines of a pack's log",
    epilog=examples("agentos workers logs search", "agentos workers logs search --lines 20 --json"),
)
@click.argument("pack", shell_complete=complete_worker)
@click.option("--lines", type=click.IntRange(1, 200), default=50, show_default=True, help="The last so many.")
@run_async
async def logs(app: App, pack: str, lines: int) -> None:
    """Print the last lines of what a pack's process printed and logged, as hosts that are served have them.

    They are masked, and there are at most 200; all of them are in the log of the host itself.
    """
    hosts = await _hosts_with(app, pack)
    found = {host.pid: _lines_of(host, pack)[-lines:] for host in hosts}
    app.out.data({"pack": pack, "hosts": [{"pid": pid, "lines": said} for pid, said in found.items()]})
    for pid, said in found.items():
        if len(found) > 1:
            app.out.say(f"host {pid}", "bold")
        for line in said:
            app.out.say(line)
        if not said:
            app.out.note(f"{pack} said nothing in host {pid}.")


def _lines_of(host: "HostOnBoard", pack: str) -> list[str]:
    worker = host.worker(pack)
    return [] if worker is None else list(host.logs.get(worker.pack, ()))


# -- clean -------------------------------------------------------------------------------------------------------------


@workers.command(
    short_help="Remove environments that agentos made and no worker runs in",
    epilog=examples("agentos workers clean", "agentos workers clean --json | jq '.removed[]'"),
)
@run_async
async def clean(app: App) -> None:
    """Remove every environment that agentos made for the requirements of a pack, unless a worker runs in it.

    They are this user's, of all manifests on this machine. One that is needed again is made anew when its pack is
    loaded.
    """
    from agentos.workers.environments import Environments, environments_folder

    folder = environments_folder()
    try:
        removed = await asyncio.to_thread(Environments(folder).remove)
    except OSError as error:
        raise Fail(f"environments in {folder} can't be removed: {error.strerror or error}") from error
    app.out.data({"folder": folder, "removed": removed})
    for requirements in removed:
        app.out.say(f"Removed the environment of {requirements}.")
    if not removed:
        app.out.say("There is no environment that no worker runs in.")

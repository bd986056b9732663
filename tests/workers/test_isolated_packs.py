"""Packs in workers of one host: with libraries of their own, and within the limits of their entries."""

import socket

import pytest
from wheels import only_from, write_wheel
from working import call, entry, worker_of, working

from agentos import PackEntry
from agentos.workers.confinement import missing_for
from agentos.workers.environments import find_uv

MIB = 1024 * 1024

READER = """
import tinylib
from agentos import PUBLIC, ExtensionPack, tool


@tool(name={name!r}, effect="read", required_access=PUBLIC)
def version() -> str:
    \"\"\"Say which version of the library is here.\"\"\"
    return tinylib.VERSION


pack = ExtensionPack({name!r}, "1.0", [version])
"""

needs_uv = pytest.mark.skipif(find_uv() is None, reason="uv is not installed; by pip this takes long")
confines = pytest.mark.skipif(
    missing_for(network=False, limits_writing=True) is not None, reason="this system can't confine"
)


def bounded(folder, **limits):
    return entry(folder, "bounded.py", worker=limits)


@pytest.fixture
def libraries(tmp_path, monkeypatch):
    folder = tmp_path / "wheels"
    for version in ("1.0", "2.0"):
        write_wheel(folder, "tinylib", version)
    only_from(monkeypatch, folder)
    monkeypatch.setenv("AGENTOS_DATA", str(tmp_path / "data"))
    return folder


def reader(folder, name, *requirements):
    (folder / f"{name}.py").write_text(READER.format(name=name))
    return PackEntry(
        module=str(folder / f"{name}.py"), isolation="process", requirements=requirements, mount_timeout=60.0
    )


@needs_uv
async def test_two_packs_with_two_versions_of_one_library_run_side_by_side(tmp_path, libraries):
    old, new = reader(tmp_path, "old", "tinylib<2"), reader(tmp_path, "new", "tinylib>=2")
    async with working(old, new) as host:
        said = [(await call(host, name)).output for name in ("old", "new", "old")]

    assert said == ["1.0", "2.0", "1.0"]


@needs_uv
async def test_a_pack_can_come_from_its_own_distribution_which_the_host_does_not_have(tmp_path, libraries):
    write_wheel(
        libraries,
        "distant_pack",
        "1.0",
        {"distant_pack.py": READER.format(name="distant")},
        metadata="Requires-Dist: tinylib<2\n",
        entry_points="[agentos.packs]\ndistant = distant_pack\n",
    )
    own = PackEntry(package="distant", isolation="process", requirements=("distant-pack",), mount_timeout=60.0)
    async with working(own) as host:
        assert (await call(host, "distant")).output == "1.0"


async def test_a_greedy_pack_ends_alone_and_the_host_says_which_limit_it_was(tmp_path):
    async with working(bounded(tmp_path, memory=256 * MIB)) as host:
        small, large = await call(host, "hoard", {"mebibytes": 1}), await call(host, "hoard", {"mebibytes": 1_000})
        again = await call(host, "hoard", {"mebibytes": 1})
        told = worker_of(host, "bounded").reason

    assert (small.output, large.error.type, again.output) == (1, "WorkerDied", 1)
    assert "it needed more than its 268,435,456 bytes of memory (worker.memory)" in large.error.message
    assert "worker.memory" in told


async def test_a_pack_that_computes_without_end_is_ended_by_its_limit(tmp_path):
    async with working(bounded(tmp_path, cpu_seconds=3)) as host:
        result = await call(host, "compute")

    assert "it computed for more than its 3 seconds (worker.cpu_seconds)" in result.error.message


@confines
async def test_a_confined_pack_has_no_network_and_writes_where_it_may(tmp_path):
    confine = {"network": False, "write": [str(tmp_path / "data")]}
    with socket.create_server(("127.0.0.1", 0)) as server:
        async with working(bounded(tmp_path, confine=confine)) as host:
            inside = await call(host, "write", {"path": str(tmp_path / "data" / "file")})
            outside = await call(host, "write", {"path": str(tmp_path / "file")})
            connected = await call(host, "connect", {"port": server.getsockname()[1]})

    assert inside.output == "written"
    assert all("PermissionError" in one.content for one in (outside, connected)), (outside, connected)
    assert not (tmp_path / "file").exists()

"""The kit for pack authors: hosts in memory, fakes, and the checks that every pack should pass.

    make_host         a host in memory with packs, modules, files or tools in it
    call_tools        the same for tests without an event loop: load, call, shut down
    capture_events    what a host or manager tells, as a list
    overriding        a fake on top of a stack for the time of a block
    fake_secrets      values that can be recognised, and a note of who asked
    FakeClock         time that goes on when it is told to
    offline           nothing but loopback is reachable, and what was tried is written down
    hostile_arguments arguments made from a tool's own schema, good and bad ones
    assert_pack_ok    the conformance checks; `check_pack` is the same without an event loop
    examine_pack      what they find, as values

`pytest --agentos-pack NAME` runs the same checks from the command line: `agentos.testing.plugin`.
Importing this package imports neither pytest nor a host: each name is loaded when it is first asked for.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agentos.testing.checks import CHECKS, Check
    from agentos.testing.conformance import assert_pack_ok, check_pack, examine_pack
    from agentos.testing.fakes import FakeClock, FakeSecrets, fake_secrets
    from agentos.testing.hostile import Case, hostile_arguments, valid_arguments
    from agentos.testing.hosts import Events, call_tools, capture_events, make_host, overriding
    from agentos.testing.network import Attempt, NetworkRefusedError, offline
    from agentos.tools.lint.findings import Finding

_HOMES = {
    "CHECKS": "checks",
    "Attempt": "network",
    "Case": "hostile",
    "Check": "checks",
    "Events": "hosts",
    "FakeClock": "fakes",
    "FakeSecrets": "fakes",
    "Finding": "conformance",
    "NetworkRefusedError": "network",
    "assert_pack_ok": "conformance",
    "call_tools": "hosts",
    "capture_events": "hosts",
    "check_pack": "conformance",
    "examine_pack": "conformance",
    "fake_secrets": "fakes",
    "hostile_arguments": "hostile",
    "make_host": "hosts",
    "offline": "network",
    "overriding": "hosts",
    "valid_arguments": "hostile",
}

__all__ = [
    "CHECKS",
    "Attempt",
    "Case",
    "Check",
    "Events",
    "FakeClock",
    "FakeSecrets",
    "Finding",
    "NetworkRefusedError",
    "assert_pack_ok",
    "call_tools",
    "capture_events",
    "check_pack",
    "examine_pack",
    "fake_secrets",
    "hostile_arguments",
    "make_host",
    "offline",
    "overriding",
    "valid_arguments",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'agentos.testing' has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(f"agentos.testing.{home}"), name)
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])

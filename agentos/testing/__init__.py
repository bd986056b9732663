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

from agentos.base.lazy_exports import lazy_exports

__all__, __getattr__, __dir__ = lazy_exports(globals())

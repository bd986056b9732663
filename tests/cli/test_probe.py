"""Packs in a process of their own: the bad ones are named, the others are loaded all the same."""

import signal
import sys
import threading
import time
from pathlib import Path

import pytest
from terminal import BAD, GREET, PATIENCE

from agentos.cli.app import Fail
from agentos.cli.layered_config import load_config
from agentos.cli.probe import child_process as _child
from agentos.cli.probe.isolated_load import probe

QUICK = 20.0
"""For how many seconds a pack may be loading that will come to an end."""
BRIEF = 3.0
"""The same for packs that will not."""


def probed(folder, deadline=QUICK, **options):
    return probe(load_config(folder / "agentos.toml"), deadline, **options)


def statuses(report):
    return {one.key: one.status for one in report.packs}


def stack_of(report, kind, id):
    return next((one for one in report.stacks if (one.kind, one.id) == (kind, id)), None)


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    """Return the report on a host of all the bad packs, and of a good one."""
    folder = tmp_path_factory.mktemp("mixed")
    for name, text in {**BAD, "hello": GREET}.items():
        (folder / f"{name}.py").write_text(text)
    packs = "".join(f'[[packs]]\nmodule = "{name}.py"\n' for name in (*BAD, "hello"))
    (folder / "agentos.toml").write_text(packs)
    return probed(folder, BRIEF)


def test_every_bad_pack_is_named_and_the_others_are_loaded(mixed):
    assert statuses(mixed) == {
        "exits.py": "failed",
        "leaves.py": "exited",
        "raises.py": "failed",
        "hangs.py": "hung",
        "crashes.py": "crashed",
        "chatters.py": "loaded",
        "hello.py": "loaded",
    }
    assert [stack.id for stack in mixed.stacks] == ["chat", "greet"]
    assert [one.key for one in mixed.bad] == ["exits.py", "leaves.py", "raises.py", "hangs.py", "crashes.py"]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("leaves", "exit code 7"),
        ("raises", "RuntimeError: boom"),
        ("crashes", "SIGSEGV"),
        ("exits", "SystemExit: 3"),
        ("hangs", "did not come to an end in time"),
    ],
)
def test_the_reason_says_how_it_ended(mixed, name, words):
    assert words in mixed.pack(f"{name}.py").reason


LAST_WORDS = {
    "crashes": ("print('almost', end='')\nos.kill(os.getpid(), 11)", "was ended by SIGSEGV; its last words: almost"),
    "leaves": ("print('first')\nprint('bye')\nos._exit(7)", "exit code 7; its last words: bye"),
    "hangs": ("print('waiting for godot')\ntime.sleep(600)", "in time; its last words: waiting for godot"),
    "paints": ("sys.stderr.write('\\x1b[2Jred')\nos.abort()", "by SIGABRT; its last words: \\x1b[2Jred"),
    "babbles": ("print('x' * 100_000)\nos.abort()", f"its last words: {'x' * 300}"),
    "silent": ("os._exit(7)", "exit code 7"),
}


@pytest.fixture(scope="module")
def last_words(tmp_path_factory):
    """Return the report on packs that come to a bad end, each behind one that prints as well."""
    folder = tmp_path_factory.mktemp("last_words")
    packs = ""
    for name, (code, _) in LAST_WORDS.items():
        (folder / f"before_{name}.py").write_text("print('words of another')\nraise RuntimeError\n")
        (folder / f"{name}.py").write_text(f"import os, sys, time\n{code}\n")
        packs += f'[[packs]]\nmodule = "before_{name}.py"\n[[packs]]\nmodule = "{name}.py"\n'
    (folder / "agentos.toml").write_text(packs)
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("PYTHONUNBUFFERED", raising=False)
        return probed(folder, BRIEF)


@pytest.mark.parametrize("name", LAST_WORDS)
def test_the_last_words_of_a_pack_are_told_even_if_it_did_not_flush_them(last_words, name):
    assert last_words.pack(f"{name}.py").reason.endswith(LAST_WORDS[name][1])


FORKS = {
    "and goes on": ("os.fork()", "loaded"),
    "and leaves the child": ("if os.fork(): os._exit(0)", "exited"),
    "and leaves the parent": ("if not os.fork(): os._exit(0)", "loaded"),
    "a child that never ends": ("if not os.fork(): time.sleep(600)", "loaded"),
}


@pytest.mark.parametrize("how", FORKS)
def test_a_pack_that_forks(project, how):
    code, status = FORKS[how]
    files = {"forks.py": f"import os, time\n{code}\n{GREET.replace('greet', 'wave').replace('hello', 'forks')}"}
    report = probed(project("forks", "hello", files=files))

    assert statuses(report) == {"forks.py": status, "hello.py": "loaded"}
    assert stack_of(report, "tool", "greet").active is not None


ESCAPES = """
import os, time
if os.fork() == 0:
    os.setsid()
    open("pid", "w").write(str(os.getpid()))
    while not os.path.exists("stop"):
        time.sleep(0.01)
    os._exit(0)
"""


def test_a_process_that_escapes_holds_nobody_up(project, monkeypatch):
    """It holds the pipes open that the probe listens to."""
    monkeypatch.setattr(_child, "_GOODBYE", 1.0)
    folder = project("escapes", files={"escapes.py": ESCAPES + GREET})
    try:
        assert statuses(probed(folder)) == {"escapes.py": "loaded"}
    finally:
        (folder / "stop").touch()
        wait_for(lambda: (folder / "pid").exists() and (folder / "pid").read_text())
        wait_for(lambda: not is_running(int((folder / "pid").read_text())))


GARBAGE = {
    "on every descriptor": """
for fd in range(3, 20):
    try:
        os.write(fd, b'garbage\\n[1]\\n{}\\n')
    except OSError:
        pass
""",
    "in bytes that are no text": "os.write(1, bytes(range(256)) * 1000)",
    "without an end": "print('x' * 10_000_000, end='')",
}


@pytest.mark.parametrize("where", GARBAGE)
def test_a_pack_that_prints_garbage_is_loaded(project, where):
    folder = project("prints", files={"prints.py": f"import os\n{GARBAGE[where]}\n{GREET}"})

    assert statuses(probed(folder)) == {"prints.py": "loaded"}


def test_a_pack_that_closes_every_file_is_named(project):
    folder = project("closes", "gifs", files={"closes.py": f"import os\nos.closerange(0, 100)\n{GREET}"})

    assert statuses(probed(folder))["closes.py"] in ("exited", "crashed", "hung")


def test_what_is_not_there(mixed):
    assert stack_of(mixed, "tool", "nothing") is None
    assert mixed.pack("nothing") is None
    assert mixed.pack("hello").key == "hello.py"


def test_an_exit_out_of_the_event_loop_is_told(project):
    late = "import asyncio, sys\nfrom agentos import ExtensionPack\n"
    late += "async def create_extension_pack():\n"
    late += "    asyncio.get_running_loop().call_soon(sys.exit, 5)\n    await asyncio.sleep(60)\n"
    report = probed(project("late", "hello", files={"late.py": late}))

    assert statuses(report) == {"late.py": "exited", "hello.py": "loaded"}
    assert "sys.exit(5)" in report.packs[0].reason


def test_a_stack_tells_its_entries_with_states_and_reasons(project):
    stack = stack_of(probed(project("gifs")), "tool", "gif_search")

    assert stack.active is None
    assert stack.entries[0].state == "gated"
    assert "GIPHY_API_KEY" in stack.entries[0].reason
    assert "gated" in str(stack.entries[0])


def test_secrets_tell_where_they_come_from_and_not_what_they_are(project, monkeypatch):
    monkeypatch.setenv("GIPHY_API_KEY", "swordfish-1")
    report = probed(project("gifs"))

    (secret,) = report.stacks[0].entries[0].secrets

    assert {name: secret[name] for name in ("id", "optional", "origin")} == {
        "id": "giphy.apiKey",
        "optional": False,
        "origin": "the environment variable GIPHY_API_KEY",
    }
    assert secret["definition"]["env_var"] == "GIPHY_API_KEY"
    assert "swordfish-1" not in repr(report)


def test_some_entries_only(project):
    assert statuses(probed(project("raises", "hello", "gifs"), only=[0, 1], without=[0])) == {"hello.py": "loaded"}


def test_packs_are_shut_down_after_a_probe(project):
    tidy = "from pathlib import Path\nfrom agentos import ExtensionPack\n"
    tidy += "pack = ExtensionPack('tidy', on_deactivate=lambda: Path('left').write_text('tidily'))\n"
    folder = project("tidy", files={"tidy.py": tidy})
    probed(folder)

    assert (folder / "left").read_text() == "tidily"


def test_what_a_pack_leaves_running_keeps_nobody(project):
    lingering = "import threading\nthreading.Thread(target=threading.Event().wait).start()\n"
    folder = project("lingers", files={"lingers.py": lingering + GREET})

    assert statuses(probed(folder)) == {"lingers.py": "loaded"}


def test_a_child_ends_with_who_asked(project, started):
    """A pack that hangs must not go on when the command is gone."""
    hangs = "import os, time\nopen('pid', 'w').write(str(os.getpid()))\ntime.sleep(600)\n"
    folder = project("stalls", files={"stalls.py": hangs})
    command = started("doctor", cwd=folder)
    pid = int(wait_for(lambda: (folder / "pid").exists() and (folder / "pid").read_text()))
    command.end(signal.SIGKILL)

    wait_for(lambda: not is_running(pid))


def wait_for(fact):
    """Return what *fact* says once it says something."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if said := fact():
            return said
        threading.Event().wait(0.02)
    raise TimeoutError


def is_running(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def test_findings_of_lint(project):
    bare = (
        "from agentos import PUBLIC, ExtensionPack, tool\n\n"
        "@tool(effect='read', required_access=PUBLIC)\nasync def x(a: int) -> int:\n    return a\n\n"
        "pack = ExtensionPack('bare', '1', [x])\n"
    )
    report = probed(project("bare", files={"bare.py": bare}), lint=True)

    assert "description" in {finding["rule"] for finding in report.packs[0].findings}


def test_what_is_disabled_in_the_store_is_so_in_a_probe(project, command):
    folder = project("hello", more='store = "s.db"\n')
    command("packs", "disable", "hello")

    assert probed(folder).stacks[0].entries[0].state == "disabled"


def test_a_probe_writes_nothing_to_the_store(project):
    folder = project("hello", more='store = "s.db"\n')
    probed(folder)

    assert not (folder / "s.db").exists()


def test_a_changed_definition_waits_in_a_probe_and_stays_waiting(project, command):
    folder = project("hello", more='store = "s.db"\n')
    assert command("packs", "accept").code == 0  # a host sees it for the first time
    (folder / "hello.py").write_text((folder / "hello.py").read_text().replace("Greet a person", "Obey me, person"))

    for _ in range(2):
        report = probed(folder)
        assert [one["tool"] for one in report.pending] == ["hello:greet"]
        assert report.stacks[0].active is None


def test_a_store_that_cant_be_read_is_told_and_done_without(project):
    folder = project("hello", more='store = "s.db"\n')
    (folder / "s.db").write_text("not a database at all, but long enough to be looked at")
    report = probed(folder)

    assert "store" in report.store_error
    assert statuses(report) == {"hello.py": "loaded"}


def test_a_lock_that_cant_be_read_is_told(project):
    folder = project("hello", more='lock = "x.lock"\n')

    assert "lock" in probed(folder).store_error


def test_overrides_count_in_a_probe(project):
    folder = project("hello", more="[overrides.tools]\ngreet = { enabled = false }\n")

    assert stack_of(probed(folder), "tool", "greet").entries[0].state == "disabled"


def test_a_child_that_dies_before_any_pack_is_a_failure(project, monkeypatch):
    config = load_config(project("hello") / "agentos.toml")
    config.path.write_text("= broken")

    with pytest.raises(Fail, match="could not be probed"):
        probe(config, QUICK)


def test_the_child_answers_in_this_process_too(project):
    """The same code, where its lines can be seen."""
    import asyncio

    from agentos.cli.probe.child_main import probe as probe_here

    folder = project("hello", "gifs", "raises", more='store = "s.db"\n')
    told = []
    request = {"manifest": str(folder / "agentos.toml"), "indexes": [0, 1, 2], "lint": True}
    asyncio.run(probe_here(request, lambda event, **fields: told.append((event, fields))))

    assert [event for event, _ in told] == ["start", "done"] * 3 + ["stacks"]
    assert [fields["status"] for event, fields in told if event == "done"] == ["loaded", "loaded", "failed"]


def test_a_manifest_of_servers_alone_is_probed_like_any_other(tmp_path):
    """No pack imports agentos there, so nobody but the probe itself declares the kinds."""
    server = Path(__file__).parents[1] / "mcp" / "servers" / "plain.py"
    (tmp_path / "agentos.toml").write_text(
        f'[mcpServers.plain]\ncommand = "{sys.executable}"\nargs = ["{server.as_posix()}"]\n'
    )
    report = probed(tmp_path)

    assert statuses(report) == {"mcp/plain": "loaded"}
    assert "echo" in {one.id for one in report.stacks if one.kind == "tool"}

"""The door: help, global options, exit codes, and how commands end."""

import asyncio
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from unittest.mock import Mock

import click
import pytest
from powerless import powerless
from terminal import AGENTOS, GREET, environment, run_in_terminal, run_piped

import agentos
from agentos import __version__
from agentos.cli.app import App, make_command
from agentos.cli.command_list import COMMANDS, help_text


def imported_by(*arguments):
    """Return the modules that a run of the command imports."""
    script = """
        import json, sys
        from agentos.cli.main import main
        code = main(sys.argv[1:])
        print(json.dumps([code, sorted(sys.modules)]), file=sys.stderr)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), *arguments], capture_output=True, text=True, check=True
    )
    return json.loads(done.stderr)


HEAVY = ["click", "rich", "sqlalchemy", "attrs", "attr", "agentos.host", "jsonschema", "asyncio", "subprocess"]


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], [], ["--version"]])
def test_help_imports_nothing_heavy(arguments):
    code, modules = imported_by(*arguments)

    assert code == 0
    assert [name for name in HEAVY if name in modules] == []


def test_help_names_every_command(command):
    told = command("--help")

    assert told.code == 0
    assert [name for name in COMMANDS if f"\n  {name} " not in told.out] == []


def test_click_and_the_quick_way_write_the_same_help(command, monkeypatch):
    monkeypatch.setenv("COLUMNS", "70")

    assert command("--no-color", "--help").out == command("--help").out


@pytest.mark.parametrize("width", [1, 20, 40, 80, 200])
def test_help_fits_the_terminal(width):
    longest = max(len(word) for word in help_text(width).split())
    lines = help_text(width).split("Examples:")[0].splitlines()[1:]

    assert all(len(line) <= max(width, 24 + longest) for line in lines)


def test_version(command):
    assert command("--version").out == f"agentos {__version__}\n"
    assert command("--no-color", "--version").out == f"agentos {__version__}\n"


def every_command():
    """Return the words of every command and group."""
    import click

    def beneath(words, one):
        yield words
        if isinstance(one, click.Group):
            for name in one.list_commands(None):
                yield from beneath((*words, name), one.get_command(None, name))

    return [words for words in beneath((), make_command()) if words]


@pytest.mark.parametrize("words", every_command(), ids=" ".join)
def test_every_command_has_help_with_examples(command, words):
    told = command(*words, "--help")

    assert (told.code, told.err) == (0, "")
    assert " ".join(("agentos", *words)) in told.out.partition("Examples:\n")[2]
    assert "Options of every command" in told.out


def test_an_unknown_command_is_a_usage_error_that_names_the_nearest(command):
    told = command("pakcs")

    assert told.code == 2
    assert "did you mean 'packs'?" in told.err
    assert "agentos --help" in told.err


def test_an_unknown_option_is_a_usage_error(command):
    assert command("packs", "list", "--fast").code == 2


def test_a_group_without_a_command_shows_its_help(command):
    told = command("packs")

    assert told.code == 2
    assert "Commands:" in told.err


def test_errors_are_json_where_json_was_asked_for(command, folder):
    told = command("packs", "list", "--json")

    assert told.code == 3
    assert told.data["error"]["code"] == 3
    assert "agentos init" in told.data["error"]["hint"]
    assert told.err == ""


def test_a_usage_error_is_json_too(command):
    assert command("packs", "list", "--json", "--fast").data["error"]["code"] == 2


def test_without_a_manifest_the_configuration_cant_be_used(command, folder):
    told = command("packs", "list")

    assert told.code == 3
    assert "agentos init" in told.err


def test_a_manifest_that_is_not_there(command, folder):
    assert "no manifest at" in command("packs", "list", "--manifest", "nowhere.toml").err


def test_global_options_may_stand_before_and_behind(command, project):
    project("hello")

    assert command("--json", "packs", "list").data == command("packs", "list", "--json").data


def test_the_manifest_may_be_named(command, project, monkeypatch, tmp_path):
    folder = project("hello")
    monkeypatch.chdir(tmp_path)

    assert command("packs", "list", "--json", "--manifest", folder / "agentos.toml").code == 0
    monkeypatch.setenv("AGENTOS_MANIFEST", str(folder / "agentos.toml"))
    assert command("packs", "list", "--json").code == 0


def test_every_problem_of_the_configuration_is_told(command, project):
    project("hello", more='mod = "auto"\npins = "soon"\n')
    told = command("packs", "list", "--json")

    assert told.code == 3
    assert len(told.data["error"]["problems"]) == 2


def test_an_unknown_principal_is_a_usage_error_that_names_the_nearest(command, project):
    project("hello", more='[principals.ada]\naccess = ["x"]\n')
    told = command("packs", "accept", "--principal", "adda")

    assert told.code == 0  # nothing waits, so nobody has to be known
    from agentos.cli.app import App, Fail

    app = App()
    app.given["principal"] = "adda"
    with pytest.raises(Fail, match="did you mean 'ada'") as failure:
        _ = app.principal
    assert failure.value.exit_code == 2


def test_a_principal_of_the_manifest(project):
    from agentos.cli.app import App

    project("hello", more='[principals.ada]\naccess = ["x"]\n')
    app = App()
    app.given["principal"] = "ada"

    assert app.principal.access == {"x"}
    assert App().principal.id == "system"


def test_a_mistake_of_ours_is_told_in_one_line_and_shown_by_v(command, project, monkeypatch):
    import agentos.cli.commands.packs

    def broken(path):
        raise KeyError("oops")

    project("hello")
    monkeypatch.setattr(agentos.cli.commands.packs, "entries_in", broken)

    assert "KeyError" in command("packs", "list").err
    assert "Traceback" not in command("packs", "list").err
    assert "Traceback" in command("packs", "list", "-v").err


def test_without_the_extra_it_says_what_to_install(capsys, monkeypatch):
    from agentos.cli.main import main

    monkeypatch.setitem(sys.modules, "click", None)

    assert main(["packs", "list"]) == 3
    assert "pip install 'agentos-host[cli]'" in capsys.readouterr().err


def test_a_pipe_that_nobody_reads_is_no_error(project):
    project("hello")
    for arguments in (["--help"], ["packs", "list"], ["packs", "list", "--json"], ["pakcs", "--json"]):
        reading, writing = os.pipe()
        os.close(reading)
        done = subprocess.run(
            [*AGENTOS, *arguments], stdout=writing, stderr=subprocess.PIPE, env=environment(), text=True, check=False
        )
        os.close(writing)
        assert done.stderr == ""


def test_ctrl_c_ends_with_130(folder):
    told = run_in_terminal([*AGENTOS, "init"], inputs=[("first pack", "\x03")], cwd=folder)

    assert told.code == 130
    assert list(folder.iterdir()) == []


STRUCK = """
import os, signal, sys, threading
from agentos.cli.terminal.signals import wait_to_read

def strike():
    signal.pthread_kill(threading.get_ident(), signal.SIGINT)  # here, so that nothing interrupts the wait itself

silent = open(os.pipe()[0])
for _ in range(100):
    try:
        threading.Timer(0.001, strike).start()
        wait_to_read(silent)
    except KeyboardInterrupt:
        continue
    sys.exit("ended without a signal")
"""


def test_ctrl_c_is_heard_whenever_it_comes():
    """Also where it does not interrupt the wait, as just before that begins: Python by itself would sleep on."""
    done = subprocess.run([sys.executable, "-c", STRUCK], timeout=60, check=False, capture_output=True, text=True)

    assert (done.returncode, done.stderr) == (0, "")


def test_ctrl_d_at_a_question_ends_with_130(folder):
    assert run_in_terminal([*AGENTOS, "init"], inputs=[("first pack", "\x04")], cwd=folder).code == 130


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals_let_a_host_be_shut_down(project, started, number, code):
    leaving = "from pathlib import Path\nfrom agentos import ExtensionPack\n"
    leaving += "pack = ExtensionPack('tidy', on_deactivate=lambda: Path('left').write_text('tidily'))\n"
    folder = project("tidy", files={"tidy.py": leaving})
    child = started("watch", "--interval", "0.02", cwd=folder)
    child.until("watching", "stdout")

    assert child.end(number)[0] == code
    assert (folder / "left").read_text() == "tidily"


def test_piped_output_has_no_escape_codes(project):
    project("hello", "raises")
    for arguments in (["packs", "list"], ["doctor"], ["config", "show"], ["packs", "info", "hello"], ["nonsense"]):
        done = run_piped(*arguments)
        assert "\x1b" not in done.stdout + done.stderr


def test_a_terminal_gets_colours_unless_they_are_not_wanted(project):
    folder = project("hello")

    assert "\x1b[" in run_in_terminal([*AGENTOS, "packs", "list"], cwd=folder)
    assert "\x1b[" not in run_in_terminal([*AGENTOS, "packs", "list", "--no-color"], cwd=folder)
    assert "\x1b[" not in run_in_terminal([*AGENTOS, "packs", "list"], cwd=folder, env={"NO_COLOR": "1"})


def test_what_a_pack_prints_does_not_spoil_json(project):
    """By Python, by the descriptor, and by a program that it starts."""
    loud = "import os, subprocess\nos.write(1, b'raw noise\\n')\nsubprocess.run(['echo', 'noise of a child'])\n"
    project("chatters", "hello", "loud", files={"loud.py": loud + GREET.replace("hello", "loud")})
    done = run_piped("packs", "accept", "--json")

    assert json.loads(done.stdout) == {"accepted": [], "pending": []}
    assert {'{"noise": true}', "raw noise", "noise of a child"} <= set(done.stderr.splitlines())


def test_threads_that_a_pack_left_do_not_keep_the_command(project):
    lingering = "import threading\nthreading.Thread(target=threading.Event().wait).start()\n"
    project("lingers", files={"lingers.py": lingering + GREET})
    done = run_piped("tools", "call", "greet", "name=Ada")

    assert (done.returncode, done.stdout) == (0, "Hello, Ada!\n")
    assert "left threads running" in done.stderr


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_one_signal_is_enough_for_a_pack_that_hangs(project, started, number, code):
    """It keeps the event loop from hearing of the signal."""
    folder = project("stalls", files={"stalls.py": "import time\nprint('dialing', flush=True)\ntime.sleep(600)\n"})
    child = started("tools", "list", cwd=folder)
    child.until("dialing")

    assert child.end(number)[0] == code


FULL = [["--help"], ["--version"], ["packs", "list"], ["packs", "list", "--json"], ["why", "nothing", "--json"]]


@pytest.mark.parametrize("arguments", FULL, ids=" ".join)
def test_a_stdout_that_takes_nothing_is_told(project, arguments):
    project("hello")
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*AGENTOS, *arguments], stdout=full, stderr=subprocess.PIPE, env=environment(), text=True, check=False
        )

    assert done.returncode == 1
    assert [line.split(":")[0] for line in done.stderr.splitlines()][:1] == ["error"]
    assert "Traceback" not in done.stderr


def test_a_stderr_that_takes_nothing_changes_no_exit_code(folder):
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([*AGENTOS, "nonsense"], stderr=full, env=environment(), check=False)

    assert done.returncode == 2


@pytest.mark.parametrize(
    ("closed", "said"),
    [("<&-", "Hello, Ada!\n"), (">&-", ""), ("2>&-", "Hello, Ada!\n"), ("<&- >&- 2>&-", "")],
)
def test_a_command_runs_without_streams(project, closed, said):
    project("hello")
    line = f"{shlex.join(AGENTOS)} tools call greet name=Ada {closed}"
    done = subprocess.run(["sh", "-c", line], env=environment(), capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout, done.stderr) == (0, said, "")


def test_a_required_pack_that_fails_makes_the_configuration_unusable(command, project):
    folder = project("hello")
    with (folder / "agentos.toml").open("a") as file:
        file.write('\n[[packs]]\nmodule = "nowhere.py"\nrequired = true\n')
    told = command("packs", "accept")

    assert told.code == 3
    assert "nowhere.py" in told.err


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (KeyboardInterrupt(), 130, "interrupted"),
        (SystemExit(7), 7, ""),
        (SystemExit("why"), 1, ""),
        (OSError(28, "No space left on device", "x"), 1, "x: the disk is full (No space left on device)"),
        (OSError(28, "No space left on device"), 1, "the disk is full (No space left on device)"),
    ],
)
def test_however_a_command_ends_there_is_a_code(command, project, monkeypatch, error, code, words):
    import agentos.cli.commands.packs

    def failing(path):
        raise error

    project("hello")
    monkeypatch.setattr(agentos.cli.commands.packs, "entries_in", failing)
    told = command("packs", "list")

    assert told.code == code
    assert words in told.err


def test_a_pack_that_exits_in_the_event_loop_is_told(command, project):
    late = "import sys\nfrom agentos import ExtensionPack\n"
    late += "def leave():\n    sys.exit(5)\n"
    project("late", files={"late.py": late + "pack = ExtensionPack('late', on_activate=leave)\n"})
    told = command("packs", "accept")

    assert told.code in (0, 1)
    assert "Traceback" not in told.err


@pytest.mark.parametrize(("number", "ended"), [(signal.SIGTERM, SystemExit), (signal.SIGINT, KeyboardInterrupt)])
def test_what_runs_is_cancelled_by_a_signal_and_may_clear_up(number, ended):
    import asyncio

    from agentos.cli.app import App

    cleared = []

    async def wait():
        try:
            os.kill(os.getpid(), number)
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            cleared.append(True)

    with pytest.raises(ended):
        App().run(wait())
    assert cleared == [True]


def test_the_command_runs_beside_a_main_thread(project):
    """Signals belong to the main thread: without it, commands run without hearing them."""
    from concurrent.futures import ThreadPoolExecutor

    from agentos.cli.main import main

    project("hello")
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(main, ["packs", "list", "--json"]).result() == 0


def test_logs_are_shown_by_v(command, project):
    talks = (
        GREET + "\ndef create_extension_pack(context):\n    context.logger.info('made \x1b[31mred')\n    return pack\n"
    )
    project("talks", files={"talks.py": talks})

    assert "made" not in command("packs", "accept").err
    told = command("packs", "accept", "-v", "-v")
    assert "made \\x1b[31mred" in told.err


# -- options that are given empty --------------------------------------------------------------------------------------


def valued_options():
    """Yield every option of every command that takes a value, with the names of its command."""

    def of(command, path):
        for one in command.params:
            if isinstance(one, click.Option) and not one.is_flag and not one.count and "--manifest" not in one.opts:
                yield [*path, f"{one.opts[0]}="]
        for name, beneath in getattr(command, "commands", {}).items():
            yield from of(beneath, [*path, name])

    whole = make_command()
    for name in COMMANDS:
        yield from of(whole.get_command(click.Context(whole), name), [name])


def test_no_option_that_takes_a_value_is_given_empty(command, folder):
    ends = {" ".join(one): command(*one) for one in valued_options()}

    assert len(ends) > 50
    assert [line for line, told in ends.items() if told.code != 2 or "Invalid value for" not in told.err] == []


@pytest.mark.parametrize("option", ["--manifest", "--principal"])
@pytest.mark.parametrize("where", [0, 2])
def test_nobody_acts_as_the_host_because_a_variable_was_empty(project, command, option, where):
    project("hello")
    arguments = ["tools", "list"]
    arguments[where:where] = [option, ""]

    assert command(*arguments).code == 2


# -- packs that end the program ----------------------------------------------------------------------------------------

WAYS = {
    "os._exit": "import os\nos._exit(0)\n",
    "posix._exit": "import posix\nposix._exit(0)\n",
    "os.execvp": "import os\nos.execvp('true', ['true'])\n",
    "KeyboardInterrupt": "raise KeyboardInterrupt\n",
    "GeneratorExit": "raise GeneratorExit\n",
    "BaseException": "raise BaseException('of days')\n",
    "a factory": "def create_extension_pack():\n    raise KeyboardInterrupt\n",
    "an async factory": "async def create_extension_pack():\n    raise GeneratorExit\n",
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("arguments", [["tools", "list"], ["tools", "call", "greet", "name=Ada"], ["packs", "accept"]])
def test_a_pack_that_would_end_the_program_is_named(project, arguments, way):
    folder = project("bad", "hello", files={"bad.py": WAYS[way]})
    told = run_piped(*arguments, cwd=folder)

    assert "bad.py was not loaded" in told.stderr
    assert "would end the whole program" in told.stderr
    assert told.stdout != ""


def test_a_hook_that_would_end_the_program_is_told(project):
    hook = "def end():\n    raise BaseException('of days')\n\n\npack = ExtensionPack("
    ends = GREET.replace("pack = ExtensionPack(", hook).replace("[greet])", "[greet], on_activate=end)")
    told = run_piped("tools", "list", cwd=project("ends", files={"ends.py": ends}))

    assert "ends.py was not loaded" in told.stderr
    assert "raised BaseException: of days" in told.stderr


def test_a_tool_that_would_end_the_program_fails(project):
    ends = GREET.replace('return f"Hello, {name}!"', "import os; os._exit(0)")
    folder = project("ends", files={"ends.py": ends})
    told = run_piped("tools", "call", "greet", "name=Ada", cwd=folder)

    assert (told.returncode, "would end the whole program" in told.stderr) == (1, True)


def test_a_process_that_a_pack_forked_may_end(project):
    forks = "import os\nif os.fork() == 0:\n    os._exit(0)\nos.wait()\n"
    folder = project("forks", files={"forks.py": forks + GREET})

    assert run_piped("tools", "call", "greet", "name=Ada", cwd=folder).stdout == "Hello, Ada!\n"


# -- the rest of the door ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", [["--json", "--version"], ["--version", "--json"]])
def test_the_version_as_json(command, arguments):
    assert command(*arguments).data == {"version": __version__}


@pytest.mark.parametrize("arguments", [["packs", "lst"], ["tools", "lst"], ["serve", "tokns"]])
def test_an_unknown_command_of_a_group_is_told_with_the_nearest(command, folder, arguments):
    told = command(*arguments)

    assert (told.code, "no command" in told.err, "did you mean" in told.err) == (2, True, True)


def test_no_summary_in_the_help_of_a_group_is_cut(command):
    groups = [name for name in COMMANDS if "COMMAND" in command(name, "--help").out.splitlines()[0]]

    assert len(groups) > 5
    assert [name for name in groups if "..." in command(name, "--help").out.partition("\n")[2]] == []


def test_all_that_the_command_names_is_in_camel_case(project, command):
    project("hello")
    told = command("tools", "list", "--json").data["tools"][0]

    assert {"displayName", "fullyQualifiedId"} <= told.keys()
    assert [key for key in told if "_" in key] == []


SLOW = """
import os, signal, sys
sys.argv = ["agentos", "tools", "list"]

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == sys.argv[-1]:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupting())
from agentos.cli.main import main
sys.argv = sys.argv[:3]
"""


@pytest.mark.parametrize(
    "module", ["click", "agentos.cli.app", "agentos.cli.commands.tools", "rich.console", "asyncio"]
)
def test_ctrl_c_while_something_is_imported_leaves_no_traceback(project, module):
    folder = project("hello")
    script = f"{SLOW.replace('sys.argv[-1]', repr(module))}\nsys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=folder, env=environment(), capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stderr.strip()) == (130, "interrupted")


@pytest.mark.parametrize(
    ("number", "end"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, SystemExit)], ids=["SIGINT", "SIGTERM"]
)
def test_a_signal_in_the_last_step_of_a_command_is_heard(number, end):
    async def finish():
        os.kill(os.getpid(), number)
        return 0

    with pytest.raises(end):
        App().run(finish())


@pytest.mark.parametrize("error", [GeneratorExit, asyncio.CancelledError])
def test_whatever_is_raised_becomes_words_and_a_code(project, command, monkeypatch, error):
    project("hello")
    monkeypatch.setattr("agentos.cli.commands.packs.entries_in", Mock(side_effect=error("why")))
    told = command("packs", "list")

    assert (told.code, f"error: {error.__name__}: why" in told.err) == (1, True)


CLOSING = {
    "closed": "import sys\nsys.stdout.close()\n",
    "detached": "import codecs, sys\nsys.stdout = codecs.getwriter('utf-8')(sys.stdout.detach())\n",
}


@pytest.mark.parametrize("how", CLOSING)
@pytest.mark.parametrize("bad", ["hello.py", "other.py"])
def test_a_pack_that_closes_stdout_takes_it_from_nobody_else(project, how, bad):
    folder = project("other", "hello", files={"other.py": GREET.replace("hello", "other").replace("greet", "wave")})
    (folder / bad).write_text(CLOSING[how] + (folder / bad).read_text())
    told = run_piped("tools", "call", "greet", "name=Ada", cwd=folder)

    assert (told.returncode, told.stdout, told.stderr) == (0, "Hello, Ada!\n", "")


def test_a_working_folder_that_is_gone_is_told(tmp_path):
    here = tmp_path / "gone"
    here.mkdir()
    done = subprocess.run(
        ["sh", "-c", 'rmdir "$0" && exec "$@"', str(here), *AGENTOS, "packs", "list"],
        cwd=here,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stderr.splitlines()[0]) == (1, "error: the working folder is not there any more")


@pytest.mark.parametrize("arguments", [["packs", "list"], ["packs", "list", "--manifest", "agentos.toml"]])
def test_a_manifest_that_cant_be_looked_for_is_no_configuration(project, arguments):
    folder = project("hello")
    folder.chmod(0o600)
    done = subprocess.run(
        [*AGENTOS, *arguments],
        cwd=folder,
        env=environment(),
        preexec_fn=powerless,
        capture_output=True,
        text=True,
        check=False,
    )
    folder.chmod(0o755)

    assert (done.returncode, f"error: {folder}/agentos.toml: Permission denied" in done.stderr) == (3, True), done


# -- one verb for one act ----------------------------------------------------------------------------------------------

VERBS = [
    *(("audit show", "audit list"), ("grants revoke", "grants remove"), ("packs info", "packs show")),
    *(("secrets set", "secrets add"), ("secrets unset", "secrets remove")),
    *(("serve tokens issue", "serve tokens add"), ("serve tokens revoke", "serve tokens remove")),
]


@pytest.mark.parametrize(("old", "new"), VERBS)
def test_an_old_name_is_the_same_command_and_nothing_tells_of_it(command, old, new):
    group, _, name = old.rpartition(" ")
    asked = command(*old.split(), "--help")

    assert (asked.code, asked.out) == (0, command(*new.split(), "--help").out)
    assert f"agentos {new}" in asked.out
    assert not re.search(rf"^  {name} ", command(*group.split(), "--help").out, re.MULTILINE)


def test_what_commands_say_names_no_old_name():
    said = "\n".join(file.read_text("utf-8") for file in Path(agentos.__file__).parent.rglob("*.py"))

    assert [old for old, _ in VERBS if f"agentos {old}" in said] == []


def test_all_groups_use_the_same_verbs():
    context = click.Context(make_command())
    groups = [make_command().get_command(context, name) for name in COMMANDS]
    verbs = {name for one in groups if isinstance(one, click.Group) for name in one.list_commands(context)}

    assert verbs & {"get", "info", "set", "unset", "revoke", "issue", "delete", "ls", "rm", "create"} == set()

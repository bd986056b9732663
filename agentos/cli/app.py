"""What every command gets, and how each ends: the App, Fail, and the group that loads commands when they are named."""

import contextlib
import os
import shlex
import signal
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator
from functools import cached_property, partial, wraps
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.shell_completion import CompletionItem

from agentos._version import __version__
from agentos.cli.command_list import COMMANDS, OLD_NAMES, OPTIONS, WIDEST, help_text, terminal_width
from agentos.cli.terminal.harmless_text import clean
from agentos.cli.terminal.output import Out, plain
from agentos.cli.terminal.signals import TERMINATED, Interruption, handled
from agentos.cli.terminal.streams import silence

if TYPE_CHECKING:
    from agentos.cli.layered_config import Config
    from agentos.host import AgentOS
    from agentos.model.principal import Principal

T = TypeVar("T")

INTERRUPTED = 130


class Fail(click.ClickException):
    """One way to end badly: a message, the way out, and for programs data that goes into `{"error": ...}`.

    Codes: 1 it failed, 2 usage, 3 the configuration can't be used, 4 refused or needs approval.
    """

    exit_code: int  # type: ignore[misc]  # each failure has its own

    def __init__(self, message: str, code: int = 1, hint: str | None = None, data: Any = None) -> None:
        super().__init__(message)
        self.exit_code = code
        self.hint = hint
        self.data = data


class App:
    """What a command works with. Everything in it is made when it is first asked for."""

    def __init__(self) -> None:
        self.given: dict[str, Any] = {}
        self._stdout = sys.stdout  # while a host runs, sys.stdout is another one

    @cached_property
    def out(self) -> Out:
        """Return what says things."""
        color = not self.given.get("no_color")
        return Out(is_json=bool(self.given.get("json")), color=color, stdout=self._stdout)

    @property
    def verbosity(self) -> int:
        """Return how often `-v` was given."""
        return int(self.given.get("verbose", 0))

    # -- configuration -------------------------------------------------------------------------------------------

    @property
    def manifest_path(self) -> Path:
        """Return the manifest's path, whatever is in it; exit 3 if there is none."""
        from agentos.cli.manifest_files import fault_of_place, unusable_in

        path = self.find_manifest()
        if path is None:
            odd = [f"{one.name} {fault_of_place(one)}" for one in unusable_in(Path.cwd())]
            raise Fail(
                "; ".join(["there is no agentos.toml, .yaml, .yml or .json here or in a folder above", *odd]),
                code=3,
                hint="make one with `agentos init`, or name one with --manifest",
            )
        return path

    def find_manifest(self) -> Path | None:
        """Return the manifest's path: given, from the environment, or found here or above; None if there is none."""
        from agentos.cli.manifest_files import fault_of_place, find_manifest

        named = self.given.get("manifest") or os.environ.get("AGENTOS_MANIFEST")
        path = Path(named).expanduser().absolute() if named else None
        try:
            if path is None:
                return find_manifest()
            is_there = path.is_file()
        except PermissionError as error:
            hint = "give this user the right to search its folder"
            raise Fail(f"{error.filename}: {error.strerror}", code=3, hint=hint) from None
        if not is_there:
            fault = fault_of_place(path)
            said = f"there is no manifest at {path}" if fault is None else f"{path} {fault}, and no manifest"
            raise Fail(said, code=3, hint="correct --manifest or AGENTOS_MANIFEST")
        return path

    @cached_property
    def config(self) -> "Config":
        """Return the configuration; exit 3 with every problem when it can't be used."""
        from agentos.cli.layered_config import ConfigError, load_config

        try:
            return load_config(self.manifest_path)
        except ConfigError as error:
            raise Fail(str(error), code=3, data={"problems": list(error.problems)}) from None

    @cached_property
    def principal(self) -> "Principal":
        """Return whom to act for: one of the manifest's principals, or the host itself."""
        from agentos.model.field_checks import did_you_mean
        from agentos.model.principal import Principal

        wanted = self.given.get("principal")
        if wanted is None:
            return Principal.system()
        known = self.config.manifest.settings.principals
        if wanted not in known:
            hint = did_you_mean(wanted, known) or f"; there are {', '.join(known) or 'none'}"
            raise Fail(f"the manifest has no principal {wanted!r}{hint}", code=2)
        return known[wanted]

    @property
    def named_principal(self) -> str | None:
        """Return the key of the principal that was named; None if none was."""
        return self.principal.key if self.given.get("principal") else None

    def same_place(self, *words: str) -> str:
        """Return a command that can be typed as it stands, for the manifest and the principal of this one."""
        given = [(f"--{name}", self.given.get(name)) for name in ("manifest", "principal")]
        return shlex.join(["agentos", *words, *(word for pair in given if pair[1] for word in map(str, pair))])

    # -- running -------------------------------------------------------------------------------------------------

    def run(self, coroutine: Coroutine[Any, Any, T], *, logs: bool = True) -> T:
        """Run *coroutine* to its end. Ctrl-C and SIGTERM cancel it, and what it holds is let go first.

        Without *logs*, warnings are not shown unless asked for: the command tells of what fails itself.
        """
        try:
            from agentos.cli.terminal.log_output import show_logs, write_line

            style = self.given.get("log_format")
            show_logs(self.verbosity if logs else self.verbosity - 1, style)
            self.out.write_log = None if style is None else write_line
            return _run_until_signal(coroutine)
        finally:
            if self.given.get("log_format") != "json":  # people are told in the usual way why it ended
                self.out.write_log = None
            coroutine.close()  # Ctrl-C may come before it begins

    @contextlib.asynccontextmanager
    async def host(self, config: "Config | None" = None, **overrides: Any) -> "AsyncIterator[AgentOS]":
        """Give a host of the configuration, initialized, and shut it down; what packs print goes to stderr.

        Which packs failed and which definitions are held back is for the command to tell: the log is silent about it.
        *overrides* are arguments of AgentOS that win over the configuration. Runs of workflows are carried only if they
        say so: a command that ends at once would cut them off.
        """
        from agentos.base.foreign import to_the_end
        from agentos.cli.layered_config import build_host
        from agentos.cli.probe.exit_guard import refuse_exit_calls, refuse_raised_exits
        from agentos.cli.terminal.log_output import hold_logs

        config = config or self.config
        with self.out.apart(), refuse_exit_calls():
            host = build_host(config, pack_guard=refuse_raised_exits, **overrides)
            try:
                with hold_logs() as told:
                    await _initialize(host, told)
                yield host
            finally:
                await to_the_end(host.shutdown())


pass_app = click.make_pass_decorator(App)


def run_async(command: Callable[..., Coroutine[Any, Any, T]]) -> Callable[..., T]:
    """Let a command be a coroutine function that takes the App first; it is run to its end."""

    @pass_app
    @wraps(command)
    def run(app: App, /, *arguments: Any, **options: Any) -> T:
        return app.run(command(app, *arguments, **options))

    return run


@contextlib.contextmanager
def foreign_code() -> Iterator[None]:
    """Let packs that are at work in the block not end the program, whatever they raise to do so."""
    from agentos.cli.probe.exit_guard import ProgramEndError, refuse_raised_exits

    try:
        with refuse_raised_exits():
            yield
    except ProgramEndError as error:
        raise Fail(
            f"a pack {error}",
            hint="`agentos doctor` says which; `agentos packs disable --in-manifest` keeps it away",
        ) from None


async def _initialize(host: "AgentOS", told: set[str]) -> None:
    try:
        with foreign_code():
            await host.initialize()
    except ExceptionGroup as group:
        told.update(str(getattr(error, "key", None)) for error in group.exceptions)
        raise Fail(group.message, code=3, hint="`agentos doctor` says more") from None
    report = host.extensions.report
    told.update(outcome.key for outcome in (() if report is None else report.failed))
    told.update(pin.tool for pin in await host.pins.pending())


def _run_until_signal(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run *coroutine* in a loop of its own. A signal in its last step counts too: there is nothing to cancel then."""
    import asyncio

    interruption = Interruption()
    try:
        return asyncio.run(_until_interrupted(coroutine, interruption))
    except asyncio.CancelledError:
        if interruption.number is None:
            raise
        raise interruption.end() from None


async def _until_interrupted(coroutine: Coroutine[Any, Any, T], interruption: Interruption) -> T:
    """Run *coroutine*, and cancel it on Ctrl-C and SIGTERM."""
    with interruption.heard():
        return await coroutine


# -- options of every command ----------------------------------------------------------------------------------------


def _keep_option(context: click.Context, parameter: click.Parameter, value: Any) -> None:
    """Keep what is said of an option, wherever it stands."""
    app = context.find_object(App)
    if app is not None and value:
        name = str(parameter.name)
        app.given[name] = app.given.get(name, 0) + value if name == "verbose" else value


def _refuse_empty(option: click.Option) -> click.Option:
    """Let an option that takes a value not be given empty: `--principal "$WHO"` must not mean somebody else."""
    kept = option.callback

    def check(context: click.Context, parameter: click.Parameter, value: Any) -> Any:
        given = value if isinstance(value, tuple | list) else [value]
        if any(isinstance(one, str) and not one.strip() for one in given) and not context.resilient_parsing:
            raise click.BadParameter("expected a value, and it is empty", context, parameter)
        return value if kept is None else kept(context, parameter, value)

    if not option.is_flag and not option.count:
        option.callback = check
    return option


def app_of(context: click.Context) -> App:
    """Return the App of a context."""
    return context.find_object(App) or App()


def completing(names: Callable[[App], Iterable[str]]) -> Callable[[click.Context, click.Parameter, str], list[str]]:
    """Return what completes one of *names*, as click asks for it; nothing where they can't be found out."""

    def complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:  # noqa: ARG001 - click passes all three
        from agentos.errors import AgentOSError

        with contextlib.suppress(click.ClickException, AgentOSError, OSError):
            return [name for name in names(app_of(context)) if name.startswith(incomplete)]
        return []

    return complete


def _print_help(context: click.Context, parameter: click.Parameter, value: bool) -> None:  # noqa: ARG001 - click's
    if value and not context.resilient_parsing:
        click.echo(context.get_help(), color=context.color)
        context.exit()


def _help_option() -> click.Option:
    """Return the option for help, which says where the options are that every command has."""
    said = "Print this. Options of every command, such as --json: see agentos --help"
    how: dict[str, Any] = {"is_flag": True, "expose_value": False, "is_eager": True, "callback": _print_help}
    return click.Option(["-h", "--help"], help=said, **how)


_OPTION_HELP = {word: said for names, said in OPTIONS.items() for word in names.replace(",", "").split()}


def _global_options() -> list[click.Option]:
    path = click.Path(dir_okay=False)
    complete_principal = completing(lambda app: app.config.manifest.settings.principals)
    return [
        _help_option(),
        click.Option(["--manifest"], type=path, metavar="PATH", **_hidden_option()),
        click.Option(["--principal"], metavar="ID", shell_complete=complete_principal, **_hidden_option()),
        click.Option(["--json"], is_flag=True, **_hidden_option()),
        click.Option(["--no-color"], is_flag=True, **_hidden_option()),
        click.Option(["-v", "--verbose"], count=True, **_hidden_option()),
    ]


def _hidden_option() -> dict[str, Any]:
    return {"expose_value": False, "is_eager": True, "hidden": True, "callback": _keep_option}


def with_globals(command: click.Command) -> click.Command:
    """Let the options of every command stand behind the name of *command* and of those beneath it, too."""
    taken = {name for parameter in command.params for name in parameter.opts}
    if "--json" in taken:  # it was here before, within this process
        return command
    command.params += [option for option in _global_options() if not taken & set(option.opts)]
    for one in command.params:
        if isinstance(one, click.Option):
            _refuse_empty(one)
    command.shell_complete = partial(_complete_options, command, command.shell_complete)  # type: ignore[method-assign]
    command.short_help = command.short_help or _first_sentence(command.help or "")
    if isinstance(command, click.Group):
        command.resolve_command = partial(_resolve_command, command)  # type: ignore[method-assign]  # click's own
        for beneath in command.commands.values():
            with_globals(beneath)
    return command


def _complete_options(
    command: click.Command,
    beneath: Callable[[click.Context, str], list[CompletionItem]],
    context: click.Context,
    incomplete: str,
) -> list[CompletionItem]:
    """Complete the options of every command, too: they are left out of each one's help, so click leaves them out."""
    found = beneath(context, incomplete)
    if incomplete.startswith("-"):
        names = [(name, one) for one in command.params if isinstance(one, click.Option) for name in one.opts]
        found += [
            CompletionItem(name, help=_OPTION_HELP.get(name))
            for name, one in names
            if one.hidden and name.startswith(incomplete)
        ]
    return found


def _first_sentence(text: str) -> str:
    """Return what a list of commands says of one, whole: click would cut it."""
    return " ".join(text.partition("\n\n")[0].split()).partition(". ")[0].removesuffix(".")


def _resolve_command(
    group: click.Group, context: click.Context, arguments: list[str]
) -> tuple[str | None, click.Command | None, list[str]]:
    """Find the command that is named within *group*, or say which was probably meant."""
    names = group.list_commands(context)
    if arguments:
        arguments = [OLD_NAMES.get(f"{group.name} {arguments[0]}", arguments[0]), *arguments[1:]]
    if arguments and arguments[0] not in names and not arguments[0].startswith("-"):
        from agentos.model.field_checks import did_you_mean

        raise click.UsageError(f"no command {arguments[0]!r}{did_you_mean(arguments[0], names)}", context)
    return click.Group.resolve_command(group, context, arguments)


def examples(*lines: str) -> str:
    """Return the end of a command's help: how it is used."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


# -- the group -------------------------------------------------------------------------------------------------------


class CommandGroup(click.Group):
    """The command as a whole. A command's module is imported when the command is named."""

    def list_commands(self, context: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the names of all commands."""
        return list(COMMANDS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        """Return a command, imported now."""
        if name not in COMMANDS:
            return None
        if name not in self.commands:
            module, _, attribute = COMMANDS[name][0].partition(":")
            self.commands[name] = with_globals(getattr(import_module(module), attribute))
        return self.commands[name]

    def resolve_command(
        self, context: click.Context, arguments: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that is named, or say which was probably meant."""
        return _resolve_command(self, context, arguments)

    def format_help(self, context: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's
        """Write the same help as the quick way does."""
        formatter.write(help_text(terminal_width()))

    def shell_complete(self, context: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete the name of a command without importing any."""
        if incomplete.startswith("-"):
            return _complete_options(self, super().shell_complete, context, incomplete)
        return [
            CompletionItem(name, help=short) for name, (_, short) in COMMANDS.items() if name.startswith(incomplete)
        ]


def _print_version(context: click.Context, parameter: click.Parameter, value: bool) -> None:  # noqa: ARG001 - click's
    if value and not context.resilient_parsing:
        out = app_of(context).out
        out.data({"version": __version__})
        out.raw(f"agentos {__version__}")
        context.exit()


def make_command() -> click.Group:
    """Return the command as a whole."""
    from agentos.cli.bash_completion import register

    register()
    version = click.Option(["--version"], is_flag=True, expose_value=False, callback=_print_version)
    width = min(terminal_width(), WIDEST)
    settings = {"help_option_names": ["-h", "--help"], "auto_envvar_prefix": None, "terminal_width": width}
    return CommandGroup("agentos", params=[*map(_refuse_empty, _global_options()), version], context_settings=settings)


# -- from the command line to an exit code -----------------------------------------------------------------------------


def run(arguments: list[str]) -> int:
    """Run the command with *arguments* and return its exit code, however it ends."""
    app = App()
    try:
        with handled(signal.SIGTERM, _end_on_sigterm):
            code = make_command().main(arguments, prog_name="agentos", obj=app, standalone_mode=False)
            sys.stdout.flush()
        return code if isinstance(code, int) and not isinstance(code, bool) else 0
    except BrokenPipeError:
        return _end_quietly()
    except (KeyboardInterrupt, click.Abort):
        app.out.note("interrupted")
        return INTERRUPTED
    except SystemExit as error:
        return error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException as error:  # noqa: BLE001 - the border to the shell: everything becomes words and a code
        if "--json" in arguments:
            app.given["json"] = True
        return _report_failure(app, error)


def _end_on_sigterm(number: int, frame: object) -> None:  # noqa: ARG001 - the signal module's signature
    """Let SIGTERM unwind what is under way, as Ctrl-C does: what is half written is cleared away."""
    raise SystemExit(TERMINATED)


def _flush_stdout() -> None:
    """Write what is left to be written; where that can't be, see that Python does not try again at exit."""
    try:
        sys.stdout.flush()
    except OSError:
        _end_quietly()


def _end_quietly() -> int:
    """End quietly when nobody reads what is written."""
    silence(1)
    return 1


def _report_failure(app: App, error: BaseException) -> int:
    """Say what went wrong, to people on stderr and to programs on stdout; return the exit code."""
    fail = _as_click_error(app, error)
    _flush_stdout()
    try:
        if _write_json_failure(app, fail):
            return fail.exit_code
    except BrokenPipeError:
        return _end_quietly()
    except OSError:
        silence(1)  # then people are told
    try:
        _write_failure(app, fail)
        sys.stderr.flush()
    except OSError:
        silence(2)  # nobody can be told
    return fail.exit_code


def _write_json_failure(app: App, fail: click.ClickException) -> bool:
    """Write a failure as JSON, if that was asked for and nothing else was written so far."""
    if not app.out.is_json or app.out.has_data:
        return False
    said = {"message": fail.format_message(), "code": fail.exit_code}
    hint = {} if getattr(fail, "hint", None) is None else {"hint": fail.hint}  # type: ignore[attr-defined]
    app.out.data({"error": {**said, **hint, **(plain(getattr(fail, "data", None)) or {})}})
    return True


def _write_failure(app: App, fail: click.ClickException) -> None:
    if isinstance(fail, click.UsageError) and fail.ctx is not None:
        if type(fail).__name__ == "NoArgsIsHelpError":
            sys.stderr.write(fail.ctx.get_help() + "\n")
            return
        app.out.fail(fail.format_message(), f"{fail.ctx.command_path} --help says how it is used")
        return
    app.out.fail(fail.format_message(), getattr(fail, "hint", None))


def _as_click_error(app: App, error: BaseException) -> click.ClickException:
    from agentos.errors import AgentOSError, ManifestError, StoreError

    if isinstance(error, click.ClickException):
        return error
    if isinstance(error, ManifestError | StoreError):
        return Fail(str(error), code=3)
    if isinstance(error, AgentOSError):
        return Fail(str(error))
    if isinstance(error, FileNotFoundError) and error.filename is None and not _has_working_folder():
        return Fail("the working folder is not there any more", hint="cd to one that is")
    if isinstance(error, OSError) and error.strerror:
        from agentos.base.full_disks import FREE_SOME, is_full, reason

        place = f"{error.filename}: " if error.filename else ""
        return Fail(f"{place}{reason(error)}", hint=FREE_SOME if is_full(error) else None)
    if app.verbosity:
        import traceback

        sys.stderr.write(clean(traceback.format_exc()))
    return Fail(f"{type(error).__name__}: {error}", hint="that is a mistake in agentos; -v shows where")


def _has_working_folder() -> bool:
    try:
        Path.cwd()
    except FileNotFoundError:
        return False
    return True

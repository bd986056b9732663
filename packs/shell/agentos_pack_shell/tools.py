"""The two tools."""

import contextlib
import shlex
from collections.abc import Mapping
from typing import Annotated, Any

import attrs
from agentos_pack_common import ProcessResult, Root, clip, decode, find_program, plain, quoted, run_process

from agentos import Schema, Tool, ToolContext, tool
from agentos_pack_shell.policy import MAX_SECONDS, Allowed, NotAllowedError, Policy
from agentos_pack_shell.programs import Program

MAX_WORDS = 200
MAX_WORD = 10_000
MAX_STDIN = 100_000
_DEFAULT_SECONDS = 30.0
_GRACE = 15.0
_SHOWN_STDIN = 500


@attrs.frozen(kw_only=True)
class CommandResult:
    """How a command ended. `exit_code` is null if a signal ended it; another than 0 is the program's own answer.

    `truncated` tells that it said more than is kept, and was ended for it; `timed_out` that it was ended for its time.
    """

    exit_code: int | None
    signal: str | None
    stdout: str
    stderr: str
    truncated: bool
    timed_out: bool
    seconds: float


@attrs.frozen(kw_only=True)
class Preview:
    """What a command would run: `program` is the file that is started, `allowed_by` the operator's rule."""

    would: str
    command: str
    program: str
    cwd: str
    stdin: str
    seconds: float
    allowed_by: str


@attrs.frozen(kw_only=True)
class Found:
    """A program: where it is, whether the operator allows it, and with which words."""

    program: str
    path: str | None
    allowed: bool
    commands: list[str]


@attrs.frozen(kw_only=True)
class Programs:
    """Programs that were asked for."""

    programs: list[Found]


@attrs.frozen
class ShellTools:
    """The tools under one policy."""

    policy: Policy

    async def run_command(
        self,
        argv: Annotated[
            list[Annotated[str, Schema(maxLength=MAX_WORD)]],
            'The program and its arguments, each a text of its own, such as ["git", "log", "-n", "5"]',
            Schema(minItems=1, maxItems=MAX_WORDS),
        ],
        cwd: Annotated[
            str, "The folder to run in, from the operator's root folder on", Schema(minLength=1, maxLength=1_000)
        ] = ".",
        stdin: Annotated[str, "Text that the program reads as its input", Schema(maxLength=MAX_STDIN)] = "",
        timeout: Annotated[  # noqa: ASYNC109 - of the process
            float | None,
            "After how many seconds the program and whatever it started is ended; 30 unless the operator allows less",
            Schema(minimum=0.1, maximum=MAX_SECONDS),
        ] = None,
    ) -> CommandResult:
        """Run a program that the operator allowed, and return its exit code and what it wrote.

        There is no shell: no pipes, redirections, variables, wildcards or `cd`; every argument reaches the program as
        it is. The program gets no terminal, and no environment but the operator's. A person is asked before it runs.
        Use `which` to see what is allowed. An exit code other than 0 is an answer, not a failure of this tool. Long
        output is cut; ask the program for less.
        """
        allowed, text, seconds = self.policy.allow(argv), stdin.encode(), self._seconds(timeout)
        with _folder(self.policy, cwd) as folder:
            done = await run_process(
                allowed.argv, cwd=folder, env=self.policy.options.env, stdin=text, limits=self.policy.limits(seconds)
            )
        return _result(done)

    async def preview(self, args: Mapping[str, Any], context: ToolContext) -> Preview:  # noqa: ARG002 - a dry run
        """Say what run_command would run; refuse what it would refuse."""
        allowed, seconds = self.policy.allow(args["argv"]), self._seconds(args["timeout"])
        with _folder(self.policy, args["cwd"]):
            return _preview(allowed, _root(self.policy).relative(args["cwd"]), args["stdin"], seconds)

    def which(
        self,
        program: Annotated[
            str | None,
            "The plain name of a program, such as git; left out, all that is allowed is listed",
            Schema(minLength=1, maxLength=255),
        ] = None,
    ) -> Programs:
        """Tell where a program is, whether run_command may run it, and with which arguments.

        Use it before run_command. In a command that is told, each word is a pattern; a `*` at its end stands for one or
        more words. Only the system's own folders are searched.
        """
        if program is not None and ("/" in program or "\0" in program):
            raise ValueError(f"program: expected a plain name such as git, got {quoted(program)}")
        listed = self.policy.programs
        names = [program] if program is not None else list(dict.fromkeys(one.name for _, one in listed))
        return Programs(programs=[self._find_program(name) for name in names])

    def _find_program(self, name: str) -> Found:
        meant = [(rule, one) for rule, one in self.policy.programs if one.is_meant_by(name)]
        path = meant[0][1].path if meant else find_program(name)
        return Found(program=name, path=path, allowed=bool(meant), commands=[str(rule) for rule, _ in meant])

    def _seconds(self, asked: float | None) -> float:
        most = self.policy.options.max_seconds
        if asked is not None and asked > most:
            raise ValueError(f"timeout: expected at most {most:g} seconds, which is the operator's limit")
        return min(_DEFAULT_SECONDS, most) if asked is None else asked


def _root(policy: Policy) -> Root:
    if policy.root is None:
        raise NotAllowedError("cwd: the operator named no folder; the option root of the pack shell says it")
    return policy.root


def _folder(policy: Policy, cwd: str) -> contextlib.AbstractContextManager[int]:
    """Open the folder to run in: what is put in its place afterwards does not count."""
    return _root(policy).open_folder(cwd)


def _result(done: ProcessResult) -> CommandResult:
    return CommandResult(
        exit_code=done.exit_code,
        signal=done.signal,
        stdout=plain(decode(done.stdout)),
        stderr=plain(decode(done.stderr)),
        truncated=done.truncated,
        timed_out=done.timed_out,
        seconds=round(done.seconds, 3),
    )


def _preview(allowed: Allowed, folder: str, stdin: str, seconds: float) -> Preview:
    program: Program = allowed.program
    words = [program.name, *allowed.argv[1:]]
    return Preview(
        would=f"run {program.name} with {len(words) - 1} arguments in {folder!r}, for at most {seconds:g} s",
        command=" ".join(shlex.quote(word) if word.isprintable() else ascii(word) for word in words),
        program=program.real or "",
        cwd=folder,
        stdin=clip(plain(stdin), _SHOWN_STDIN).text,
        seconds=seconds,
        allowed_by=str(allowed.rule),
    )


def create_tools(policy: Policy) -> tuple[Tool, ...]:
    """Return the two tools under *policy*."""
    tools = ShellTools(policy)
    runs = tool(
        effect="destructive",
        required_access="shell:run",
        timeout=policy.options.max_seconds + _GRACE,
        category="system",
        dry_run=tools.preview,
    )
    reads = tool(effect="read", required_access="shell:run", timeout=10, idempotent=True, category="system")
    return runs(tools.run_command), reads(tools.which)

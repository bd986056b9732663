"""Approval at the terminal: what exactly will run is shown, and a person says approve, edit, reject or later."""

import asyncio
import json
import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import attrs

from agentos.access.proposal_events import ProposalApplied, ProposalEdited, ProposalExpired, ProposalRejected
from agentos.access.proposals import Proposal
from agentos.calls.answers import Answer
from agentos.cli.app import App, Fail
from agentos.cli.call_arguments import read_arguments
from agentos.cli.host_session import DESTRUCTIVE, EFFECTS, REFUSED, USAGE
from agentos.cli.terminal.call_progress import ProgressLine
from agentos.cli.terminal.harmless_text import clean
from agentos.cli.terminal.line_input import can_ask, read_line
from agentos.cli.terminal.output import plain
from agentos.extensions.event import Event
from agentos.model.descriptor import Descriptor
from agentos.model.tool_call import ToolCall, ToolResult

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from agentos.host import AgentOS

_LONGEST = 4_000
"""How many characters of one argument or preview are shown; more is counted."""
NOT_KEPT = "(they held a secret and were not kept)"
INDENT = 11
_NARROWEST = 20
_DECIDED = (ProposalApplied, ProposalEdited, ProposalExpired, ProposalRejected)


class Approver:
    """Shows a host's progress for a block, and answers proposals for the person at the terminal or by typed flags.

    yes: approve what is not destructive. destructive: the fully-qualified id of the one tool whose destructive calls
    are approved as well. Without a flag that fits and without a terminal, nobody answers and the proposal waits.
    """

    def __init__(
        self, app: App, host: "AgentOS", *, yes: bool = False, destructive: str | None = None, shows_calls: bool = False
    ) -> None:
        self._out = app.out
        self._host = host
        self._by = app.principal
        self._yes = yes
        self._destructive = destructive
        self.progress = ProgressLine(app.out, calls=shows_calls)
        self._one_question = asyncio.Lock()
        self.waiting: list[Proposal] = []
        """What nobody answered."""
        self._settled: set[str] = set()
        """What somebody else decided on while a person was asked here."""

    async def __aenter__(self) -> Self:
        """Have the host ask here about every call that needs a person."""
        registry = self._host.extensions.registry("hitl-handler")
        await registry.register(Descriptor("hitl-handler", "agentos-terminal", self.on_proposal))
        self._host.extensions.on(self.progress)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._host.extensions.off(self.progress)
        self.progress.clear()

    async def on_proposal(self, proposal: Proposal) -> Answer | None:
        """Answer a proposal; None leaves it waiting."""
        if self._is_approved_by_flag(proposal):
            return Answer.approve(self._by)
        answer = None
        if can_ask(self._out):
            async with self._one_question:  # calls run side by side, and a person answers one question at a time
                self.progress.clear()
                answer = await self._ask_unless_decided(proposal)
        if answer is None and proposal.id not in self._settled:
            self.waiting.append(proposal)
        return answer

    def _is_approved_by_flag(self, proposal: Proposal) -> bool:
        if proposal.effect == DESTRUCTIVE:
            return proposal.tool == self._destructive
        return self._yes or proposal.tool == self._destructive

    async def _ask_unless_decided(self, proposal: Proposal) -> Answer | None:
        """Ask until there is an answer, or somebody else decided, in whatever process: that counts then."""
        asking = asyncio.ensure_future(self._ask(proposal))
        decided: list[Event] = []

        def hear(event: Event) -> None:
            if isinstance(event, _DECIDED) and event.proposal == proposal.id and not asking.done():
                decided.append(event)
                asking.cancel()

        self._host.extensions.on(hear)
        try:
            return await asking
        except asyncio.CancelledError:
            if not decided:
                raise
            self._out.note("\nSomebody else has decided on it.")
            self._settled.update(proposal.id for one in decided if isinstance(one, ProposalApplied | ProposalRejected))
            return None
        finally:
            self._host.extensions.off(hear)
            asking.cancel()

    async def _ask(self, proposal: Proposal) -> Answer | None:
        edited: Mapping[str, Any] | None = None
        self._out.note(self._describe_masked(proposal))
        while True:
            said = await read_line(_question(proposal), afresh=True)
            match _parse_answer(said, is_destructive=proposal.effect == DESTRUCTIVE):
                case "approve":
                    return Answer.approve(self._by) if edited is None else Answer.edit(edited, self._by)
                case "edit":
                    edited = await self._ask_for_arguments(proposal, edited) or edited
                case "reject":
                    reason = await read_line("Why? (for the record, and for whoever made the call) ")
                    return Answer.reject(reason or "no reason given", self._by)
                case "later":
                    return None
                case unclear:
                    self._out.note(unclear)

    async def _ask_for_arguments(self, proposal: Proposal, before: Mapping[str, Any] | None) -> dict[str, Any] | None:
        """Ask for other arguments, check them, and show what would run then; None if they can't be used."""
        current = dict((before if before is not None else proposal.arguments) or {})
        line = await read_line("New values (name=value ..., or a JSON object for all of them): ")
        if not line or not line.strip():
            return None
        try:
            is_whole = line.lstrip().startswith("{")
            words, text = ([], line) if is_whole else (_split_line(line), None)
            arguments = edited_arguments(self._host, attrs.evolve(proposal, arguments=current), words, text)
        except Fail as fail:
            self._out.note(fail.message)
            return None
        self._out.note(await self._describe_edited(proposal, arguments))
        return arguments

    async def _describe_edited(self, proposal: Proposal, arguments: Mapping[str, Any]) -> "Text":
        preview: Any = arguments
        tool = self._host.tools.get_tool(proposal.tool)
        if tool is not None and tool.dry_run is not None:
            shown = await self._host.tools.preview(ToolCall(proposal.tool, arguments), proposal.principal)
            preview = shown.output if shown.success else shown.content
        return self._describe_masked(attrs.evolve(proposal, arguments=arguments, preview=preview))

    def _describe_masked(self, proposal: Proposal) -> "Text":
        """Say what will run; known secrets in it are masked."""
        mask = self._host.extensions.masker.mask_data
        hidden = {"arguments": mask(proposal.arguments), "preview": mask(proposal.preview)}
        return describe(attrs.evolve(proposal, **hidden), self._out.errors)


def edited_arguments(host: "AgentOS", proposal: Proposal, words: Sequence[str], text: str | None) -> dict[str, Any]:
    """Return the arguments anew if *text* gives them as JSON, else the proposal's own with some changed by *words*.

    They are checked by the tool's schema, as `tools call` does.
    """
    ready = host.tools.catalog.find(proposal.tool)
    if ready is None:
        raise Fail(f"{proposal.tool} is not in force any more", code=REFUSED)
    given = read_arguments(ready.tool.input_schema, words, text)
    arguments = given if text is not None else {**(proposal.arguments or {}), **given}
    checked = host.tools.executor.arguments(ready, ToolCall(ready.tool.name, arguments))
    if isinstance(checked, ToolResult):
        raise Fail(checked.content, code=USAGE)
    return checked


def _split_line(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError as error:
        raise Fail(f"the line can't be read: {error}", code=2) from None


def _question(proposal: Proposal) -> str:
    if proposal.effect == DESTRUCTIVE:
        return "It may destroy something. Type approve to run it, or [e]dit, [r]eject, [l]ater: "
    return "[a]pprove, [e]dit, [r]eject or [l]ater? "


def _parse_answer(said: str | None, *, is_destructive: bool) -> str:
    """Return what an answer means: a decision, or what to say to whoever gave an unclear one."""
    word = "" if said is None else said.strip().lower()
    if word in ("", "l", "later"):
        return "later"
    if word in ("e", "edit"):
        return "edit"
    if word in ("r", "reject", "n", "no"):
        return "reject"
    if word == "approve" or (not is_destructive and word in ("a", "y", "yes")):
        return "approve"
    return "Write the whole word approve, or e, r or l." if is_destructive else "Write a, e, r or l."


# -- what exactly will run ---------------------------------------------------------------------------------------------


def describe(proposal: Proposal, console: "Console", *more: tuple[str, str]) -> "Text":
    """Say what exactly will run: which tool from where, with which arguments, for whom and why it asks; then *more*."""
    from rich.text import Text

    who = f"{proposal.tool} {proposal.version}" if proposal.version else proposal.tool
    text = Text.assemble((clean(who), "bold"), "  ", (clean(proposal.effect), EFFECTS.get(proposal.effect, "bold red")))
    for name, value in (*_facts(proposal), *more):
        text.append(f"\n  {name:<8} ", "bright_black")
        lines = Text(clean(value)).wrap(console, max(_NARROWEST, console.width - INDENT))
        text.append(f"\n{' ' * INDENT}".join(line.plain for line in lines))
    return text


def _facts(proposal: Proposal) -> list[tuple[str, str]]:
    arguments = [f"{name} = {as_json(value)}" for name, value in (proposal.arguments or {}).items()]
    if proposal.arguments is None:
        arguments = [NOT_KEPT]
    facts = [
        ("why", proposal.reason),
        ("flagged", "\n".join(proposal.flagged)),
        ("for", f"{proposal.principal.id} ({proposal.principal.kind})"),
        ("from", proposal.origin),
        ("shadows", ", ".join(proposal.shadows)),
        ("with", "\n".join(arguments) or "no arguments"),
    ]
    if proposal.preview != proposal.arguments:
        shown = proposal.preview
        facts.append(("preview", _shorten(shown) if isinstance(shown, str) else as_json(shown)))
    return [(name, value) for name, value in facts if value]


def as_json(value: Any) -> str:
    """Return a value as it is shown to people, cut where it is very long."""
    return _shorten(json.dumps(plain(value), ensure_ascii=False))


def _shorten(text: str) -> str:
    if len(text) <= _LONGEST:
        return text
    return f"{text[:_LONGEST]}… ({len(text) - _LONGEST:,} more characters)"

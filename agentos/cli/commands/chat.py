"""`agentos chat`: talk to a model that may use the tools. Whatever it calls goes the way of every call."""

import asyncio
import signal
import sys
from typing import TYPE_CHECKING, Any

import click

from agentos.cli.app import App, Fail, examples, pass_app
from agentos.cli.chat_endpoint import Endpoint, close_client, endpoint_of, endpoint_options, open_client
from agentos.cli.host_session import FAILED, UNUSABLE, USAGE, save_media_option, working_host
from agentos.cli.terminal.signals import handled

if TYPE_CHECKING:
    from agentos.cli.chat_conversation import ChatWishes, Conversation
    from agentos.cli.terminal.approval_dialog import Approver
    from agentos.host import AgentOS
    from agentos.turn.turn_outcome import Turn

_QUESTION_LIMIT = 1_000_000
_UNFINISHED = {
    "steps": "the model had not come to an end after {steps} steps; --max-steps allows more",
    "stuck": "the model made the same calls again and again, so the turn was ended",
}
_CUT = {
    "length": "the answer was cut at the model's length limit",
    "refusal": "the model, or whoever offers it, refused to answer",
}


@click.command(
    epilog=examples(
        "agentos chat --model gpt-5-mini",
        "agentos chat --model llama3.3 --base-url http://localhost:11434/v1",
        "agentos chat --api anthropic --model claude-sonnet-4-5 --persona friendly --memory",
        'agentos chat --model gpt-5-mini --once "What is 2 to the 70th?"',
        "git diff | agentos chat --model gpt-5-mini --once -",
        "agentos chat --model qwen/qwen3 --base-url https://openrouter.ai/api/v1 --key openrouter.apiKey",
    ),
)
@endpoint_options
@click.option("--once", metavar="QUESTION", help="Ask this, print the answer and end; - reads it from stdin.")
@click.option("--system", metavar="TEXT", help="What the model is told first, before the tools' own prompts.")
@click.option("--persona", metavar="ID", help="Speak and act as this persona, with the tools that it leaves.")
@click.option("--memory/--no-memory", default=None, help="Recall what fits, and remember what was said.")
@click.option("--plan/--no-plan", default=None, help="Make a plan first, show it, and bring it up to date.")
@click.option(
    "--stream/--no-stream", "streams", default=None, help="Show the answer as it comes. That is so at a terminal."
)
@save_media_option
@click.option("--max-steps", type=click.IntRange(1, 1000), default=20, show_default=True, help="Requests in one turn.")
@pass_app
def chat(app: App, /, *, once: str | None, **options: Any) -> int:
    """Talk to a model that may use the tools, for --principal.

    Tools are shown as they run, and what needs approval is asked about. A line that ends with a backslash goes on in
    the next, and so does everything between two lines of three quotes. Ctrl-C ends the answer under way and a second
    one the chat, as Ctrl-D does.
    """
    if not options["model"] and not options["persona"]:
        raise _no_model()
    question = _question(app, once)
    return app.run(_chat(app, endpoint_of(options), options, question))


def _no_model() -> Fail:
    return Fail("say which model to talk to", code=USAGE, hint="--model NAME, or AGENTOS_CHAT_MODEL")


def _question(app: App, once: str | None) -> str | None:
    """Return the one question; None to talk at the terminal. What is piped in is one, too."""
    if once is None and app.out.can_ask:
        return None
    if once is None or once == "-":
        once = _read_stdin()
    if not once.strip():
        raise Fail("there is nothing to ask", code=USAGE, hint='say --once "QUESTION", or talk at a terminal')
    return once


def _read_stdin() -> str:
    """Return what is on stdin; signs that are no UTF-8, as in many a diff, do not keep the rest from being asked."""
    text = sys.stdin.buffer.read(4 * _QUESTION_LIMIT + 1).decode("utf-8", "replace")
    if len(text) > _QUESTION_LIMIT:
        raise Fail(f"a question has at most {_QUESTION_LIMIT:,} characters", code=USAGE)
    return text


async def _chat(app: App, endpoint: Endpoint, options: dict[str, Any], question: str | None) -> int:
    from agentos.cli.chat_conversation import ChatWishes, Conversation
    from agentos.cli.terminal.approval_dialog import Approver

    streams = options["streams"]
    wishes = ChatWishes(
        **{name: options[name] for name in ("max_steps", "persona", "memory", "plan", "media_folder")},
        streams=not app.out.is_json and (app.out.console.is_terminal if streams is None else streams),
        waits=question is None,
    )
    async with working_host(app) as host, Approver(app, host, shows_calls=True) as approver:
        greeting = _check_wishes(host, endpoint, wishes)
        client = open_client(app, host, endpoint)
        conversation = Conversation(app, host, client, endpoint, wishes, approver.progress)
        try:
            if question is None:
                return await _converse(app, conversation, greeting)
            return await _ask_once(app, conversation, question, approver)
        finally:
            await close_client(client)


def _check_wishes(host: "AgentOS", endpoint: Endpoint, wishes: "ChatWishes") -> str:
    """Refuse what nobody in force can do; return the persona's greeting."""
    from agentos.errors import PersonaError

    if wishes.memory and not host.memory.providers:
        raise Fail("--memory: no memory-provider is in force", code=UNUSABLE, hint="`agentos packs add sqlite-memory`")
    if wishes.plan and not host.planning.strategies:
        raise Fail("--plan: no planning-strategy is in force", code=UNUSABLE, hint="`agentos packs add planning`")
    if wishes.persona is None:
        return ""
    try:
        persona = host.personas.get(wishes.persona)
    except PersonaError as error:
        raise Fail(f"--persona: {error}", code=UNUSABLE) from None
    if endpoint.model is None and not persona.model.get("model"):
        raise _no_model()
    return persona.greeting or ""


# -- one question ------------------------------------------------------------------------------------------------------


async def _ask_once(app: App, conversation: "Conversation", question: str, approver: "Approver") -> int:
    try:
        turn = await conversation.turn(question)
    except Exception as error:  # noqa: BLE001 - an endpoint and its SDK are foreign: whatever they raise is told
        raise conversation.fault(error) from None
    app.out.data(_data(conversation, turn, [proposal.id for proposal in approver.waiting]))
    _print_end(app, turn)
    for proposal in approver.waiting:
        app.out.warn(f"{proposal.tool} waits for approval: `{app.same_place('approvals', 'show', proposal.id)}`")
    return FAILED if turn.stopped_by in _UNFINISHED else 0


def _data(conversation: "Conversation", turn: "Turn", waiting: list[str]) -> dict[str, Any]:
    """Return a turn as JSON shows it, with its plan and where media are if that was asked for."""
    calls: list[dict[str, Any]] = [
        {"tool": one.meta.get("tool"), "success": one.success, "content": one.content} for one in turn.results
    ]
    for call, saved in zip(calls, conversation.saved, strict=False):
        if saved:
            call["saved"] = [None if file is None else str(file) for file in saved]
    told = {"content": turn.content, "stoppedBy": turn.stopped_by, "steps": turn.steps, "calls": calls}
    plan = {} if turn.plan is None else {"plan": [{"text": one.text, "status": one.status} for one in turn.plan.steps]}
    return {**told, "waiting": waiting, **plan}


def _print_end(app: App, turn: "Turn") -> None:
    """Say what ended a turn, if it was not an answer."""
    words = {**_UNFINISHED, **_CUT}.get(turn.stopped_by)
    if words is not None:
        app.out.warn(words.format(steps=turn.steps))


# -- at the terminal ---------------------------------------------------------------------------------------------------


async def _converse(app: App, conversation: "Conversation", greeting: str) -> int:
    """Read, ask, tell, until the person ends it."""
    from agentos.cli.terminal.message_input import MessageHistory, read_message
    from agentos.store.locations import data_folder

    app.out.note("Ctrl-C ends an answer, Ctrl-D ends.")
    if greeting:
        app.out.say(greeting)
    interrupts, history = Interrupts(), MessageHistory(data_folder() / "chat-history.jsonl")
    with handled(signal.SIGINT, interrupts.take):
        while True:
            before = interrupts.count
            question = await interrupts.guard(read_message(history.path))
            if question is None and (before or interrupts.count == before):
                return 0
            if question is None:
                app.out.note("\nCtrl-C again or Ctrl-D ends.")
                continue
            interrupts.forget()
            if question.strip():
                history.add(conversation.masked(question))
            await _one_message(app, conversation, question, interrupts)
            if interrupts.count > 1:
                return 0


async def _one_message(app: App, conversation: "Conversation", question: str, interrupts: "Interrupts") -> None:
    """Go on with what waited, if somebody decided on it, and then ask."""
    if conversation.waiting is not None:
        if await conversation.is_decided():
            await _one_turn(app, conversation, conversation.go_on(), interrupts)
        elif not question.strip():
            _print_waiting(app, conversation.waiting)
    if question.strip() and not interrupts.count:
        await _one_turn(app, conversation, conversation.turn(question), interrupts)


async def _one_turn(app: App, conversation: "Conversation", work: Any, interrupts: "Interrupts") -> None:
    try:
        turn = await interrupts.guard(work)
    except Exception as error:  # noqa: BLE001 - as above; the conversation goes on
        fail = conversation.fault(error)
        app.out.fail(fail.message, fail.hint)
        return
    if turn is None:
        app.out.note("\nThe turn was cancelled; a tool that ran may have taken effect or not.")
    elif turn.stopped_by == "approval":
        _print_waiting(app, turn)
    else:
        _print_end(app, turn)


def _print_waiting(app: App, turn: "Turn") -> None:
    for id in turn.pending:
        app.out.note(f"A call waits for approval: `{app.same_place('approvals', 'show', id)}`")
    app.out.note("When that is decided on, Enter lets the answer go on; another message goes on without it.")


class Interrupts:
    """Lets Ctrl-C cancel what is under way instead of the whole command."""

    def __init__(self) -> None:
        self.count = 0
        """How often it was pressed since a person last said something."""
        self._task: asyncio.Task[Any] | None = None

    def forget(self) -> None:
        """Count from the beginning."""
        self.count = 0

    async def guard(self, work: Any) -> Any:
        """Return what *work* comes to; None if Ctrl-C cancelled it."""
        before = self.count
        task = self._task = asyncio.ensure_future(work)
        try:
            return await task
        except asyncio.CancelledError:
            if self.count == before:
                task.cancel()
                raise
            return None
        finally:
            self._task = None

    def take(self, number: int, frame: object) -> None:  # noqa: ARG002 - the signal module's signature
        """Take a Ctrl-C."""
        self.count += 1
        if self._task is not None:
            self._task.cancel()

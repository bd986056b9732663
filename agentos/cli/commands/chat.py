"""`agentos chat`: talk to a model that may use the tools. Whatever it calls goes the way of every call."""

import asyncio
import signal
import sys
import uuid
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import attrs
import click

from agentos.cli.app import App, Fail, examples, pass_app
from agentos.cli.host_session import FAILED, UNUSABLE, USAGE, working_host
from agentos.cli.terminal.signals import handled

if TYPE_CHECKING:
    from agentos.cli.terminal.approval_dialog import Approver
    from agentos.cli.terminal.call_progress import ProgressLine
    from agentos.host import AgentOS
    from agentos.turn.chat import Turn

_QUESTION_LIMIT = 1_000_000
_BLOCK = '"""'
_UNFINISHED = {
    "steps": "the model had not come to an end after {steps} steps; --max-steps allows more",
    "stuck": "the model made the same calls again and again, so the turn was ended",
}


@attrs.frozen(kw_only=True)
class Endpoint:
    """Which model to talk to, and where."""

    model: str
    base_url: str | None
    key: str
    system: str | None
    max_steps: int


@click.command(
    epilog=examples(
        "agentos chat --model gpt-5-mini",
        "agentos chat --model llama3.3 --base-url http://localhost:11434/v1",
        'agentos chat --model gpt-5-mini --once "What is 2 to the 70th?"',
        "git diff | agentos chat --model gpt-5-mini --once -",
        "agentos chat --model qwen/qwen3 --base-url https://openrouter.ai/api/v1 --key openrouter.apiKey",
    ),
)
@click.option("--model", envvar="AGENTOS_CHAT_MODEL", show_envvar=True, metavar="NAME", help="The model's name there.")
@click.option(
    "--base-url", envvar="OPENAI_BASE_URL", show_envvar=True, metavar="URL", help="Any OpenAI-compatible endpoint."
)
@click.option(
    "--key", default="openai.apiKey", show_default=True, metavar="ID", help="The secret that is the endpoint's API key."
)
@click.option("--once", metavar="QUESTION", help="Ask this, print the answer and end; - reads it from stdin.")
@click.option("--system", metavar="TEXT", help="What the model is told first, before the tools' own prompts.")
@click.option("--max-steps", type=click.IntRange(1, 1000), default=20, show_default=True, help="Requests in one turn.")
@pass_app
def chat(
    app: App,
    model: str | None,
    base_url: str | None,
    key: str,
    once: str | None,
    system: str | None,
    max_steps: int,
) -> int:
    """Talk to a model that may use the tools, for --principal.

    Tools are shown as they run, and what needs approval is asked about. A line that ends with a backslash goes on in
    the next, and so does everything between two lines of three quotes. Ctrl-C cancels the turn, Ctrl-D ends.
    """
    if not model:
        raise Fail("say which model to talk to", code=USAGE, hint="--model NAME, or AGENTOS_CHAT_MODEL")
    endpoint = Endpoint(model=model, base_url=base_url or None, key=key, system=system, max_steps=max_steps)
    question = _question(app, once)
    return app.run(_chat(app, endpoint, question))


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


async def _chat(app: App, endpoint: Endpoint, question: str | None) -> int:
    from agentos.cli.terminal.approval_dialog import Approver

    async with working_host(app) as host, Approver(app, host, shows_calls=True) as approver:
        client = _client(app, host, endpoint)
        thinking = _ThinkingClient(client, approver.progress, endpoint.model)
        conversation = Conversation(app, host, thinking, endpoint)
        try:
            return await (
                _converse(app, conversation) if question is None else _ask_once(app, conversation, question, approver)
            )
        finally:
            await client.close()


# -- the endpoint ------------------------------------------------------------------------------------------------------


def _client(app: App, host: "AgentOS", endpoint: Endpoint) -> Any:
    from agentos.base.extras import import_extra

    try:
        openai = import_extra("openai", "openai")
    except ImportError as error:
        raise Fail(str(error), code=UNUSABLE) from None
    _check_address(endpoint.base_url)
    key = _key(host, endpoint.key)
    if key is None and endpoint.base_url is None:
        raise Fail(
            f"there is no API key: the secret {endpoint.key!r} has no value",
            code=UNUSABLE,
            hint=f"`agentos secrets set {endpoint.key}`; or name another endpoint with --base-url",
        )
    if key is not None and _is_unencrypted(endpoint.base_url):
        app.out.warn(f"the API key and all that is said travel in the clear to {endpoint.base_url}; use https")
    return openai.AsyncOpenAI(api_key=key or "none", base_url=endpoint.base_url)


def _check_address(url: str | None) -> None:
    """Refuse what is no address of an endpoint."""
    try:
        parts = urlsplit(url or "https://")
        is_one = url is None or (parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0)
    except ValueError:
        is_one = False
    if not is_one or not (url or "").isprintable():
        raise Fail(f"--base-url: expected an address such as http://localhost:11434/v1, got {url!r}", code=USAGE)


def _key(host: "AgentOS", id: str) -> str | None:
    """Return the API key, from wherever secrets come; from now on it is masked in all that is said."""
    found = host.extensions.secret_sources.find(id, {})
    return None if found is None else found[0]


def _is_unencrypted(url: str | None) -> bool:
    from agentos.mcp.auth import is_loopback

    parts = urlsplit(url or "https:")
    return parts.scheme == "http" and not is_loopback(parts.hostname or "")


class _ThinkingClient:
    """A client that says whom everybody waits for."""

    def __init__(self, client: Any, progress: "ProgressLine", model: str) -> None:
        self._client = client
        self._progress = progress
        self._model = model
        self.chat = self.completions = self

    async def create(self, **request: Any) -> Any:
        """Make one request."""
        self._progress.status(f"{self._model} is thinking ...")
        try:
            return await self._client.chat.completions.create(**request)
        finally:
            self._progress.clear()


# -- turns -------------------------------------------------------------------------------------------------------------


class Conversation:
    """A conversation: every message so far, each call in it answered."""

    def __init__(self, app: App, host: "AgentOS", client: Any, endpoint: Endpoint) -> None:
        self._app = app
        self._host = host
        self._client = client
        self._endpoint = endpoint
        self._session = {"id": uuid.uuid4().hex}
        prompts = (endpoint.system, host.tools.system_prompt(app.principal))
        said = "\n\n".join(text for text in prompts if text)
        self.messages: list[Any] = [{"role": "system", "content": said}] if said else []

    async def turn(self, question: str) -> "Turn":
        """Ask, let the model call tools, and return its answer. What was said until an error or a cancel is kept."""
        from agentos.turn.chat import run_turn

        asked = [*self.messages, {"role": "user", "content": question}]
        added: list[Any] = []
        try:
            turn = await run_turn(
                self._host,
                self._client,
                asked,
                model=self._endpoint.model,
                principal=self._app.principal,
                session=self._session,
                max_steps=self._endpoint.max_steps,
                transcript=added,
            )
        except BaseException:
            if added:
                self.messages = [*asked, *added]
            raise
        self.messages = turn.messages
        return turn

    def fault(self, error: Exception) -> Fail:
        """Return what to say of an endpoint that did not answer as it should; no key is in it."""
        words = self._host.extensions.masker.describe(error)
        hint = None
        if getattr(error, "status_code", None) in (401, 403):
            hint = f"`agentos secrets set {self._endpoint.key}` gives it another key"
        elif type(error).__name__ == "APIConnectionError":
            hint = f"is {self._endpoint.base_url or 'the endpoint'} there? --base-url names another"
        return Fail(f"the model did not answer: {words}", hint=hint)


async def _ask_once(app: App, conversation: Conversation, question: str, approver: "Approver") -> int:
    try:
        turn = await conversation.turn(question)
    except Exception as error:  # noqa: BLE001 - an endpoint and its SDK are foreign: whatever they raise is told
        raise conversation.fault(error) from None
    app.out.data(
        {
            "content": turn.content,
            "stoppedBy": turn.stopped_by,
            "steps": turn.steps,
            "calls": [
                {"tool": one.meta.get("tool"), "success": one.success, "content": one.content} for one in turn.results
            ],
            "waiting": [proposal.id for proposal in approver.waiting],
        }
    )
    _print_turn(app, turn)
    for proposal in approver.waiting:
        app.out.warn(f"{proposal.tool} waits for approval: `agentos approvals show {proposal.id}`")
    return FAILED if turn.stopped_by in _UNFINISHED else 0


def _print_turn(app: App, turn: "Turn") -> None:
    if turn.content:
        app.out.say(turn.content)
    if turn.stopped_by in _UNFINISHED:
        app.out.warn(_UNFINISHED[turn.stopped_by].format(steps=turn.steps))


async def _converse(app: App, conversation: Conversation) -> int:
    """Read, ask, tell, until the person ends it."""
    app.out.note("Ctrl-C cancels a turn, Ctrl-D ends.")
    interrupts = Interrupts()
    with handled(signal.SIGINT, interrupts.take):
        while True:
            question = await interrupts.guard(_read_message())
            if question is None:
                if interrupts.happened:
                    app.out.note("\nCtrl-D ends.")
                    continue
                return 0
            if question.strip():
                await _one_turn(app, conversation, question, interrupts)


async def _one_turn(app: App, conversation: Conversation, question: str, interrupts: "Interrupts") -> None:
    try:
        turn = await interrupts.guard(conversation.turn(question))
    except Exception as error:  # noqa: BLE001 - as above; the conversation goes on
        fail = conversation.fault(error)
        app.out.fail(fail.message, fail.hint)
        return
    if turn is None:
        app.out.note("\nThe turn was cancelled; a tool that ran may have taken effect or not.")
    else:
        _print_turn(app, turn)


async def _read_message() -> str | None:
    """Read a message of one or more lines; None at the end. What is pasted at once is one message."""
    from agentos.cli.terminal.line_input import more_is_there, read_line

    lines: list[str] = []
    while True:
        line = await read_line("you> " if not lines else "...> ")
        if line is None:
            return "\n".join(lines) if lines else None
        is_block = bool(lines) and lines[0].strip() == _BLOCK
        if line.strip() == _BLOCK and is_block:
            return "\n".join(lines[1:])
        goes_on = line.endswith("\\") and not is_block
        lines.append(line[:-1] if goes_on else line)
        if not (goes_on or is_block or line.strip() == _BLOCK or more_is_there()):
            return "\n".join(lines)


class Interrupts:
    """Lets Ctrl-C cancel what is under way instead of the whole command."""

    def __init__(self) -> None:
        self.happened = False
        self._task: asyncio.Task[Any] | None = None

    async def guard(self, work: Any) -> Any:
        """Return what *work* comes to; None if Ctrl-C cancelled it."""
        self.happened = False
        task = self._task = asyncio.ensure_future(work)
        try:
            return await task
        except asyncio.CancelledError:
            if not self.happened:
                task.cancel()
                raise
            return None
        finally:
            self._task = None

    def take(self, number: int, frame: object) -> None:  # noqa: ARG002 - the signal module's signature
        """Take a Ctrl-C."""
        self.happened = True
        if self._task is not None:
            self._task.cancel()

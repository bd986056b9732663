"""A chat loop for any OpenAI-compatible client: ask the model, run its calls, answer, until it is done."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agentos.model.principal import Principal
from agentos.turn.turn_outcome import Turn, TurnOptions

if TYPE_CHECKING:
    from agentos.interop._provider_calls import ToolHost

__all__ = ["Turn", "run_turn"]


async def run_turn(
    host: "ToolHost",
    client: Any,
    messages: Sequence[Any],
    *,
    model: str | None = None,
    principal: Principal | None = None,
    session: Mapping[str, Any] | None = None,
    max_steps: int = 20,
    strict: bool = False,
    transcript: list[Any] | None = None,
    respond: bool = False,
    media: bool = True,
    **request: Any,
) -> Turn:
    """Ask *client*'s *model*, run the calls it makes for *principal*, and go on until it answers.

    Without a *principal*, calls are made for the host itself and a warning is logged: `Principal.system()` says so.
    *client* has `chat.completions.create`, sync or async, such as `AsyncOpenAI`; *request* goes to it as it is. A
    client that knows its model needs no *model*.
    *messages* is not changed. What is added goes to *transcript* too, as it happens: it is valid whenever you look,
    also after an error of the client or a cancellation.
    What the user says goes through the host's guardrails before the model has it, and what the model says before it is
    shown or kept. With *respond* the answer goes through the response processors as well: see `AgentOS.respond`.
    Images, sound and PDF files of results are shown to the model, unless *media* is False: for one that reads text
    alone, whose endpoint would refuse the request.
    This is the plain case of `AgentOS.turn`: it puts no prompts of tools into the request, and tells the model of a
    call that waits for a person that it waits, instead of waiting itself.
    """
    from agentos.turn.adapters.model_adapter import checked
    from agentos.turn.adapters.openai_chat import OpenAIChat
    from agentos.turn.turn_run import TurnRun

    options = TurnOptions(
        model=model,
        strict=strict,
        respond=respond,
        media=media,
        wait=False,
        is_plain=True,
        max_steps=max_steps,
        more=checked(request),
    )
    if request.get("stream"):
        raise ValueError("stream: this reads whole responses; `AgentOS.turn` streams, and so do the host's events")
    run = TurnRun(
        *(host, client, OpenAIChat(), options),
        principal=principal,
        session=session,
        messages=messages,
        transcript=transcript,
    )
    return await run.run()

"""What a server asks of us while a call of its tool is under way: a form for a person, our model, our folders.

A form is passed on to the client that made the call, if the operator lets the server ask. The rest is refused.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mcp.client.context import ClientRequestContext
from mcp_types import INVALID_REQUEST, ElicitRequestFormParams, ElicitRequestParams, ElicitResult, ErrorData

from agentos.mcp.client.server_spec import ServerSpec
from agentos.mcp.client.server_text import ServerText
from agentos.mcp.questions import Ask, asking

REFUSALS = {
    "Sampling not supported": "the host does not lend its model to servers (sampling)",
    "List roots not supported": "the host tells servers of no folders (roots); give them to the server as arguments",
    "Elicitation not supported": "the server may not ask people (elicitation); its `elicitation = true` would let it",
}
"""What the SDK says of requests that a client does not take, and why that is so here."""
_MESSAGE = 4_000


class ServerQuestions:
    """Passes a server's questions on to whoever called its tool."""

    def __init__(self, server: ServerSpec, text: ServerText) -> None:
        self._server = server
        self._text = text
        self._callers: list[Ask | None] = []

    @contextmanager
    def of_call(self) -> Iterator[None]:
        """Say that a call is under way, whose caller may be asked."""
        caller = asking.get()
        self._callers.append(caller)
        try:
            yield
        finally:
            self._callers.remove(caller)

    async def elicit(self, context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult | ErrorData:  # noqa: ARG002 - a callback
        """Put a form of the server before the person whose call it is for; an error says why that is not done."""
        if not isinstance(params, ElicitRequestFormParams):
            return _refused("only forms are passed on, no addresses")
        callers = [asking.get()] if asking.get() is not None else list(self._callers)
        if len(callers) > 1:
            return _refused("several calls are under way, and nobody knows which of them this is about")
        ask = callers[0] if callers else None
        if ask is None:
            return _refused("nobody can be asked: the call comes from no client that can put a form before a person")
        message = f"The MCP server {self._server.name!r} asks: {self._text.cut(params.message, _MESSAGE)}"
        answer = await ask(params.model_copy(update={"message": message}))
        return answer or _refused("the client could not be asked")


def _refused(reason: str) -> ErrorData:
    return ErrorData(code=INVALID_REQUEST, message=f"Refused: {reason}")


def refusal_in(message: Any) -> str | None:
    """Return why a request of a server was refused, if *message* is how the SDK says that it was."""
    return REFUSALS.get(message) if isinstance(message, str) else None

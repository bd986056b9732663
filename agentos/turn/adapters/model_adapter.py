"""What a turn needs of a provider: how to ask, how to read what came back, and how to answer its calls."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Protocol

import attrs

from agentos.errors import AgentOSError
from agentos.interop._provider_calls import Message, ModelCall, Reply, ToolHost, ToolList, first_field
from agentos.model.principal import Principal
from agentos.model.tool_call import ToolResult

Api = Literal["chat", "responses", "anthropic", "gemini"]
EndedBy = Literal["answer", "length", "refusal", "pause"]


class CutStreamError(AgentOSError, ConnectionError):
    """A model's response ended before it was whole."""

    def __init__(self) -> None:
        super().__init__("the model's response was cut off before its end; ask again")


class ModelFailedError(AgentOSError):
    """A provider answered that the model failed."""


@attrs.frozen(kw_only=True)
class ModelRequest:
    """What is asked of a model. `system` is added to whatever the caller says there."""

    model: str | None
    messages: Sequence[Any]
    tools: ToolList
    system: str
    more: Mapping[str, Any]
    is_first: bool
    """It is the first of a turn: a choice that forces a call holds for it alone, or no answer comes."""
    streams: bool
    counts: bool
    """The provider is asked how many tokens were used, where it does not say so by itself."""


@attrs.frozen
class Ending:
    """How a response ended, and how many tokens it took with its request, if the provider says."""

    by: EndedBy
    tokens: int | None


class Assembler(Protocol):
    """Puts the parts of a streamed response together."""

    def add(self, chunk: Any) -> str:
        """Take a part in; return the text in it."""
        ...

    def response(self) -> Any:
        """Return the response as if it had come at once; raise CutStreamError if its end is missing."""
        ...


class ModelAdapter(Protocol):
    """One provider's way to say things."""

    api: Api

    def tools(self, host: ToolHost, principal: Principal | None, *, strict: bool) -> ToolList:
        """Return what a principal is offered."""
        ...

    def method(self, client: Any, *, streams: bool) -> Callable[..., Any]:
        """Return what of *client* is called with a request."""
        ...

    def request(self, asked: ModelRequest) -> dict[str, Any]:
        """Return the keywords of a request."""
        ...

    def assembler(self) -> Assembler:
        """Return what puts a streamed response together."""
        ...

    def read(self, response: Any) -> Reply:
        """Read what a model said."""
        ...

    def ending(self, response: Any) -> Ending:
        """Say how a response ended."""
        ...

    def text(self, reply: Reply) -> str:
        """Return the words in what a model said."""
        ...

    def with_text(self, reply: Reply, text: str) -> Reply:
        """Return what a model said with other words; its calls stay."""
        ...

    def said(self, text: str, *, by_user: bool = False) -> Message:
        """Return a message with that text, of the model or of its user."""
        ...

    def answers(self, calls: Sequence[ModelCall], results: Sequence[ToolResult], *, media: bool) -> list[Message]:
        """Return what answers every call, at its id, in the order of the calls; with *media*, what results show."""
        ...


def checked(more: Mapping[str, Any]) -> dict[str, Any]:
    """Return what goes into a request beside what a turn puts there itself."""
    if "tools" in more:
        raise ValueError("tools: a turn offers what the principal may call; register a tool with the host instead")
    return dict(more)


def joined(*texts: str | None) -> str:
    """Return texts as paragraphs."""
    return "\n\n".join(text for text in texts if text)


def word(value: Any, *names: str) -> str:
    """Return a field that is a word or an enumeration's value; empty if it is not there."""
    found = first_field(value, *names)
    return "" if found is None else str(getattr(found, "value", found))


def count(value: Any, *names: str) -> int | None:
    """Return the sum of those fields that are numbers; None if there are none."""
    found = [one for one in (first_field(value, name) for name in names) if isinstance(one, int)]
    return sum(found) if found else None

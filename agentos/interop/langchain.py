"""LangChain: what is offered, as tools of langchain-core."""

from contextvars import ContextVar
from functools import cache, partial
from typing import Any

from agentos.base.extras import import_extra
from agentos.interop._provider_calls import ToolHost, described_tools, named_principal
from agentos.interop._provider_media import IMAGES, Part, Show, encoded, nothing_shown, shown_result
from agentos.model.media import Media
from agentos.model.principal import Principal
from agentos.model.tool_call import ToolCall, ToolResult

_call_id: ContextVar[str | None] = ContextVar("agentos_langchain_call_id", default=None)


def as_langchain_tools(host: ToolHost, principal: Principal | None = None, *, media: bool = False) -> list[Any]:
    """Return what *principal* is offered now, as LangChain tools for `bind_tools`, agents and graphs.

    They are async: `ainvoke` calls through the host. The content is text, of a failure too; called with a LangChain
    tool call, the message's artifact is the ToolResult. With *media*, the content of a result with images is a text
    block and image blocks: for providers that take images in tool messages, since LangChain moves them nowhere else.
    Needs the extra `langchain`.
    """
    kind, who = _tool_class(), named_principal(host, principal)
    return [
        kind(
            name=item["name"],
            description=item["description"],
            args_schema=item["input_schema"],
            metadata={"tool": info.fully_qualified_id, "effect": info.effect},
            call=partial(_call, host, who, info.name),
            show=_image if media else nothing_shown,
        )
        for info, item in zip(host.tools.listed(who), described_tools(host, who), strict=True)
    ]


async def _call(host: ToolHost, principal: Principal, name: str, arguments: dict[str, Any]) -> ToolResult:
    return await host.tools.process_tool_call(ToolCall(name, arguments, _call_id.get()), principal, rejoin=True)


def _image(media: Media) -> Part | None:
    is_shown = media.data is not None and media.type in IMAGES
    return {"type": "image", "base64": encoded(media), "mime_type": media.type} if is_shown else None


def _content(result: ToolResult, show: Show) -> str | list[Part]:
    shown = shown_result(result, show)
    return [{"type": "text", "text": shown.text}, *shown.parts] if shown.parts else shown.text


@cache
def _tool_class() -> Any:
    """Return the class of the tools, made when it is first needed: langchain-core takes a while to import."""
    tools = import_extra("langchain_core.tools", "langchain")

    class HostTool(tools.BaseTool):  # type: ignore[misc, name-defined]  # known at run time
        """A tool of a host. Its parameters are whatever its schema says, so LangChain takes no name of theirs."""

        response_format: str = "content_and_artifact"
        call: Any
        show: Any

        async def arun(self, tool_input: Any, *args: Any, tool_call_id: str | None = None, **kwargs: Any) -> Any:
            """Run the tool, and remember what LangChain calls the call."""
            token = _call_id.set(tool_call_id)
            try:
                return await super().arun(tool_input, *args, tool_call_id=tool_call_id, **kwargs)
            finally:
                _call_id.reset(token)

        async def _arun(self, /, **arguments: Any) -> tuple[str | list[Part], ToolResult]:
            result: ToolResult = await self.call(arguments)
            return _content(result, self.show), result

        def _run(self, /, **_: Any) -> Any:
            raise NotImplementedError(f"{self.name} runs on the host's event loop; use `await tool.ainvoke(...)`")

    return HostTool

"""pydantic-ai: what is offered, as a toolset that follows every change."""

from functools import cache
from typing import Any

from agentos.base.extras import import_extra
from agentos.interop._provider_calls import (
    PENDING,
    ToolHost,
    active_tools,
    answer_text,
    described_tools,
    named_principal,
    names_of_list,
)
from agentos.interop._provider_media import IMAGES, nothing_shown, shown_result
from agentos.model.media import Media
from agentos.model.principal import Principal
from agentos.model.tool_call import ToolCall
from agentos.tools.listing import ToolInfo
from agentos.tools.tool import Tool


def as_toolset(
    host: ToolHost,
    principal: Principal | None = None,
    *,
    id: str | None = "agentos",
    max_retries: int | None = None,
    media: bool = True,
) -> Any:
    """Return what *principal* is offered as a toolset: `Agent(model, toolsets=[as_toolset(host)])`.

    It lists anew for every step, so a change shows in the next one. Arguments that do not fit ask the model to try
    again, up to *max_retries* (the agent's own number, if None); every other end of a call is text that the model
    reads. Images of results are handed on beside it, which pydantic-ai puts where each provider takes them; all other
    media, and images too if *media* is False, are named in the text. Needs the extra `pydantic-ai`.
    """
    return _toolset_class()(host, named_principal(host, principal), id, max_retries, media)


@cache
def _toolset_class() -> Any:
    """Return the class of the toolset, made when it is first needed: pydantic-ai takes a while to import."""
    ai = import_extra("pydantic_ai", "pydantic-ai")
    toolsets = import_extra("pydantic_ai.toolsets", "pydantic-ai")
    tools = import_extra("pydantic_ai.tools", "pydantic-ai")
    core = import_extra("pydantic_core", "pydantic-ai")
    anything = core.SchemaValidator(core.core_schema.dict_schema())  # the host validates, and says more

    class HostToolset(toolsets.AbstractToolset):  # type: ignore[misc, name-defined]  # known at run time
        """The tools of a host, for one principal."""

        def __init__(
            self, host: ToolHost, principal: Principal, id: str | None, max_retries: int | None, media: bool
        ) -> None:
            self._host = host
            self._principal = principal
            self._id = id
            self._max_retries = max_retries
            self._show = _image if media else nothing_shown

        @property
        def id(self) -> str | None:
            return self._id

        async def get_instructions(self, ctx: Any) -> str | None:  # noqa: ARG002 - the library's signature
            return self._host.tools.system_prompt(self._principal) or None

        async def get_tools(self, ctx: Any) -> dict[str, Any]:
            infos = self._host.tools.listed(self._principal)
            known = active_tools(self._host)
            retries = ctx.max_retries if self._max_retries is None else self._max_retries
            return {
                item["name"]: toolsets.ToolsetTool(
                    toolset=self,
                    tool_def=_definition(info, item, known.get(info.name)),
                    max_retries=retries,
                    args_validator=anything,
                )
                for info, item in zip(infos, described_tools(self._host, self._principal), strict=True)
            }

        async def call_tool(self, name: str, tool_args: dict[str, Any], ctx: Any, tool: Any) -> Any:  # noqa: ARG002
            known = names_of_list(self._host, None, self._principal).names
            call = ToolCall(known.decode(name), tool_args, ctx.tool_call_id)
            result = await self._host.tools.process_tool_call(call, self._principal, rejoin=True)
            if result.error is not None and result.error.type == "InvalidArguments":
                raise ai.ModelRetry(result.content)
            if result.pending is not None:
                return ai.ToolReturn(answer_text(result), metadata={PENDING: dict(result.pending)})
            shown = shown_result(result, self._show)
            return [shown.text, *shown.parts] if shown.parts else shown.text

    def _image(media: Media) -> Any:
        is_shown = media.data is not None and media.type in IMAGES
        return ai.BinaryContent(media.data, media_type=media.type) if is_shown else None

    def _definition(info: ToolInfo, item: dict[str, Any], tool: Tool | None) -> Any:
        return tools.ToolDefinition(
            name=item["name"],
            description=item["description"],
            parameters_json_schema=item["input_schema"],
            sequential=tool is not None and tool.ordered,
            metadata={"tool": info.fully_qualified_id, "effect": info.effect},
        )

    return HostToolset

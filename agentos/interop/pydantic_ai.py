"""pydantic-ai: what is offered, as a toolset that follows every change."""

from functools import cache
from typing import Any

from agentos.base.extras import import_extra
from agentos.interop._provider_calls import ToolHost, active_tools, described_tools, names_of_list
from agentos.model.principal import Principal
from agentos.model.tool_call import ToolCall
from agentos.tools.listing import ToolInfo
from agentos.tools.tool import Tool


def as_toolset(
    host: ToolHost, principal: Principal | None = None, *, id: str | None = "agentos", max_retries: int | None = None
) -> Any:
    """Return what *principal* is offered as a toolset: `Agent(model, toolsets=[as_toolset(host)])`.

    It lists anew for every step, so a change shows in the next one. Arguments that do not fit ask the model to try
    again, up to *max_retries* (the agent's own number, if None); every other end of a call is text that the model
    reads. Needs the extra `pydantic-ai`.
    """
    return _toolset_class()(host, principal, id, max_retries)


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
            self, host: ToolHost, principal: Principal | None, id: str | None, max_retries: int | None
        ) -> None:
            self._host = host
            self._principal = principal
            self._id = id
            self._max_retries = max_retries

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

        async def call_tool(self, name: str, tool_args: dict[str, Any], ctx: Any, tool: Any) -> str:  # noqa: ARG002
            known = names_of_list(self._host, None, self._principal).names
            call = ToolCall(known.decode(name), tool_args, ctx.tool_call_id)
            result = await self._host.tools.process_tool_call(call, self._principal)
            if result.error is not None and result.error.type == "InvalidArguments":
                raise ai.ModelRetry(result.content)
            return result.content

    def _definition(info: ToolInfo, item: dict[str, Any], tool: Tool | None) -> Any:
        return tools.ToolDefinition(
            name=item["name"],
            description=item["description"],
            parameters_json_schema=item["input_schema"],
            sequential=tool is not None and tool.ordered,
            metadata={"tool": info.fully_qualified_id, "effect": info.effect},
        )

    return HostToolset

"""A tool made ready for calls: all that can be known when it becomes active is computed then."""

from collections.abc import Awaitable, Callable
from typing import Any

from agentos.model.tool_call import ToolResult
from agentos.schema.validation import Checker, compile_schema
from agentos.stacks.entry import Entry
from agentos.stacks.slot import Owner, Slot
from agentos.tools.definition import definition_hash
from agentos.tools.listing import ToolInfo, info_of
from agentos.tools.tool import Tool


class ReadyTool:
    """One entry of kind tool, with its validators compiled, its way of running chosen and its steps composed."""

    __slots__ = (
        "_definition",
        "checker",
        "entry",
        "execute",
        "handler",
        "info",
        "is_async",
        "is_public",
        "meta",
        "output_is_valid",
        "output_validator",
        "owner",
        "plain_handler",
        "plain_version",
        "plan",
        "qualified_id",
        "slot",
        "timeout",
        "tool",
        "users",
    )

    def __init__(self, entry: Entry, tool: Tool, default_timeout: float | None) -> None:
        self.entry = entry
        self.tool = tool
        self.slot: Slot = entry._slot  # noqa: SLF001 - the slot is our own
        self.owner: Owner = self.slot.owner
        self.users = self.slot.users
        self.info: ToolInfo = info_of(entry, tool)
        self.qualified_id = self.info.fully_qualified_id
        self.checker = Checker(tool.input_schema, f"the input schema of tool {tool.name!r}", coerce=tool.coerce)
        self.output_validator: Any = None
        self.output_is_valid: Any = None
        if tool.output_schema is not None:
            where = f"the output schema of tool {tool.name!r}"
            # Formats are not asserted: a naive datetime, say, has no RFC 3339 form and is still good output.
            self.output_validator = compile_schema(tool.output_schema, where, formats=False)
            self.output_is_valid = self.output_validator.is_valid
        self._definition: str | None = None
        self.handler: Callable[[Any], Awaitable[ToolResult]] | None = None
        """The steps of a call of this tool, composed; see `calls.pipeline`."""
        self.plain_handler: Callable[[Any], Awaitable[ToolResult]] | None = None
        """The same for calls that run whatever their arguments are; None if there are no such calls."""
        self.plain_version = -1
        """The version of the grants that `plain_handler` was chosen by."""
        self.plan: Any = None
        """Which guardrails and middleware its calls meet, until these change; see `calls.call_plans`."""
        self.execute = tool.execute
        self.is_async = tool.is_async
        self.is_public = tool.is_public
        self.timeout = tool.timeout if tool.timeout is not None else default_timeout
        self.meta = {"tool": self.qualified_id, "pack_version": entry.source.version}

    @property
    def definition(self) -> str:
        """Return the hash of the tool's definition; computed when it is first asked for."""
        if self._definition is None:
            self._definition = definition_hash(self.tool)
        return self._definition

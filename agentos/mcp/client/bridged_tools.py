"""What a server says of its tools, checked one by one: an unusable one is left out and reported."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import attrs

from agentos.base.canonical import digest
from agentos.errors import AgentOSError
from agentos.mcp.client.limits import ServerLimits
from agentos.mcp.client.server_spec import ServerSpec
from agentos.mcp.client.server_text import ServerText
from agentos.mcp.client.unreadable_tools import UNREADABLE
from agentos.schema.validation import to_plain_json
from agentos.tools.definition import definition_hash
from agentos.tools.lint.findings import hidden_characters
from agentos.tools.tool import Effect, Tool, Toolset

_NAME = re.compile(r"[A-Za-z0-9._-]{1,128}")
_FIELDS = ("name", "title", "description", "inputSchema", "outputSchema", "annotations", "execution")
_TEXTS = ("description", "title")
_TITLE = 200


@attrs.frozen
class SkippedTool:
    """A tool that was left out, and why."""

    name: str
    reason: str

    def __str__(self) -> str:
        return f"{self.name} ({self.reason})"


class UnusableToolError(Exception):
    """A tool that can't be taken; the message says why."""


@attrs.frozen(kw_only=True, eq=False)
class BridgedTool(Tool):
    """A tool of a server, with its annotations as the server wrote them: part of its definition, believed or not."""

    server_annotations: Any = attrs.field(default=None, repr=False)


RunTool = Callable[[str], Callable[[Any, Any], Any]]


class BridgedToolMaker:
    """Makes tools from what one server lists. A definition that did not change stays the same object."""

    def __init__(self, server: ServerSpec, limits: ServerLimits, text: ServerText, run: RunTool) -> None:
        self._server = server
        self._limits = limits
        self._text = text
        self._run = run
        self._known: dict[str, tuple[str, Tool | UnusableToolError]] = {}
        self._prompt = ""

    def take_instructions(self, instructions: str | None) -> str | None:
        """Take a server's instructions as the system prompt of its tools, if it is trusted; say why not, if not."""
        text = self._masked(instructions) if self._server.trust and isinstance(instructions, str) else ""
        fault = None
        if len(text) > self._limits.instructions:
            fault = f"they are longer than {self._limits.instructions:,} characters"
        elif hidden := hidden_characters(text):
            fault = f"they have hidden characters: {', '.join(hidden[:3])}"
        prompt = "" if fault else text.strip()
        if prompt != self._prompt:
            self._prompt = prompt
            self._known.clear()
        return fault

    def tool(self, raw: Any) -> Tool:
        """Return the tool that *raw* describes; UnusableToolError says why it can't be used."""
        name = self.name_of(raw)
        said = {key: raw[key] for key in _FIELDS if raw.get(key) is not None}
        text = _canonical(said)
        known = self._known.get(name)
        if known is None or known[0] != text:
            known = self._known[name] = (text, self._make(name, self._masked(said)))
        if isinstance(known[1], UnusableToolError):
            raise known[1]
        return known[1]

    def remembered(self, accepted: Mapping[str, Mapping[str, Any]]) -> dict[str, Tool]:
        """Return the tools that were *accepted* in earlier runs, by the server's names of them.

        One that would not have the same definition now, as when the operator says otherwise of its effect, is left out.
        """
        prompts = {one["annotations"].get("toolset_prompt") for one in accepted.values()}
        self.take_instructions(next(iter(prompts)) if len(prompts) == 1 else None)
        found: dict[str, Tool] = {}
        for id, definition in accepted.items():
            if not id.startswith(self._server.prefix):  # it was offered under another prefix then
                continue
            name = id.removeprefix(self._server.prefix)
            tool = self._make(name, _said_in(definition))
            if isinstance(tool, Tool) and tool.name == id and digest(definition) == definition_hash(tool):
                found[name] = tool
        return found

    def _masked(self, said: Any, key: str = _TEXTS[0]) -> Any:
        """Return a definition with its texts masked and their line ends unified; everything else is unchanged."""
        if isinstance(said, str):
            return self._text.mask(said.replace("\r\n", "\n")) if key in _TEXTS else said
        if isinstance(said, dict):
            return {name: self._masked(value, name) for name, value in said.items()}
        return [self._masked(value, "") for value in said] if isinstance(said, list) else said

    def keep_only(self, names: "set[str]") -> None:
        """Forget tools that the server does not have any more."""
        self._known = {name: known for name, known in self._known.items() if name in names}

    def name_of(self, raw: Any) -> str:
        """Return the server's name of a tool; UnusableToolError if it is invalid, or if the tool can't be read."""
        if isinstance(raw, dict) and UNREADABLE in raw:
            raise UnusableToolError(f"it can't be read: {self._text.clip(str(raw[UNREADABLE]))}")
        name = raw.get("name") if isinstance(raw, dict) else None
        if not isinstance(name, str):
            raise UnusableToolError("it has no name")
        if ":" in name:
            raise UnusableToolError("its name has a colon; `pack:tool` is how others name a tool")
        if not _NAME.fullmatch(name):
            raise UnusableToolError("its name is not 1 to 128 letters, digits, '.', '_' and '-'")
        if not _NAME.fullmatch(self._server.shown_name(name)):
            raise UnusableToolError(f"with the prefix {self._server.prefix!r} its name has more than 128 characters")
        return name

    def _make(self, name: str, said: Mapping[str, Any]) -> Tool | UnusableToolError:
        for fault in self._faults(said):
            return UnusableToolError(fault)
        try:
            return self._tool(name, said)
        except (AgentOSError, ValueError, RecursionError) as error:
            return UnusableToolError(self._text.clip(str(error)))

    def _faults(self, said: Mapping[str, Any]) -> Iterator[str]:
        for key, kind in (("description", str), ("title", str), ("inputSchema", dict), ("outputSchema", dict)):
            if key in said and not isinstance(said[key], kind):
                yield f"its {key} is no {'text' if kind is str else 'object'}"
        if "inputSchema" not in said:
            yield "it has no inputSchema"
        if len(said.get("description", "")) > self._limits.description:
            yield f"its description is longer than {self._limits.description:,} characters"
        for key in ("inputSchema", "outputSchema"):
            if len(json.dumps(said.get(key))) > self._limits.schema:
                yield f"its {key} is larger than {self._limits.schema:,} characters"
        if len(json.dumps(said.get("annotations"))) > self._limits.annotations:
            yield f"its annotations are larger than {self._limits.annotations:,} characters"
        if _hint(said.get("execution"), "taskSupport") == "required":
            yield "it can be called as a task only, and tasks are not spoken here"
        if hidden := hidden_characters([said.get(key) for key in _FIELDS if key != "annotations"]):
            yield f"it has hidden characters: {', '.join(hidden[:3])}"

    def _tool(self, name: str, said: Mapping[str, Any]) -> Tool:
        hints = said.get("annotations") if self._server.trust else None
        made = BridgedTool.from_schema(
            name=self._server.shown_name(name),
            description=said.get("description", ""),
            input_schema=said["inputSchema"],
            output_schema=said.get("outputSchema"),
            effect=self._server.effect_of(name) or effect_of(hints),
            required_access=self._server.required_access,
            execute=self._run(name),
            idempotent=_hint(hints, "idempotentHint") is True,
            timeout=self._server.timeout,
            server_annotations=said.get("annotations"),
            display_name=self._text.clip(said["title"], _TITLE) if said.get("title", "").strip() else None,
        )
        return next(iter(Toolset(self._server.owner, (made,), self._prompt))) if self._prompt else made


def _said_in(definition: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a server said of a tool, as its accepted definition has it."""
    notes = definition["annotations"]
    said = {
        "description": definition["description"],
        "inputSchema": definition["input_schema"],
        "outputSchema": definition["output_schema"],
        "annotations": notes.get("server_annotations"),
        "title": notes["display_name"],
    }
    return {key: value for key, value in to_plain_json(said).items() if value is not None}


def _canonical(said: Mapping[str, Any]) -> str:
    try:
        return json.dumps(said, sort_keys=True, allow_nan=False)
    except ValueError:
        raise UnusableToolError("it has a number that JSON has no form for") from None


def effect_of(hints: Any) -> Effect:
    """Return the effect that hints declare; without hints, destructive."""
    if _hint(hints, "readOnlyHint") is True:
        return "read"
    return "mutate" if _hint(hints, "destructiveHint") is False else "destructive"


def _hint(hints: Any, name: str) -> Any:
    return hints.get(name) if isinstance(hints, dict) else None

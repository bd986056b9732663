"""What the scenarios of the official conformance suite call, as a pack: agentos and nothing else.

Some scenarios pass although what they call is missing, so every fixture notes that it ran: see `note`.
"""

import asyncio
import base64
import functools
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from agentos import PUBLIC, ExtensionPack, Media, PackContext, Tool, ToolContext, Toolset, tool

SIMPLE_TEXT = "This is a simple text response for testing."
ERROR_TEXT = "This tool intentionally returns an error for testing"
PROMPT_TEXT = "These tools are called by the conformance suite."
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
WAV = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAAAAA=="

_calls: Path | None = None


def write_calls_to(file: Path | None) -> None:
    """Let `note` write into a file, one name a line."""
    global _calls
    _calls = file


def note(name: str) -> None:
    """Note that a fixture was really called."""
    if _calls is not None:
        with _calls.open("a", encoding="utf-8") as file:
            file.write(f"{name}\n")


def fixture(effect: str = "read", **options: Any) -> Callable[[Callable[..., Awaitable[Any]]], Tool]:
    """Make a tool that notes its calls."""

    def made(function: Callable[..., Awaitable[Any]]) -> Tool:
        @functools.wraps(function)
        async def noted(*args: Any, **kwargs: Any) -> Any:
            note(function.__name__)
            return await function(*args, **kwargs)

        return tool(effect=effect, required_access=PUBLIC, **options)(noted)

    return made


# -- calls ---------------------------------------------------------------------------------------------------------


@fixture()
async def test_simple_text() -> str:
    """Return a text."""
    return SIMPLE_TEXT


@fixture()
async def test_error_handling() -> str:
    """Fail every time."""
    raise RuntimeError(ERROR_TEXT)


@fixture()
async def test_tool_with_progress(*, context: ToolContext) -> str:
    """Tell three times how far it is."""
    for done in (0, 50, 100):
        await context.report_progress(done, 100, f"{done} of 100")
        await asyncio.sleep(0.01)
    return "done"


@fixture()
async def test_logging_tool(*, context: ToolContext) -> str:
    """Write to the log of the host, which is no client's business."""
    for step in ("begins", "goes on", "ends"):
        context.logger.info("the tool %s", step)
    return "logged"


# -- results that are more than text -------------------------------------------------------------------------------

_IMAGE = Media("image/png", base64.b64decode(PNG))


@fixture()
async def test_image_content() -> Media:
    """Return a picture."""
    return _IMAGE


@fixture()
async def test_audio_content() -> Media:
    """Return a sound."""
    return Media("audio/wav", base64.b64decode(WAV))


@fixture()
async def test_embedded_resource() -> Media:
    """Return a file."""
    return Media("text/plain", b"This is an embedded resource content.", name="embedded.txt")


@fixture()
async def test_multiple_content_types() -> list[str | Media]:
    """Return a text, a picture and a file."""
    file = Media("application/json", b'{"test":"data","value":123}', name="mixed.json")
    return ["Multiple content types test:", _IMAGE, file]


# -- calls that a person has to approve ----------------------------------------------------------------------------


@fixture("mutate")
async def test_streaming_elicitation() -> str:
    """Change something."""
    return "changed"


@fixture("mutate")
async def test_input_required_result_elicitation() -> str:
    """Change something."""
    return "changed"


@fixture("mutate")
async def test_input_required_result_request_state() -> str:
    """Change something."""
    return "changed"


@fixture("mutate")
async def test_input_required_result_tampered_state() -> str:
    """Change something."""
    return "changed"


# -- schemas -------------------------------------------------------------------------------------------------------


def _schematic(name: str, description: str, schema: dict[str, Any]) -> Tool:
    async def execute(args: Any, context: Any) -> str:
        note(name)
        return "called"

    return Tool.from_schema(
        name=name,
        description=description,
        input_schema=schema,
        effect="read",
        required_access=PUBLIC,
        execute=execute,
    )


_CONDITIONS = {
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
}
_ADDRESS = {
    "$anchor": "addressDef",
    "type": "object",
    "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
}
json_schema_2020_12_tool = _schematic(
    "json_schema_2020_12_tool",
    "Take what only JSON Schema 2020-12 can describe.",
    {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {"address": _ADDRESS},
        "properties": {
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"},
        },
        **_CONDITIONS,
        "additionalProperties": False,
    },
)
test_parameter_headers = _schematic(
    "test_parameter_headers",
    "Take an argument that travels in a header as well.",
    {
        "type": "object",
        "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
        "required": ["region"],
        "additionalProperties": False,
    },
)

# -- changes -------------------------------------------------------------------------------------------------------


@tool(effect="read", required_access=PUBLIC, system_prompt="This prompt comes and goes.")
async def test_transient() -> str:
    """Come and go."""
    return "still here"


_hooked: list[PackContext] = []
"""What the pack's hook was given: only then may the pack register more tools."""


async def _change() -> str:
    tools = _hooked[-1].tools
    if await tools.unregister_tool(test_transient.name):
        return "taken away"
    await tools.register_tool(test_transient)
    return "registered"


@fixture()
async def test_trigger_tool_change() -> str:
    """Change which tools there are."""
    return await _change()


@fixture()
async def test_trigger_prompt_change() -> str:
    """Change which prompts there are."""
    return await _change()


CALLED = Toolset(
    "called", [test_simple_text, test_error_handling, test_tool_with_progress, test_logging_tool], PROMPT_TEXT
)
MORE_THAN_TEXT = [test_image_content, test_audio_content, test_embedded_resource, test_multiple_content_types]
APPROVED = [
    test_streaming_elicitation,
    test_input_required_result_elicitation,
    test_input_required_result_request_state,
    test_input_required_result_tampered_state,
]


OTHERS = [json_schema_2020_12_tool, test_parameter_headers, test_trigger_tool_change, test_trigger_prompt_change]


def create_extension_pack() -> ExtensionPack:
    """Return the pack."""
    return ExtensionPack(
        "conformance",
        "1.0",
        [CALLED, *MORE_THAN_TEXT, *APPROVED, *OTHERS],
        description="What the conformance suite calls.",
        on_activate=_hooked.append,
    )

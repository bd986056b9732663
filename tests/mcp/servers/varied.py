"""A server made with the official SDK that has what else there is beside tools, over stdio."""

import base64
import os

import mcp_types as types
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.prompts.base import Prompt
from mcp_types import Annotations, AudioContent, EmbeddedResource, ImageContent, ResourceLink, TextContent
from pydantic import BaseModel

PICTURE = bytes(range(256)) * 20
server = MCPServer("rich", instructions="Look around.")


@server.resource(
    "memo://today",
    name="today",
    title="Today's memo",
    description="What is on today.",
    mime_type="text/markdown",
    annotations=Annotations(audience=["user"], priority=0.5),
)
def today() -> str:
    return f"# Today\n{os.environ.get('TOK', '')}"


@server.resource("memo://picture", name="picture", mime_type="image/png")
def picture() -> bytes:
    return PICTURE


@server.resource("memo://people/{name}", name="person", description="Somebody.", mime_type="text/plain")
def person(name: str) -> str:
    return f"This is {name}."


@server.prompt(title="Review")
def review(code: str, tone: str = "kind") -> str:
    """Review some code."""
    return f"Review in a {tone} tone: {code}"


@server.tool(
    structured_output=False,
    annotations=types.ToolAnnotations(title="Show it", open_world_hint=False, destructive_hint=False),
)
def show() -> list[TextContent | ImageContent | AudioContent | ResourceLink | EmbeddedResource]:
    """Show everything."""
    notes = Annotations(audience=["assistant"], priority=1.0)
    encoded = base64.b64encode(PICTURE).decode()
    blob = types.BlobResourceContents(uri="memo://inside", mime_type="image/png", blob=encoded)
    text = types.TextResourceContents(uri="memo://note", mime_type="text/plain", text="a note\n")
    return [
        TextContent(type="text", text="here it is", annotations=notes),
        ImageContent(type="image", data=encoded, mime_type="image/png", annotations=notes),
        AudioContent(type="audio", data=encoded, mime_type="audio/wav"),
        ResourceLink(
            type="resource_link", uri="memo://people/ann", name="ann", title="Ann", annotations=notes, size=12
        ),
        EmbeddedResource(type="resource", resource=text, annotations=notes),
        EmbeddedResource(type="resource", resource=blob),
    ]


class Name(BaseModel):
    name: str


@server.tool()
async def greet(ctx: Context) -> str:
    """Greet whoever is there, by the name that they give."""
    answer = await ctx.elicit("What is your name?", Name)
    return f"hello {answer.data.name}" if answer.action == "accept" else f"hello, {answer.action}"


@server.tool()
async def grow(ctx: Context) -> str:
    """Have one prompt more."""

    def farewell() -> str:
        """Say goodbye."""
        return "Goodbye."

    server.add_prompt(Prompt.from_function(farewell))
    await ctx.notify_prompts_changed()
    return "grown"


server.run()

"""A pack whose one tool needs a secret: without it the tool is gated, and `explain` says what to set."""

from agentos import PUBLIC, Descriptor, ExtensionPack, ToolContext, tool


@tool(effect="read", required_access=PUBLIC)
async def gif_search(query: str, *, context: ToolContext) -> str:
    """Tell with which key GIFs would be searched; the key itself is masked on the way out."""
    return f"would search {query!r} with the key {context.secret('giphy.apiKey')}"


pack = ExtensionPack(
    name="gifs",
    version="0.2.0",
    descriptors=[Descriptor("tool", "gif_search", gif_search, required_secrets=["giphy.apiKey"])],
)

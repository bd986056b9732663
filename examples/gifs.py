"""A pack whose one tool needs a secret: without it the tool is gated, and `explain` says what to set."""

from agentos import Descriptor, ExtensionPack

pack = ExtensionPack(
    name="gifs",
    version="0.2.0",
    descriptors=[Descriptor("tool", "gif_search", payload="searches GIFs", required_secrets=["giphy.apiKey"])],
)

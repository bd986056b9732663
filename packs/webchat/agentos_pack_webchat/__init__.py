"""A page to talk to an agent on.

webchat_channel   WebchatChannel   the channel: brings what is posted in, and hands answers to the pages of who asked
chat_events       ChatEvents       what was said lately, and which pages follow it: in memory, within limits
chat_handler      ChatHandler      the http-handler: messages, events, acknowledgements and attachments
page_handler      PageHandler      the page itself, which says nothing of anybody
chat_requests     read_posted      what a request must be, and how it is refused
page/             the page: HTML, CSS and JavaScript, with nothing from elsewhere

Who writes is who the token says. What is to be answered and sent stands in the host's store; nothing lasts here.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentos import ExtensionPack, PackContext

__version__ = "0.1.0"

__all__ = ["create_extension_pack"]


def create_extension_pack(context: "PackContext") -> "ExtensionPack":
    """Return the pack `webchat`: its channel, what pages ask, and the page."""
    from agentos import Descriptor, ExtensionPack, read_options
    from agentos_pack_webchat.chat_events import ChatEvents, WebchatOptions
    from agentos_pack_webchat.chat_handler import ChatHandler
    from agentos_pack_webchat.page_handler import PageHandler
    from agentos_pack_webchat.webchat_channel import WebchatChannel

    options = read_options(WebchatOptions, context.options)
    channel = WebchatChannel(ChatEvents(options), context.logger)
    page = PageHandler()
    return ExtensionPack(
        name="webchat",
        version=__version__,
        description="A page to talk to an agent on, behind the tokens of the server.",
        options=WebchatOptions,
        descriptors=[
            Descriptor("messaging-channel", "webchat", channel),
            Descriptor("http-handler", "webchat", ChatHandler(channel, page, options)),
            Descriptor("http-handler", "webchat-page", page, metadata={"public": True}),
        ],
    )

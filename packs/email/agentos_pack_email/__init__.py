"""A mailbox for agents: a channel by which people write to them, and tools that read it and send mail.

settings   Options, Server      options and secrets, and which connections are allowed
addresses  sender_of, ...       addresses, in the one form that is understood
trust      is_verified          whether a trusted server vouches for a sender
mails      Mail, read_mail      a mail read with care                    (html_text: its HTML as text)
imap       MailboxConnection    the mailbox, on a thread of its own      (on imap-tools)
outgoing   transmit             a mail made and sent                     (on aiosmtplib)
receiving  Receiver             unread mail taken in
channel    EmailChannel         the channel `email`
tools      EmailTools           email_send, email_list, email_read, email_search

From is written by whoever sends a mail. Nothing is taken in until the operator says whose word counts for it.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentos import ExtensionPack, PackContext

__version__ = "0.1.0"

__all__ = ["create_extension_pack"]


def create_extension_pack(context: "PackContext") -> "ExtensionPack":
    """Return the pack `email`: its channel and its tools, each gated by the secrets of the servers that it needs."""
    from agentos_pack_common import read_options

    from agentos import Descriptor, ExtensionPack, SecretRequirement, with_displays
    from agentos_pack_email import settings
    from agentos_pack_email._displays import DISPLAYS
    from agentos_pack_email.channel import EmailChannel
    from agentos_pack_email.tools import EmailTools, reading_tools, send_tool

    options = read_options(settings.Options, context.options)
    made = EmailTools(options, context.secret)
    channel = EmailChannel(options, context.secret, context.logger)
    sends = [SecretRequirement(settings.SMTP_HOST)]
    sends += [SecretRequirement(id, optional=True) for id in (settings.SMTP_USER, settings.SMTP_PASSWORD)]
    reads = [SecretRequirement(id) for id in (settings.IMAP_HOST, settings.IMAP_USER, settings.IMAP_PASSWORD)]
    sender = send_tool(made)
    return ExtensionPack(
        name="email",
        version=__version__,
        description="A mailbox as a channel, and tools to read it and to send mail.",
        options=settings.Options,
        descriptors=with_displays(
            [
                Descriptor(
                    "messaging-channel", "email", channel, required_secrets=[*sends, *reads], check=channel.troubles
                ),
                Descriptor("tool", sender.name, sender, required_secrets=sends),
                *(Descriptor("tool", one.name, one, required_secrets=reads) for one in reading_tools(made)),
            ],
            DISPLAYS,
        ),
    )

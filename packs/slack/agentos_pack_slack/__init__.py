"""Slack for agents: a channel by signed events, and a tool that writes to the channels that the operator names.

slack_options     what a manifest may say
signed_requests   whether a request is Slack's own, and of now
slack_events      what Slack says of a message, read
slack_api         calls of the Web API
slack_channel     the channel: what comes in, and answers
events_endpoint   the http-handler that Slack sends events to
slack_tool        slack_send

The secrets are `slack.botToken` and `slack.signingSecret`.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentos import ExtensionPack, PackContext

__version__ = "0.1.0"

__all__ = ["create_extension_pack"]


def create_extension_pack(context: "PackContext") -> "ExtensionPack":
    """Return the pack `slack` with its channel, the handler of its events and its tool."""
    from agentos_pack_common import WebClient, read_options

    from agentos import Descriptor, ExtensionPack, SecretRequirement, with_displays
    from agentos_pack_slack._displays import DISPLAYS
    from agentos_pack_slack.events_endpoint import EventsEndpoint
    from agentos_pack_slack.signed_requests import SIGNING_SECRET
    from agentos_pack_slack.slack_api import TOKEN, SlackApi
    from agentos_pack_slack.slack_channel import SlackChannel, WayIn
    from agentos_pack_slack.slack_options import SlackOptions
    from agentos_pack_slack.slack_tool import slack_tool

    options = read_options(SlackOptions, context.options)
    client = WebClient(options.policy())
    way_in = WayIn()
    channel = SlackChannel(SlackApi(options, client, lambda: context.secret(TOKEN)), way_in)
    endpoint = EventsEndpoint(way_in, lambda: context.secret(SIGNING_SECRET), context.logger)
    sends = slack_tool(options, channel)
    token, signing = SecretRequirement(TOKEN), SecretRequirement(SIGNING_SECRET)
    return ExtensionPack(
        name="slack",
        version=__version__,
        description="A channel and a tool for Slack, as an app.",
        options=SlackOptions,
        descriptors=with_displays(
            [
                Descriptor("messaging-channel", "slack", channel, required_secrets=[token, signing]),
                Descriptor("http-handler", "events", endpoint, required_secrets=[signing], metadata={"public": True}),
                Descriptor("tool", sends.name, sends, required_secrets=[token], gate=options.fault_of_channels),
            ],
            DISPLAYS,
        ),
        on_deactivate=client.aclose,
    )

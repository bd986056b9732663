"""Messages from agents to people, by the targets that an operator names.

targets   the secret `apprise.urls` read as named targets
delivery  one message sent, in a process of its own   (on apprise, in _child)
schedule  messages that wait for their time in a SQLite file
tools     notify_send, notify_targets, notify_schedule, notify_scheduled, notify_cancel

A model names a target, never an address. Addresses hold passwords and stay in the secret.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentos import ExtensionPack, PackContext

__version__ = "0.1.0"

__all__ = ["create_extension_pack"]


def create_extension_pack(context: "PackContext") -> "ExtensionPack":
    """Return the pack `notify`; without the secret apprise.urls its tools are not offered."""
    from agentos_pack_common import read_options

    from agentos import Descriptor, ExtensionPack, SecretRequirement, with_displays
    from agentos_pack_notify._displays import DISPLAYS
    from agentos_pack_notify.schedule import Schedule
    from agentos_pack_notify.targets import SECRET, Options, Targets
    from agentos_pack_notify.tools import tools_of

    options = read_options(Options, context.options)
    targets = Targets(options, lambda: context.secret(SECRET))
    schedule = Schedule(options.path, targets.deliver, attempts=options.attempts, warn=context.logger.warning)
    if options.path is None:
        context.logger.warning("notify has no option `path`: what is scheduled is gone with the process")
    return ExtensionPack(
        name="notify",
        version=__version__,
        description="Messages to the targets that the operator names, at once or later.",
        options=Options,
        descriptors=with_displays(
            [
                Descriptor("tool", tool.name, tool, required_secrets=[SecretRequirement(SECRET)])
                for tool in tools_of(targets, schedule)
            ],
            DISPLAYS,
        ),
        on_activate=schedule.start,
        on_deactivate=schedule.stop,
    )

"""Programs for agents: those that the operator allows, and no others.

tools     run_command  run a program by its argv, after a person approved it
          which        see what is allowed, and what is installed
policy    the options: which commands are allowed, and within which limits
rules     one allowed command: its program, its words, its options
programs  which file a name stands for, links followed
_flags    options among the words of a command

There is no shell: no pipes, redirections, variables or wildcards. Without the option `allow` nothing runs.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentos import ExtensionPack, PackContext

__version__ = "0.1.0"

__all__ = ["create_extension_pack"]


def create_extension_pack(context: "PackContext") -> "ExtensionPack":
    """Return the pack `shell` with its two tools; the option `allow` says what may be run."""
    from agentos import ExtensionPack, with_displays
    from agentos_pack_shell._displays import DISPLAYS
    from agentos_pack_shell.policy import ManifestOptions, read_policy
    from agentos_pack_shell.tools import create_tools

    return ExtensionPack(
        name="shell",
        version=__version__,
        description="Programs that the operator allows, run by argv, without a shell and within limits.",
        options=ManifestOptions,
        descriptors=with_displays(create_tools(read_policy(context.options)), DISPLAYS),
    )

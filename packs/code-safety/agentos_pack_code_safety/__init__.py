"""Dangerous commands and code kept from tools that execute them.

dangers   Danger           what a rule found, and how bad it is
shell     dangers_of_shell command lines, word by word, through programs that run others
sql       dangers_of_sql   statements, by their syntax tree                       (on sqlglot)
python    dangers_of_python programs, by their syntax tree
_guard    CodeOptions      the guardrail `code-safety` and the tool `scan_code`

A fence, not a wall: what a program does once it runs is not in its text. Nothing is executed, and nothing uses the
network.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentos import ExtensionPack, PackContext

__version__ = "0.1.0"

__all__ = ["create_extension_pack"]


def create_extension_pack(context: "PackContext") -> "ExtensionPack":
    """Return the pack `code-safety` with its guardrail and its tool."""
    from agentos import ExtensionPack, with_displays
    from agentos_pack_code_safety._displays import DISPLAYS
    from agentos_pack_code_safety._guard import CodeOptions, create_descriptors

    return ExtensionPack(
        name="code-safety",
        version=__version__,
        description="Blocks or flags dangerous commands, SQL and Python in the arguments of tools that execute.",
        descriptors=with_displays(create_descriptors(context.options), DISPLAYS),
        options=CodeOptions,
    )

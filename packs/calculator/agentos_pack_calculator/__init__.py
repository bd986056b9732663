"""A calculator for agents: arithmetic, units of measurement, statistics.

arithmetic  calculate      expressions, exact where possible   (on simpleeval)
units       convert_units  physical units and temperatures     (on pint)
summary     statistics     a list of numbers described
_tools      the three as tools

All of them only compute: no network, no files, no state that outlives a call.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentos import ExtensionPack, PackContext

__version__ = "0.1.0"

__all__ = ["create_extension_pack"]


def create_extension_pack(context: "PackContext") -> "ExtensionPack":
    """Return the pack `calculator` with its three tools."""
    from agentos import ExtensionPack, read_options, with_displays
    from agentos_pack_calculator._displays import DISPLAYS
    from agentos_pack_calculator._tools import TOOLS, Options

    read_options(Options, context.options)
    return ExtensionPack(
        name="calculator",
        version=__version__,
        description="Arithmetic, unit conversion and statistics, exact where possible and bounded.",
        options=Options,
        descriptors=with_displays(TOOLS, DISPLAYS),
    )

"""Archives within one folder for agents: pack, list, unpack.

creating    zip_create
listing     zip_list
extracting  zip_extract
options     what a manifest may say
_members            what is in an archive, member by member, and what is wrong with it   (on zipfile and tarfile)
_names              names of members as paths
_streams, _limits   files and streams that give no more than was agreed
_staging, _writing  files that come into place together, or not at all
_shared, _tools     what the three share; the three as tools

Paths can't leave the folder, and files that usually hold secrets can't be reached: that is the `Root` of
agentos-pack-common. Nothing uses the network.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentos import ExtensionPack, PackContext

__version__ = "0.1.0"

__all__ = ["create_extension_pack"]


def create_extension_pack(context: "PackContext") -> "ExtensionPack":
    """Return the pack `archive` with its tools over the folder that the option `root` names."""
    from agentos_pack_common import read_options

    from agentos import ExtensionPack, with_displays
    from agentos_pack_archive._displays import DISPLAYS
    from agentos_pack_archive._tools import create_tools
    from agentos_pack_archive.options import ArchiveOptions

    options = read_options(ArchiveOptions, context.options)
    return ExtensionPack(
        name="archive",
        version=__version__,
        description="Pack, list and unpack archives within one folder, bounded and whole or not at all.",
        options=ArchiveOptions,
        descriptors=with_displays(create_tools(options.open_root(), options.limits), DISPLAYS),
    )

"""The files of one folder for agents: read, search, change.

reading    read_file, list_dir
searching  search_files      (on rapidfuzz)
grepping   grep_files
changing   write_file, edit_file, move_file, delete_file
options    what a manifest may say
_text      bytes into text and back: encodings, byte order marks, line ends
_edits, _diff       an exact text replaced, and what that changes
_walk, _ignore      a tree within bounds, and its .gitignore files   (on pathspec)
_globs              patterns of names
_matching, _lines   patterns in lines; regular expressions in a process of their own
_clock              when to stop
_tools              the eight as tools

Paths can't leave the folder, and files that usually hold secrets can't be reached: that is the `Root` of
agentos-pack-common. Nothing uses the network.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentos import ExtensionPack, PackContext

__version__ = "0.1.0"

__all__ = ["create_extension_pack"]


def create_extension_pack(context: "PackContext") -> "ExtensionPack":
    """Return the pack `files` with its tools over the folder that the option `root` names."""
    from agentos_pack_common import read_options

    from agentos import ExtensionPack, with_displays
    from agentos_pack_files._displays import DISPLAYS
    from agentos_pack_files._tools import create_tools
    from agentos_pack_files.options import FilesOptions

    options = read_options(FilesOptions, context.options)
    return ExtensionPack(
        name="files",
        version=__version__,
        description="Read, search and change the files of one folder, bounded and without a way out of it.",
        options=FilesOptions,
        descriptors=with_displays(create_tools(options.open_root(), options), DISPLAYS),
    )

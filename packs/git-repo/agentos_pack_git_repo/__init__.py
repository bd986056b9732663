"""Git repositories for agents, without trust in what is in them.

tools      what a model calls
looking    git_status, git_log, git_diff, git_show, git_blame
changing   git_commit, git_branch, git_reset, and what each of them would do
running    git on one repository: its environment, its settings, its errors
places     where a repository is: within the root, with all that belongs to it
settings   which of a repository's own settings count
names      commits, branches and paths as a caller writes them
patches    what git says about changes, read and bounded
values     what the tools return
options    what an operator says of the pack

A repository can name programs to run in many settings, and hooks. Git is run beside them: it sees the repository's
objects, references, index and files, and settings that are written here.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentos import ExtensionPack, PackContext

__version__ = "0.1.0"

__all__ = ["create_extension_pack"]


def create_extension_pack(context: "PackContext") -> "ExtensionPack":
    """Return the pack `git-repo`; the option `root` names the folder that its repositories are in."""
    from agentos_pack_common import read_options

    from agentos import ExtensionPack, with_displays
    from agentos_pack_git_repo._displays import DISPLAYS
    from agentos_pack_git_repo.options import Options
    from agentos_pack_git_repo.tools import create_tools

    return ExtensionPack(
        name="git-repo",
        version=__version__,
        description="Looks into git repositories of one folder, commits, branches and resets.",
        options=Options,
        descriptors=with_displays(create_tools(read_options(Options, context.options)), DISPLAYS),
    )

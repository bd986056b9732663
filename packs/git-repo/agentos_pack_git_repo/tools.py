"""The tools, as a model sees them."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import attrs
from agentos_pack_common import Root

from agentos import Schema, Tool, ToolContext, tool
from agentos_pack_git_repo import changing, looking
from agentos_pack_git_repo.options import Options
from agentos_pack_git_repo.running import opened
from agentos_pack_git_repo.values import Blame, Branched, Committed, Diff, Log, Preview, Reset, Shown, Status

_MOST_COMMANDS = 10
_Repo = Annotated[
    str,
    "The repository's folder, or one in it, from the operator's root folder on",
    Schema(minLength=1, maxLength=1_000),
]
_Rev = Annotated[
    str,
    "A commit: its hash, a branch, a tag or HEAD, with ~2 for the second before it or ^ for its parent",
    Schema(minLength=1, maxLength=300),
]
_Path = Annotated[
    str | None,
    "A file or folder, from the repository's top folder on; it stands for itself, without wildcards",
    Schema(minLength=1, maxLength=1_000),
]
_Head = Annotated[
    str,
    "The hash of the commit that HEAD is at, as git_status told it; if HEAD has moved since, nothing is done",
    Schema(minLength=7, maxLength=64),
]


@attrs.frozen
class GitTools:
    """The tools for the repositories of one root folder."""

    options: Options
    root: Root

    # -- looking -----------------------------------------------------------------------------------------------

    async def git_status(self, repo: _Repo = ".") -> Status:
        """Tell how a git repository stands: branch, HEAD, upstream, changed and untracked files, branches.

        Use it first, and before git_commit and git_reset. It shows which files differ, not how: for that use git_diff.
        Changes inside of submodules are not seen. Nothing is fetched.
        """
        async with opened(self.options, self.root, repo) as git:
            return await looking.status(git)

    async def git_log(
        self,
        repo: _Repo = ".",
        rev: _Rev = "HEAD",
        path: _Path = None,
        text: Annotated[str, "Only commits with this in their message", Schema(maxLength=200)] = "",
        author: Annotated[str, "Only commits with this in their author's name or address", Schema(maxLength=200)] = "",
        limit: Annotated[int, "How many commits at most", Schema(minimum=1, maximum=200)] = 20,
        skip: Annotated[
            int, "How many commits to pass over first, for the next page", Schema(minimum=0, maximum=100_000)
        ] = 0,
    ) -> Log:
        """List the commits that led to a commit, the newest first: hash, author, date and message.

        Use `path` for the history of one file. For the changes of one commit use git_show, for who wrote which line
        git_blame. Renames are not followed.
        """
        async with opened(self.options, self.root, repo) as git:
            return await looking.log(git, rev, path=path, text=text, author=author, limit=limit, skip=skip)

    async def git_diff(
        self,
        repo: _Repo = ".",
        base: Annotated[_Rev | None, "The commit to compare from; left out: the index, or HEAD with `staged`"] = None,
        target: Annotated[_Rev | None, "The commit to compare to, together with `base`; left out: the folder"] = None,
        staged: Annotated[bool, "Compare to the index (what the next commit has) rather than to the folder"] = False,
        path: _Path = None,
        context_lines: Annotated[
            int, "How many unchanged lines to show around a change", Schema(minimum=0, maximum=50)
        ] = 3,
    ) -> Diff:
        """Show what differs: between two commits, or between a commit, the index and the folder, as a patch.

        Without `base` it shows what is not staged; with `staged` what the next commit would have. Long patches are
        cut: ask for one `path`. Untracked files are not in it (git_status lists them). Files that usually hold secrets
        are named and not shown. For what one commit changed use git_show.
        """
        async with opened(self.options, self.root, repo) as git:
            return await looking.diff(git, base, target, staged=staged, path=path, around=context_lines)

    async def git_show(self, repo: _Repo = ".", rev: _Rev = "HEAD", path: _Path = None) -> Shown:
        """Show one commit with its message and changes or, with `path`, a file or folder as it was in that commit.

        Of a merge the changes against its first parent are shown. To compare other things use git_diff. Binary content
        is not shown.
        """
        async with opened(self.options, self.root, repo) as git:
            return await looking.show(git, rev, path)

    async def git_blame(
        self,
        path: Annotated[str, "The file, from the repository's top folder on", Schema(minLength=1, maxLength=1_000)],
        repo: _Repo = ".",
        rev: _Rev = "HEAD",
        first: Annotated[int, "The first line", Schema(minimum=1, maximum=10_000_000)] = 1,
        count: Annotated[int, "How many lines", Schema(minimum=1, maximum=500)] = 100,
    ) -> Blame:
        """Tell for each line of a file which commit it is from, by whom and when, as of a commit.

        Use it to find out why a line is there, then git_show for that commit. Changes that are not committed do not
        count. Lines that were moved or copied count as new.
        """
        async with opened(self.options, self.root, repo) as git:
            return await looking.blame(git, path, rev, first, count)

    # -- changing ----------------------------------------------------------------------------------------------

    async def git_commit(
        self,
        message: Annotated[
            str,
            "What the commit does: a short line, then if need be an empty line and more",
            Schema(minLength=1, maxLength=20_000),
        ],
        repo: _Repo = ".",
        paths: Annotated[
            list[Annotated[str, Schema(minLength=1, maxLength=1_000)]] | None,
            "Files and folders to commit as they are on disk, new and deleted ones too, and only these. Left out: "
            "what is staged already",
            Schema(maxItems=200),
        ] = None,
        head: Annotated[_Head | None, "The hash that HEAD is at; if it has moved since, nothing is done"] = None,
    ) -> Committed:
        """Commit files on the branch that is checked out, in the name of the operator's author.

        Look with git_status and git_diff first. It refuses files that usually hold secrets, and files that need a
        filter such as git-lfs. It can't amend, merge, sign or push, and runs no hooks unless the operator says so.
        """
        async with opened(self.options, self.root, repo, alone=True) as git:
            return await changing.commit(git, message, paths or (), head)

    async def git_branch(
        self,
        name: Annotated[str, "What the new branch is called, such as fix/login", Schema(minLength=1, maxLength=200)],
        repo: _Repo = ".",
        start: _Rev = "HEAD",
        checkout: Annotated[
            bool, "Check it out too; only for a branch that starts at HEAD, so that no file changes"
        ] = False,
    ) -> Branched:
        """Make a new branch at a commit.

        It does not list (git_status does), rename, move or delete branches, and switches to no branch that there is
        already.
        """
        async with opened(self.options, self.root, repo, alone=True) as git:
            return (await changing.branch(git, name, start, checkout=checkout))[0]

    async def git_reset(
        self,
        target: _Rev,
        head: _Head,
        repo: _Repo = ".",
        mode: Annotated[
            Literal["soft", "mixed", "hard"],
            "soft: move the branch alone; mixed: also unstage everything; hard: also overwrite the files",
        ] = "mixed",
    ) -> Reset:
        """Move the branch that is checked out to another commit; commits, and with mode hard changed files, are lost.

        Use it to take commits back that nobody else has. Content that is in no commit can't be had back after a hard
        reset. The answer says what was lost, and `previous`, to which a reset brings lost commits back. To undo a
        commit that others have, commit the opposite instead.
        """
        async with opened(self.options, self.root, repo, alone=True) as git:
            return await changing.reset(git, target, head, mode)

    # -- dry runs ----------------------------------------------------------------------------------------------

    async def preview_commit(self, args: Mapping[str, Any], context: ToolContext) -> Preview:  # noqa: ARG002 - a dry run
        """Say what git_commit would do."""
        async with opened(self.options, self.root, args["repo"]) as git:
            return await changing.preview_commit(git, args["message"], args["paths"] or (), args["head"])

    async def preview_branch(self, args: Mapping[str, Any], context: ToolContext) -> Preview:  # noqa: ARG002 - a dry run
        """Say what git_branch would do."""
        async with opened(self.options, self.root, args["repo"]) as git:
            return await changing.preview_branch(git, args["name"], args["start"], checkout=args["checkout"])

    async def preview_reset(self, args: Mapping[str, Any], context: ToolContext) -> Preview:  # noqa: ARG002 - a dry run
        """Say what git_reset would do."""
        async with opened(self.options, self.root, args["repo"]) as git:
            return await changing.preview_reset(git, args["target"], args["head"], args["mode"])


def create_tools(options: Options) -> tuple[Tool, ...]:
    """Return the tools for the repositories of the operator's root folder."""
    tools = GitTools(options, options.open_root())
    common: dict[str, Any] = {"timeout": _MOST_COMMANDS * options.max_seconds, "category": "git"}
    reads = tool(effect="read", required_access="git:read", idempotent=True, **common)
    writes: dict[str, Any] = {"required_access": "git:write", "ordered": True, **common}
    looks = (tools.git_status, tools.git_log, tools.git_diff, tools.git_show, tools.git_blame)
    return (
        *(reads(look) for look in looks),
        tool(effect="mutate", dry_run=tools.preview_commit, **writes)(tools.git_commit),
        tool(effect="mutate", dry_run=tools.preview_branch, **writes)(tools.git_branch),
        tool(effect="destructive", dry_run=tools.preview_reset, **writes)(tools.git_reset),
    )

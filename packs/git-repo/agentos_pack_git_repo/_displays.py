"""How people are shown the calls of these tools."""

from agentos import Display

DISPLAYS = {
    "git_status": Display(
        "table",
        title="Status of {output.repo}",
        fields=(
            *("branch", "head", "upstream", "ahead", "behind", "operation", "clean", "files[].path"),
            *("files[].index", "files[].folder"),
        ),
    ),
    "git_log": Display(
        "table",
        title="Commits",
        fields=("commits[].commit", "commits[].date", "commits[].author", "commits[].subject", "truncated"),
    ),
    "git_diff": Display("diff", title="{output.compared}", fields=("patch",)),
    "git_show": Display(
        "text",
        title="{args.rev}",
        fields=("commit.subject", "commit.author", "commit.date", "commit.body", "text"),
    ),
    "git_blame": Display(
        "table",
        title="{args.path}",
        fields=("lines[].number", "lines[].commit", "lines[].author", "lines[].date", "lines[].text"),
    ),
    "git_commit": Display(
        "table",
        title="Commit: {args.message}",
        fields=("branch", "commit", "subject", "files[].path", "files[].change", "files[].added", "files[].deleted"),
    ),
    "git_branch": Display("table", title="Branch {args.name}", fields=("name", "commit", "checked_out")),
    "git_reset": Display(
        "table",
        title="Reset to {args.target}",
        fields=("mode", "head", "previous", "lost.commits_total", "lost.unreachable", "lost.overwritten[]"),
    ),
}

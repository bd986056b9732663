"""Repositories that were made to harm whoever looks at them, and callers who try to."""

import os
import shutil

import pytest
from agentos_pack_git_repo.names import commit_of
from agentos_pack_git_repo.options import Options
from agentos_pack_git_repo.places import GitError
from agentos_pack_git_repo.running import opened
from agentos_pack_git_repo.settings import settings_of


@pytest.fixture
def everything(call):
    """Return a function that uses every tool on a repository, with changes in its folder."""

    async def using(repo):
        repo.write("a", "changed for the commit\n")
        results = [
            await call("git_status"),
            await call("git_log", path="a"),
            await call("git_diff"),
            await call("git_diff", base="HEAD~1", target="HEAD"),
            await call("git_show"),
            await call("git_show", path="a"),
            await call("git_blame", path="a"),
            await call("git_commit", message="all of it", paths=["a"]),
            await call("git_branch", name="new", checkout=True),
            await call("git_reset", target="HEAD~1", head=repo.head, mode="hard"),
        ]
        return [result.content for result in results if not result.success]

    return using


# -- programs that a repository names ----------------------------------------------------------------------------

TRAPS = {
    "core.fsmonitor": ["status"],
    "diff.external": ["diff"],
    "diff.evil.command": ["diff"],
    "diff.evil.textconv": ["diff"],
    "filter.evil.clean": ["diff"],
    "filter.evil.process": ["diff"],
    "filter.evil.smudge": ["checkout", "--", "a"],
    "gpg.program": ["-c", "commit.gpgSign=true", "commit", "--allow-empty", "-m", "x"],
    "core.editor": ["commit", "--allow-empty"],
    "core.hooksPath": ["commit", "-am", "x"],
    "include.path": ["status"],
    "includeIf.onbranch:**.path": ["status"],
}
"""Settings that run something, and what a person does to run it."""
MORE = [
    *("core.askPass", "core.pager", "pager.log", "core.sshCommand", "credential.helper", "merge.evil.driver"),
    *("interactive.diffFilter", "alias.status", "core.gitProxy", "core.alternateRefsCommand", "trailer.x.command"),
    *("uploadpack.packObjectsHook", "sequence.editor", "core.attributesFile", "gpg.ssh.program", "difftool.x.cmd"),
]
HOOKS = [
    *("pre-commit", "prepare-commit-msg", "commit-msg", "post-commit", "post-checkout", "post-index-change"),
    *("reference-transaction", "pre-auto-gc", "post-rewrite", "fsmonitor-watchman", "applypatch-msg", "pre-push"),
]


def set_trap(repo, key):
    """Make a repository's setting name a program, a folder of hooks, or a file with such a setting."""
    value = repo.program(key.replace("*", "").replace(":", ""))
    if key == "core.hooksPath":
        folder = repo.folder.parent / "hooks"
        set_hooks(repo, folder)
        value = str(folder)
    elif key.endswith(".path"):
        value = str(repo.write(f"../{value[-5:]}.included", f"[core]\n\tfsmonitor = {value}\n"))
    repo.git("config", key, value)


def set_hooks(repo, folder):
    folder.mkdir(exist_ok=True)
    for hook in HOOKS:
        shutil.copy(repo.program(f"hook-{hook}"), folder / hook)


def provoke(repo, *arguments):
    """Run git as a person would; what it is made to run may fail it."""
    repo.write("a", "provoked\n")
    try:
        repo.git(*arguments, env={"GIT_ALLOW_PROTOCOL": "ext:file"})
    except AssertionError:
        return


@pytest.mark.parametrize("key", TRAPS)
def test_a_trap_works_for_who_is_not_careful(repo, key):
    """Otherwise the tests below would say nothing."""
    repo.write(".git/info/attributes", "a diff=evil filter=evil\n")
    set_trap(repo, key)
    provoke(repo, *TRAPS[key])

    assert repo.traces != []


@pytest.mark.parametrize("attributes", ["a diff=evil merge=evil\n", "a filter=evil\n"], ids=["diff", "filter"])
async def test_no_program_of_the_settings_runs(everything, repo, attributes):
    repo.write(".git/info/attributes", attributes)
    for key in (*TRAPS, *MORE):
        set_trap(repo, key)
    repo.git("config", "commit.gpgSign", "true")
    repo.git("config", "log.showSignature", "true")
    repo.forget()

    failed = await everything(repo)

    assert repo.traces == []
    assert all("is to go through a filter" in content for content in failed), failed


async def test_no_hook_runs(everything, repo):
    set_hooks(repo, repo.folder / ".git" / "hooks")

    assert await everything(repo) == []
    assert repo.traces == []


async def test_no_settings_of_a_working_tree_count(everything, repo):
    repo.git("config", "core.repositoryformatversion", "1")
    repo.git("config", "extensions.worktreeConfig", "true")
    repo.write(".git/config.worktree", f"[core]\n\tfsmonitor = {repo.program()}\n")
    provoke(repo, "status")
    assert repo.traces == ["program"]
    repo.forget()

    assert await everything(repo) == []
    assert repo.traces == []


async def test_nothing_that_is_missing_is_fetched(call, repo):
    """A partial clone gets its missing objects by a remote, and a remote may be a command."""
    blob = repo.git("rev-parse", "HEAD:a")
    (repo.folder / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    for key, value in {
        "core.repositoryformatversion": "1",
        "extensions.partialClone": "origin",
        "remote.origin.promisor": "true",
        "remote.origin.url": f"ext::{repo.program()}",
        "protocol.ext.allow": "always",
    }.items():
        repo.git("config", key, value)
    provoke(repo, "cat-file", "-p", blob)
    assert repo.traces == ["program"]
    repo.forget()

    result = await call("git_show", path="a")

    assert not result.success
    assert repo.traces == []


async def test_no_protocol_is_spoken_whatever_settings_say(repo, root):
    """A remote that begins with ext:: is a command."""
    options = Options(root=root)
    async with opened(options, options.open_root(), "repo") as git:
        with pytest.raises(GitError, match="transport 'ext' not allowed"):
            await git.run("-c", "protocol.ext.allow=always", "ls-remote", f"ext::{repo.program()}")

    assert repo.traces == []


async def test_the_settings_of_a_submodule_do_not_count(everything, repo, make, root):
    make("inner").commit("inner", x="x\n")
    repo.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(root / "inner"), "sub")
    repo.commit("with a submodule")
    inner = type(repo)(repo.folder / "sub")
    inner.git("config", "core.fsmonitor", repo.program())
    inner.write("x", "changed\n")
    provoke(repo, "status")
    assert repo.traces == ["program"]
    repo.forget()

    assert await everything(repo) == []
    assert repo.traces == []


async def test_a_repository_in_a_repository_runs_nothing(everything, repo, make):
    """A folder that looks like a bare repository is one for git, wherever it came from."""
    bare = make("bare", folder=repo.folder, init=["--bare"])
    bare.git("config", "core.fsmonitor", repo.program())

    assert await everything(repo) == []
    assert repo.traces == []


# -- settings and variables of the user --------------------------------------------------------------------------


async def test_the_users_settings_do_not_count(everything, repo, tmp_path, monkeypatch):
    home = tmp_path / "home"
    home.mkdir()
    (home / ".gitconfig").write_text(f"[core]\n\tfsmonitor = {repo.program()}\n[user]\n\tname = Somebody\n")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home))

    assert await everything(repo) == []
    assert repo.traces == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("GIT_DIR", "/nowhere"),
        ("GIT_WORK_TREE", "/"),
        ("GIT_INDEX_FILE", "/nowhere"),
        ("GIT_OBJECT_DIRECTORY", "/nowhere"),
        ("GIT_EXTERNAL_DIFF", "evil"),
        ("GIT_CONFIG_PARAMETERS", "'core.fsmonitor'='evil'"),
        ("GIT_TRACE", "trace"),
        ("GIT_EXEC_PATH", "/nowhere"),
        ("GIT_CEILING_DIRECTORIES", "/"),
        ("GIT_AUTHOR_NAME", "Somebody Else"),
    ],
)
async def test_the_hosts_variables_do_not_count(ask, repo, monkeypatch, name, value):
    monkeypatch.setenv(name, {"evil": repo.program(), "trace": f"{repo.program()}-RAN"}.get(value, value))
    repo.write("a", "changed\n")

    assert [one["path"] for one in (await ask("git_diff"))["files"]] == ["a"]
    assert (await ask("git_commit", message="x", paths=["a"]))["previous"] is not None
    assert repo.git("log", "-1", "--format=%an", env={name: ""} if name == "GIT_AUTHOR_NAME" else None) == "An Agent"
    assert repo.traces == []


# -- arguments ---------------------------------------------------------------------------------------------------

REVISIONS = [
    "--output=pwned",
    "-p",
    "--upload-pack=evil",
    "--help",
    "-c core.pager=evil",
    "--exec-path",
    "HEAD..main",
    "HEAD...main",
    "^HEAD",
    "HEAD:a",
    ":a",
    ":/first",
    "HEAD^{/first}",
    "HEAD@{1}",
    "@{u}",
    "HEAD^!",
    "HEAD^@",
    "HEAD --output=pwned",
    "HEAD\n--output=pwned",
    "HEAD\0",
    "main\x7f",
    "*",
    "ma?n",
    "[m]ain",
    "HEAD~999999999",
    "\ud800",
    "ext::sh -c id",
]


@pytest.mark.parametrize("rev", REVISIONS, ids=ascii)
async def test_a_commit_is_nothing_else(rev):
    with pytest.raises(GitError, match="rev: expected a commit's hash, a branch, a tag or HEAD"):
        await commit_of(None, rev)  # git is not asked at all


@pytest.mark.parametrize(
    ("name", "place", "arguments"),
    [
        ("git_show", "rev", {}),
        ("git_log", "rev", {}),
        ("git_blame", "rev", {"path": "a"}),
        ("git_diff", "base", {}),
        ("git_diff", "target", {"base": "HEAD"}),
        ("git_branch", "start", {"name": "new"}),
        ("git_reset", "target", {"head": "HEAD"}),
    ],
)
async def test_every_tool_looks_at_its_commits(refusal, repo, name, place, arguments):
    given = {**arguments, place: "--output=pwned"}
    if "head" in given:
        given["head"] = repo.head

    assert f"{place}: expected a commit's hash" in await refusal(name, **given)
    assert not list(repo.folder.rglob("pwned*"))


@pytest.mark.parametrize(
    "path", [":(top)", ":/", ":!b", ":(exclude)b", "*", "?", ":(glob)**", "--output=pwned", "-p", "[a]"]
)
async def test_a_path_stands_for_itself(ask, refusal, repo, path):
    repo.write("a", "changed\n")

    assert (await ask("git_log", path=path))["commits"] == []
    assert (await ask("git_diff", path=path))["files"] == []
    assert "there is no" in await refusal("git_show", path=path)
    assert "there is no file" in await refusal("git_blame", path=path)
    assert "did not match any files" in await refusal("git_commit", message="x", paths=[path])
    assert not list(repo.folder.rglob("pwned*"))


@pytest.mark.parametrize("path", ["../outside", "/etc/passwd", "a/../../x", "a\0b", ".git/config", ".GIT/config"])
async def test_a_path_stays_in_its_repository(refusal, repo, path):
    for name, arguments in (
        ("git_log", {"path": path}),
        ("git_diff", {"path": path}),
        ("git_show", {"path": path}),
        ("git_blame", {"path": path}),
        ("git_commit", {"message": "x", "paths": [path]}),
    ):
        assert "path" in await refusal(name, **arguments)


async def test_half_a_character_is_no_argument(refusal, repo):
    assert "half of a surrogate pair is not Unicode text" in await refusal("git_log", path="\ud800")
    assert "half of a surrogate pair is not Unicode text" in await refusal("git_status", repo="a\ud800")


@pytest.mark.parametrize(
    "name",
    [
        *(
            "-d",
            "--help",
            "-D main",
            "a..b",
            "refs/heads/other",
            "HEAD",
            "@",
            "a b",
            "a~1",
            "a^",
            "a:b",
            "a.lock",
            "/a",
            "a/",
            "a//b",
            ".a",
        ),
        *("a\\b", "a\0", "a\n", "x@{1}", "deadbeef", "a*", "a?", "a[", "\u202ea", "\u200b", "main"),
    ],
    ids=ascii,
)
async def test_a_branch_has_a_name_that_can_be_one(refusal, repo, name):
    assert "name: " in await refusal("git_branch", name=name)
    assert repo.git("for-each-ref", "--format=%(refname)") == "refs/heads/main"


@pytest.mark.parametrize("field", ["text", "author"])
async def test_searched_text_is_no_option(ask, refusal, repo, field):
    assert (await ask("git_log", **{field: "--output=pwned"}))["commits"] == []
    assert "expected one line" in await refusal("git_log", **{field: "x\n--all"})
    assert not (repo.folder / "pwned").exists()


async def test_a_message_is_no_option(ask, repo):
    repo.write("a", "changed\n")
    await ask("git_commit", message="--amend\n\n# a comment\n-F /etc/passwd", paths=["a"])

    assert repo.git("log", "-1", "--format=%B") == "--amend\n\n# a comment\n-F /etc/passwd"


# -- where a repository is ---------------------------------------------------------------------------------------


@pytest.fixture
def outside(make, tmp_path):
    """Return a repository that is not in the root, with something to hide."""
    made = make("outside", folder=tmp_path)
    made.commit("hidden", secret="very-secret\n")
    made.commit("more", more="very-secret\n")
    return made


@pytest.mark.parametrize("repo_name", ["..", "../outside", "/", "outside", "link", "link/sub", "no/such", "\0"])
async def test_a_repository_outside_is_not_reached(refusal, repo, outside, root, repo_name):
    (root / "link").symlink_to(outside.folder)
    said = await refusal("git_status", repo=repo_name)

    assert "repo: " in said
    assert str(root.parent) not in said


async def test_a_folder_that_belongs_to_a_repository_above_the_root_is_not_one(refusal, make, tmp_path, root):
    root.rmdir()
    made = make("above", folder=tmp_path)
    made.commit("one")
    (made.folder / "inner").mkdir()

    said = await refusal("git_status", {"root": str(made.folder / "inner")}, repo=".")

    assert "is not in a git repository whose top folder is beneath the root" in said


def linked(root, outside):
    (root / "repo").mkdir()
    (root / "repo" / ".git").symlink_to(outside.folder / ".git")


def named(root, outside):
    (root / "repo").mkdir()
    (root / "repo" / ".git").write_text(f"gitdir: {outside.folder}/.git\n")


def climbing(root, outside):
    (root / "repo").mkdir()
    (root / "repo" / ".git").write_text("gitdir: ../../outside/.git\n")


def worktree(root, outside):
    outside.git("worktree", "add", "--quiet", str(root / "repo"), "-b", "w")


def _copied(root, outside):
    shutil.copytree(outside.folder, root / "repo")
    return root / "repo" / ".git"


def sharing(root, outside):
    own = _copied(root, outside)
    (own / "commondir").write_text(f"{outside.folder}/.git\n")


def borrowing(root, outside):
    own = _copied(root, outside)
    (own / "objects" / "info" / "alternates").write_text(f"{outside.folder}/.git/objects\n")


def borrowing_twice(root, outside):
    own = _copied(root, outside)
    (own / "objects" / "info" / "alternates").write_text("../../../middle\n")
    (root / "middle" / "info").mkdir(parents=True)
    (root / "middle" / "info" / "alternates").write_text(f"{outside.folder}/.git/objects\n")


def _part_linked(name):
    def arrange(root, outside):
        own = _copied(root, outside)
        shutil.rmtree(own / name) if (own / name).is_dir() else (own / name).unlink()
        (own / name).symlink_to(outside.folder / ".git" / name)

    arrange.__name__ = f"{name}_linked"
    return arrange


@pytest.mark.parametrize(
    "arrange",
    [
        *(linked, named, climbing, worktree, sharing, borrowing, borrowing_twice),
        *map(_part_linked, ["objects", "refs", "index", "HEAD", "config", "logs", "info"]),
    ],
    ids=lambda one: one.__name__,
)
async def test_no_part_of_a_repository_may_be_outside(refusal, outside, root, arrange):
    arrange(root, outside)
    for name, arguments in (("git_status", {}), ("git_show", {"path": "secret"}), ("git_log", {})):
        said = await refusal(name, **arguments)

        assert "out of the root folder" in said
        assert str(root.parent) not in said


@pytest.mark.parametrize("name", ["logs/HEAD", "logs/refs", "refs/heads", "objects/pack", "info/exclude"])
async def test_no_link_deep_in_the_git_folder_may_lead_outside(refusal, outside, root, name):
    outside.git("gc", "--quiet")
    (outside.folder / ".git" / "refs" / "heads").mkdir(exist_ok=True)
    _part_linked(name)(root, outside)
    (root / "repo" / "secret").write_text("changed\n")
    before = (outside.folder / ".git" / "logs" / "HEAD").read_text()

    said = await refusal("git_commit", message="m", paths=["secret"])

    assert "a link in its git folder leads out of the root folder" in said
    assert (outside.folder / ".git" / "logs" / "HEAD").read_text() == before


async def test_borrowed_objects_may_not_be_linked_from_outside(refusal, outside, root):
    own = _copied(root, outside)
    (own / "objects" / "info" / "alternates").write_text("../../../middle\n")
    (root / "middle").mkdir()
    (root / "middle" / "pack").symlink_to(outside.folder / ".git" / "objects" / "pack")

    assert "leads out of the root folder" in await refusal("git_log")


async def test_a_link_deep_in_the_git_folder_that_stays_within_the_root_is_followed(ask, repo, root):
    (repo.folder / ".git" / "logs").rename(root / "logs")
    (repo.folder / ".git" / "logs").symlink_to("../../logs")

    assert (await ask("git_status"))["clean"]


async def test_a_working_tree_of_the_settings_does_not_count(ask, repo, tmp_path):
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / "salaries").write_text("x")
    repo.git("config", "core.worktree", str(tmp_path / "private"))

    assert (await ask("git_status"))["clean"]


async def test_a_link_to_git_within_the_root_is_followed(ask, repo, root):
    (repo.folder / ".git").rename(root / "kept")
    (repo.folder / ".git").symlink_to("../kept")

    assert (await ask("git_status"))["clean"]


async def test_another_working_tree_within_the_root_is_used_as_it_is(ask, repo, root):
    repo.git("worktree", "add", "--quiet", str(root / "side"), "-b", "side")
    (root / "side" / "a").write_text("changed\n")
    before = repo.head

    made = await ask("git_commit", repo="side", message="in the side tree", paths=["a"])

    assert made["branch"] == "side"
    assert (repo.head, repo.git("rev-parse", "side")) == (before, made["commit"])
    assert (await ask("git_status", repo="side"))["clean"]
    assert (await ask("git_status"))["clean"]


async def test_a_shared_repository_within_the_root_is_used(ask, repo, root):
    repo.git("clone", "--quiet", "--shared", str(repo.folder), str(root / "copy"))

    assert (await ask("git_show", repo="copy", path="a"))["text"] == "one\ntwo\n"


async def test_a_repository_of_somebody_else_is_looked_at(ask, repo):
    """Git itself refuses it (safe.directory), since it would run what its settings name."""
    if os.getuid() != 0:
        pytest.skip("only root can give a folder away")
    for path in (repo.folder, repo.folder / ".git"):
        os.chown(path, 12345, 12345)
    with pytest.raises(AssertionError, match="dubious ownership"):
        repo.git("status")

    assert (await ask("git_status"))["clean"]


# -- repositories that are broken on purpose ---------------------------------------------------------------------


@pytest.mark.parametrize("name", ["config", "HEAD", "commondir"])
async def test_a_pipe_instead_of_a_file_blocks_nothing(refusal, repo, name):
    (repo.folder / ".git" / name).unlink(missing_ok=True)
    os.mkfifo(repo.folder / ".git" / name)
    if name == "commondir":
        (repo.folder / ".git" / "HEAD").unlink()

    assert "repo: " in await refusal("git_status")


async def test_a_pipe_that_git_itself_waits_for_ends_with_its_time(refusal, repo):
    (repo.folder / ".git" / "index").unlink()
    os.mkfifo(repo.folder / ".git" / "index")

    assert "took longer than 1 s" in await refusal("git_status", {"maxSeconds": 1})
    assert "is no regular file" in await refusal("git_commit", message="x")


@pytest.mark.parametrize(
    ("file", "content"),
    [
        (".git/config", "[core\n"),
        (".git/config", "x" * 1_100_000),
        (".git/HEAD", "nonsense\n"),
        (".git/index", "nonsense"),
        (".git/commondir", "../../../../../..\n"),
        (".git/objects/info/alternates", "/etc\n"),
        (".git", "gitdir: " + "x/" * 3_000),
        (".git", "nonsense"),
        (".git", "gitdir: a\0b"),
    ],
    ids=lambda value: value[:30],
)
async def test_a_broken_repository_is_told_as_such(refusal, repo, root, file, content):
    if file == ".git":
        shutil.rmtree(repo.folder / ".git")
    repo.write(file, content)

    said = await refusal("git_status")

    assert len(said) < 1_000
    assert str(root.parent) not in said


async def test_an_unknown_extension_is_refused(refusal, repo):
    repo.git("config", "extensions.fromTheFuture", "true")

    assert "it uses the extension 'fromthefuture', which this pack does not know" in await refusal("git_status")


async def test_a_replaced_object_is_shown_as_it_is(ask, repo):
    """What is reviewed must be what a checkout has, not what somebody put in its place."""
    blob = repo.git("rev-parse", "HEAD:a")
    other = repo.git("rev-parse", "HEAD:b")
    repo.git("replace", blob, other)

    assert (await ask("git_show", path="a"))["text"] == "one\ntwo\n"


async def test_a_message_without_end_is_told(refusal, repo):
    (root := repo.folder.parent).joinpath("message").write_text("x" * 3_000_000)
    repo.git("commit", "--quiet", "--allow-empty", "-F", str(root / "message"))

    assert "the message of this commit is too long" in await refusal("git_show")


async def test_long_messages_are_told_as_cut(ask, repo):
    (repo.folder.parent / "message").write_text("x" * 1_500_000)
    for _ in range(2):
        repo.git("commit", "--quiet", "--allow-empty", "-F", str(repo.folder.parent / "message"))

    found = await ask("git_log")

    assert (len(found["commits"]), found["truncated"]) == (1, True)


async def test_a_huge_file_costs_no_more_than_the_time_there_is(ask, refusal, repo):
    with (repo.folder / "a").open("wb") as file:
        file.truncate(200_000_000_000)

    assert (await ask("git_status"))["files"] == [{"path": "a", "index": "unmodified", "folder": "modified"}]
    assert "took longer than 1 s; ask for less" in await refusal("git_diff", {"maxSeconds": 1})


async def test_a_tree_with_gits_own_names_is_not_checked_out(refusal, repo):
    inner = repo.git("rev-parse", "HEAD^{tree}")
    (repo.folder.parent / "raw").write_bytes(b"40000 .git\0" + bytes.fromhex(inner))
    tree = repo.git("hash-object", "--literally", "-t", "tree", "-w", "../raw")
    commit = repo.git("commit-tree", tree, "-p", "HEAD", "-m", "evil")

    said = await refusal("git_reset", target=commit, head=repo.head, mode="hard")

    assert "git" in said
    assert not (repo.folder / ".git" / "a").exists()


# -- settings ----------------------------------------------------------------------------------------------------


def test_only_settings_that_describe_the_repository_are_taken():
    listed = {
        "core.filemode": "true",
        "core.autocrlf": "input",
        "core.sshcommand": "evil",
        "core.symlinks": "evil",
        "branch.main.remote": "origin",
        "branch.main.merge": "refs/heads/main",
        'branch.a"b\\c.remote': "origin",
        "remote.origin.url": "https://user:password@example.org/x",
        "remote.origin.fetch": "+refs/heads/*:refs/remotes/origin/*",
        "remote.origin.vcs": "ext",
        "remote.evil.fetch": "x\ny",
        "includeif.gitdir:/x.path": "/evil",
        "alias.x": "!evil",
    }
    text = settings_of("".join(f"{key}\n{value}\0" for key, value in listed.items()).encode())
    taken = text.partition('[core]\n\thooksPath = "/dev/null"')[0]

    assert taken == (
        '[core]\n\tfilemode = "true"\n[core]\n\tautocrlf = "input"\n[branch "main"]\n\tremote = "origin"\n'
        '[branch "main"]\n\tmerge = "refs/heads/main"\n[branch "a\\"b\\\\c"]\n\tremote = "origin"\n'
        '[remote "origin"]\n\tfetch = "+refs/heads/*:refs/remotes/origin/*"\n'
    )


@pytest.mark.parametrize("setting", ["extensions.refstorage\nreftable", "extensions.new\n1"])
def test_what_changes_the_form_of_a_repository_is_refused(setting):
    with pytest.raises(GitError, match="it uses the extension"):
        settings_of(f"{setting}\0".encode())

"""The tools that change something: what they do, what they say before, and what they refuse."""

import asyncio

import pytest
from agentos_pack_common import find_program

from agentos import ToolCall


def state(repo):
    """Return everything that a dry run must leave as it is."""
    return {path: path.read_bytes() for path in repo.folder.rglob("*") if path.is_file()}


def objects(repo):
    """Return the numbers of all objects that a repository has, whether something leads to them or not."""
    return repo.git("cat-file", "--batch-all-objects", "--batch-check=%(objectname)").split()


def blob(repo, text):
    return repo.git("hash-object", str(repo.write("../text", text)))


async def together(host, *calls):
    """Make calls at once, each on its own, and return why some failed."""
    made = [ToolCall(name, {"repo": "repo", **arguments}) for name, arguments in calls]
    results = await asyncio.gather(*map(host.tools.process_tool_call, made))
    asked = [one.error.details["token"] for one in results if one.error and one.error.type == "ApprovalRequired"]
    results += await asyncio.gather(*map(host.approvals.approve, asked))
    return [one.content for one in results if one.error and one.error.type != "ApprovalRequired"]


RIVAL = """#!/bin/sh
case " $* " in *" reset "*) if mkdir "{folder}/once" 2>/dev/null; then
    touch "$GIT_DIR/index.lock"
    {git} "$@"
    code=$?
    rm "$GIT_DIR/index.lock"
    exit $code
fi ;; esac
exec {git} "$@"
"""
"""A git that finds the index locked by another process the first time that it resets."""


class TestAtOnce:
    async def test_resets_wait_for_each_other(self, hosts, repo):
        assert await together(await hosts(), *[("git_reset", {"target": "HEAD", "head": repo.head})] * 8) == []

    async def test_commits_wait_for_each_other(self, hosts, repo):
        names = [f"file-{number}" for number in range(8)]
        for name in names:
            repo.write(name, "new\n")

        failed = await together(await hosts(), *(("git_commit", {"message": one, "paths": [one]}) for one in names))

        assert failed == []
        assert sorted(repo.git("log", "-8", "--format=%s").splitlines()) == names
        assert repo.git("status", "--porcelain") == ""

    async def test_branches_wait_for_each_other(self, hosts, repo):
        names = [f"branch-{number}" for number in range(8)]

        failed = await together(await hosts(), *(("git_branch", {"name": one, "checkout": True}) for one in names))

        assert failed == []
        assert repo.git("for-each-ref", "--format=%(refname:lstrip=2)").splitlines() == [*names, "main"]

    async def test_two_hosts_wait_for_each_other(self, hosts, repo):
        one, other = await hosts(), await hosts({"maxSeconds": 29})
        calls = [("git_reset", {"target": "HEAD", "head": repo.head})] * 4

        assert await asyncio.gather(together(one, *calls), together(other, *calls)) == [[], []]

    async def test_event_loops_wait_for_each_other(self, hosting, repo):
        calls = [("git_reset", {"target": "HEAD", "head": repo.head})] * 2

        async def use():
            async with hosting() as host:
                return await together(host, *calls)

        assert await asyncio.gather(*(asyncio.to_thread(asyncio.run, use()) for _ in range(3))) == [[], [], []]

    @pytest.mark.parametrize(
        ("name", "arguments"),
        [
            ("git_reset", {"target": "HEAD~1", "mode": "hard"}),
            ("git_reset", {"target": "HEAD~1"}),
            ("git_commit", {"message": "x", "paths": ["a"]}),
        ],
    )
    async def test_another_process_that_comes_first_is_waited_for(
        self, ask, repo, tmp_path, monkeypatch, name, arguments
    ):
        script = tmp_path / "git"
        script.write_text(RIVAL.format(folder=tmp_path, git=find_program("git")))
        script.chmod(0o755)
        monkeypatch.setattr("agentos_pack_git_repo.running.find_program", lambda _: str(script))
        repo.write("a", "changed\n")

        await ask(name, head=repo.head, **arguments)

        assert (tmp_path / "once").exists()
        assert repo.git("diff", "--cached", "--name-only") == ""

    async def test_a_call_that_is_cancelled_holds_nobody_up(self, hosts, repo):
        host = await hosts()
        call = ToolCall("git_branch", {"repo": "repo", "name": "new"}, "first")
        running = asyncio.create_task(host.tools.process_tool_call(call))
        await asyncio.wait([running], timeout=0)
        running.cancel()
        await asyncio.wait([running])

        assert await together(host, ("git_branch", {"name": "other"})) == []


class TestCommit:
    async def test_paths_are_committed_as_they_are(self, ask, repo):
        before = repo.head
        repo.write("a", "changed\n")
        repo.write("new/file", "x\n")
        (repo.folder / "b").unlink()

        made = await ask("git_commit", message="Change things\n\nfor a reason", paths=["a", "new", "b"])

        assert made == {
            "commit": repo.head,
            "previous": before,
            "branch": "main",
            "subject": "Change things",
            "files": [
                {"path": "a", "change": "modified", "added": 1, "deleted": 2, "binary": False},
                {"path": "b", "change": "deleted", "added": 0, "deleted": 2, "binary": False},
                {"path": "new/file", "change": "added", "added": 1, "deleted": 0, "binary": False},
            ],
        }
        assert repo.git("status", "--porcelain") == ""
        assert repo.git("log", "-1", "--format=%B") == "Change things\n\nfor a reason"

    async def test_only_the_named_paths_are_committed(self, ask, repo):
        repo.write("a", "changed\n")
        repo.write("b", "changed\n")
        repo.git("add", "b")

        made = await ask("git_commit", message="a alone", paths=["a"])

        assert [one["path"] for one in made["files"]] == ["a"]
        assert repo.git("status", "--porcelain") == "M  b"

    async def test_what_is_staged_is_committed(self, ask, repo):
        repo.write("a", "staged\n")
        repo.git("add", "a")
        repo.write("a", "later\n")

        await ask("git_commit", message="what was staged")

        assert repo.git("show", "HEAD:a") == "staged"
        assert repo.git("status", "--porcelain") == "M a"

    async def test_the_first_commit(self, ask, make):
        made = make()
        made.write("a", "x\n")

        done = await ask("git_commit", message="first", paths=["."])

        assert (done["previous"], done["branch"]) == (None, "main")
        assert made.git("log", "--format=%s") == "first"

    async def test_the_author_is_the_operators(self, ask, repo):
        repo.git("config", "user.name", "Somebody")
        repo.write("a", "changed\n")
        await ask("git_commit", message="x", paths=["a"])

        shown = repo.git("log", "-1", "--format=%an <%ae>, %cn <%ce>")
        assert shown == "An Agent <agent@example.org>, An Agent <agent@example.org>"

    async def test_without_an_author_nothing_is_committed(self, refusal, repo):
        repo.write("a", "changed\n")
        before = repo.head

        assert "authorName and authorEmail" in await refusal("git_commit", {"authorName": ""}, message="x", paths=["a"])
        assert before == repo.head

    async def test_the_reflog_tells_of_it(self, ask, repo):
        repo.write("a", "changed\n")
        await ask("git_commit", message="Told", paths=["a"])

        for name in ("HEAD", "main"):
            assert "commit: Told" in repo.git("reflog", "-1", name)

    async def test_without_a_branch(self, ask, repo):
        repo.git("checkout", "--quiet", "--detach")
        repo.write("a", "changed\n")

        assert (await ask("git_commit", message="x", paths=["a"]))["branch"] is None
        assert repo.git("log", "-1", "--format=%s") == "x"

    @pytest.mark.parametrize("paths", [None, ["a"], ["."]])
    async def test_nothing_to_commit(self, refusal, repo, paths):
        before = repo.head

        assert "there is nothing to commit" in await refusal("git_commit", message="x", paths=paths)
        assert before == repo.head

    async def test_a_head_that_moved(self, refusal, repo):
        old = repo.head
        repo.commit("meanwhile", a="x\n")
        repo.write("a", "changed\n")

        said = await refusal("git_commit", message="x", paths=["a"], head=old)

        assert f"HEAD is at {repo.head[:12]} now, and this call was made for {old[:12]}; nothing was done" in said

    async def test_a_merge_that_is_not_finished(self, refusal, repo):
        (repo.folder / ".git" / "MERGE_HEAD").write_text(f"{repo.head}\n")
        repo.write("a", "changed\n")

        assert "a merge is not finished" in await refusal("git_commit", message="x", paths=["a"])

    @pytest.mark.parametrize("message", ["\u200b", "\n\n", "\x00"])
    async def test_a_message_must_be_visible(self, refusal, repo, message):
        repo.write("a", "changed\n")

        assert "message: expected text that can be seen" in await refusal("git_commit", message=message, paths=["a"])

    @pytest.mark.parametrize("paths", [["."], ["deep"]])
    async def test_secrets_are_not_committed(self, refusal, repo, paths):
        repo.write("deep/.env", "KEY=1\n")
        repo.write("deep/ok", "x\n")
        before = repo.head

        said = await refusal("git_commit", message="x", paths=paths)

        assert "'deep/.env' would be committed, and such files usually hold secrets" in said
        assert before == repo.head
        assert blob(repo, "KEY=1\n") not in objects(repo)

    async def test_a_secret_that_is_staged_is_not_committed(self, refusal, repo):
        repo.write(".env", "KEY=1\n")
        repo.git("add", ".env")

        assert "'.env' would be committed" in await refusal("git_commit", message="x")

    async def test_a_secret_can_be_taken_out(self, ask, repo):
        repo.commit("oops", **{".env": "KEY=1\n"})
        repo.git("rm", "--quiet", ".env")

        assert (await ask("git_commit", message="take it out"))["files"][0]["change"] == "deleted"

    async def test_an_ignored_file_is_not_committed(self, refusal, repo):
        repo.commit("ignore", **{".gitignore": "*.log\n"})
        repo.write("x.log", "x")

        assert "git add failed" in await refusal("git_commit", message="x", paths=["x.log"])

    async def test_a_file_that_needs_a_filter_is_not_committed(self, refusal, repo):
        """Without its filter an encrypted file would be committed in the clear."""
        repo.write(".gitattributes", "*.crypt filter=git-crypt\n")
        repo.write("x.crypt", "very-secret\n")

        said = await refusal("git_commit", message="x", paths=["."])

        assert "'x.crypt' is to go through a filter (such as git-lfs or git-crypt)" in said
        assert blob(repo, "very-secret\n") not in objects(repo)

    async def test_a_repository_within_is_not_committed(self, refusal, repo, make):
        make("inner", folder=repo.folder).commit("x", x="x")

        assert "'inner' is a repository of its own" in await refusal("git_commit", message="x", paths=["inner"])

    async def test_too_many_files(self, refusal, repo):
        for n in range(510):
            repo.write(f"f{n}", "")

        assert "more than 500 files would be committed" in await refusal("git_commit", message="x", paths=["."])

    async def test_somebody_elses_lock_is_told(self, refusal, repo, root):
        (repo.folder / ".git" / "refs" / "heads" / "main.lock").touch()
        repo.write("a", "changed\n")

        said = await refusal("git_commit", message="x", paths=["a"])

        assert "git update-ref failed" in said
        assert str(root) not in said

    async def test_while_the_index_is_locked_no_commit_is_made_halfway(self, refusal, preview, repo):
        before = repo.head
        repo.write("a", "changed\n")
        repo.write(".git/index.lock", "")

        said = await refusal("git_commit", {"maxSeconds": 1}, message="x", paths=["a"])

        assert "the index is locked" in said
        assert repo.head == before
        assert not (await preview("git_commit", {"maxSeconds": 1}, message="x", paths=["a"])).success

    async def test_an_index_that_another_process_has_locked_is_waited_for(self, ask, repo, monkeypatch):
        repo.write("a", "changed\n")
        lock = repo.write(".git/index.lock", "")

        async def let_go(_):
            lock.unlink(missing_ok=True)

        monkeypatch.setattr("agentos_pack_git_repo.changing.asyncio.sleep", let_go)

        assert (await ask("git_commit", message="x", paths=["a"]))["subject"] == "x"

    async def test_two_commits_at_once_are_two_commits(self, hosts, repo):
        for name in ("a", "b"):
            repo.write(name, "changed\n")
        host = await hosts()
        calls = [ToolCall("git_commit", {"repo": "repo", "message": name, "paths": [name]}) for name in ("a", "b")]

        results = await host.tools.process_tool_calls(calls)

        assert [result.success for result in results] == [True, True]
        assert repo.git("log", "-2", "--format=%s").splitlines() == ["b", "a"]
        assert repo.git("status", "--porcelain") == ""

    async def test_the_preview_says_what_would_be_committed_and_changes_nothing(self, preview, repo):
        repo.write("a", "changed\n")
        repo.write("new", b"\x00")
        before = state(repo)

        shown = await preview("git_commit", message="Change things\n\nmore", paths=["."])

        assert shown.output == {
            "would": "commit 2 files on branch 'main' of 'repo' as An Agent <agent@example.org>: 'Change things'",
            "details": ["modified: a (+1 -2)", "added: new (binary)"],
        }
        assert before == state(repo)

    async def test_the_preview_of_what_is_staged(self, preview, repo):
        repo.write("a", "changed\n")
        repo.git("add", "a")
        before = state(repo)

        assert (await preview("git_commit", message="x")).output["details"] == ["modified: a (+1 -2)"]
        assert before == state(repo)


def hook(repo, name, text):
    path = repo.write(f".git/hooks/{name}", f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


class TestHooks:
    """Of a repository's hooks, those of a commit run if the operator says so."""

    async def test_a_hook_can_refuse_a_commit(self, refusal, repo):
        hook(repo, "pre-commit", "echo 'not like that' >&2; exit 1")
        repo.write("a", "changed\n")
        before = repo.head

        assert "not like that" in await refusal("git_commit", {"hooks": True}, message="x", paths=["a"])
        assert before == repo.head

    async def test_a_hook_can_edit_the_message(self, ask, repo):
        hook(repo, "commit-msg", 'echo "Reviewed: yes" >> "$1"')
        repo.write("a", "changed\n")
        await ask("git_commit", {"hooks": True}, message="x", paths=["a"])

        assert repo.git("log", "-1", "--format=%B") == "x\nReviewed: yes"

    async def test_a_hook_is_told_afterwards(self, ask, repo):
        hook(repo, "post-commit", "touch ../told; exit 1")
        repo.write("a", "changed\n")
        await ask("git_commit", {"hooks": True}, message="x", paths=["a"])

        assert (repo.folder.parent / "told").exists()

    async def test_a_dry_run_runs_none(self, preview, repo):
        hook(repo, "pre-commit", "touch ../told")
        repo.write("a", "changed\n")
        await preview("git_commit", {"hooks": True}, message="x", paths=["a"])

        assert not (repo.folder.parent / "told").exists()


class TestBranch:
    async def test_a_branch_is_made(self, ask, repo):
        made = await ask("git_branch", name="fix/login", start="HEAD~1")

        assert made == {"name": "fix/login", "commit": repo.git("rev-parse", "HEAD~1"), "checked_out": False}
        assert repo.git("rev-parse", "fix/login") == made["commit"]
        assert repo.git("branch", "--show-current") == "main"

    async def test_a_branch_is_checked_out(self, ask, repo):
        repo.write("a", "changed\n")
        await ask("git_branch", name="fix", checkout=True)

        assert repo.git("branch", "--show-current") == "fix"
        assert (repo.folder / "a").read_text() == "changed\n"
        assert "moving from main to fix" in repo.git("reflog", "-1", "HEAD")

    async def test_what_would_change_files_is_not_checked_out(self, refusal, repo):
        assert "checkout: files would change" in await refusal("git_branch", name="fix", start="HEAD~1", checkout=True)
        assert repo.git("branch", "--list", "fix") == ""

    async def test_a_branch_that_there_is_already(self, refusal, repo):
        repo.git("branch", "old", "HEAD~1")

        assert "name: there is a branch 'old' already" in await refusal("git_branch", name="old")
        assert repo.git("rev-parse", "old") == repo.git("rev-parse", "HEAD~1")

    async def test_a_name_in_the_way(self, refusal, repo):
        assert "can't be beside the branch 'main'" in await refusal("git_branch", name="main/deeper")

    @pytest.mark.parametrize("name", ["main/inner", "outer"])
    async def test_the_preview_tells_of_a_name_in_the_way(self, preview, repo, name):
        repo.git("branch", "outer/inner")

        assert "can't be beside the branch" in (await preview("git_branch", name=name)).content

    async def test_a_name_beyond_ascii(self, ask, repo):
        await ask("git_branch", name="füße")

        assert "füße" in [one["name"] for one in (await ask("git_status"))["branches"]]

    async def test_the_preview_changes_nothing(self, preview, repo):
        before = state(repo)

        shown = await preview("git_branch", name="fix", checkout=True)

        assert shown.output == {
            "would": "make the branch 'fix' in 'repo'",
            "details": [
                f"it starts at {repo.head[:12]} 'second'",
                "checked out instead of 'main'; no file changes",
            ],
        }
        assert before == state(repo)


class TestReset:
    async def test_a_reset_always_asks(self, hosts, repo):
        host = await hosts()
        arguments = {"repo": "repo", "target": "HEAD~1", "head": repo.head}
        result = await host.tools.process_tool_call(ToolCall("git_reset", arguments))

        assert result.error.type == "ApprovalRequired"

    async def test_soft_keeps_index_and_files(self, ask, repo):
        before = repo.head

        done = await ask("git_reset", target="HEAD~1", head=before, mode="soft")

        assert (done["previous"], done["head"]) == (before, repo.head)
        assert repo.git("status", "--porcelain") == "M  a"

    async def test_mixed_keeps_files(self, ask, repo):
        repo.write("b", "staged\n")
        repo.git("add", "b")

        done = await ask("git_reset", target="HEAD~1", head=repo.head)

        assert done["lost"]["unstaged"] == ["b"]
        assert repo.git("status", "--porcelain").splitlines() == ["M a", " M b"]

    async def test_hard_keeps_nothing(self, ask, repo):
        repo.write("b", "changed\n")

        done = await ask("git_reset", target="HEAD~1", head=repo.head, mode="hard")

        assert done["lost"]["overwritten"] == ["b"]
        assert repo.git("status", "--porcelain") == ""
        assert (repo.folder / "a").read_text() == "one\n"

    async def test_lost_commits_can_be_had_back(self, ask, repo):
        before = repo.head
        done = await ask("git_reset", target="HEAD~1", head=before, mode="hard")

        await ask("git_reset", target=done["previous"], head=repo.head, mode="hard")

        assert before == repo.head

    async def test_the_preview_tells_which_commits_and_files_are_lost(self, preview, repo):
        repo.write("b", "changed\n")
        repo.write("c", "staged\n")
        repo.git("add", "c")
        before = state(repo)

        shown = await preview("git_reset", target="HEAD~1", head=repo.head[:10], mode="hard")

        first = repo.git("rev-parse", "HEAD~1")
        assert shown.output == {
            "would": f"move branch 'main' of 'repo' from {repo.head[:12]} to {first[:12]} (hard)",
            "details": [
                f"leaves the branch: {repo.head[:12]} second",
                "1 commit will be on no branch or tag any more",
                "content is lost for good: b",
                "content is lost for good: c",
            ],
        }
        assert before == state(repo)

    async def test_a_commit_that_another_branch_has_is_not_lost(self, preview, repo):
        repo.git("branch", "kept")

        details = (await preview("git_reset", target="HEAD~1", head=repo.head, mode="soft")).output["details"]

        assert details == [f"leaves the branch: {repo.head[:12]} second"]

    async def test_an_untracked_file_in_the_way_is_told(self, ask, preview, repo):
        repo.commit("with c", c="committed\n")
        with_c = repo.head
        repo.git("reset", "--quiet", "--hard", "HEAD~1")
        repo.write("c", "precious\n")

        shown = await preview("git_reset", target=with_c, head=repo.head, mode="hard")

        assert shown.output["details"] == ["content is lost for good: c"]

    async def test_an_untracked_file_where_a_folder_is_to_be_is_told(self, ask, preview, repo):
        target = repo.commit("third", **{"folder/inner": "x\n"})
        repo.git("reset", "--quiet", "--hard", "HEAD~1")
        repo.write("folder", "precious\n")

        given = {"target": target, "head": repo.head, "mode": "hard"}
        said = await preview("git_reset", **given)
        done = await ask("git_reset", **given)

        assert said.output["details"] == ["content is lost for good: folder"]
        assert done["lost"]["overwritten"] == ["folder"]

    async def test_a_file_that_is_as_the_target_has_it_is_not_lost(self, preview, repo):
        target = repo.head
        repo.git("reset", "--quiet", "--soft", "HEAD~1")
        repo.write("b", "changed\n")

        shown = await preview("git_reset", target=target, head=repo.head, mode="hard")

        assert shown.output["details"] == ["content is lost for good: b"]

    async def test_a_reset_that_loses_nothing(self, preview, repo):
        shown = await preview("git_reset", target="HEAD", head=repo.head, mode="hard")

        assert shown.output["details"] == ["nothing is lost"]

    async def test_many_commits_are_counted(self, preview, repo):
        start = repo.head
        for n in range(52):
            repo.git("commit", "--quiet", "--allow-empty", "-m", f"n{n}")

        details = (await preview("git_reset", target=start, head=repo.head)).output["details"]

        assert "and 2 more commits" in details
        assert "52 commits will be on no branch or tag any more" in details

    @pytest.mark.parametrize("mode", ["soft", "mixed", "hard"])
    async def test_a_head_that_moved(self, refusal, repo, mode):
        old = repo.head
        repo.commit("meanwhile")
        now = repo.head

        said = await refusal("git_reset", target="HEAD~1", head=old, mode=mode)

        assert "and this call was made for" in said
        assert now == repo.head

    async def test_a_head_that_moved_while_the_call_waited(self, hosts, repo):
        host = await hosts()
        arguments = {"repo": "repo", "target": "HEAD~1", "head": repo.head, "mode": "hard"}
        asked = await host.tools.process_tool_call(ToolCall("git_reset", arguments))
        now = repo.commit("meanwhile")
        late = await host.approvals.approve(asked.error.details["token"])

        assert "nothing was done. Look again" in late.content
        assert now == repo.head

    @pytest.mark.parametrize("head", ["HEAD~1x", "main-branch", "--hard-reset", "1234567g"])
    async def test_what_is_expected_is_a_hash(self, refusal, repo, head):
        assert "head: expected a commit's hash" in await refusal("git_reset", target="HEAD~1", head=head)

    async def test_files_that_need_a_filter_are_not_written(self, refusal, repo):
        repo.commit("encrypted", **{".gitattributes": "*.crypt filter=git-crypt\n", "x.crypt": "x\n"})
        encrypted = repo.head
        repo.git("reset", "--quiet", "--hard", "HEAD~1")

        said = await refusal("git_reset", target=encrypted, head=repo.head, mode="hard")

        assert "'x.crypt' is to go through a filter" in said
        assert not (repo.folder / "x.crypt").exists()

"""The tools that only look."""

import pytest


class TestStatus:
    async def test_a_clean_repository(self, ask, repo):
        repo.git("branch", "other")

        found = await ask("git_status")

        assert found == {
            "repo": "repo",
            "branch": "main",
            "head": repo.head,
            "upstream": None,
            "ahead": None,
            "behind": None,
            "operation": None,
            "clean": True,
            "files": [],
            "branches": [{"name": "main", "commit": repo.head}, {"name": "other", "commit": repo.head}],
            "truncated": False,
        }

    async def test_every_kind_of_difference(self, ask, repo):
        repo.write("a", "changed\n")
        (repo.folder / "b").unlink()
        repo.write("new file", "x")
        repo.write("staged", "x")
        repo.git("add", "staged")
        repo.git("rm", "--quiet", "--cached", "b")

        found = {one["path"]: (one["index"], one["folder"]) for one in (await ask("git_status"))["files"]}

        assert found == {
            "a": ("unmodified", "modified"),
            "b": ("deleted", "unmodified"),
            "staged": ("added", "unmodified"),
            "new file": ("untracked", "untracked"),
        }

    async def test_a_repository_without_commits(self, ask, make):
        make()

        found = await ask("git_status")

        assert (found["branch"], found["head"], found["branches"]) == ("main", None, [])

    async def test_no_branch(self, ask, repo):
        repo.git("checkout", "--quiet", "--detach")

        assert (await ask("git_status"))["branch"] is None

    async def test_how_far_the_upstream_is(self, ask, repo, root):
        repo.git("clone", "--quiet", "--no-hardlinks", str(repo.folder), str(root / "copy"))
        copy = type(repo)(root / "copy")
        copy.commit("mine")

        found = await ask("git_status", repo="copy")

        assert (found["upstream"], found["ahead"], found["behind"]) == ("origin/main", 1, 0)

    async def test_a_merge_that_is_not_finished(self, ask, repo):
        repo.git("checkout", "--quiet", "-b", "side", "HEAD~1")
        repo.commit("side", a="other\n")
        repo.git("checkout", "--quiet", "main")
        with pytest.raises(AssertionError):
            repo.git("merge", "side")

        found = await ask("git_status")

        assert found["operation"] == "merge"
        assert {"path": "a", "index": "unmerged", "folder": "unmerged"} in found["files"]

    async def test_looking_writes_nothing(self, ask, repo):
        repo.write("a", "changed\n")
        before = {path: path.stat().st_mtime_ns for path in repo.folder.rglob("*")}

        await ask("git_status")
        await ask("git_diff")

        assert before == {path: path.stat().st_mtime_ns for path in repo.folder.rglob("*")}

    async def test_a_folder_within_names_its_repository(self, ask, repo):
        (repo.folder / "sub" / "deep").mkdir(parents=True)

        assert (await ask("git_status", repo="repo/sub/deep"))["repo"] == "repo"

    async def test_the_root_itself_may_be_a_repository(self, ask, make, root):
        make("top", folder=root.parent / "elsewhere").commit("one")
        (root.parent / "elsewhere" / "top").rename(root.parent / "moved")
        root.rmdir()
        (root.parent / "moved").rename(root)

        assert (await ask("git_status", repo="."))["repo"] == "."

    async def test_many_files_are_cut_and_said(self, ask, repo):
        for n in range(510):
            repo.write(f"f{n}", "")

        found = await ask("git_status")

        assert (len(found["files"]), found["truncated"], found["clean"]) == (500, True, False)

    async def test_another_hash(self, ask, make):
        made = make(init=["--object-format=sha256"])
        made.commit("one", a="x")

        assert len((await ask("git_status"))["head"]) == 64
        assert (await ask("git_show"))["files"][0]["path"] == "a"


class TestLog:
    async def test_commits_are_listed_with_all_that_matters(self, ask, repo):
        found = await ask("git_log")

        assert found == {
            "commits": [
                {
                    "commit": repo.head,
                    "parents": [repo.git("rev-parse", "HEAD~1")],
                    "author": "Ann",
                    "email": "ann@example.org",
                    "date": "2024-07-01T10:00:00+00:00",
                    "subject": "second",
                    "body": "with a body",
                },
                {
                    "commit": repo.git("rev-parse", "HEAD~1"),
                    "parents": [],
                    "author": "Ann",
                    "email": "ann@example.org",
                    "date": "2024-07-01T10:00:00+00:00",
                    "subject": "first",
                    "body": "",
                },
            ],
            "truncated": False,
        }

    @pytest.mark.parametrize(
        ("arguments", "subjects"),
        [
            ({"rev": "HEAD~1"}, ["first"]),
            ({"rev": "main^"}, ["first"]),
            ({"path": "b"}, ["first"]),
            ({"text": "SECOND"}, ["second"]),
            ({"text": "s.cond"}, []),
            ({"author": "ann"}, ["second", "first"]),
            ({"author": "bob"}, []),
            ({"limit": 1}, ["second"]),
            ({"skip": 1}, ["first"]),
        ],
        ids=str,
    )
    async def test_commits_are_chosen(self, ask, repo, arguments, subjects):
        assert subjects == [one["subject"] for one in (await ask("git_log", **arguments))["commits"]]

    async def test_a_list_that_goes_on_says_so(self, ask, repo):
        assert (await ask("git_log", limit=1))["truncated"]

    async def test_a_repository_without_commits(self, refusal, make):
        make()

        assert "there is no commit 'HEAD' here" in await refusal("git_log")

    async def test_messages_are_plain(self, ask, repo):
        repo.commit("red \x1b[31m\u202eand hidden\u200b")

        assert (await ask("git_log"))["commits"][0]["subject"] == "red and hidden"


class TestDiff:
    async def test_what_is_not_staged(self, ask, repo):
        repo.write("a", "one\n2\n")

        found = await ask("git_diff")

        assert found["compared"] == "the index to the folder"
        assert found["files"] == [{"path": "a", "change": "modified", "added": 1, "deleted": 1, "binary": False}]
        assert found["patch"].endswith("@@ -1,2 +1,2 @@\n one\n-two\n+2\n")

    async def test_what_is_staged(self, ask, repo):
        repo.write("c", "new\n")
        repo.git("add", "c")

        assert (await ask("git_diff"))["files"] == []
        assert (await ask("git_diff", staged=True))["files"][0]["change"] == "added"

    async def test_commits(self, ask, repo):
        found = await ask("git_diff", base="HEAD~1", target="HEAD", context_lines=0)

        assert found["compared"] == "commit HEAD~1 to commit HEAD"
        assert found["patch"].endswith("@@ -1,0 +2 @@ one\n+two\n")

    async def test_a_commit_and_the_folder(self, ask, repo):
        repo.write("b", "")

        assert {one["path"] for one in (await ask("git_diff", base="HEAD~1"))["files"]} == {"a", "b"}

    async def test_one_path(self, ask, repo):
        assert (await ask("git_diff", base="HEAD~1", target="HEAD", path="b"))["files"] == []

    async def test_a_binary_file(self, ask, repo):
        repo.write("a", b"\x00\x01" * 100)

        found = await ask("git_diff")

        assert found["files"] == [{"path": "a", "change": "modified", "added": None, "deleted": None, "binary": True}]
        assert "Binary files a/a and b/a differ" in found["patch"]

    async def test_a_huge_patch_is_cut_while_it_is_read(self, ask, repo):
        repo.write("a", "line\n" * 3_000_000)

        found = await ask("git_diff", {"maxBytes": 2_000})

        assert len(found["patch"]) <= 2_000
        assert found["truncated"]

    async def test_many_files_are_cut(self, ask, repo):
        repo.commit("many", **{f"f{n}": "x\n" for n in range(510)})

        found = await ask("git_diff", base="HEAD~1", target="HEAD")

        assert (len(found["files"]), found["truncated"]) == (500, True)

    async def test_secrets_are_named_and_not_shown(self, ask, repo):
        repo.commit("oops", **{".env": "KEY=very-secret\n", "z": "fine\n", 'odd "name".pem': "very-secret\n"})

        found = await ask("git_diff", base="HEAD~1", target="HEAD")

        assert sorted(found["withheld"]) == [".env", 'odd "name".pem']
        assert "very-secret" not in str(found)
        assert "+fine" in found["patch"]

    async def test_the_operator_may_withhold_more(self, ask, repo):
        found = await ask("git_diff", {"hidden": ["a"]}, base="HEAD~1", target="HEAD")

        assert (found["withheld"], found["patch"]) == (["a"], "")

    async def test_a_conflict_is_shown(self, ask, repo):
        repo.git("checkout", "--quiet", "-b", "side", "HEAD~1")
        repo.commit("side", a="other\n")
        repo.git("checkout", "--quiet", "main")
        with pytest.raises(AssertionError):
            repo.git("merge", "side")

        assert "diff --cc a" in (await ask("git_diff"))["patch"]

    @pytest.mark.parametrize("arguments", [{"target": "HEAD"}, {"base": "HEAD", "target": "HEAD", "staged": True}])
    async def test_a_target_needs_a_base_alone(self, refusal, repo, arguments):
        assert "target: goes with base alone" in await refusal("git_diff", **arguments)


class TestShow:
    async def test_a_commit(self, ask, repo):
        found = await ask("git_show")

        assert (found["kind"], found["commit"]["subject"], found["commit"]["body"]) == (
            "commit",
            "second",
            "with a body",
        )
        assert [one["path"] for one in found["files"]] == ["a"]
        assert "+two" in found["text"]

    async def test_the_first_commit(self, ask, repo):
        found = await ask("git_show", rev="HEAD~1")

        assert [(one["path"], one["change"]) for one in found["files"]] == [("a", "added"), ("b", "added")]

    async def test_a_merge_is_shown_against_its_first_parent(self, ask, repo):
        repo.git("checkout", "--quiet", "-b", "side", "HEAD~1")
        repo.commit("side", c="new\n")
        repo.git("checkout", "--quiet", "main")
        repo.git("merge", "--quiet", "--no-edit", "side")

        assert [one["path"] for one in (await ask("git_show"))["files"]] == ["c"]

    async def test_a_file_as_it_was(self, ask, repo):
        found = await ask("git_show", rev="HEAD~1", path="a")

        assert (found["kind"], found["path"], found["text"]) == ("file", "a", "one\n")

    async def test_a_folder(self, ask, repo):
        repo.commit("deep", **{"sub/deep/x": "x", "sub/y": "y"})

        assert (await ask("git_show", path="sub"))["names"] == ["deep/", "y"]
        assert (await ask("git_show", path="."))["names"] == ["a", "b", "sub/"]

    async def test_a_link_is_its_target_and_not_what_is_there(self, ask, repo):
        (repo.folder / "link").symlink_to("/etc/passwd")
        repo.commit("link")

        found = await ask("git_show", path="link")

        assert (found["kind"], found["text"]) == ("link", "/etc/passwd")

    async def test_a_binary_file(self, ask, repo):
        repo.commit("binary", c=b"\x00\x01")

        found = await ask("git_show", path="c")

        assert (found["binary"], found["text"]) == (True, "")

    async def test_a_long_file_is_cut(self, ask, repo):
        repo.commit("long", c="x" * 5_000)

        found = await ask("git_show", {"maxBytes": 1_000}, path="c")

        assert (len(found["text"]), found["truncated"]) == (1_000, True)

    async def test_a_secret_file_is_withheld(self, refusal, repo):
        repo.commit("oops", **{"conf/.env": "KEY=very-secret\n"})

        said = await refusal("git_show", path="conf/.env")

        assert "is withheld, since such a file usually holds secrets" in said

    async def test_a_path_that_is_not_there(self, refusal, repo):
        assert "there is no 'zz' in commit" in await refusal("git_show", path="zz")


class TestBlame:
    async def test_every_line_has_its_commit(self, ask, repo):
        found = await ask("git_blame", path="a")

        assert [(line["number"], line["text"], line["commit"]) for line in found["lines"]] == [
            (1, "one", repo.git("rev-parse", "HEAD~1")),
            (2, "two", repo.head),
        ]
        assert found["lines"][0]["author"] == "Ann"
        assert found["lines"][0]["date"] == "2024-07-01T10:00:00+00:00"
        assert not found["truncated"]

    async def test_some_lines(self, ask, repo):
        repo.commit("long", a="".join(f"{n}\n" for n in range(1, 50)))

        found = await ask("git_blame", path="a", first=10, count=3)

        assert ([line["text"] for line in found["lines"]], found["truncated"]) == (["10", "11", "12"], True)

    async def test_the_last_lines(self, ask, repo):
        found = await ask("git_blame", path="a", first=2, count=1)

        assert ([line["text"] for line in found["lines"]], found["truncated"]) == (["two"], False)

    async def test_changes_that_are_not_committed_do_not_count(self, ask, repo):
        repo.write("a", "changed\n")

        assert (await ask("git_blame", path="a"))["lines"][0]["text"] == "one"

    async def test_lines_beyond_the_end(self, refusal, repo):
        assert "has only 2 lines" in await refusal("git_blame", path="a", first=9)

    @pytest.mark.parametrize("path", ["zz", "."])
    async def test_what_is_no_file(self, refusal, repo, path):
        assert "there is no file" in await refusal("git_blame", path=path)


async def test_what_git_says_of_a_failure_is_not_lost_among_its_hints(refusal, repo):
    said = await refusal("git_blame", path="a", first=5_000)

    assert "has only 2 lines" in said
    assert "hint" not in said

"""`agentos memory`: list, search and forget, for one principal."""

import json

import pytest
from commanding import Project

PACK = """
from agentos import Descriptor, ExtensionPack, MemoryHit, MemoryStats
import json, pathlib

FILE = pathlib.Path(__file__).with_name("shelf.json")


class Shelf:
    def kept(self):
        return json.loads(FILE.read_text())

    def remember(self, record): raise ValueError("full")

    def recall(self, query, *, scope, limit=5):
        day = "2026-11-01T10:00:00+00:00"
        hits = [MemoryHit(id, text, who, saved_at=day) for id, (who, text) in self.kept().items()]
        return [hit for hit in hits if hit.is_within(scope) and query in hit.text][:limit]

    def forget(self, ids, *, scope):
        kept = self.kept()
        own = [id for id in ids if id in kept and kept[id][0] == scope.principal]
        FILE.write_text(json.dumps({id: row for id, row in kept.items() if id not in own}))
        return len(own)

    def stats(self, scope):
        return MemoryStats(sum(who == scope.principal for who, _ in self.kept().values()))


def create_extension_pack():
    return ExtensionPack("shelf", "1.0", [Descriptor("memory-provider", "shelf", Shelf())])
"""
KEPT = {"1": ["ann", "ann likes tea\n\x1b[2Jand rain"], "2": ["ann", "milk"], "3": ["ben", "ben's tea"]}


@pytest.fixture
def project(tmp_path):
    made = Project(tmp_path, '[principals.ann]\n[principals.ben]\n[[packs]]\nmodule = "shelf.py"\n', shelf=PACK)
    (tmp_path / "shelf.json").write_text(json.dumps(KEPT))
    return made


def test_list_shows_what_is_remembered_of_the_principal(project):
    done = project.run("memory", "list", "--principal", "ann")

    assert done.code == 0
    assert "shelf:1" in done.out
    assert "2026-11-01" in done.out
    assert "ben" not in done.out
    assert "\x1b[2J" not in done.out


def test_search_finds_and_counts(project):
    done = project.run("memory", "search", "tea", "--principal", "ben", "--json")

    assert [row["id"] for row in done.json["memories"]] == ["shelf:3"]
    assert (done.json["principal"], done.json["count"]) == ("ben", 1)


def test_forget_deletes_one_s_own_alone(project):
    refused = project.run("memory", "forget", "shelf:1", "--principal", "ben")
    done = project.run("memory", "forget", "shelf:1", "shelf:3", "--principal", "ann", "--json")

    assert refused.code == 1
    assert "nothing of that id is remembered" in refused.err
    assert (done.code, done.json["forgotten"]) == (0, 1)
    left = project.run("memory", "list", "--principal", "ann", "--json").json["memories"]
    assert [row["text"] for row in left] == ["milk"]


def test_nothing_is_said_plainly(project):
    assert "Nothing is remembered." in project.run("memory", "list").out
    assert "Nothing that is remembered fits." in project.run("memory", "search", "snow", "--principal", "ann").out
    assert project.run("memory", "search", " ").code == 2


def test_without_a_provider_the_command_says_how_to_get_one(tmp_path):
    done = Project(tmp_path, "").run("memory", "list")

    assert done.code == 1
    assert "agentos packs add sqlite-memory" in done.err


@pytest.mark.parametrize("words", [("memory",), ("memory", "list"), ("memory", "search"), ("memory", "forget")])
def test_help_has_examples(project, words):
    assert "Examples:" in project.run(*words, "--help").out

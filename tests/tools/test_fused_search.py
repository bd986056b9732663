"""Search by words and by meaning, with the vectors of the extra `search`."""

import socket
import sys

import pytest

from agentos import PUBLIC
from agentos.stacks.entry import EntryState
from agentos.tools import fused_search
from agentos.tools.fused_search import FusedToolIndex, index_of, word_vectors
from agentos.tools.listing import ToolInfo
from agentos.tools.search import ToolIndex

pytest.importorskip("wordllama", reason="the extra `search` is not installed")

TOOLS = {
    "send_mail": "Send a message to somebody by electronic mail.",
    "get_weather": "Return the temperature and whether it rains in a city.",
    "translateText": "Translate a text from one language to another.",
    "stock_price": "Return the price of a share on the stock exchange.",
    "book_flight": "Reserve a seat on an airplane.",
}


def info(name, description):
    return ToolInfo(
        name=name,
        description=description,
        input_schema={},
        output_schema=None,
        effect="read",
        required_access=PUBLIC,
        display_name=name,
        category=None,
        source="extension",
        fully_qualified_id=f"p:{name}",
        aliases=(),
        state=EntryState.ACTIVE,
    )


INFOS = [info(name, description) for name, description in TOOLS.items()]


@pytest.fixture(scope="module")
def index():
    return FusedToolIndex(INFOS, word_vectors())


def names(hits):
    return [hit.info.name for hit in hits]


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("Is it sunny outside?", "get_weather"),
        ("write an email", "send_mail"),
        ("plane tickets to Rome", "book_flight"),
        ("languages: English into French", "translateText"),
    ],
)
def test_a_tool_is_found_by_what_it_means(index, query, wanted):
    assert names(index.search(query))[0] == wanted


def test_words_alone_would_not_have_found_it():
    assert names(ToolIndex(INFOS).search("Is it sunny outside?")) == []


@pytest.mark.parametrize("name", [*TOOLS, "GET_WEATHER", " stock_price "])
def test_who_knows_a_name_finds_it_first(index, name):
    assert names(index.search(name))[0].casefold() == name.strip().casefold()


def test_only_what_may_be_called_is_found(index):
    assert names(index.search("weather mail flight", among={"send_mail"})) == ["send_mail"]
    assert names(index.search("get_weather", among={"send_mail"})) == []


def test_no_more_is_found_than_was_asked_for(index):
    assert len(index.search("send price weather text seat", 2)) == 2


@pytest.mark.parametrize("query", ["", " ", "\u200b", "\ud800", "x" * 100_000, "?" * 5_000])
def test_any_text_can_be_asked_for(index, query):
    assert len(index.search(query)) <= len(TOOLS)


def test_the_same_query_finds_the_same(index):
    assert index.search("send a message") == FusedToolIndex(INFOS, word_vectors()).search("send a message")


def test_an_index_of_nothing_finds_nothing():
    assert FusedToolIndex([], word_vectors()).search("weather") == []


def test_the_vectors_are_used_where_they_are(monkeypatch):
    assert type(index_of(INFOS)) is FusedToolIndex

    monkeypatch.setattr(fused_search, "word_vectors", lambda: None)
    assert type(index_of(INFOS)) is ToolIndex


@pytest.mark.parametrize("missing", ["wordllama", "numpy"])
def test_without_the_extra_words_alone_count(missing, monkeypatch):
    monkeypatch.setattr(fused_search, "find_spec", lambda name: None if missing == "wordllama" else object())
    if missing == "numpy":
        monkeypatch.setitem(sys.modules, "wordllama", None)

    assert word_vectors.__wrapped__() is None


def test_nothing_is_fetched(monkeypatch):
    def refuse(*args, **more):
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)

    assert word_vectors.__wrapped__() is not None

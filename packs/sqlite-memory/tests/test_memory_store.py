"""The memory: what is stored is found, by those who may see it."""

import pytest
from agentos_pack_common.sqlite import StorageError
from agentos_pack_sqlite_memory._search import CANDIDATES

from agentos import Principal

ADA = Principal("ada", access={"memory:read", "memory:write"})
BOB = Principal("bob", access={"memory:read", "memory:write"})
EVE = Principal("eve", access={"memory:read", "memory:write", "memory:share"})

DAY = 86_400


async def texts(store, *args, **kwargs):
    return [memory.text for memory in (await store.query(*args, **kwargs)).memories]


async def stored(store, *all, **fields):
    return [(await store.store(text, **fields)).id for text in all]


# -- finding -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("run", "Ada likes running in the rain"),
        ("RUNNING rain", "Ada likes running in the rain"),
        ("cafe", "Meet at the Café Zürich"),
        ("zurich", "Meet at the Café Zürich"),
        ("e-mail", "Her e-mail is ada@example.org"),
        ("ada@example.org", "Her e-mail is ada@example.org"),
        ("привет", "Привет, мир"),
        ("v1.2.3", "We deploy v1.2.3 on Monday"),
    ],
)
async def test_words_and_their_forms_are_found(store, query, text):
    await stored(store, text, "something else entirely")

    assert await texts(store, query) == [text]


async def test_nothing_is_found_where_nothing_fits(store):
    await stored(store, "Ada likes rain")

    assert await texts(store, "snow") == []


@pytest.mark.parametrize("query", ["", "   "])
async def test_without_a_query_the_newest_come_first(store, query):
    await stored(store, "first", "second", "third")

    assert await texts(store, query) == ["third", "second", "first"]


@pytest.mark.parametrize("query", ["!!!", '"', "\u202e", "-- ;"])
async def test_a_query_without_a_word_finds_nothing(store, query):
    await stored(store, "first")

    assert await texts(store, query) == []


async def test_what_has_all_words_comes_before_what_has_some(store):
    await stored(store, "the red house by the lake", "a red red red car", "a house on a hill")

    assert (await texts(store, "red house"))[0] == "the red house by the lake"
    assert len(await texts(store, "red house")) == 3


async def test_a_rare_word_tells_more_than_a_common_one(store):
    await stored(store, "zeppelin notes", *(f"notes of meeting {n}" for n in range(30)))

    assert (await texts(store, "notes zeppelin report", limit=3))[0] == "zeppelin notes"


async def test_of_equal_fits_the_recent_comes_first(store, clock):
    await stored(store, "the office is in Rome")
    clock.now += 90 * DAY
    await stored(store, "the office is in Oslo")

    assert await texts(store, "office") == ["the office is in Oslo", "the office is in Rome"]


async def test_a_much_better_fit_outweighs_age(store, clock):
    await stored(store, "zeppelin zeppelin zeppelin")
    clock.now += 90 * DAY
    await stored(store, "a long text about many other things which has the word zeppelin once and then goes on and on")
    await stored(store, *(f"filler {n}" for n in range(20)))

    assert (await texts(store, "zeppelin"))[0] == "zeppelin zeppelin zeppelin"


async def test_tags_are_searched_too(store):
    await stored(store, "no milk please", tags=["allergy"])

    assert await texts(store, "allergies") == ["no milk please"]


async def test_results_are_narrowed_by_tags(store):
    await stored(store, "tea", tags=["drink", "hot"])
    await stored(store, "ice", tags=["drink", "cold"])

    assert await texts(store, "", tags=["drink", "hot"]) == ["tea"]
    assert await texts(store, "tea ice", tags=["cold"]) == ["ice"]


async def test_results_are_narrowed_by_namespace(store):
    await stored(store, "plan of the garden", namespace="home")
    await stored(store, "plan of the bridge", namespace="work")

    assert await texts(store, "plan", namespace="work") == ["plan of the bridge"]


async def test_more_than_asked_for_is_told(store):
    await stored(store, *(f"note {n}" for n in range(5)))

    assert (await store.query("note", limit=4)).truncated
    assert not (await store.query("note", limit=5)).truncated


async def test_long_texts_are_cut_and_say_so(store):
    await stored(store, "word " * 100)

    (memory,) = (await store.query("word", max_chars=50)).memories
    assert (len(memory.text), memory.truncated) == (50, True)


async def test_what_is_found_has_what_was_stored_with_it(store, clock):
    saved = await store.store(
        "Ada was born in 1815", principal=ADA, namespace="people", tags=["date"], metadata={"source": "book", "page": 3}
    )

    (memory,) = (await store.query("born", principal=ADA)).memories
    assert (memory.id, memory.namespace, memory.tags) == (saved.id, "people", ["date"])
    assert memory.metadata == {"source": "book", "page": 3}
    assert (memory.saved_at, memory.expires_at, memory.mine) == ("2023-11-14T22:13:20+00:00", None, True)


async def test_a_search_among_very_many_ranks_the_newest_that_fit(store):
    """Common words match nearly everything; what has all the words is still found, whenever it was stored."""
    await stored(store, "alpha omega")

    def fill(connection):
        connection.execute(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000)"
            " INSERT INTO memories(ref, owner, namespace, shared, text, digest, tags, metadata, scope, saved)"
            " SELECT 'r' || i, owner, namespace, shared, 'alpha common ' || (i % 977), 'd' || i, '[]', '{}', scope,"
            " saved FROM n, (SELECT * FROM memories LIMIT 1)"
        )
        connection.execute("INSERT INTO words(words) VALUES ('rebuild')")

    await store._database.write(fill)

    assert await texts(store, "alpha omega", limit=1) == ["alpha omega"]
    assert await texts(store, "what about omega", limit=1) == ["alpha omega"]
    assert await texts(store, "common 976", limit=1) == ["alpha common 976"]
    assert len(await texts(store, "alpha common", limit=50)) == 50
    assert (await store.stats()).memories == 100_001


HOSTILE = [
    '"',
    "a AND",
    "NOT NOT",
    "NEAR(a b)",
    "scope:o1 OR x",
    "{text tags} : x",
    "x) OR scope : (s1",
    "a*",
    "^a",
    "(((",
    "a\0b",
    "\ud800",
    "%_\\",
    "'; DROP TABLE memories; --",
    "x" * 500,
    "🙂",
    " ".join(str(n) for n in range(120)),
]


@pytest.mark.parametrize("query", HOSTILE)
async def test_no_query_is_syntax(store, query):
    await stored(store, "quite ordinary", principal=ADA)

    assert await texts(store, query, principal=BOB) == []


@pytest.mark.parametrize("text", [text for text in HOSTILE if "\0" not in text and "\ud800" not in text])
async def test_any_text_is_kept_as_it_is(store, text):
    await stored(store, text)

    assert await texts(store, "") == [text]


async def test_hidden_characters_are_not_given_to_a_model(store):
    await stored(store, "pay\u202e lla\u200b now\x1b[31m")

    assert await texts(store, "now") == ["pay lla now"]


# -- parts of words ----------------------------------------------------------------------------------------------


async def test_without_trigrams_parts_of_words_are_not_found(store):
    await stored(store, "東京タワーは高い")

    assert await texts(store, "タワー") == []


@pytest.mark.parametrize(
    ("query", "text"), [("タワー", "東京タワーは高い"), ("12345", "order AB-1234567"), ("ntastic", "A fantastic day")]
)
async def test_with_trigrams_they_are(make_store, query, text):
    async with make_store(trigram=True) as store:
        await stored(store, text, "unrelated words")

        assert await texts(store, query) == [text]


async def test_trigrams_can_be_added_later_and_follow_from_then_on(make_store):
    async with make_store() as store:
        first, _ = await stored(store, "fantastic", "other")
    async with make_store(trigram=True) as store:
        assert await texts(store, "antast") == ["fantastic"]
    async with make_store() as store:
        await store.delete([first])
        await stored(store, "enthusiastic")
    async with make_store(trigram=True) as store:
        assert await texts(store, "siast") == ["enthusiastic"]
        assert await texts(store, "antast") == []


async def test_trigrams_respect_who_may_see(make_store):
    async with make_store(trigram=True) as store:
        await stored(store, "fantastic", principal=ADA)

        assert await texts(store, "antast", principal=BOB) == []


# -- whose memories ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("query", ["", "secret", "secret plan", "the of"])
async def test_a_principal_does_not_see_what_another_stored(store, query):
    await stored(store, "the secret plan of Ada", principal=ADA)

    assert await texts(store, query, principal=BOB) == []
    assert await texts(store, query) == []


async def test_a_user_and_a_service_of_one_id_are_two(store):
    await stored(store, "mine", principal=ADA)

    assert await texts(store, "", principal=Principal("ada", "service")) == []


async def test_what_is_shared_is_seen_by_all(store):
    await stored(store, "the door code changed", principal=EVE, shared=True)

    (memory,) = (await store.query("door", principal=BOB)).memories
    assert (memory.shared, memory.mine) == (True, False)


@pytest.mark.parametrize(
    ("scope", "found"),
    [("all", ["shared by eve", "own of bob"]), ("mine", ["own of bob"]), ("shared", ["shared by eve"])],
)
async def test_a_search_can_be_narrowed_to_ones_own_or_the_shared(store, scope, found):
    await stored(store, "own of bob", principal=BOB)
    await stored(store, "shared by eve", principal=EVE, shared=True)

    assert await texts(store, "", principal=BOB, scope=scope) == found


async def test_sharing_needs_its_rule(store):
    with pytest.raises(ValueError, match=r"^shared: needs the access rule memory:share"):
        await store.store("x", principal=ADA, shared=True)


async def test_a_narrowed_principal_has_lost_it(store):
    with pytest.raises(ValueError, match="memory:share"):
        await store.store("x", principal=EVE.narrow({"memory:write"}), shared=True)


async def test_the_same_text_of_two_principals_is_two_memories(store):
    first, second = await stored(store, "tea", principal=ADA), await stored(store, "tea", principal=BOB)

    assert first != second


# -- storing again, forgetting -------------------------------------------------------------------------------------


async def test_the_same_text_again_is_the_same_memory_made_fresh(store, clock):
    first = await store.store("tea at four", tags=["old"])
    await stored(store, "later")
    clock.now += DAY
    again = await store.store("tea at four", tags=["new"])

    assert (again.id, first.created, again.created) == (first.id, True, False)
    assert await texts(store, "") == ["tea at four", "later"]
    assert await texts(store, "", tags=["old"]) == []


async def test_a_rehearsal_keeps_nothing(store):
    assert (await store.store("x", rehearse=True)).created

    assert await texts(store, "") == []


async def test_what_was_deleted_is_not_found(store):
    first, second = await stored(store, "tea", "tea and milk")

    gone = await store.delete([first, "m_unknown"])
    assert (gone.count, gone.ids, gone.missing) == (1, [first], ["m_unknown"])
    assert [memory.id for memory in (await store.query("tea")).memories] == [second]


async def test_nobody_deletes_what_another_stored(store):
    (id,) = await stored(store, "tea", principal=ADA)

    assert (await store.delete([id], principal=EVE)).missing == [id]
    assert await texts(store, "tea", principal=ADA) == ["tea"]


async def test_what_is_shared_is_deleted_by_who_stored_it_or_holds_the_rule(store):
    mine, other = await stored(store, "tea", "milk", principal=EVE, shared=True)

    assert (await store.delete([mine], principal=BOB)).missing == [mine]
    assert (await store.delete([mine], principal=EVE)).ids == [mine]
    assert (await store.delete([other])).ids == [other]


async def test_a_namespace_is_deleted_of_ones_own_only(store):
    await stored(store, "a", "b", principal=ADA, namespace="trip")
    await stored(store, "c", principal=BOB, namespace="trip")
    await stored(store, "d", principal=ADA)

    assert (await store.delete(namespace="trip", principal=ADA)).count == 2
    assert await texts(store, "", principal=ADA) == ["d"]
    assert await texts(store, "", principal=BOB) == ["c"]


async def test_a_rehearsed_deletion_deletes_nothing(store):
    await stored(store, "a", "b")

    assert (await store.delete(namespace="default", rehearse=True)).count == 2
    assert len(await texts(store, "")) == 2


@pytest.mark.parametrize("arguments", [{}, {"ids": ["m_1"], "namespace": "default"}])
async def test_a_deletion_says_what_it_means(store, arguments):
    with pytest.raises(ValueError, match="either ids or a namespace"):
        await store.delete(**arguments)


# -- time --------------------------------------------------------------------------------------------------------


async def test_what_has_had_its_time_is_not_found(store, clock):
    await stored(store, "parking spot 12", ttl_seconds=60)
    clock.now += 59
    assert await texts(store, "parking") == ["parking spot 12"]
    clock.now += 1

    assert await texts(store, "parking") == []
    assert await texts(store, "") == []
    assert (await store.stats()).memories == 0


async def test_what_has_had_its_time_takes_no_place_of_what_is_still_there(store, clock):
    await stored(store, "the blue door is locked")
    await stored(store, *(f"blue note {number}" for number in range(CANDIDATES + 1)), ttl_seconds=60)
    clock.now += 60

    assert await texts(store, "blue") == ["the blue door is locked"]
    assert await texts(store, "") == ["the blue door is locked"]


async def test_what_has_had_its_time_is_deleted_with_the_next_change(store, clock):
    await stored(store, "old", ttl_seconds=1)
    clock.now += 2
    await stored(store, "new")

    count = await store._database.read(lambda c: c.execute("SELECT count(*) FROM memories").fetchone())
    assert count == (1,)


async def test_storing_again_gives_it_new_time(store, clock):
    await stored(store, "parking", ttl_seconds=60)
    clock.now += 50
    saved = await store.store("parking")
    clock.now += 50

    assert saved.expires_at is None
    assert await texts(store, "parking") == ["parking"]


# -- limits ------------------------------------------------------------------------------------------------------


async def test_there_is_a_most_for_each_principal(make_store):
    async with make_store(max_memories=2) as store:
        await stored(store, "a", "b", principal=ADA)
        with pytest.raises(ValueError, match="2 memories are kept, which is the most; forget some first"):
            await store.store("c", principal=ADA)

        await stored(store, "b", principal=ADA)
        await stored(store, "c", principal=BOB)
        await store.delete(namespace="default", principal=ADA)
        await stored(store, "c", principal=ADA)


@pytest.mark.parametrize(
    ("fields", "fault"),
    [
        ({"text": ""}, "text: is empty"),
        ({"text": "x" * 8_001}, "text: 8,001 characters; at most 8,000"),
        ({"text": "a\0b"}, "text: has a NUL"),
        ({"text": "\ud800"}, "text: has half a character"),
        ({"text": "x", "namespace": ""}, "namespace: expected 1 to 64"),
        ({"text": "x", "namespace": "\u200b"}, "namespace: expected 1 to 64"),
        ({"text": "x", "namespace": "n" * 65}, "namespace: expected 1 to 64"),
        ({"text": "x", "tags": ["t"] * 17}, "tags: expected a list of at most 16"),
        ({"text": "x", "tags": "hobby"}, "tags: expected a list"),
        ({"text": "x", "tags": ["a", "b\nc"]}, r"tags\[1\]: expected"),
        ({"text": "x", "metadata": {"a": "x" * 5_000}}, "metadata: expected at most"),
        ({"text": "x", "metadata": {"a": float("nan")}}, "metadata: expected plain JSON"),
        ({"text": "x", "metadata": {"a": object()}}, "metadata: expected plain JSON"),
        ({"text": "x", "metadata": {str(n): n for n in range(17)}}, "metadata: expected at most"),
        ({"text": "x", "metadata": {"a": "\ud800"}}, "metadata: has half a character"),
        ({"text": "x", "ttl_seconds": 0}, "ttl_seconds: expected a whole number from 1"),
        ({"text": "x", "ttl_seconds": 10**12}, "ttl_seconds: expected a whole number"),
    ],
)
async def test_what_can_not_be_kept_is_refused(store, fields, fault):
    with pytest.raises(ValueError, match=f"^{fault}"):
        await store.store(**fields)


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        ({"text": "x" * 501}, "query: 501"),
        ({"limit": 0}, "limit: "),
        ({"limit": 51}, "limit: "),
        ({"limit": True}, "limit"),
    ],
)
async def test_a_query_has_limits(store, arguments, fault):
    with pytest.raises(ValueError, match=f"^{fault}"):
        await store.query(**arguments)


async def test_at_most_a_hundred_are_deleted_by_id(store):
    with pytest.raises(ValueError, match="101 ids; at most 100"):
        await store.delete([str(n) for n in range(101)])


async def test_stats_are_ones_own(store):
    await stored(store, "a", "b", principal=EVE, namespace="x")
    await stored(store, "c", principal=EVE, shared=True)
    await stored(store, "d", principal=BOB)

    stats = await store.stats(principal=EVE)
    assert (stats.memories, stats.shared, stats.namespaces, stats.durable) == (3, 1, {"x": 2, "default": 1}, True)
    assert stats.bytes > 0
    assert stats.oldest_at == stats.newest_at == "2023-11-14T22:13:20+00:00"


async def test_a_memory_without_a_file_says_that_it_does_not_last(make_store):
    async with make_store(path=None) as store:
        assert not (await store.store("x")).durable
        assert await texts(store, "x") == ["x"]


async def test_a_closed_store_says_so(make_store):
    async with make_store() as store:
        pass

    with pytest.raises(StorageError, match="is closed"):
        await store.query("x")

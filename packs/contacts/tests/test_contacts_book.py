"""The book: what is in it is found, by its words or nearly by its name."""

import pytest

PEOPLE = [
    {"name": "Ada Lovelace", "email": "ada@example.org", "organisation": "Analytical Engines"},
    {"name": "John Smith", "phone": "+44 20 7946 0000", "notes": "Met in Oxford, likes tea"},
    {"name": "José Núñez", "email": "jose@example.com"},
    {"name": "Katarzyna Wiśniewska", "organisation": "Analytical Engines"},
    {"name": "Иван Петров"},
]


@pytest.fixture
async def people(book):
    for one in PEOPLE:
        await book.create(one)
    return book


async def names(book, query, **kwargs):
    return [match.contact.name for match in (await book.search(query, **kwargs)).matches]


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("ada", "Ada Lovelace"),
        ("love", "Ada Lovelace"),
        ("ada@example.org", "Ada Lovelace"),
        ("7946", "John Smith"),
        ("oxford tea", "John Smith"),
        ("nunez", "José Núñez"),
        ("JOSÉ", "José Núñez"),
        ("wisniewska", "Katarzyna Wiśniewska"),
        ("петров", "Иван Петров"),
    ],
)
async def test_words_of_any_field_are_found(people, query, name):
    assert (await names(people, query))[0] == name


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("jon smyth", "John Smith"),
        ("smyth", "John Smith"),
        ("ada lovelase", "Ada Lovelace"),
        ("lovlace", "Ada Lovelace"),
        ("nunes", "José Núñez"),
        ("katarzina", "Katarzyna Wiśniewska"),
    ],
)
async def test_names_that_are_spelled_nearly_so_are_found(people, query, name):
    (match, *_) = (await people.search(query)).matches

    assert (match.contact.name, match.by) == (name, "similar name")
    assert 75 <= match.score < 100


async def test_a_fit_by_words_comes_before_a_similar_name(people):
    await people.create({"name": "Jon Smyth"})

    found = await people.search("smith")
    assert [(match.contact.name, match.by) for match in found.matches] == [
        ("John Smith", "words"),
        ("Jon Smyth", "similar name"),
    ]


async def test_a_name_counts_more_than_a_note(people):
    await people.create({"name": "Oxford Press"})

    assert (await names(people, "oxford"))[:2] == ["Oxford Press", "John Smith"]


@pytest.mark.parametrize("query", ["zzzzqqqq", "!!!", '"', "a AND", "NEAR(", "*", "name:ada OR", "\ud800\0"])
async def test_no_query_is_syntax_and_what_is_not_there_is_not_found(people, query):
    assert [match.by for match in (await people.search(query)).matches if match.by == "words"] == []


async def test_more_than_asked_for_is_told(people):
    found = await people.search("analytical", limit=1)

    assert (len(found.matches), found.truncated) == (1, True)
    assert not (await people.search("analytical", limit=2)).truncated


async def test_a_contact_has_all_that_was_given(book):
    made = await book.create({"name": " Ada ", "email": "ada@example.org", "phone": "  ", "notes": "line\nline"})

    assert await book.get(made.id) == made
    assert (made.name, made.email, made.phone, made.notes) == ("Ada", "ada@example.org", None, "line\nline")
    assert made.changed_at == "2023-11-14T22:13:20+00:00"


async def test_an_update_changes_what_is_given_and_nothing_else(book):
    made = await book.create({"name": "Ada", "email": "ada@example.org", "phone": "12345"})

    changed = await book.update(made.id, {"email": "new@example.org", "phone": None})
    assert (changed.name, changed.email, changed.phone) == ("Ada", "new@example.org", None)
    assert await names(book, "new@example.org") == ["Ada"]
    assert [match.by for match in (await book.search("12345")).matches] == []


async def test_what_was_deleted_is_not_found(book):
    made = await book.create({"name": "Ada"})

    assert (await book.delete(made.id)).name == "Ada"
    assert await names(book, "ada") == []
    with pytest.raises(ValueError, match=f"^id: there is no contact '{made.id}'; find its id with contacts_search"):
        await book.get(made.id)


async def test_rehearsals_keep_nothing(book):
    made = await book.create({"name": "Ada"})
    await book.create({"name": "Bob"}, rehearse=True)
    await book.update(made.id, {"name": "Eve"}, rehearse=True)
    await book.delete(made.id, rehearse=True)

    assert await book.count() == 1
    assert await names(book, "ada") == ["Ada"]


async def test_the_index_stays_whole(book):
    for number in range(20):
        made = await book.create({"name": f"Person {number}"})
        if number % 2:
            await book.update(made.id, {"name": f"Human {number}"})
        if number % 3 == 0:
            await book.delete(made.id)

    check = "INSERT INTO lines(lines, rank) VALUES ('integrity-check', 1)"
    await book._database.write(lambda connection: connection.execute(check).close())


@pytest.mark.parametrize(
    ("fields", "fault"),
    [
        ({"name": "  "}, "name: is empty"),
        ({"name": "a\nb"}, "name: expected one line"),
        ({"name": "a\0"}, "name: has a NUL"),
        ({"name": "\ud800"}, "name: has half a character"),
        ({"name": "a", "email": "nobody"}, "email: expected an address"),
        ({"name": "a", "email": "a@b@c"}, "email: expected an address"),
        ({"name": "a", "email": "a@b.org\nBcc: x@y.z"}, "email: expected one line"),
        ({"name": "a", "phone": "call me"}, "phone: expected digits"),
    ],
)
async def test_what_is_no_contact_is_refused(book, fields, fault):
    with pytest.raises(ValueError, match=f"^{fault}"):
        await book.create(fields)


async def test_a_book_has_a_most(book):
    def fill(connection):
        rows = [(f"c{number}", "x", "x", 0) for number in range(500)]
        connection.executemany("INSERT INTO contacts(ref, name, folded, changed) VALUES (?, ?, ?, ?)", rows)

    await book._database.write(fill)

    with pytest.raises(ValueError, match="the book has 500 contacts, which is the most"):
        await book.create({"name": "Ada"})


async def test_hidden_characters_are_not_shown(book):
    made = await book.create({"name": "Ada\u202e\u200b Lovelace", "notes": "\x1b[31mred"})

    assert (made.name, made.notes) == ("Ada Lovelace", "red")

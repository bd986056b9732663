"""What a location means, and that a password in it is never shown."""

from pathlib import Path

import platformdirs
import pytest

from agentos.errors import StoreError
from agentos.store import Store
from agentos.store.locations import default_location, place_of

SECRET = "hunter2secret"


@pytest.mark.parametrize("location", [None, ":memory:", "sqlite://", "sqlite:///", "sqlite:///:memory:"])
def test_these_mean_memory(location):
    assert not Store(location).is_durable


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        ("some.db", "some.db"),
        (Path("some.db"), "some.db"),
        ("sqlite:///some.db", "some.db"),
        ("sqlite+aiosqlite:///folder/some.db", "folder/some.db"),
        ("SQLite:///some.db", "some.db"),
    ],
)
def test_a_relative_path_counts_from_the_working_folder(location, expected, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    assert place_of(location).path == tmp_path / expected


def test_a_sqlite_url_with_four_slashes_is_absolute():
    assert place_of("sqlite:////var/some.db").path == Path("/var/some.db")


def test_the_working_folder_counts_when_the_store_is_made(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    store = Store("some.db")
    monkeypatch.chdir("/")

    assert repr(store) == f"<Store at {tmp_path / 'some.db'}>"


def test_a_tilde_is_the_users_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))

    assert place_of("~/some.db").path == tmp_path / "some.db"


def test_the_default_is_in_the_platforms_folder(monkeypatch):
    monkeypatch.delenv("AGENTOS_DATA", raising=False)

    assert default_location() == Path(platformdirs.user_data_dir("agentos", appauthor=False)) / "agentos.db"


def test_the_environment_names_another_folder(data_folder):
    assert default_location() == data_folder / "agentos.db"


def test_default_means_the_default_location(data_folder):
    assert place_of("default").path == default_location()


def test_a_path_called_default_is_a_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    assert place_of(Path("default")).path == tmp_path / "default"


@pytest.mark.parametrize("location", ["mysql://localhost/x", "file:///tmp/x", "http://example.com", "://x"])
def test_another_scheme_is_refused_with_what_is_accepted(location):
    with pytest.raises(StoreError, match="give a path, sqlite:///path, postgresql://"):
        Store(location)


@pytest.mark.parametrize(
    "location", ["", "a\0b", f"postgresql:/u:{SECRET}@h/d", f"postgres:u:{SECRET}@h", "sqlite:/x.db"]
)
def test_what_is_no_path_is_refused_with_what_is_accepted(location):
    with pytest.raises(StoreError, match="no path for a store; give a path") as caught:
        Store(location)

    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("location", ["sqlite://host/some.db", "sqlite:///some.db?mode=ro"])
def test_a_sqlite_url_with_a_host_or_options_is_refused(location):
    with pytest.raises(StoreError, match="no host and no options"):
        Store(location)


@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "postgresql+asyncpg", "PostgreSQL"])
def test_a_server_has_three_schemes(scheme):
    place = place_of(f"{scheme}://ann:{SECRET}@db.example/notes")

    assert (place.shown, place.dsn) == (
        "postgresql://db.example:5432/notes",
        f"postgresql://ann:{SECRET}@db.example/notes",
    )


@pytest.mark.parametrize(
    ("rest", "expected"),
    [
        (f"ann:{SECRET}@DB.example:6000/notes", "db.example:6000/notes"),
        ("[::1]:6000/notes", "[::1]:6000/notes"),
        ("one,two:6000/notes", "one:5432,two:6000/notes"),
        ("/notes?host=/run/pg", "/run/pg:5432/notes"),
        ("%2Frun%2Fpg/notes", "/run/pg:5432/notes"),
        ("?host=one&port=6000&dbname=notes", "one:6000/notes"),
        ("?host=one&database=notes", "one:5432/notes"),
        (":6000/my%20notes", "localhost:6000/my notes"),
        (f"ann:{SECRET}@", "localhost:5432/ann"),
        ("?user=ann", "localhost:5432/ann"),
        ("", "localhost:5432/"),
    ],
)
def test_a_server_is_shown_by_host_port_and_database(rest, expected, monkeypatch):
    for name in ("PGHOST", "PGPORT", "PGDATABASE"):
        monkeypatch.delenv(name, raising=False)

    assert place_of(f"postgresql://{rest}").shown == f"postgresql://{expected}"


def test_a_server_that_the_url_leaves_open_comes_from_the_environment(monkeypatch):
    for name, value in {"PGHOST": "one", "PGPORT": "6000", "PGDATABASE": "notes"}.items():
        monkeypatch.setenv(name, value)

    assert place_of("postgresql://").shown == "postgresql://one:6000/notes"


@pytest.mark.parametrize(
    "rest",
    [
        f"ann:pass/{SECRET}@host/notes",
        f"ann:pass?{SECRET}@host/notes",
        f"ann:pass#{SECRET}@host/notes",
        f"ann:pass@{SECRET}@host/notes",
        f"ann:{SECRET}",
        f"ann:{SECRET}\u2100@host/notes",
        f"[ann:{SECRET}@host/notes",
    ],
)
def test_a_url_that_can_not_be_read_is_refused_without_showing_it(rest):
    with pytest.raises(StoreError, match="the PostgreSQL URL") as caught:
        Store(f"postgresql://{rest}")

    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_a_store_shows_no_password_and_no_key():
    store = Store(f"postgresql://ann:{SECRET}@host/notes", key=f"{SECRET} and more")

    assert SECRET not in repr(store) + repr(store._place) + str(store._place)

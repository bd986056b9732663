"""The key that seals what is stored."""

import hashlib
import hmac
import logging
import secrets
import stat

import pytest
from store_fixtures import outcome, python

from agentos.errors import StoreError
from agentos.store import Store
from agentos.store.locations import IN_MEMORY, place_of
from agentos.store.sealing_key import key_file, load_key

KEY = "sixteen bytes and some"


def mode_of(file):
    return stat.S_IMODE(file.stat().st_mode)


async def test_a_seal_is_an_hmac_under_the_key():
    store = Store(key=KEY)
    await store.open()

    assert store.seal("text é") == hmac.new(KEY.encode(), "text é".encode(), "sha256").hexdigest()


async def test_bytes_and_text_are_the_same_key():
    one, other = Store(key=KEY), Store(key=KEY.encode())
    await one.open()
    await other.open()

    assert one.seal("text") == other.seal("text")


async def test_a_seal_fits_its_text_alone():
    store = Store()
    await store.open()
    seal = store.seal("text")

    assert [store.is_sealed(text, seal) for text in ("text", "other")] == [True, False]


@pytest.mark.parametrize("seal", ["", "0" * 64, "é", "\udc80"])
async def test_a_made_up_seal_does_not_fit(seal):
    store = Store()
    await store.open()

    assert not store.is_sealed("text", seal)


async def test_text_that_is_not_unicode_can_be_sealed():
    store = Store()
    await store.open()

    assert store.is_sealed("\udc80", store.seal("\udc80"))


async def test_the_key_id_names_the_key():
    store = Store(key=KEY)
    await store.open()

    assert store.key_id == hashlib.sha256(KEY.encode()).hexdigest()[:16]


@pytest.mark.parametrize("use", [lambda store: store.seal("x"), lambda store: store.key_id])
async def test_a_store_that_is_not_open_has_no_key(use, sqlite_url):
    store = Store(sqlite_url)
    with pytest.raises(StoreError, match="is not open"):
        use(store)

    await store.open()
    use(store)
    await store.close()

    with pytest.raises(StoreError, match="is not open"):
        use(store)


def test_the_environment_has_a_key(monkeypatch):
    monkeypatch.setenv("AGENTOS_STORE_KEY", KEY)

    assert load_key(None, IN_MEMORY) == KEY.encode()


def test_a_given_key_goes_before_the_environment(monkeypatch):
    monkeypatch.setenv("AGENTOS_STORE_KEY", "another key of some length")

    assert load_key(KEY, IN_MEMORY) == KEY.encode()


def test_an_empty_variable_is_no_key(monkeypatch):
    monkeypatch.setenv("AGENTOS_STORE_KEY", "")

    assert len(load_key(None, IN_MEMORY)) == 32


def test_in_memory_each_store_has_a_key_of_its_own(data_folder):
    assert load_key(None, IN_MEMORY) != load_key(None, IN_MEMORY)


def test_a_short_key_is_refused():
    with pytest.raises(
        StoreError, match="the key given to the store is too short: it has 15 bytes and needs at least 16"
    ):
        load_key("x" * 15, IN_MEMORY)


def test_a_short_key_in_the_environment_is_refused_by_its_name(monkeypatch):
    monkeypatch.setenv("AGENTOS_STORE_KEY", "short")

    with pytest.raises(StoreError, match="the key in AGENTOS_STORE_KEY is too short"):
        load_key(None, IN_MEMORY)


async def test_a_short_key_keeps_a_store_from_opening(sqlite_url):
    store = Store(sqlite_url, key="short")

    with pytest.raises(StoreError, match="too short"):
        await store.open()


def test_the_key_of_a_file_is_beside_it(tmp_path):
    assert key_file(place_of(tmp_path / "my.db")) == tmp_path / "my.db.key"


def test_the_key_of_a_server_is_in_the_users_folder(data_folder):
    name = hashlib.sha256(b"host:5432/notes").hexdigest()[:16]

    assert key_file(place_of("postgresql://ann@host/notes")) == data_folder / "keys" / f"{name}.key"


async def test_a_key_is_made_once_and_found_again(store_url):
    seals = []
    for _ in range(2):
        store = Store(store_url)
        await store.open()
        seals.append(store.seal("text"))
        await store.close()

    assert seals[0] == seals[1]


def test_a_key_file_is_for_its_owner_alone(tmp_path, data_folder):
    place = place_of(tmp_path / "my.db")
    key = load_key(None, place)

    assert mode_of(key_file(place)) == 0o600
    assert key_file(place).read_text() == key.hex() + "\n"


def test_making_a_key_leaves_nothing_else_behind(tmp_path):
    load_key(None, place_of(tmp_path / "my.db"))

    assert [file.name for file in tmp_path.iterdir()] == ["my.db.key"]


def test_a_key_file_that_others_can_read_is_warned_about(tmp_path, caplog):
    place = place_of(tmp_path / "my.db")
    load_key(None, place)
    key_file(place).chmod(0o640)
    with caplog.at_level(logging.WARNING, "agentos.store"):
        load_key(None, place)

    assert f"chmod 600 {key_file(place)}" in caplog.text


@pytest.mark.parametrize("text", ["", "nonsense", "ab" * 31, "ab" * 33, "é" * 32])
def test_a_file_without_a_key_is_refused_and_kept(text, tmp_path):
    place = place_of(tmp_path / "my.db")
    key_file(place).write_text(text)
    with pytest.raises(StoreError, match="does not hold a store's key"):
        load_key(None, place)

    assert key_file(place).read_text() == text


def test_a_key_that_can_not_be_made_names_the_place_and_the_variable(tmp_path):
    (tmp_path / "file").write_text("")
    place = place_of(tmp_path / "file" / "my.db")

    with pytest.raises(StoreError, match=r"my\.db\.key can't be read or made: Not a directory.*AGENTOS_STORE_KEY"):
        load_key(None, place)


def test_who_comes_second_takes_the_key_of_the_first(tmp_path, monkeypatch):
    place = place_of(tmp_path / "my.db")
    theirs = secrets.token_hex(32)
    token_hex = secrets.token_hex

    def late(size):
        if size == 32:
            key_file(place).write_text(theirs)
        return token_hex(size)

    monkeypatch.setattr(secrets, "token_hex", late)

    assert load_key(None, place).hex() == theirs


def test_processes_that_make_a_key_at_once_have_the_same(tmp_path, data_folder):
    script = """
        import sys
        from agentos.store.sealing_key import load_key
        from agentos.store.locations import place_of
        print("ready", flush=True)
        sys.stdin.readline()
        print(load_key(None, place_of(sys.argv[1])).hex())
    """
    processes = [python(script, tmp_path / "my.db") for _ in range(6)]
    for process in processes:
        process.stdout.readline()
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    keys = {outcome(process) for process in processes}

    assert len(keys) == 1
    assert len(keys.pop()) == 64

"""Names on the wire: one for each name, fit for every provider, and a way back."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agentos.tools.wire_names import WireNames, wire_name

FITS = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")

words = st.text(st.characters(), max_size=300)
awkward = st.sampled_from(
    ["mcp/x:y", "mcp_x_y", "größer", "名前", "x" * 300, "x" * 64, "x" * 65, "3d", "-a", "", "a b"]
)
taken = words.map(wire_name)  # a name that another name would be given
names = st.lists(words | awkward | taken | awkward.map(wire_name), max_size=12)


@given(names)
@example(["mcp/x:y", wire_name("mcp/x:y")])
@example([wire_name("a b"), "a b", wire_name("a b\0" + "1")])
def test_the_map_is_a_bijection(names):
    made = WireNames.of(names)

    assert {wire: name for name, wire in made.to_wire.items()} == made.from_wire
    assert set(names) == made.to_wire.keys()
    assert len(set(names)) == len(made.from_wire)


@given(names)
def test_every_wire_name_fits_every_provider(names):
    assert all(FITS.fullmatch(wire) for wire in WireNames.of(names).from_wire)


@given(names)
def test_a_name_that_fits_is_kept(names):
    made = WireNames.of(names)

    assert all(made.to_wire[name] == name for name in names if FITS.fullmatch(name))


@given(names)
def test_every_name_comes_back(names):
    made = WireNames.of(names)

    assert names == [made.decode(made.to_wire[name]) for name in names]


@given(st.sets(words | awkward, max_size=8), st.randoms())
def test_the_order_of_a_list_does_not_change_its_names(names, random):
    shuffled = sorted(names)
    random.shuffle(shuffled)

    assert WireNames.of(sorted(names)) == WireNames.of(shuffled)


@pytest.mark.parametrize(
    ("name", "wire"),
    [
        ("users.list", "users_list"),
        ("mcp/files:read", "mcp_files_read"),
        ("a b", "a_b"),
        ("größer", "gr_er"),
        ("2fa", "t_2fa"),
        ("-a-", "a"),
        ("a" * 64, "a" * 64),
    ],
)
def test_a_name_carries_no_hash_if_it_is_the_only_one(name, wire):
    assert WireNames.of([name, "other"]).to_wire[name] == wire_name(name) == wire


@pytest.mark.parametrize("name", ["a" * 65, "a." * 40, "名前", "...", "", "_" * 70])
def test_a_name_that_does_not_fit_carries_a_hash(name):
    made = WireNames.of([name]).to_wire[name]

    assert re.search(r"_[0-9a-f]{8}$", made)
    assert FITS.fullmatch(made)


def test_names_that_would_be_the_same_carry_a_hash_each():
    made = WireNames.of(["users.list", "users/list", "users:get"]).to_wire

    assert re.fullmatch(r"users_list_[0-9a-f]{8}", made["users.list"])
    assert re.fullmatch(r"users_list_[0-9a-f]{8}", made["users/list"])
    assert (len(set(made.values())), made["users:get"]) == (3, "users_get")


def test_a_name_that_fits_keeps_it_and_the_other_carries_a_hash():
    made = WireNames.of(["users.list", "users_list"]).to_wire

    assert made["users_list"] == "users_list"
    assert re.fullmatch(r"users_list_[0-9a-f]{8}", made["users.list"])

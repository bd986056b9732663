"""Names on the wire: one for each name, fit for every provider, and a way back."""

import re

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

"""What `agentos new pack` makes can be examined at once, and not in vain."""

import pytest

from agentos.cli.scaffolding import FLAVOURS, make_distribution
from agentos.testing import check_pack


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_a_new_pack_passes_with_what_it_says_of_itself(tmp_path, monkeypatch, flavour):
    """It does so when warnings count: every tool was run, and succeeded."""
    name = f"examined-{flavour}"
    make_distribution(tmp_path / name, name, flavour)
    monkeypatch.syspath_prepend(tmp_path / name)

    assert check_pack(tmp_path / name, strict=True) == []

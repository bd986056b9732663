"""What `agentos new pack` makes can be examined at once, and not in vain."""

import pytest

from agentos.cli.scaffolding import FLAVOURS, WrappedTool, make_distribution
from agentos.testing import check_pack


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_a_new_pack_passes_with_what_it_says_of_itself(tmp_path, monkeypatch, flavour):
    """It does so when warnings count: every tool was run, and succeeded."""
    name = f"examined-{flavour}"
    make_distribution(tmp_path / name, name, flavour)
    monkeypatch.syspath_prepend(tmp_path / name)

    assert check_pack(tmp_path / name, strict=True) == []


@pytest.mark.parametrize("effect", ["read", "mutate", "destructive"])
def test_a_wrapper_of_a_real_tool_passes_whatever_that_does(tmp_path, monkeypatch, effect):
    schema = {
        "type": "object",
        "properties": {"to": {"type": "array", "items": {"enum": ["ann", "bob"]}, "minItems": 1}},
        "required": ["to"],
        "additionalProperties": False,
    }
    name = f"wrapper-of-{effect}"
    tool = {"read": "get_mail", "mutate": "send_mail", "destructive": "delete_mail"}[effect]
    wrapped = WrappedTool(schema=schema, effect=effect, rules=("mail.send",))
    make_distribution(tmp_path / name, name, "wrapper", tool, wrapped)
    monkeypatch.syspath_prepend(tmp_path / name)

    assert check_pack(tmp_path / name, strict=True) == []

"""Edits of a person's file: they say what was meant, and everything else stays as it was written."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thorough import examples

from agentos.cli.app import Fail
from agentos.cli.manifest_edit.editing import add_pack, applied, edit
from agentos.cli.manifest_edit.edits import GONE
from agentos.model.parsing import read_file

TOML = '''# top
mode = "auto" # m

[[packs]] # first
module = "a.py" # a
options = { x = 1 }

# about b
[[packs]]
package = "b"
[packs.options]
word = """
[[packs]]
"""
list = [
  "]", # ] in a comment
  '[',
]

# operators
[overrides.tools]
x = { enabled = false } # keep
'''
YAML = """# top
mode: auto # m
packs:
  # first
  - module: a.py # a
    options: {x: 1}

  # about b
  - package: b
    options:
      word: |
        hi
        there

# operators
overrides:
  tools:
    x: {enabled: false} # keep
"""
JSON = '{\n    "mode": "auto",\n    "packs": [\n        {"module": "ä.py"},\n        {"package": "b"}\n    ]\n}\n'
TEXTS = {"toml": TOML, "yaml": YAML, "json": JSON}


def remove_pack(path, index):
    edit(path, {("packs", index): GONE})


def set_pack(path, index, **fields):
    edit(path, {("packs", index, name): value for name, value in fields.items()})


def set_value(path, keys, value):
    edit(path, {keys: value})


@pytest.fixture
def edited(tmp_path):
    """Return a function that edits a text and returns what became of it, as text and as data."""

    def changed(ending, text, change):
        path = tmp_path / f"agentos.{ending}"
        path.write_bytes(text.encode("utf-8"))
        change(path)
        return path.read_bytes().decode("utf-8"), read_file(path)

    return changed


CHANGES = {
    "add": (lambda path: add_pack(path, {"module": "c.py", "options": {"a b": [1, "x"], "é": {}}}), ("packs", -1)),
    "remove the first": (lambda path: remove_pack(path, 0), ("packs", 0)),
    "remove the last": (lambda path: remove_pack(path, 1), ("packs", 1)),
    "disable": (lambda path: set_pack(path, 1, enabled=False), ("packs", 1, "enabled")),
    "rename": (lambda path: set_pack(path, 0, identifier="x y"), ("packs", 0, "identifier")),
    "mode": (lambda path: set_value(path, ("mode",), "approve"), ("mode",)),
}
MEANT = {
    "add": {"module": "c.py", "options": {"a b": [1, "x"], "é": {}}},
    "disable": False,
    "rename": "x y",
    "mode": "approve",
}


@pytest.mark.parametrize("ending", TEXTS)
@pytest.mark.parametrize("change", CHANGES)
def test_an_edit_says_what_was_meant(edited, tmp_path, ending, change):
    before = tmp_path / f"before.{ending}"
    before.write_text(TEXTS[ending], "utf-8")
    act, keys = CHANGES[change]
    _, data = edited(ending, TEXTS[ending], act)

    assert data == applied(read_file(before), keys, MEANT.get(change, GONE))


@pytest.mark.parametrize("ending", ["toml", "yaml"])
@pytest.mark.parametrize("change", CHANGES)
def test_lines_that_an_edit_is_not_about_stay(edited, ending, change):
    text, _ = edited(ending, TEXTS[ending], CHANGES[change][0])
    gone = [line for line in TEXTS[ending].splitlines() if line not in text.splitlines()]
    allowed = {
        "remove the first": ["module", "[[packs]] # first", "options = { x", "options: {x"],
        "remove the last": [
            "package",
            "options:",
            "word",
            "hi",
            "there",
            "[packs.options]",
            '"""',
            "list",
            "]",
            "'['",
            '"]"',
        ],
        "mode": ["mode"],
    }

    assert [line for line in gone if not any(word in line for word in allowed.get(change, []))] == []


def test_comments_before_and_behind_survive_a_removal(edited):
    for ending in ("toml", "yaml"):
        text, _ = edited(ending, TEXTS[ending], lambda path: (remove_pack(path, 1), remove_pack(path, 0)))
        for comment in ("# top", "# m", "# about b", "# operators", "# keep"):
            assert comment in text


def test_a_new_pack_stands_behind_the_others(edited):
    text, _ = edited("toml", TOML, lambda path: add_pack(path, {"module": "c.py"}))

    assert '\n\n[[packs]]\nmodule = "c.py"\n\n# operators\n' in text


def test_switching_off_and_on_again_leaves_the_file_as_it_was(edited):
    def there_and_back(path):
        set_pack(path, 1, enabled=False)
        set_pack(path, 1, enabled=GONE)

    for ending, text in TEXTS.items():
        assert edited(ending, text, there_and_back)[0] == text


@pytest.mark.parametrize("ending", TEXTS)
def test_adding_and_removing_again_leaves_the_file_as_it_was(edited, ending):
    def there_and_back(path):
        add_pack(path, {"module": "c.py"})
        remove_pack(path, 2)

    text, _ = edited(ending, TEXTS[ending], there_and_back)

    assert text == TEXTS[ending]


ODD = """{ "mode" :"auto", "proposalTtl": 1.50e2,
      "budget": {"calls" : 60,
  "window": 6E+1 } ,
  "deny": [ "a",
            "\\u00e4" ], "packs":
  [ {"module":"a.py" , "priority": -0}

  , {"package": "b", "options": {"x": [1.0, 10e0 ]}} ]

}
"""
ODD_CHANGES = {
    "add": (
        lambda path: add_pack(path, {"module": "c.py", "priority": 2}),
        " 10e0 ]}}",
        ' 10e0 ]}}, {\n              "module": "c.py",\n              "priority": 2\n        }',
    ),
    "remove the first": (lambda path: remove_pack(path, 0), '{"module":"a.py" , "priority": -0}\n\n  , ', ""),
    "remove the last": (
        lambda path: remove_pack(path, 1),
        '\n\n  , {"package": "b", "options": {"x": [1.0, 10e0 ]}}',
        "",
    ),
    "disable": (lambda path: set_pack(path, 0, enabled=False), "-0}", '-0, "enabled": false}'),
    "mode": (lambda path: set_value(path, ("mode",), "approve"), '"auto"', '"approve"'),
    "a new key": (
        lambda path: set_value(path, ("budget", "scope"), "tool"),
        "6E+1 }",
        '6E+1, "scope": "tool" }',
    ),
}


@pytest.mark.parametrize("change", ODD_CHANGES)
def test_json_is_edited_in_place_however_it_is_laid_out(edited, change):
    act, old, new = ODD_CHANGES[change]
    text, _ = edited("json", ODD, act)

    assert ODD.count(old) == 1
    assert text.split() == ODD.replace(old, new).split()
    begin = ODD.index(old)
    assert (text[:begin], text[len(text) - len(ODD) + begin + len(old) :]) == (ODD[:begin], ODD[begin + len(old) :])


@pytest.mark.parametrize(
    ("ending", "text"),
    [
        ("toml", ""),
        ("toml", "# nothing\n"),
        ("toml", 'mode = "auto"'),
        ("toml", 'packs = []\nmode = "auto"\n'),
        ("toml", 'packs = [\n  {module = "a.py"}, # c\n]\n'),
        ("toml", '[overrides]\n[[packs]]\nmodule = "a.py"'),
        ("toml", '[["packs"]]\nmodule = "a.py"\n'),
        ("toml", '[[packs]]\nmodule = "a.py"\n[packs."options"]\na.b = 1\n[[packs.options.c]]\nd = 1\n'),
        ("yaml", ""),
        ("yaml", "# nothing\n"),
        ("yaml", "mode: auto"),
        ("yaml", "packs: []\nmode: auto\n"),
        ("yaml", "packs:\n- module: a\nmode: auto"),
        ("yaml", "packs: [{module: a}]\n"),
        ("yaml", "packs:\n- {module: a}\n"),
        ("yaml", "{packs: [{module: a}]}\n"),
        ("yaml", "---\npacks:\n-   module: a\n    options:\n      - |+\n        x\n\n"),
        ("json", "{}"),
        ("json", '{"packs":[{"module":"a"}]}'),
        ("json", '{\n\t"packs": []\n}'),
        ("json", '{"packs": null}'),
        ("json", '{\n  "packs": [\n  ]\n}\n'),
    ],
)
def test_packs_can_be_added_to_whatever_is_there(edited, tmp_path, ending, text):
    path = tmp_path / f"before.{ending}"
    path.write_text(text, "utf-8")
    before = (read_file(path) or {}).get("packs") or []
    _, data = edited(ending, text, lambda path: add_pack(path, {"package": "new", "priority": 3}))

    assert data["packs"] == [*before, {"package": "new", "priority": 3}]


@pytest.mark.parametrize(
    ("ending", "text"),
    [
        ("toml", '[[packs]]\nmodule = "a"\n'),
        ("toml", 'packs = [{module = "a"}]\n'),
        ("yaml", "packs:\n  # about it\n  - module: a\n\nmode: auto\n"),
        ("yaml", "packs:\n-\n  module: a\n"),
        ("json", '{"packs": [{"module": "a"}]}'),
    ],
)
def test_the_last_pack_can_be_removed(edited, ending, text):
    after, data = edited(ending, text, lambda path: remove_pack(path, 0))

    assert not data.get("packs")
    assert ("# about it" in after) == ("# about it" in text)


@pytest.mark.parametrize(
    ("ending", "text"),
    [
        ("toml", '[[packs]]\nmodule = "a"\nenabled = true # on\n'),
        ("toml", 'packs = [{module = "a", enabled = true}]\n'),
        ("yaml", "packs:\n  - module: a\n    enabled: true # on\n"),
        ("yaml", "packs: [{module: a, enabled: true}]\n"),
        ("yaml", "packs:\n  - {module: a}\n"),
        ("json", '{"packs": [{"module": "a"}]}'),
    ],
)
def test_a_pack_can_be_switched_off(edited, ending, text):
    after, data = edited(ending, text, lambda path: set_pack(path, 0, enabled=False))

    assert data["packs"] == [{"module": "a", "enabled": False}]
    assert ("# on" in after) == ("# on" in text)


def test_windows_line_ends_and_a_byte_order_mark_stay(edited):
    for ending in ("toml", "yaml"):
        text, data = edited(
            ending, "\ufeff" + TEXTS[ending].replace("\n", "\r\n"), lambda path: add_pack(path, {"module": "c.py"})
        )
        assert text.startswith("\ufeff# top\r\n")
        assert "\n" not in text.replace("\r\n", "")
        assert data["packs"][-1] == {"module": "c.py"}


def test_what_cant_be_edited_is_left_alone_with_words_what_to_write(tmp_path, monkeypatch):
    path = tmp_path / "agentos.yaml"
    text = "packs: [{module: a}, {module: b}]\n"
    path.write_text(text)
    monkeypatch.setattr("agentos.cli.manifest_edit.node_edits.edit_yaml", lambda text, *_: text)
    for change, hint in (
        (lambda: remove_pack(path, 0), "take packs[0] out by hand"),
        (lambda: add_pack(path, {"module": "ä"}), 'add {"module": "ä"} to packs by hand'),
        (lambda: set_pack(path, 0, enabled=False), "set packs[0].enabled to false by hand"),
    ):
        with pytest.raises(Fail, match="can't be edited") as failure:
            change()

        assert failure.value.hint == hint
    assert path.read_text() == text


NEW = {"module": "n.py"}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("packs: [] # none yet\nmode: auto\n", "packs: # none yet\n  - module: n.py\nmode: auto\n"),
        ("packs: # none yet\nmode: auto\n", "packs: # none yet\n  - module: n.py\nmode: auto\n"),
        ("packs: null # none yet", "packs: # none yet\n  - module: n.py\n"),
        ("packs: [\n  # none yet\n]\n", "packs: [\n  # none yet\n  {module: n.py}\n]\n"),
        ("packs: [ # none yet\n]\n", "packs: [ # none yet\n  {module: n.py}\n]\n"),
        ("{packs: [], mode: auto}\n", "{packs: [{module: n.py}], mode: auto}\n"),
        ("{mode: auto, # why\n}\n", "{mode: auto, packs: [{module: n.py}], # why\n}\n"),
        ("packs: [{module: a}] # one\n", "packs: [{module: a}, {module: n.py}] # one\n"),
        (
            "packs: [\n  {module: a}, # first\n  {module: b} # second\n]\n",
            "packs: [\n  {module: a}, # first\n  {module: b}, # second\n  {module: n.py}\n]\n",
        ),
        ("packs: [\n  {module: a},\n  # end\n]\n", "packs: [\n  {module: a},\n  {module: n.py},\n  # end\n]\n"),
    ],
)
def test_comments_stay_where_a_pack_is_added_to_yaml(edited, before, after):
    assert edited("yaml", before, lambda path: add_pack(path, NEW))[0] == after


@pytest.mark.parametrize(
    ("before", "index", "after"),
    [
        ("packs: [{module: a}, {module: b}]\n", 0, "packs: [{module: b}]\n"),
        ("packs: [{module: a}, {module: b}]\n", 1, "packs: [{module: a}]\n"),
        ("packs: [{module: a}] # none left\n", 0, "packs: [] # none left\n"),
        ("packs: [{module: a}, # one\n  {module: b}]\n", 0, "packs: [ # one\n  {module: b}]\n"),
        ("packs: [\n  {module: a}, # first\n  {module: b}\n]\n", 0, "packs: [\n  {module: b}\n]\n"),
        (
            "packs: [\n  {module: a},\n  # about b\n  {module: b}\n  # end\n]\n",
            1,
            "packs: [\n  {module: a}\n  # about b\n  # end\n]\n",
        ),
    ],
)
def test_a_pack_is_cut_out_of_a_flow_list_with_its_comma(edited, before, index, after):
    assert edited("yaml", before, lambda path: remove_pack(path, index))[0] == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("packs: [{module: a, enabled: false}, {module: b}]\n", "packs: [{module: a}, {module: b}]\n"),
        ("packs: [{enabled: false, module: a}]\n", "packs: [{module: a}]\n"),
        ("packs:\n  - {module: a, enabled: false} # why\n", "packs:\n  - {module: a} # why\n"),
    ],
)
def test_a_key_is_cut_out_of_a_flow_mapping(edited, before, after):
    assert edited("yaml", before, lambda path: set_pack(path, 0, enabled=GONE))[0] == after


@pytest.mark.parametrize(
    "text",
    [
        "packs: []\noptions: {a: 'x # y', b: \"z # y\"}\n",
        "packs: []\noptions: {a: 'x # y', b: \"z # y\"} # ours\n",
        "packs: []\noptions: |\n  # text\n  more\n# ours\n",
        "packs: []\na: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b] # twice\n",
    ],
)
def test_what_only_looks_like_a_comment_is_none(edited, text):
    after, _ = edited("yaml", text, lambda path: add_pack(path, NEW))

    assert after == text.replace("packs: []\n", "packs:\n  - module: n.py\n")


def test_an_edit_that_would_lose_a_comment_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "agentos.yaml"
    path.write_text("packs: []\n# ours\n")
    monkeypatch.setattr("agentos.cli.manifest_edit.node_edits.edit_yaml", lambda *_: "packs:\n  - module: n.py\n")
    with pytest.raises(Fail, match="can't be edited"):
        add_pack(path, NEW)

    assert path.read_text() == "packs: []\n# ours\n"


@pytest.mark.parametrize("ending", TEXTS)
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("every", [2, 3, 7])
def test_line_ends_that_are_mixed_stay_as_they_are(edited, ending, change, every):
    lines = TEXTS[ending].splitlines()
    mixed = "".join(f"{line}{chr(13) if at % every == 0 else ''}\n" for at, line in enumerate(lines))
    plain, data = edited(ending, TEXTS[ending], CHANGES[change][0])
    after, same = edited(ending, mixed, CHANGES[change][0])

    assert (after.replace("\r\n", "\n"), same) == (plain, data)
    kept = [line for line in mixed.splitlines(keepends=True) if lines.count(line.strip("\r\n")) == 1]
    assert [line for line in kept if line.rstrip("\r\n") in plain.splitlines() and line not in after] == []


def test_an_edit_that_changes_nothing_writes_nothing(tmp_path):
    path = tmp_path / "agentos.toml"
    path.write_text('mode = "auto"\n')
    before = path.stat().st_mtime_ns
    set_value(path, ("mode",), "auto")

    assert path.stat().st_mtime_ns == before


@pytest.mark.parametrize(
    ("ending", "text"),
    [
        ("toml", '[mcpServers.x]\ncommand = "c" # c\n# tail\n\n[overrides]\n'),
        ("yaml", "mcpServers:\n  x:\n    command: c # c\n# tail\n"),
        ("json", '{"mcpServers": {"x": {"command": "c"}}}'),
    ],
)
def test_a_server_can_be_switched_and_removed(edited, ending, text):
    after, data = edited(ending, text, lambda path: set_value(path, ("mcpServers", "x", "enabled"), False))

    assert data["mcpServers"]["x"] == {"command": "c", "enabled": False}
    assert ("# tail" in after) == ("# tail" in text)
    assert not edited(ending, text, lambda path: set_value(path, ("mcpServers", "x"), GONE))[1].get("mcpServers")


plain_values = st.recursive(
    st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc \"'é.", min_size=1), inner, max_size=3),
    max_leaves=6,
)


@pytest.mark.parametrize("ending", TEXTS)
@settings(max_examples=examples(15))
@given(options=st.dictionaries(st.text('abc-_. "é', min_size=1, max_size=5), plain_values, max_size=3))
def test_whatever_options_are_added_are_read_back(tmp_path_factory, ending, options):
    path = tmp_path_factory.mktemp("edit") / f"agentos.{ending}"
    path.write_text(TEXTS[ending], "utf-8")
    add_pack(path, {"module": "c.py", "options": options})

    assert read_file(path)["packs"][2]["options"] == options


def test_a_value_with_a_sign_of_comments_is_added_before_a_comment(edited):
    new = {"module": "x.py", "options": {"word": "Good # day"}}
    after, data = edited("yaml", "packs: [{module: a.py}] # mine\n", lambda path: add_pack(path, new))

    assert data["packs"][1] == new
    assert after.endswith("] # mine\n")

"""YAML documents: what their texts mean, with libyaml and without it, read once and within bounds."""

import json
import subprocess
import sys

import pytest

from agentos.errors import ToolDefinitionError
from agentos.openapi import document_text, yaml_text
from agentos.openapi.document import OpenAPIDocument
from agentos.openapi.yaml_text import parse_yaml


@pytest.fixture(params=["libyaml", "ruamel"], autouse=True)
def parser(request, monkeypatch):
    """Every test runs with both parsers."""
    if request.param == "ruamel":
        monkeypatch.setitem(sys.modules, "yaml.cyaml", None)


def read(text):
    return parse_yaml(text, document_text.ReadingLimits("it").count)


SCALARS = [
    ("1", 1),
    ("-7", -7),
    ("+7", 7),
    ("010", 10),
    ("0o17", 15),
    ("0x1F", 31),
    ("1.50", 1.5),
    (".5", 0.5),
    ("1e3", 1000.0),
    ("1.", 1.0),
    ("true", True),
    ("FALSE", False),
    ("null", None),
    ("~", None),
    ("", None),
    ("yes", "yes"),
    ("on", "on"),
    ("No", "No"),
    ("1_000", "1_000"),
    ("12:30", "12:30"),
    ("1.2.3", "1.2.3"),
    ("-", [None]),
    ("-a", "-a"),
    ("0b11", "0b11"),
    ("2026-05-01", "2026-05-01"),
    ("2026-05-01T10:00:00Z", "2026-05-01T10:00:00Z"),
    ("'1'", "1"),
    ('"true"', "true"),
    ("!!str 1", "1"),
    ("! 1", "1"),
    ("!!int 3", 3),
    ("!!float 3", 3.0),
    ("!!bool true", True),
    ("!!null ~", None),
    ("!!timestamp 2026-05-01", "2026-05-01"),
    ("|\n  a\n  b", "a\nb\n"),
    (">-\n  a\n  b", "a b"),
    ("[a, 1]", ["a", 1]),
    ("!!seq [a]", ["a"]),
    ("!!map {a: 1}", {"a": 1}),
    ("ä", "ä"),
]


@pytest.mark.parametrize(("text", "expected"), SCALARS)
def test_a_value_is_read_as_yaml_1_2_says(text, expected):
    found = read(f"a:\n  {text}\n" if not text.startswith(("|", ">")) else f"a: {text}\n")["a"]

    assert (type(found), found) == (type(expected), expected)


def test_keys_are_text_as_they_are_written():
    assert read("200: a\n1.10: b\non: c\n2026-05-01: d\n'true': e\n") == {
        "200": "a",
        "1.10": "b",
        "on": "c",
        "2026-05-01": "d",
        "true": "e",
    }


def test_an_empty_text_is_nothing():
    assert [read(""), read("# nothing\n"), read("---\n")] == [None, None, None]


def test_aliases_are_copies():
    made = read("a: &a {b: [1]}\nc: *a\n&key d: x\ne: *key\n*key : y\n".replace("*key : y\n", ""))
    made["a"]["b"].append(2)

    assert made == {"a": {"b": [1, 2]}, "c": {"b": [1]}, "d": "x", "e": "d"}


def test_merge_keys_add_what_is_not_said():
    made = read("a: &a {x: 1, y: 1}\nb: &b {y: 2, z: 2}\nc: {<<: *a, x: 0}\nd:\n  <<: [*a, *b]\n  w: 0\ne: {'<<': 1}\n")

    assert made["c"] == {"x": 0, "y": 1}
    assert made["d"] == {"w": 0, "x": 1, "y": 1, "z": 2}
    assert made["e"] == {"<<": 1}


def test_merge_keys_are_counted(monkeypatch):
    """Each level is merged twice into the next: forty lines would make a thousand thousand million keys."""
    monkeypatch.setattr(document_text, "NODE_LIMIT", 10_000)
    lines = ["a0: &a0 {x: {y: 1}}"]
    lines += [f"a{n}: &a{n} {{l: {{<<: *a{n - 1}}}, r: {{<<: *a{n - 1}}}}}" for n in range(1, 40)]

    with pytest.raises(ToolDefinitionError, match="too large: more than 10000 values"):
        read("\n".join(lines))


REFUSED = [
    ("{a: 1, a: 2}", "column 8: the key 'a' stands twice in one mapping"),
    ("? [a]\n: b", "expected text as a key; put it in quotes"),
    ("~: b", "expected text as a key"),
    ("a: *b", "an alias refers to what is not there"),
    ("<<: [1]", "expected a mapping, or a list of them, after <<"),
    ("a: !x 1", "a value does not fit its tag, or the tag is unknown"),
    ("a: !!set {b}", "a value does not fit its tag, or the tag is unknown"),
    ("a: !!binary YQ==", "a value does not fit its tag, or the tag is unknown"),
    ("a: !!int true", "a value does not fit its tag"),
    ("a: .NaN", ".NaN is not JSON"),
    ("a: -.inf", "-.inf is not JSON"),
    ("a: 1e999", "1e999 is not JSON"),
    ("a: [b", "line "),
    ("a\n b: c", "line 2"),
    ("\x07", "not YAML"),
    ("a: 1\n---\nb: 1\n", "expected one document, got several"),
]


@pytest.mark.parametrize(("text", "words"), REFUSED)
def test_a_text_is_refused_in_words(text, words):
    with pytest.raises(ValueError, match=r".") as caught:
        read(text)

    assert words in str(caught.value)


def test_a_text_that_is_nested_too_deep_is_refused():
    with pytest.raises(ToolDefinitionError, match="100 levels"):
        read("[" * 150 + "]" * 150)


def test_a_text_is_gone_through_once(monkeypatch):
    seen = []
    events = yaml_text._events
    monkeypatch.setattr(yaml_text, "_events", lambda text: seen.append(text) or events(text))
    OpenAPIDocument.read("openapi: 3.0.0\npaths: {}\n")

    assert len(seen) == 1


LARGE = """
import sys, time
from agentos.openapi.document import OpenAPIDocument

OpenAPIDocument.read("openapi: 3.0.0\\npaths: {}\\n")  # what is imported late counts for nobody's document
text = open(sys.argv[1], encoding="utf-8").read()
began = time.process_time()
found = OpenAPIDocument.read(text)
print(len(text), len(found.operations()), time.process_time() - began)
"""


@pytest.mark.proof
@pytest.mark.parametrize("parser", ["libyaml"], indirect=True)
def test_three_megabytes_take_a_few_seconds_at_the_most(tmp_path, parser):
    """They take .7 s of CPU where this was written; by ruamel.yaml, and twice, they took 9 s."""
    words = "description: a longer text that says what the thing is for and when it is there, in many words"
    fields = "".join(f"        f{n}: {{type: string, {words}}}\n" for n in range(20))
    schemas = "".join(f"    S{n}:\n      type: object\n      properties:\n{fields}" for n in range(1_300))
    paths = "".join(f"  /p{n}:\n    get: {{operationId: g{n}, responses: {{200: {{}}}}}}\n" for n in range(500))
    (tmp_path / "a.yaml").write_text(f"openapi: 3.0.3\npaths:\n{paths}components:\n  schemas:\n{schemas}", "utf-8")
    ran = subprocess.run(
        [sys.executable, "-c", LARGE, tmp_path / "a.yaml"], capture_output=True, text=True, check=True, timeout=120
    )
    size, count, seconds = json.loads(f"[{ran.stdout.strip().replace(' ', ',')}]")

    assert (size > 3_000_000, count) == (True, 500)
    assert seconds < 6

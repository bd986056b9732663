"""What is said: to people without harm, to programs as one document."""

import enum
import io
import json
from datetime import UTC, datetime
from pathlib import Path, PureWindowsPath

import attrs
import click
import pytest
from rich.text import Text

from agentos.cli.terminal.output import Out, clean, one_line, plain

HOSTILE = "a\x1b]0;title\x07b\x9bc\u202ed\ue000\ud800[bold]e[/bold]"


class Terminal(io.StringIO):
    """Text that says it is a terminal."""

    def isatty(self):
        return True


@pytest.mark.parametrize("char", ["\x1b", "\x07", "\x9b", "\u202e", "\u2028", "\ud800", "\x00", "\r", "\u200b"])
def test_what_a_terminal_obeys_or_hides_is_written_out(char):
    assert char not in clean(f"a{char}b")
    assert clean(f"a{char}b").isprintable()


def test_lines_tabs_and_letters_stay():
    assert clean("ä\n\t漢") == "ä\n\t漢"


def test_odd_spaces_become_spaces():
    assert clean("a\xa0b\u3000c") == "a b c"


def test_one_line():
    assert one_line("a\n  b\t c") == "a b c"


class Colour(enum.Enum):
    RED = "red"


@attrs.frozen
class Value:
    name: str
    secret: str = attrs.field(repr=False)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Colour.RED, "red"),
        ({1: (1, 2)}, {"1": [1, 2]}),
        ({"b", "a"}, ["a", "b"]),
        (datetime(2026, 1, 2, tzinfo=UTC), "2026-01-02T00:00:00+00:00"),
        (Path("a/b"), "a/b"),
        (PureWindowsPath("a\\b"), "a/b"),
        (Value("x", "hidden"), {"name": "x"}),
        (ValueError("why"), "why"),
        (b"raw", "b'raw'"),
    ],
)
def test_values_become_what_json_knows(value, expected):
    assert plain(value) == expected


def test_json_is_one_document_of_plain_characters():
    file = io.StringIO()
    Out(is_json=True, stdout=file).data({"text": HOSTILE})

    assert file.getvalue().isascii()
    assert json.loads(file.getvalue()) == {"text": HOSTILE}


def test_a_second_document_is_refused():
    out = Out(is_json=True, stdout=io.StringIO())
    out.data(1)

    with pytest.raises(RuntimeError, match="second"):
        out.data(2)


def test_with_json_people_are_told_nothing_on_stdout():
    file = io.StringIO()
    out = Out(is_json=True, stdout=file)
    out.say("hello")
    out.table(["a"], [["b"]])
    out.tree("a", ["b"])
    out.facts([("a", "b")])
    out.show(Text("c"))
    out.raw("d")

    assert file.getvalue() == ""


def test_without_json_there_is_none():
    file = io.StringIO()
    Out(stdout=file).data({})
    Out(stdout=file).line({})

    assert file.getvalue() == ""


def test_lines_of_json_for_what_happens():
    file = io.StringIO()
    out = Out(is_json=True, stdout=file)
    out.line({"a": 1})
    out.line({"b": 2})

    assert [json.loads(line) for line in file.getvalue().splitlines()] == [{"a": 1}, {"b": 2}]


def said(draw, width="40", is_terminal=True):
    file = Terminal() if is_terminal else io.StringIO()
    draw(Out(stdout=file, color=False))
    return file.getvalue()


@pytest.mark.parametrize(
    "draw",
    [
        lambda out: out.say(HOSTILE),
        lambda out: out.table(["a", "b"], [[HOSTILE, (HOSTILE, "bold")]], title=HOSTILE),
        lambda out: out.tree(HOSTILE, [HOSTILE, HOSTILE]),
        lambda out: out.facts([(HOSTILE, HOSTILE)]),
        lambda out: out.show(Text(HOSTILE)),
    ],
)
def test_hostile_text_does_nothing_to_a_terminal(draw, monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")
    text = said(draw)

    assert clean(text) == text
    assert "[bold]e[/bold]" in text


def test_a_wide_table_has_columns(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")

    assert said(lambda out: out.table(["name", "why"], [["x", "y" * 10]])).splitlines()[0].split() == ["name", "why"]


def test_a_narrow_table_becomes_records(monkeypatch):
    monkeypatch.setenv("COLUMNS", "30")
    text = said(lambda out: out.table(["name", "state", "why"], [["x", "", "word " * 20]], title="things"))

    assert text.splitlines()[:2] == ["things", "x"]
    assert "state" not in text
    assert all(len(line) <= 30 for line in text.splitlines())


def test_a_narrow_table_that_fits_stays_one(monkeypatch):
    monkeypatch.setenv("COLUMNS", "30")

    assert "name" in said(lambda out: out.table(["name"], [["x"]])).splitlines()[0]


def test_without_rows_something_is_said():
    assert said(lambda out: out.table(["name"], [], empty="none")) == "none\n"


@pytest.mark.parametrize("columns", ["", "30", "200"])
def test_from_a_pipe_rows_are_read_whole_whatever_the_terminal_around_it(monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", columns)
    text = said(lambda out: out.table(["name", "why"], [["x", "word " * 500]]), is_terminal=False)

    assert len(text.splitlines()) == 2
    assert text.splitlines()[1] == f"x     {('word ' * 500).strip()}"


def test_warnings_and_failures_go_to_stderr(capsys):
    out = Out(color=False)
    out.warn("a")
    out.fail("b", "c")
    out.note("d")

    assert capsys.readouterr() == ("", "warning: a\nerror: b\nhint: c\nd\n")


def test_a_sign_that_the_terminal_lacks_is_written_out():
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding="ascii")
    Out(stdout=file).say("ä●")

    assert raw.getvalue() == b"\\xe4\\u25cf\n"


def test_without_a_person_asking_is_a_usage_error(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("x\n"))

    assert Out().ask("name", default="y") == "y"
    with pytest.raises(click.UsageError, match="no terminal to ask at"):
        Out().ask("name")


def test_asking(monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", Terminal("ada\n\n"))

    assert Out().ask("name", default="bob") == "ada"
    assert Out().ask("name", default="bob") == "bob"
    assert capsys.readouterr().err == "name [bob]: name [bob]: "


def test_what_is_typed_hidden_is_not_shown(tmp_path):
    import sys

    from terminal import run_in_terminal

    script = "from agentos.cli.terminal.output import Out; o = Out(); print(len(o.ask('secret', hidden=True)))"
    told = run_in_terminal([sys.executable, "-c", script], inputs=[("secret: ", "swordfish\n")])

    assert "swordfish" not in told
    assert "9" in told


def test_what_is_no_number_in_json_is_text():
    assert plain([float("nan"), float("-inf"), 1.5]) == ["nan", "-inf", 1.5]

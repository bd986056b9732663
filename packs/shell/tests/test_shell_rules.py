"""What a rule allows, and the many ways to write the same thing around it."""

import pytest
from agentos_pack_common import OptionsError
from agentos_pack_shell.policy import NotAllowedError, read_policy
from agentos_pack_shell.rules import Rule


@pytest.fixture
def allows(root):
    """Return a function that tells whether rules allow an argv."""

    def ask(allow, *argv):
        try:
            read_policy({"root": str(root), "allow": allow}).allow(argv)
        except NotAllowedError:
            return False
        return True

    return ask


@pytest.mark.parametrize(
    ("rule", "argv", "expected"),
    [
        ("ls", ["ls"], True),
        ("ls", ["ls", "-l"], False),
        ("ls *", ["ls", "-l"], True),
        ("ls *", ["ls"], False),
        ("ls *", ["cat", "-l"], False),
        ("git log *", ["git", "log", "-n", "5"], True),
        ("git log *", ["git", "-c", "alias.log=!id", "log", "-n"], False),
        ("git log *", ["git", "push", "log"], False),
        ("git log -? *.py", ["git", "log", "-p", "a.py"], True),
        ("git log -? *.py", ["git", "log", "-pq", "a.py"], False),
        ("cat notes/*", ["cat", "notes/a"], True),
        ("cat notes/*", ["cat", "notes/../../etc/passwd"], False),
        ("cat notes/*", ["cat", "/etc/passwd"], False),
        ("echo 'a b'", ["echo", "a b"], True),
        ("echo 'a b'", ["echo", "a", "b"], False),
        ("echo '*'", ["echo", "x"], False),
    ],
)
def test_words_are_patterns(allows, rule, argv, expected):
    assert allows([rule], *argv) is expected


@pytest.mark.parametrize(
    "argv",
    [
        ["ls\n"],
        ["ls", "-l\n"],
        ["ls", "-l", ""],
        [" ls", "-l"],
        ["LS", "-l"],
        ["ls -l"],
        ["ls;", "-l"],
        ["\u200bls", "-l"],
        ["l\u0455", "-l"],
        ["ls\0", "-l"],
        ["ls", "-l\0"],
        [""],
        [],
    ],
    ids=ascii,
)
def test_a_command_is_taken_by_the_letter(allows, argv):
    assert not allows(["ls -l"], *argv)


FLAGS = {"command": "sort *", "flags": ["-n", "-r", "-k", "--unique", "--field-separator"]}


@pytest.mark.parametrize(
    "words",
    [
        ["-n", "file"],
        ["-nr", "file"],
        ["-rn", "-k", "2", "file"],
        ["--unique", "file"],
        ["--field-separator=,", "file"],
        ["--field-separator", ",", "file"],
        ["--", "file"],
        ["-"],
        ["file"],
        [""],
    ],
    ids=str,
)
def test_listed_options_are_allowed(allows, words):
    assert allows([FLAGS], "sort", *words)


@pytest.mark.parametrize(
    "words",
    [
        ["-o", "/etc/passwd"],
        ["-o/etc/passwd"],
        ["-no", "x"],
        ["-nox"],
        ["--output=x"],
        ["--output", "x"],
        ["--outp=x"],
        ["--o", "x"],
        ["--compress-program=sh"],
        ["file", "-o", "x"],
        ["--", "-o"],
        ["-n", "--", "file", "--output=x"],
        ["--uniq"],
        ["--unique-not"],
        ["--Unique"],
        ["-N"],
        ["-k2"],
        ["---unique"],
        ["-=x"],
        ["--=x"],
        ["-n\n"],
        ["-n -o"],
        ["-\N{LATIN SMALL LETTER N WITH TILDE}"],
    ],
    ids=ascii,
)
def test_other_options_are_refused_however_they_are_written(allows, words):
    assert not allows([FLAGS], "sort", *words)


FORBID = {"command": "tar *", "forbid": ["-I", "--use-compress-program", "--checkpoint-action", "-to-command"]}


@pytest.mark.parametrize(
    "words",
    [
        ["-I", "sh"],
        ["-Ish"],
        ["-xI", "sh"],
        ["-xIf", "sh", "a"],
        ["--I=sh"],
        ["--use-compress-program=sh"],
        ["--use-compress-program", "sh"],
        ["--use-compress-prog=sh"],
        ["--use", "sh"],
        ["--checkpoint-action=exec=sh"],
        ["--checkpoint-a=exec=sh"],
        ["-checkpoint-action=exec=sh"],
        ["--to-command=sh"],
        ["-to-command", "sh"],
        ["a", "--", "--checkpoint-action=exec=sh"],
        ["--c"],
    ],
    ids=str,
)
def test_forbidden_options_are_found_however_they_are_written(allows, words):
    assert not allows([FORBID], "tar", *words)


@pytest.mark.parametrize(
    "words", [["-tf", "a.tar"], ["--list"], ["-f", "I.tar"], ["checkpoint-action"], ["-"]], ids=str
)
def test_what_is_not_forbidden_is_allowed(allows, words):
    assert allows([FORBID], "tar", *words)


def test_options_that_the_command_writes_out_need_not_be_listed(allows):
    rule = {"command": "tar -tf *", "flags": ["-v"]}

    assert allows([rule], "tar", "-tf", "a.tar", "-v")
    assert not allows([rule], "tar", "-tf", "a.tar", "-x")


def test_one_rule_that_allows_is_enough(allows):
    rules = [{"command": "sort *", "flags": []}, {"command": "sort *", "flags": ["-n"]}]

    assert allows(rules, "sort", "-n")


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("git * && rm *", "expected one simple command"),
        ("$(id) *", "can't be matched"),
        ("ls > x", "a redirection"),
        ("*", "the program can't be a pattern"),
        ("g?t log", "the program can't be a pattern"),
        ("~/bin/x", "the program can't be a pattern"),
        ("bin/x *", "depends on the folder"),
        ("./x", "depends on the folder"),
        ("A=1 ls", "an assignment"),
        ("", "expected one simple command"),
        ({"command": "ls *", "flags": ["l"]}, "expected options such as -x, -name or --name, without a value, got 'l'"),
        ({"command": "ls *", "flags": ["--a=b"]}, "got '--a=b'"),
        ({"command": "ls *", "forbid": ["--"]}, "got '--'"),
        ({"command": "ls *", "flag": ["-l"]}, r"options\.allow\[0\]\.flag: is not known; did you mean `flags`"),
        ({"flags": ["-l"]}, r"options\.allow\[0\]\.command: is needed"),
        (5, r"options\.allow\[0\]: expected a mapping, got a whole number"),
    ],
    ids=str,
)
def test_a_rule_that_can_not_be_meant_fails_the_load(root, rule, words):
    with pytest.raises(OptionsError, match=words) as caught:
        read_policy({"root": str(root), "allow": [rule]})

    assert "options.allow[0]" in str(caught.value)


@pytest.mark.parametrize("command", ["env *", "find *", "xargs *", "sudo *", "sh *", "bash -c *", "/usr/bin/env *"])
def test_a_program_that_runs_others_must_be_said_aloud(command):
    with pytest.raises(ValueError, match="runs any other program that it is given"):
        Rule(command=command)

    assert Rule(command=command, runs_others=True).is_open


@pytest.mark.parametrize("command", ["python3 *", "awk *", "make *", "/usr/bin/perl *", "nice *", "timeout 5 ls *"])
def test_whoever_interprets_or_starts_anything_must_be_said_aloud_too(command):
    with pytest.raises(ValueError, match="runs any other program that it is given"):
        Rule(command=command)


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("git *", ["-c", "alias.x=!id", "x"]),
        ("git *", ["bisect", "run", "id"]),
        ("git clone *", ["clone", "--upload-pack=id", "x"]),
        ("tar *", ["--checkpoint-action=exec=id", "-cf", "a", "b"]),
        ("tar *", ["-I", "id", "-tf", "a"]),
        ("tar *", ["xIf", "id", "a"]),
        ("sort *", ["--compress-program=id", "x"]),
        ("rsync *", ["-e", "id", "a", "b"]),
        ("sed *", ["1e id", "x"]),
        ("man *", ["-P", "id", "ls"]),
    ],
)
def test_options_that_run_another_program_must_be_said_aloud(command, words):
    assert "runs another program, or may" in Rule(command=command).fault_of(words)
    assert Rule(command=command, runs_others=True).fault_of(words) is None


def test_words_that_are_written_out_may_run_another_program():
    assert Rule(command="git bisect run make *").fault_of(["bisect", "run", "make", "test"]) is None
    assert Rule(command="tar -I zstd -tf *").fault_of(["-I", "zstd", "-tf", "a"]) is None


@pytest.mark.parametrize(
    "argv",
    [
        ["git", "log", "-n", "5"],
        ["git", "push", "-u", "origin", "main"],
        ["git", "clean", "-xdf"],
        ["git", "commit", "-m", "say (more)"],
        ["tar", "-czf", "a.tgz", "b"],
        ["sort", "-k", "2", "x"],
        ["rsync", "-av", "a", "b"],
        ["sed", "-n", "s/a/b/p", "x"],
    ],
)
def test_what_runs_nothing_else_needs_no_word_aloud(argv):
    assert Rule(command=f"{argv[0]} *").fault_of(argv[1:]) is None


def test_a_program_that_runs_others_may_have_fixed_words():
    assert not Rule(command="find . -name setup.py").is_open


def test_a_rule_tells_itself():
    rule = Rule(command="sort *", flags=("-n",), forbid=("--output",))

    assert str(rule) == "sort * (options: -n; never: --output)"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"allow": ["ls"]}, r"options\.root: is needed where commands are allowed"),
        ({"allow": "ls"}, r"options\.allow: expected a list"),
        ({"alow": []}, r"options\.alow: is not known; did you mean `allow`"),
        ({"root": "/no/such/folder"}, r"options\.root: '/no/such/folder' is not a folder that exists"),
        ({"maxSeconds": 0}, r"options\.maxSeconds: "),
        ({"maxSeconds": 601}, r"options\.maxSeconds: "),
        ({"outputBytes": 10**9}, r"options\.outputBytes: "),
        ({"env": {"A=B": "x"}}, r"options\.env: .* 'A=B' is no such variable"),
        ({"env": {"A": "x\0"}}, r"options\.env: .* 'A' is no such variable"),
        ({"env": {"A": 1}}, r"options\.env\.A: expected text"),
    ],
)
def test_wrong_options_fail_the_load(options, words):
    with pytest.raises(OptionsError, match=words):
        read_policy(options)

"""What a command line runs: tables of lines, and the same lines under real shells."""

import random
import shlex
import shutil
import subprocess
from collections import Counter

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thorough import examples

from agentos.rules.commands import (
    DEEPEST_COMMAND,
    LONGEST_COMMAND,
    MOST_OPTIONS,
    CommandPattern,
    Commands,
    commands_of,
    parse,
)

OK = CommandPattern.parse("ok *")
ANYTHING = CommandPattern.parse("*")


def words_of(line):
    return [list(part) for part in parse(line).parts]


CLEAR = [
    # words and quotes
    ("ok x", [["ok", "x"]]),
    ("  ok   x  ", [["ok", "x"]]),
    ("ok\tx\ty", [["ok", "x", "y"]]),
    ("ok 'a b'", [["ok", "a b"]]),
    ('ok "a b"', [["ok", "a b"]]),
    (r"ok a\ b", [["ok", "a b"]]),
    ("ok a'b'\"c\"d", [["ok", "abcd"]]),
    ("ok ''", [["ok", ""]]),
    ('ok ""', [["ok", ""]]),
    ("ok '' x", [["ok", "", "x"]]),
    ("''ok x", [["ok", "x"]]),
    ("'ok' x", [["ok", "x"]]),
    (r"\ok x", [["ok", "x"]]),
    ("o'k' x", [["ok", "x"]]),
    ('"o"k x', [["ok", "x"]]),
    ("ok 'it'\\''s'", [["ok", "it's"]]),
    ("ok 'a;b'", [["ok", "a;b"]]),
    ('ok "a;b && c | d"', [["ok", "a;b && c | d"]]),
    (r"ok a\;b", [["ok", "a;b"]]),
    (r"ok \&\& bad", [["ok", "&&", "bad"]]),
    (r"ok \| bad", [["ok", "|", "bad"]]),
    ("ok 'a\nb'", [["ok", "a\nb"]]),
    ('ok "a\nb"', [["ok", "a\nb"]]),
    ("ok 'a\tb'", [["ok", "a\tb"]]),
    ("ok '$(bad y)'", [["ok", "$(bad y)"]]),
    ("ok '`bad y`'", [["ok", "`bad y`"]]),
    ("ok '$x'", [["ok", "$x"]]),
    (r"ok \$x", [["ok", "$x"]]),
    (r'ok "\$x"', [["ok", "$x"]]),
    (r'ok "\$(bad y)"', [["ok", "$(bad y)"]]),
    (r'ok "\`bad y\`"', [["ok", "`bad y`"]]),
    (r'ok "a\"b"', [["ok", 'a"b']]),
    (r'ok "a\\"', [["ok", "a\\"]]),
    (r'ok "a\b"', [["ok", r"a\b"]]),
    (r"ok 'a\'", [["ok", "a\\"]]),
    (r'ok "a\";bad y;\""', [["ok", 'a";bad y;"']]),
    (r"ok \\", [["ok", "\\"]]),
    (r"ok \'a", [["ok", "'a"]]),
    (r"ok \"a", [["ok", '"a']]),
    (r"ok \>f", [["ok", ">f"]]),
    ("ok '>f'", [["ok", ">f"]]),
    ("ok '{a,b}'", [["ok", "{a,b}"]]),
    (r"ok \(x\)", [["ok", "(x)"]]),
    ("ok 'a(b)'", [["ok", "a(b)"]]),
    # what has a meaning elsewhere only
    ("ok a#b", [["ok", "a#b"]]),
    ("ok ''#b", [["ok", "#b"]]),
    (r"ok \#b", [["ok", "#b"]]),
    ("ok '#' b", [["ok", "#", "b"]]),
    ("ok A=b", [["ok", "A=b"]]),
    ("ok --a=b", [["ok", "--a=b"]]),
    ("ok if then do", [["ok", "if", "then", "do"]]),
    ("ok HEAD~1", [["ok", "HEAD~1"]]),
    ("ok HEAD^", [["ok", "HEAD^"]]),
    ("ok '~'", [["ok", "~"]]),
    ("ok '*'", [["ok", "*"]]),
    (r"ok \*", [["ok", "*"]]),
    ("ok a]b", [["ok", "a]b"]]),
    ("ok 50%", [["ok", "50%"]]),
    ("ok a@b:c,d+e", [["ok", "a@b:c,d+e"]]),
    ("ok ../x", [["ok", "../x"]]),
    ("ok !", [["ok", "!"]]),
    ('ok "Done!"', [["ok", "Done!"]]),
    ('ok "Hi! you"', [["ok", "Hi! you"]]),
    ("ok 'a!b'", [["ok", "a!b"]]),
    (r"ok a\!b", [["ok", "a!b"]]),
    ("ok a!=b", [["ok", "a!=b"]]),
    ("ok é 日本 ✓", [["ok", "é", "日本", "✓"]]),
    ("ok -- -rf", [["ok", "--", "-rf"]]),
    # several commands
    ("ok a; ok b", [["ok", "a"], ["ok", "b"]]),
    ("ok a;ok b;", [["ok", "a"], ["ok", "b"]]),
    ("ok a && bad", [["ok", "a"], ["bad"]]),
    ("ok a&&bad", [["ok", "a"], ["bad"]]),
    ("ok a || bad", [["ok", "a"], ["bad"]]),
    ("ok a | bad", [["ok", "a"], ["bad"]]),
    ("ok a|bad", [["ok", "a"], ["bad"]]),
    ("ok a |& bad", [["ok", "a"], ["bad"]]),
    ("ok a & bad", [["ok", "a"], ["bad"]]),
    ("ok a&", [["ok", "a"]]),
    ("ok a\nbad", [["ok", "a"], ["bad"]]),
    ("\n\nok a\n\n bad\n", [["ok", "a"], ["bad"]]),
    ("ok a &&\nbad", [["ok", "a"], ["bad"]]),
    ("ok a |\n\n bad", [["ok", "a"], ["bad"]]),
    ("ok 'a';'bad'", [["ok", "a"], ["bad"]]),
    ("", []),
    (" \n\t", []),
]

OPAQUE = [
    # substitutions
    *("ok $(bad y)", "ok `bad y`", 'ok "$(bad y)"', 'ok "`bad y`"', "ok a$(bad y)b", "$(bad) x", "`bad` x"),
    *("ok $(echo $(bad y))", 'ok "a $(echo "b $(bad y)") c"', "ok <(bad y)", "ok >(bad y)", "ok $((1+1))", "ok $[1+1]"),
    *("ok 'a'$(bad y)", "ok 'a'`bad y`'b'", r"ok \\$(bad y)", r"ok \\`bad y`", r'ok "\\$(bad y)"', r'ok "\\`bad y`"'),
    *("ok $(<file)", "ok $( bad y", "ok `bad y", "ok =(bad y)", "ok ${x:-$(bad y)}", "ok ${x:=`bad y`}"),
    # variables
    *("ok $x", "ok ${x}", 'ok "$x"', 'ok "${x}"', "ok $1", "ok $@", "ok $?", "ok $$", "ok $-", "$x y", "ok a$x"),
    *("ok $'a\\'; bad y; #'", "ok $'\\x41'", 'ok $"a"', "ok $", 'ok "a$"', "ok ${IFS}x", "ok$IFS'x'"),
    # redirections
    *("ok x > f", "ok x >f", "ok x>f", "ok x >> f", "ok x < f", "ok x << E\nbad y\nE\n", "ok x <<< y", "ok x 2> f"),
    *("ok x 2>&1", "ok x &> f", "ok x >& f", "ok x >| f", "> f", ">f ok x", "ok x 2>f", "ok x <> f", "ok x {fd}>f"),
    # groups, functions, words of the grammar
    *("(ok x)", "( ok x )", "{ ok x; }", "ok() { bad; }", "ok () { bad; }; ok x", "function ok { bad; }", "ok x)"),
    *("if ok x; then bad; fi", "for a in b; do ok x; done", "while ok x; do bad; done", "until ok x; do bad; done"),
    *("case a in a) ok x;; esac", "case a in (a) ok x;; esac", "select a in b; do ok x; done", "! ok x", "time ok x"),
    *("coproc ok x", "[[ -n x ]]", "[ -n x ]", "((1))", "then ok x", "do ok x", "ok x; fi", "ok x && ! bad y"),
    # assignments, and command words that are something else in the end
    *("A=b ok x", "A=b", "A= ok x", "A+=b ok x", "A[0]=b ok x", "PATH=. ok x", "ok x; A=b", "IFS=x ok y"),
    *("o? x", "* x", "[o]k x", "~/ok x", "~bad x", "/bin/o* x", "o{k,j} x", "{ok,x}", "{ok,bad} x", "=ok x", "^ok^bad"),
    # expansion of braces, history, comments, continuations
    *("ok {a,b}", "ok a{1..9}", "ok {}", "ok a}", "ok HEAD@{1}", "ok !!", "ok !bad", 'ok "!bad"', "ok a!b", "ok !$"),
    *("ok x #y", "#ok x", "ok x;#y", "ok x\n#y", "ok \\\nx", "o\\\nk x", 'ok "a\\\nb"', "ok x\\\n;bad", "ok x\\"),
    # quotes without an end
    *("ok 'a", 'ok "a', "ok a'", 'ok a"', "ok 'a\nbad y", 'ok "a\nbad y', "ok 'a'\\''", "'", '"', "\\", 'ok "a\\'),
    'ok "a\\"',
    # characters that nobody sees
    *("ok a\0b", "ok\0", "ok \x01", "ok \x7f", "ok \x1b[2K", "ok x\rbad y", "ok x\r\nbad y", "ok\x0bx", "ok\x0cx"),
    *("ok\u00a0x", "ok\u2028bad", "ok \u202ex", "ok \u200bx", "ok\u3000x", "ok \ud800", "ok 'a\x1bb'", "ok \x85x"),
    # no whole command line
    *("; ok x", "ok x;; bad", "ok x &&", "ok x ||", "ok x |", "ok x &; bad", "&& ok x", "| ok x", "ok x && && ok y"),
    *("ok x ||| ok y", "ok x &&& ok y", "ok x;&ok y", "ok x\n&& ok y", "&", "ok x & & ok y", "ok x |&", "ok x &&\n"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "words"), CLEAR)
def test_a_clear_line_shows_its_words(line, words):
    assert words_of(line) == words


@pytest.mark.parametrize("line", [line for line, _ in CLEAR])
def test_a_clear_line_is_not_opaque(line):
    assert not parse(line).opaque


@pytest.mark.parametrize("line", OPAQUE)
def test_a_line_that_may_do_more_than_its_words_show_is_opaque(line):
    assert parse(line).opaque


@pytest.mark.parametrize("line", OPAQUE)
def test_nothing_allows_an_opaque_line(line):
    assert not ANYTHING.matches(line, widely=False)


@pytest.mark.parametrize("line", OPAQUE)
def test_everything_denies_an_opaque_line(line):
    assert CommandPattern.parse("surely not that").matches(line, widely=True)


def test_there_are_enough_lines():
    assert len(CLEAR) + len(OPAQUE) >= 120


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("ok $(bad y) z", ("bad", "y")),
        ("ok $(bad y) z", ("ok", "z")),
        ("ok `bad y`", ("bad", "y")),
        ("ok \"a $(bad 'y z') b\"", ("bad", "y z")),
        ('ok "a `bad y` b"', ("bad", "y")),
        ("ok $(x $(bad y))", ("bad", "y")),
        ('ok "$(x "$(bad y)")"', ("bad", "y")),
        ("ok <(bad y)", ("bad", "y")),
        ("(ok x; bad y)", ("bad", "y")),
        ("ok $(bad y", ("bad", "y")),
        ("ok x) ; bad y", ("bad", "y")),
    ],
)
def test_what_is_in_a_substitution_is_listed(line, part):
    assert part in parse(line).parts


def test_a_word_with_a_glob_is_marked_as_expanding():
    assert parse("ok a; ok *.py '*' ?x [ab]") == Commands(
        (("ok", "a"), ("ok", "*.py", "*", "?x", "[ab]")), opaque=False, expanding=frozenset({(1, 1), (1, 3), (1, 4)})
    )


@pytest.mark.parametrize("word", ["~", "~/x", "~bad", "a=~", "a=b:~/x", "--a=~"])
def test_a_word_with_a_tilde_that_the_shell_replaces_is_marked_as_expanding(word):
    assert parse(f"ok {word}").expanding == {(0, 1)}


def test_a_line_that_is_too_long_is_opaque():
    assert parse("ok " + "x" * LONGEST_COMMAND) == Commands((), opaque=True)


def test_thousands_of_open_substitutions_are_no_problem():
    assert parse("$(" * (LONGEST_COMMAND // 2)).opaque


@given(st.text())
def test_parsing_any_text_gives_an_answer(text):
    assert isinstance(parse(text), Commands)


@given(st.text(alphabet="ok ;&|'\"\\$`()<>{}#~!*?[]=\n\t"))
def test_parsing_any_soup_of_signs_gives_an_answer(text):
    assert isinstance(parse(text), Commands)


printable = st.text().filter(lambda text: text.replace("\n", "").replace("\t", "").isprintable())


@given(st.lists(printable, max_size=5))
def test_words_that_were_quoted_come_back_as_they_were(words):
    assert parse(shlex.join(["ok", *words])) == Commands((("ok", *words),), opaque=False)


# -- patterns ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "line"),
    [
        ("ok *", "ok x"),
        ("ok *", "ok x y z"),
        ("ok *", "ok x; ok y"),
        ("ok *", "ok x && ok y | ok z\nok w"),
        ("ok *", "'ok' \"x\""),
        ("ok *", "ok *.py"),
        ("ok *", "ok ~/x"),
        ("ok *", "ok ../x"),
        ("*", "anything at all"),
        ("*", "one"),
        ("ok", "ok"),
        ("ok", "ok;ok"),
        ("git add *", "git add a b"),
        ("git add", "git add"),
        ("git * x", "git add x"),
        ("git * x", "git ../add x"),
        ("git ad? [xy]", "git add y"),
        ("cat /tmp/*", "cat /tmp/a"),
        ("cat /tmp/*", "cat /tmp/a/b"),
        ("cat ../*", "cat ../a"),
        ("echo '*'", "echo '*'"),
        ("echo '*'", r"echo \*"),
        ("echo 'a b' *", "echo 'a b' c"),
        ("echo '$x'", "echo '$x'"),
        ("git log main..*", "git log main..dev"),
    ],
)
def test_a_pattern_allows(pattern, line):
    assert CommandPattern.parse(pattern).matches(line, widely=False)


@pytest.mark.parametrize(
    ("pattern", "line"),
    [
        ("ok *", ""),
        ("ok *", "   "),
        ("ok *", "ok"),
        ("ok *", "okay x"),
        ("ok *", "OK x"),
        ("ok *", "bad x"),
        ("ok *", "ok x; bad y"),
        ("ok *", "bad y | ok x"),
        ("ok *", "ok x & bad"),
        ("ok *", "ok x\nbad y"),
        ("ok *", "/tmp/ok x"),
        ("ok *", "./ok x"),
        ("ok *", "env ok x"),
        ("ok *", "'ok x'"),
        ("ok *", "ok' 'x"),
        ("ok", "ok x"),
        ("git add *", "git -c alias.add=!bad add x"),
        ("git add *", "git 'add x'"),
        ("git add *", "git add"),
        ("git * x", "git add y x"),
        ("git * x", "git x"),
        ("git * x", "git * x"),
        ("git * x *", "git ~/add x y"),
        ("cat /tmp/*", "cat /tmp/a /etc/passwd"),
        ("cat /tmp/*", "cat /tmp/../etc/passwd"),
        ("cat /tmp/*", "cat /tmp/.?/etc/passwd"),
        ("cat /tmp/*", "cat /tmp/.*/etc/passwd"),
        ("cat /tmp/*", "cat '/tmp/'../etc/passwd"),
        ("cat --file=*", "cat --file=../x"),
        ("cat [!/]*", "cat ~/x"),
        ("cat file", "cat fil?"),
        ("/usr/bin/* *", "/usr/bin/../../tmp/bad x"),
        ("echo '*'", "echo a"),
        ("echo '*'", "echo *"),
    ],
)
def test_a_pattern_does_not_allow(pattern, line):
    assert not CommandPattern.parse(pattern).matches(line, widely=False)


@pytest.mark.parametrize(
    ("pattern", "line"),
    [
        ("rm *", "rm x"),
        ("rm *", "ls; rm x"),
        ("rm *", "ls && rm x || ls"),
        ("rm *", "ls | rm x"),
        ("rm *", "ls & rm x"),
        ("rm *", "ls\nrm x"),
        ("rm *", "'r'm x"),
        ("rm *", r"\rm x"),
        ("rm *", "/bin/rm x"),
        ("rm *", "./rm x"),
        ("rm *", "ls $(rm x)"),
        ("rm *", "$cmd x"),
        ("rm *", "sudo rm x"),
        ("rm *", "sudo -u root /bin/rm x"),
        ("rm *", "/usr/bin/env A=b rm x"),
        ("rm *", "env -i nice -n 5 rm x"),
        ("rm *", "xargs rm x"),
        ("rm *", "find . -exec rm x"),
        ("rm *", "eval rm x"),
        ("rm *", "eval 'rm x'"),
        ("rm *", "sh -c 'ls;rm x'"),
        ("rm *", "sudo bash -c 'ls && rm x'"),
        ("rm *", "bash -c \"sh -c 'rm x'\""),
        ("rm *", "bash -c 'ls $x'"),
        ("rm *", "rm *"),
        ("rm *", "sudo *"),
        ("rm -r x", "rm -? x"),
        ("rm -r x", "rm *"),
        ("rm -r *", "rm ~/-r"),
        ("cat /etc/passwd", "cat /etc/pass*"),
        ("cat /etc/*", "cat /tmp/../etc/passwd"),
        ("cat /etc/*", "cat ../../etc/passwd"),
        ("cat /etc/*", "cat //etc/./passwd"),
        ("cat /etc/*", "cat -n /etc/passwd"),
        ("git push *", "git -C . push x"),
        ("git push *", "git -c a=b push x"),
        ("git push *", "git -c a=b -C . --git-dir=.git --no-pager push x"),
        ("git push *", "git --git-dir .git --work-tree . push x"),
        ("git push *", "git --bare push x"),
        ("git push *", "git -- push x"),
        ("git push *", "sudo -u root /usr/bin/git -C . push x"),
        ("git push *", "sh -c 'git -C . push x'"),
        ("git push *", "git -C * x"),
        ("git push", "git -C . push"),
        ("docker compose rm *", "docker --context x compose -f y rm z"),
        ("rm -r *", "rm -f -r x"),
        ("rm -r", "rm -f *"),
        ("git push *", "git " + "-v " * (MOST_OPTIONS + 1) + "x"),
    ],
)
def test_a_pattern_denies(pattern, line):
    assert CommandPattern.parse(pattern).matches(line, widely=True)


@pytest.mark.parametrize(
    ("pattern", "line"),
    [
        ("rm *", ""),
        ("rm *", "ls x"),
        ("rm *", "git rm x"),
        ("rm *", "echo rm x"),
        ("rm *", "echo 'rm x'"),
        ("rm *", "sudo git commit -m 'no (more) of it'"),
        ("rm *", "sh -c 'ls x'"),
        ("rm *", "ls *"),
        ("rm -r", "rm -f x"),
        ("rm x", "rm x *"),
        ("git push *", "git commit push x"),
        ("git push *", "git commit -m push x"),
        ("git push *", "git -C . status x"),
        ("git push *", "git --git-dir=. status push x"),
        ("git push", "git push -v"),
        ("git push *", "-C . git push x"),
        ("cat /etc/*", "cat /tmp/etc/x"),
    ],
)
def test_a_pattern_does_not_deny(pattern, line):
    assert not CommandPattern.parse(pattern).matches(line, widely=True)


@pytest.mark.parametrize("line", ["git -C . add x", "git -v add x", "git -c a=b add x"])
def test_a_pattern_does_not_allow_what_has_options_before_its_words(line):
    assert not CommandPattern.parse("git add *").matches(line, widely=False)


def test_thousands_of_options_are_no_problem():
    words = ["sudo", *["-x"] * 9_999]

    assert CommandPattern.parse("git push *").matches(words, widely=True) is False
    assert CommandPattern.parse("* push *").matches(words, widely=True) is True


def test_lines_within_lines_are_denied_beyond_the_bound():
    line = "ls x"
    for _ in range(DEEPEST_COMMAND):
        line = shlex.join(["sh", "-c", line])

    assert CommandPattern.parse("rm *").matches(line, widely=True)


@pytest.mark.parametrize(
    ("argv", "widely", "expected"),
    [
        (["git", "add", "x"], False, True),
        (("git", "add", "x"), False, True),
        (["git", "add", "$(bad y)", ";", "`x`", "> f"], False, True),
        (["git", "add", "*"], False, True),
        (["git", "add"], False, False),
        (["git add x"], False, False),
        (["git", "add x"], False, False),
        ([], False, False),
        ([], True, False),
        (["ls", ";", "git", "add", "x"], True, False),
        (["sudo", "git", "add", "x"], True, True),
        (["sh", "-c", "git add x"], True, True),
        (["find", ".", "-exec", "ls", "{}", ";"], True, False),
        (["git", "add", "a\0b"], False, False),
        (["git", "add", 5], False, False),
        (["ls", 5], True, True),
        (["git", "add", "x" * 100_001], False, False),
        (["ls", "x" * 100_001], True, True),
        (["git", "add", *["x"] * 10_000], False, False),
        (5, False, False),
        (5, True, True),
        (None, False, False),
        ({"git": "add"}, False, False),
        ({"git": "add"}, True, True),
    ],
)
def test_a_list_of_words_is_a_command_as_it_is(argv, widely, expected):
    assert CommandPattern.parse("git add *").matches(argv, widely=widely) is expected


def test_a_list_of_words_is_never_split_nor_opaque():
    assert commands_of(["a;b", "$(c)"]) == Commands((("a;b", "$(c)"),), opaque=False)


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("", "expected one simple command such as `git add *`, got 0"),
        ("a; b", "expected one simple command such as `git add *`, got 2"),
        ("a | b", "got 2; write a rule for each"),
        ("a $x", "an expansion by `$` can't be matched; in single quotes a character stands for itself"),
        ("a > f", "a redirection can't be matched"),
        ("a {b,c}", "a brace can't be matched"),
        ("a $(b)", "a substitution or subshell can't be matched"),
        ("a 'b", "a quote or backslash without its other half can't be matched"),
        ("a #b", "a comment can't be matched"),
        ("a\0b", "a character that can't be printed can't be matched"),
        ("A=b c", "a command that begins with an assignment is never understood; match what it runs"),
        ("time *", "a command that begins with 'time', a word of the shell's own, is never understood"),
        ("a " * LONGEST_COMMAND, f"more than {LONGEST_COMMAND} characters can't be matched"),
    ],
)
def test_a_pattern_that_can_not_be_parsed_says_why(pattern, why):
    with pytest.raises(ValueError) as caught:
        CommandPattern.parse(pattern)

    assert why in str(caught.value)


# -- real shells ---------------------------------------------------------------------------------------------------

SHELLS = [pytest.param(path, id=name) for name in ("dash", "bash") if (path := shutil.which(name))]
STUB = '#!{sh}\nprintf "%s\\0" "$#" "${{0##*/}}" "$@" >> "$LOG"\necho "-- printed"\nexit {code}\n'
DRIVER = 'for line; do i=$((i+1)); cd "$TOP/$i"; LOG="$TOP/$i.log" "$RUN" -c "$line"; done'


@attrs.define
class Ran:
    """What a line did under a real shell: the programs it ran, with arguments, and the files it left."""

    invocations: list
    files: set


class Laboratory:
    """Runs lines under a shell that finds nothing but programs which write down how they were called."""

    def __init__(self, shell, top):
        self.shell, self.top, self.runs = shell, top, 0
        self.programs = top / "bin"
        self.programs.mkdir()
        for name, code in (("ok", 0), ("bad", 1), ("x", 0), ("okx", 0), ("kx", 0)):
            stub = self.programs / name
            stub.write_text(STUB.format(sh=shutil.which("dash") or shutil.which("sh"), code=code))
            stub.chmod(0o755)

    def run(self, lines):
        self.runs += 1
        top = self.top / str(self.runs)
        for number in range(1, len(lines) + 1):
            (top / str(number)).mkdir(parents=True)
            (top / str(number) / "file").touch()
        environment = {"PATH": str(self.programs), "TOP": str(top), "RUN": self.shell, "LC_ALL": "C.UTF-8", "i": "0"}
        # Both pipes end only when the last program in the background has.
        subprocess.run(
            [self.shell, "-c", DRIVER, "driver", *lines],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        return [self._read(top, number) for number in range(1, len(lines) + 1)]

    def _read(self, top, number):
        log = top / f"{number}.log"
        fields = log.read_text("utf-8").split("\0")[:-1] if log.exists() else []
        invocations = []
        while fields:
            count = int(fields.pop(0))
            invocations.append(tuple(fields[: count + 1]))
            del fields[: count + 1]
        return Ran(invocations, {path.name for path in (top / str(number)).iterdir()} - {"file"})


@pytest.fixture(scope="module", params=SHELLS)
def laboratory(request, tmp_path_factory):
    return Laboratory(request.param, tmp_path_factory.mktemp("shell"))


HARMLESS = [
    *("x", "x", "-n", "a.b", "a=1", "..", "'a b'", '"a b"', "''", '""', "a\\ b", "\\;", "'$(bad y)'", '"\\$(bad y)"'),
    *('"\\`bad y\\`"', '"a\\";bad y;\\""', "a#b", "'#'", "é", "%1", "a]", '"a;b"', "'\n'", '"\n"', "\\'", '\\"'),
    *("\\\\", "'\\'", '"\\\\"', '"\\a"', "HEAD~1", "HEAD^", "!", '"a!"', "if", "then", "in", "ok", "bad", "\\>f"),
    *("'>f'", "\\$x"),
]  # fmt: skip
HARMFUL = [
    *("$(ok y)", "`ok y`", '"$(ok y)"', '"`ok y`"', "<(ok y)", ">(ok y)", "$(ok y", "ok y)", "(ok y)"),
    *("$(bad y)", "`bad y`", '"$(bad y)"', '"`bad y`"', "<(bad y)", ">f", "2>f", "&>f", "<file", "<<x", "(", ")", "{"),
    *("}", "{a,b}", "$x", "${x:-$(bad y)}", "$'a'", "$'\\''", '$"a"', "#", "#b", "!b", "\\\n", "\\", "'", '"', "~"),
    *("*", "?", "[a]", "fi*", "A=b", "time", "^", "\r", "\x01", "if", "!", "\u00a0", "\x7f"),
]  # fmt: skip
OPERATORS = [";", "&&", "||", "|", "&", "\n", " ; ", " && ", "\n\n", "|&", ";;", "& ;"]
SIGNS = "okx ;&|'\"\\$`()<>{}#~!*?[]=\n\tb"


def generate(rng):
    """Return a command line: commands of words, or a soup of signs."""
    if rng.random() < 0.3:
        return "ok " + "".join(rng.choices(SIGNS, k=rng.randrange(1, 12)))
    line = command(rng)
    while rng.random() < 0.4:
        line += rng.choice(OPERATORS) + command(rng)
    return line


def command(rng):
    words = [rng.choice(["ok", "ok", "ok", "'ok'", "o\\k", 'o"k"', "bad", "x", "A=b ok", "! ok"])]
    for _ in range(rng.randrange(4)):
        atom = rng.choice(HARMLESS if rng.random() < 0.7 else HARMFUL)
        words.append(rng.choice([" ", " ", " ", "\t", ""]) + atom)
    return "".join(words)


def lines_that(accept, count, seed):
    rng, found = random.Random(seed), {}
    while len(found) < count:
        line = generate(rng)
        if accept(line):
            found[line] = None
    return list(found)


def is_clear(line):
    return not parse(line).opaque


def is_allowed(line):
    return OK.matches(line, widely=False)


def known(part, columns):
    """Return the words of a part up to the first that a shell expands."""
    return part[: min(columns, default=len(part))]


def shown(line, invocation):
    """Tell whether one of the commands that parse() shows is that invocation."""
    commands = parse(line)
    for row, part in enumerate(commands.parts):
        head = known(part, [column for at, column in commands.expanding if at == row])
        if invocation[: len(head)] == head and (len(head) < len(part) or invocation == part):
            return True
    return False


def surprises(line, ran):
    """Return what an allowed line did beyond running `ok` with arguments that its words show."""
    unforeseen = [one for one in ran.invocations if one[0] != "ok" or len(one) < 2 or not shown(line, one)]
    return [*unforeseen, *ran.files]


@pytest.fixture(scope="module")
def allowed(laboratory):
    lines = lines_that(is_allowed, 400, seed=1)
    return dict(zip(lines, laboratory.run(lines), strict=True))


def test_under_a_real_shell_an_allowed_line_runs_nothing_else_and_writes_nothing(allowed):
    assert {line: found for line, ran in allowed.items() if (found := surprises(line, ran))} == {}


def test_under_a_real_shell_an_allowed_line_does_run(allowed):
    idle = [line for line, ran in allowed.items() if not ran.invocations]

    assert [line for line in idle if "|&" not in line] == []  # which not every shell knows


def test_a_clear_line_runs_under_a_real_shell_what_its_words_show(laboratory):
    lines = lines_that(is_clear, 250, seed=2)

    found = {
        line: ran
        for line, ran in zip(lines, laboratory.run(lines), strict=True)
        if ran.files or not all(shown(line, one) for one in ran.invocations)
    }

    assert found == {}


def test_every_command_of_a_clear_sequence_runs_under_a_real_shell(laboratory):
    lines = lines_that(lambda line: is_clear(line) and not parse(line).expanding and not set("&|") & set(line), 150, 3)

    found = {}
    for line, ran in zip(lines, laboratory.run(lines), strict=True):
        expected = Counter(part for part in parse(line).parts if part[0] in ("ok", "bad", "x", "okx", "kx"))
        if Counter(ran.invocations) != expected:
            found[line] = ran

    assert found == {}


@pytest.mark.parametrize("line", [line for line, _ in CLEAR])
def test_the_clear_lines_of_the_table_do_under_a_real_shell_what_they_show(laboratory, line):
    [ran] = laboratory.run([line])

    assert (ran.files, [one for one in ran.invocations if not shown(line, one)]) == (set(), [])


atoms = st.sampled_from([*HARMLESS, *HARMLESS, *HARMFUL, *OPERATORS, " ", " ok "])


@given(st.lists(atoms, max_size=5).map(lambda found: "ok " + "".join(found)))
@settings(max_examples=examples(300))
def test_no_line_that_does_more_than_its_words_is_allowed(laboratory, line):
    if is_allowed(line):
        [ran] = laboratory.run([line])

        assert surprises(line, ran) == []


@pytest.mark.parametrize(
    "line",
    [
        "ok $(bad y)", "ok `bad y`", 'ok "$(bad y)"', "ok x; bad y", "ok x & bad y", "ok x > f", "ok x 2>f", "ok",
        "ok x\nbad y", "ok a\\\nb", "! ok x; bad", "(ok x)>f", "if ok x; then bad y; fi", "ok ${x:-$(bad y)}",
    ],
)  # fmt: skip
def test_the_laboratory_notices_what_it_is_there_for(laboratory, line):
    [ran] = laboratory.run([line])

    assert surprises(line, ran) != []


@pytest.mark.parametrize("line", ["ok $(ls", "ok $(ls $(pwd)", "ok <(ls", "(ok x", "ok x; (ok x"])
def test_a_substitution_without_an_end_fits_no_pattern(line):
    assert not OK.matches(line, widely=False)


@pytest.mark.parametrize(("line", "fits"), [("ok *.py", True), ("ok x ~/a", True), ("ok x", True), ("ok $HOME", False)])
def test_what_the_end_of_a_pattern_is_for_may_be_what_a_shell_expands(line, fits):
    assert OK.matches(line, widely=False) is fits
    assert CommandPattern.parse("ok x").matches(line, widely=False) is (line == "ok x")

"""Patterns over arguments: paths, texts, the two ways to ask, and the rules made of them."""

import fnmatch
import json
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentos.errors import AgentOSError, RuleError
from agentos.rules.argument_paths import EVERY, LONGEST_PATH, NotUnderstoodError, find, parse_path, text_of, values_at
from agentos.rules.intervention import (
    LONGEST_PATTERN,
    LONGEST_REGEX,
    MOST_PATHS,
    MOST_RULES,
    ArgumentPattern,
    InterventionRule,
    as_rules,
    policy_of,
)


def wide(match, arguments, kind="glob"):
    return ArgumentPattern(match, kind).matches(arguments, widely=True)


def narrow(match, arguments, kind="glob"):
    return ArgumentPattern(match, kind).matches(arguments, widely=False)


def both(match, arguments, kind="glob"):
    return wide(match, arguments, kind), narrow(match, arguments, kind)


def fault(make, *args, **kwargs):
    with pytest.raises(RuleError) as caught:
        make(*args, **kwargs)
    return str(caught.value)


def nested(depth):
    value = "x"
    for _ in range(depth):
        value = [value]
    return value


# -- paths ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("$", ()),
        ("$.a", ("a",)),
        ("$.a.b", ("a", "b")),
        ("$.a-b_c", ("a-b_c",)),
        ("$.größe", ("größe",)),
        ("$.0", ("0",)),
        ("$.a[0]", ("a", 0)),
        ("$.a[12].b", ("a", 12, "b")),
        ("$.a[*]", ("a", EVERY)),
        ("$[*]", (EVERY,)),
        ("$.*", (EVERY,)),
        ("$.*.b", (EVERY, "b")),
        ("$['a b']", ("a b",)),
        ('$["a b"]', ("a b",)),
        ("$['a.b'][0]", ("a.b", 0)),
        ("$['']", ("",)),
        (r"$['it\'s']", ("it's",)),
        (r"$['a\\b']", ("a\\b",)),
        (r'$["a\"b"]', ('a"b',)),
    ],
)
def test_a_path_is_parsed_into_its_steps(text, steps):
    assert parse_path(text).steps == steps


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "expected a path such as $.path"),
        ("path", "expected a path such as $.path"),
        (".path", "expected a path such as $.path"),
        ("$path", "can't read 'path' at character 2"),
        ("$.", "can't read '.' at character 2"),
        ("$..a", "can't read '..a' at character 2"),
        ("$.a b", "can't read ' b' at character 4"),
        ("$.a[-1]", "can't read '[-1]' at character 4"),
        ("$.a[01]", "can't read '[01]'"),
        ("$.a[1:2]", "can't read '[1:2]'"),
        ("$.a[", "can't read '['"),
        ("$.a[]", "can't read '[]'"),
        ("$.a['b]", "can't read"),
        ("$.a[?(@.b)]", "can't read"),
        ("$.a[9999999999]", "can't read"),
        ("$.a.", "can't read '.' at character 4"),
        ("$.a\n", "can't read '\\n' at character 4"),
        ("$" + ".a" * LONGEST_PATH, f"expected a path of at most {LONGEST_PATH} characters"),
        (5, "expected a path as a string, got int"),
    ],
)
def test_what_is_no_path_says_where(text, why):
    with pytest.raises(ValueError) as caught:
        parse_path(text)

    assert why in str(caught.value)


ARGUMENTS = {"a": {"b": 1, "c": [2, 3]}, "list": [{"n": "x"}, {"n": "y"}, {"m": "z"}], "a b": None, "empty": []}


@pytest.mark.parametrize(
    ("path", "values"),
    [
        ("$", [ARGUMENTS]),
        ("$.a.b", [1]),
        ("$.a.c[1]", [3]),
        ("$.a.c[*]", [2, 3]),
        ("$.a.*", [1, [2, 3]]),
        ("$.list[*].n", ["x", "y"]),
        ("$.list[2].m", ["z"]),
        ("$['a b']", [None]),
        ("$.missing", []),
        ("$.a.b.c", []),
        ("$.a[0]", []),
        ("$.a.c.b", []),
        ("$.a.c[2]", []),
        ("$.list.n", []),
        ("$.empty[*]", []),
        ("$.a.b[*]", []),
    ],
)
def test_a_path_leads_to_values(path, values):
    assert values_at(parse_path(path), ARGUMENTS) == values


def test_frozen_mappings_and_tuples_are_followed_too():
    arguments = MappingProxyType({"a": (MappingProxyType({"b": 1}),)})

    assert values_at(parse_path("$.a[*].b"), arguments) == [1]


def test_a_text_has_no_children():
    assert values_at(parse_path("$.a[*]"), {"a": "text"}) == []


@pytest.mark.parametrize(
    ("path", "missing"),
    [("$.list[*].n", True), ("$.list[*]", False), ("$.empty[*].n", False), ("$.missing", True), ("$.a.*", False)],
)
def test_a_branch_that_leads_nowhere_is_noticed(path, missing):
    assert find(parse_path(path), ARGUMENTS).missing is missing


# -- texts ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain", "plain"),
        ("", ""),
        (5, "5"),
        (5.0, "5"),
        (-0.0, "0"),
        (0.5, "0.5"),
        (1e300, "1e+300"),
        (True, "true"),
        (False, "false"),
        (None, "null"),
        ([], "[]"),
        ({}, "{}"),
        ([1, "a", None, 2.0], '[1,"a",null,2]'),
        ((1, 2), "[1,2]"),
        ({"b": 1, "a": [True]}, '{"a":[true],"b":1}'),
        (MappingProxyType({"é": "ü"}), '{"é":"ü"}'),
        ({'"': "\n"}, '{"\\"":"\\n"}'),
    ],
)
def test_the_text_of_a_value_is_its_json(value, text):
    assert text_of(value) == text


circle = []
circle.append(circle)
UNCLEAR = {
    "long text": "x" * 100_001,
    "long list": ["x" * 10] * 20_000,
    "long object": {str(number): number for number in range(100_001)},
    "deep list": nested(100_000),
    "circle": circle,
    "infinity": float("inf"),
    "nan": float("nan"),
    "huge number": 10**5_000,
    "bytes": b"x",
    "set": {1},
    "object": object(),
    "number as key": {1: 2},
    "bytes within": [b"x"],
}


@pytest.mark.parametrize("value", UNCLEAR.values(), ids=UNCLEAR)
def test_what_has_no_bounded_json_has_no_text(value):
    with pytest.raises(NotUnderstoodError):
        text_of(value)


@pytest.mark.parametrize("value", UNCLEAR.values(), ids=UNCLEAR)
@pytest.mark.parametrize("kind", ["glob", "regex", "command"])
def test_what_can_not_be_understood_counts_as_the_more_cautious_answer(kind, value):
    assert both({"$.a": "x"}, {"a": value}, kind) == (True, False)


@pytest.mark.parametrize("path", ["$.a[*]", "$.a[*].b", "$.*[*]", "$.a[*][*]"])
def test_too_many_values_count_as_the_more_cautious_answer(path):
    assert both({path: "*"}, {"a": [["x"]] * 10_001}) == (True, False)


def test_too_many_values_in_all_count_as_the_more_cautious_answer():
    assert both({"$.a[*][*]": "x"}, {"a": [["x"] * 200] * 200}) == (True, False)


def test_ten_thousand_values_are_understood():
    assert both({"$.a[*]": "x"}, {"a": ["x"] * 10_000}) == (True, True)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)


@given(json_values.filter(lambda value: not isinstance(value, str)))
def test_the_text_of_a_value_is_what_json_writes(value):
    assert text_of(value) == json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


# -- globs ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "value"),
    [
        ("/tmp/*", "/tmp/a"),
        ("/tmp/*", "/tmp/a/b"),
        ("/tmp/*", "/tmp/"),
        ("/tmp/*", "/tmp/a\nb"),
        ("/tmp/*", "/tmp/a..b"),
        ("/tmp/*", "/tmp/..."),
        ("/tmp/*..*", "/tmp/../x"),
        ("a?c", "abc"),
        ("[ab]*", "b"),
        ("[!a]*", "b"),
        ("[[]x", "[x"),
        ("", ""),
        ("5", 5),
        ("5", 5.0),
        ("true", True),
        ("null", None),
        ('{"a":1}', {"a": 1}),
        ('[[]"x"]', ["x"]),
        ("*\0*", "a\0b"),
        ("**", "main .. dev"),
    ],
)
def test_a_glob_fits_either_way(pattern, value):
    assert both({"$.a": pattern}, {"a": value}) == (True, True)


@pytest.mark.parametrize(
    ("pattern", "value"),
    [
        ("/tmp/*", "/etc/a"),
        ("/tmp/*", "x/tmp/a"),
        ("/tmp", "/tmp\n"),
        ("a", "A"),
        ("a", "ab"),
        ("a?c", "ac"),
        ("5", "50"),
        ("5", True),
        ("true", "True"),
        ("", "x"),
        ("x", ["x"]),
        ("/tmp/*", None),
    ],
)
def test_a_glob_does_not_fit_either_way(pattern, value):
    assert both({"$.a": pattern}, {"a": value}) == (False, False)


@pytest.mark.parametrize(
    "value",
    [
        "/tmp/../etc/passwd",
        "/tmp/a/../../etc/passwd",
        "/tmp/..",
        "/tmp/..\\etc",
        "/tmp\\..\\x/tmp/",
        "/tmp/x/.. /etc",
        "/tmp/a\0.txt",
        "/tmp/--file=../x",
        "/tmp/a:../b",
    ],
)
def test_a_glob_does_not_allow_what_may_be_elsewhere(value):
    assert not narrow({"$.a": "/tmp*"}, {"a": value})


@pytest.mark.parametrize(
    "value",
    ["/tmp/../etc/passwd", "/etc/./passwd", "//etc/passwd", "/etc//passwd", "../../etc/passwd", "x/../../etc/passwd"],
)
def test_a_glob_denies_a_place_however_it_is_spelt(value):
    assert wide({"$.a": "/etc/passwd"}, {"a": value})


def test_a_glob_denies_a_relative_place_however_it_is_spelt():
    assert wide({"$.a": "secret/*"}, {"a": "./a/../secret/x"})


def test_a_glob_does_not_deny_another_place():
    assert not wide({"$.a": "/etc/*"}, {"a": "/tmp/../home/x"})


def test_a_glob_of_many_stars_is_quick():
    assert both({"$.a": "*a" * 1_000 + "b"}, {"a": "a" * 50_000}) == (False, False)


globs = st.text(alphabet="ab*?[]!-/.", max_size=8)


@given(globs, st.text(alphabet="ab/-![]", max_size=8))
def test_a_glob_fits_what_fnmatch_says(pattern, text):
    assert narrow({"$.a": pattern}, {"a": text}) is fnmatch.fnmatchcase(text, pattern)


# -- regular expressions -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "value", "expected"),
    [
        ("b", "abc", (True, True)),
        ("^b", "abc", (False, False)),
        ("^abc$", "abc", (True, True)),
        ("^[0-9]+$", 42, (True, True)),
        ("^true$", True, (True, True)),
        ("(?i)ABC", "abc", (True, True)),
        ("^/tmp/", "/tmp/../etc", (True, False)),
        (r"^/tmp/\.\./", "/tmp/../etc", (True, True)),
        ("^/tmp/..", "/tmp/../etc", (True, False)),
        ("^a", "a\0", (True, False)),
        ("x", "x" * 10_000, (True, True)),
        ("y", "x" * 10_001, (True, False)),
        ("x", "x" * 10_001, (True, False)),
        ("^(ls|pwd)$", "ls\n", (True, False)),
        ("^(ls|pwd)$", "ls\nrm", (False, False)),
        (r"^(ls|pwd)\n$", "ls\n", (True, True)),
        (r"^ls\s*$", "ls\n", (True, True)),
        ("^a", "a\ud800", (True, False)),
        ("^[*+]+$", "+*+", (True, True)),
        (r"^\++$", "++", (True, True)),
    ],
)
def test_a_regex_is_found_anywhere(pattern, value, expected):
    assert both({"$.a": pattern}, {"a": value}, "regex") == expected


@pytest.mark.parametrize(
    ("pattern", "value"),
    [
        ("^(a+)+$", "a" * 9_999 + "!"),
        ("^(a|a)*$", "a" * 9_999 + "!"),
        (r"curl.*\|.*sh$", "curl" * 1_000 + "|" * 5_000),
        (r"^(?:\w+\s?)*$", "a b " * 2_000 + "!"),
    ],
)
def test_a_regex_that_others_would_search_for_years_has_its_answer_at_once(pattern, value):
    assert both({"$.a": pattern}, {"a": value}, "regex") == (False, False)


@pytest.mark.parametrize("pattern", ["(?=a)", "(?<!a)b", r"(a)\1", r"a\Z", "(?#x)a", "(?:.{0,500}x){50}", "(?a)b"])
def test_a_regex_that_can_not_be_searched_in_bounded_time_is_refused(pattern):
    assert "can't be searched in bounded time" in fault(ArgumentPattern, {"$.a": pattern}, "regex")


@pytest.mark.parametrize("pattern", ["a*+", "a++", "a?+", "a{2}+", "(?:a|b)*+c"])
def test_a_regex_with_a_possessive_repetition_is_refused(pattern):
    assert "possessive repetition" in fault(ArgumentPattern, {"$.a": pattern}, "regex")


@pytest.mark.parametrize("pattern", ["[a&&b]", "[[a]", "[a--b]"])
def test_a_regex_that_means_something_else_elsewhere_is_refused(pattern):
    assert "is no regular expression: Possible" in fault(ArgumentPattern, {"$.a": pattern}, "regex")


# -- several values and paths --------------------------------------------------------------------------------------


def test_an_empty_match_fits_everything():
    assert both({}, {"a": 1}) == (True, True)


@pytest.mark.parametrize(
    ("match", "arguments", "expected"),
    [
        ({"$.a": "*"}, {}, (False, False)),
        ({"$.a": "*"}, {"b": 1}, (False, False)),
        ({"$.a[*]": "*"}, {"a": []}, (False, False)),
        ({"$.a.b": "*"}, {"a": "text"}, (False, False)),
        ({"$.a[*]": "x"}, {"a": ["x", "x"]}, (True, True)),
        ({"$.a[*]": "x"}, {"a": ["x", "y"]}, (True, False)),
        ({"$.a[*]": "x"}, {"a": ["y", "z"]}, (False, False)),
        ({"$.a[*]": "x"}, {"a": ["x", b"?"]}, (True, False)),
        ({"$.a[*].p": "x"}, {"a": [{"p": "x"}, {"p": "x"}]}, (True, True)),
        ({"$.a[*].p": "x"}, {"a": [{"p": "x"}, {"q": "x"}]}, (True, False)),
        ({"$.a[*].p[*]": "x"}, {"a": [{"p": ["x"]}, {"p": []}]}, (True, True)),
        ({"$.*": "x"}, {"a": "x", "b": "x"}, (True, True)),
        ({"$.*": "x"}, {"a": "x", "b": "y"}, (True, False)),
        ({"$.a": "x", "$.b": "y"}, {"a": "x", "b": "y"}, (True, True)),
        ({"$.a": "x", "$.b": "y"}, {"a": "x", "b": "z"}, (False, False)),
        ({"$.a": "x", "$.b": "y"}, {"a": "x"}, (False, False)),
        ({"$.a": "x", "$.b": "y"}, {"a": b"?", "b": "y"}, (True, False)),
        ({"$.a": "x", "$.b": "y"}, {"a": b"?", "b": "z"}, (False, False)),
        ({"$": '{"a":1}'}, {"a": 1}, (True, True)),
        ({"$": "*"}, {}, (True, True)),
    ],
)
def test_all_paths_must_fit_and_widely_one_value_of_each_is_enough(match, arguments, expected):
    assert both(match, arguments) == expected


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"c": "git add x"}, (True, True)),
        ({"c": "git add x; ls"}, (True, False)),
        ({"c": "git add $x"}, (True, False)),
        ({"c": "ls"}, (False, False)),
        ({"c": ["git", "add", "$x"]}, (True, True)),
        ({"c": "git add " + "x" * 10_000}, (True, False)),
        ({"c": None}, (True, False)),
        ({}, (False, False)),
    ],
)
def test_a_command_is_matched_by_its_words(arguments, expected):
    assert both({"$.c": "git add *"}, arguments, "command") == expected


patterns = st.sampled_from(["*", "a*", "/tmp/*", "x", "a b *", "*..*", "[!a]*", "5", "sudo *", "rm *"])
texts = st.text(alphabet="ab/. x5;&|'\"$*~!=\0\n", max_size=12) | st.sampled_from(["rm x", "sudo rm x", "/tmp/../x"])
values = texts | json_values | st.lists(texts, max_size=3)


@given(patterns, st.sampled_from(["glob", "command"]), st.sampled_from(["$.a", "$.a[*]", "$"]), values)
def test_what_is_allowed_would_be_denied_too(pattern, kind, path, value):
    widely, narrowly = both({path: pattern}, {"a": value}, kind)

    assert widely or not narrowly


# -- values of their own -------------------------------------------------------------------------------------------


def test_a_pattern_comes_back_from_json():
    pattern = ArgumentPattern({"$.a": "x*", "$.b[*]": "y"}, "regex")

    assert ArgumentPattern.from_json(json.loads(json.dumps(pattern.as_json()))) == pattern


def test_a_pattern_as_json_has_its_match_and_kind():
    assert ArgumentPattern({"$.a": "x"}).as_json() == {"match": {"$.a": "x"}, "kind": "glob"}


def test_a_pattern_does_not_change_with_the_mapping_it_was_made_from():
    match = {"$.a": "x"}
    pattern = ArgumentPattern(match)
    match["$.b"] = "y"

    assert pattern == ArgumentPattern({"$.a": "x"})


def test_the_mapping_of_a_pattern_can_not_be_written_to():
    with pytest.raises(TypeError):
        ArgumentPattern({"$.a": "x"}).match["$.b"] = "y"


def test_equal_patterns_have_one_hash():
    assert len({ArgumentPattern({"$.a": "x", "$.b": "y"}), ArgumentPattern({"$.b": "y", "$.a": "x"})}) == 1


def test_equal_rules_have_one_hash():
    assert len({InterventionRule("never", {"$.a": "x"}), InterventionRule("never", {"$.a": "x"})}) == 1


def test_patterns_of_other_kinds_differ():
    assert ArgumentPattern({"$.a": "x"}, "glob") != ArgumentPattern({"$.a": "x"}, "regex")


@pytest.mark.parametrize(
    ("match", "kind", "words"),
    [
        ({}, "glob", "any arguments"),
        ({"$.path": "/tmp/*"}, "glob", "glob $.path = '/tmp/*'"),
        ({"$.a": "x", "$.b": "y"}, "regex", "regex $.a = 'x' and $.b = 'y'"),
        ({"$['a\nb']": "x\n"}, "glob", "glob $['a\\nb'] = 'x\\n'"),
        (
            {f"$.{letter}": "x" for letter in "abcde"},
            "glob",
            "glob $.a = 'x' and $.b = 'x' and $.c = 'x' and 2 more",
        ),
    ],
)
def test_a_pattern_says_what_it_is(match, kind, words):
    assert str(ArgumentPattern(match, kind)) == words


def test_what_a_pattern_says_is_bounded():
    assert len(str(ArgumentPattern({f"$.{'a' * 900}{number}": "x" * 9_000 for number in range(MOST_PATHS)}))) < 500


# -- rules ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "arguments", "applies"),
    [
        ("never", {"a": ["x", "x"]}, True),
        ("never", {"a": ["x", "y"]}, False),
        ("never", {"a": ["x", b"?"]}, False),
        ("required", {"a": ["x", "y"]}, True),
        ("required", {"a": [b"?"]}, True),
        ("required", {"a": ["y"]}, False),
        ("always", {"a": ["x", "y"]}, True),
        ("always", {"a": [b"?"]}, True),
        ("always", {}, False),
    ],
)
def test_never_applies_narrowly_and_the_others_widely(policy, arguments, applies):
    assert InterventionRule(policy, {"$.a[*]": "x"}).applies(arguments) is applies


RULES = as_rules(
    [
        InterventionRule("always", {"$.path": "/etc/*"}),
        {"policy": "never", "match": {"$.path": "/tmp/*"}},
        {"policy": "never", "match": {"$.c": "git status"}, "kind": "command"},
        InterventionRule("required"),
    ]
)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"path": "/etc/x"}, ("always", "rule 1 (glob $.path = '/etc/*') says always")),
        ({"path": "/tmp/../etc/x"}, ("always", "rule 1 (glob $.path = '/etc/*') says always")),
        ({"path": "/tmp/x"}, ("never", "rule 2 (glob $.path = '/tmp/*') says never")),
        ({"c": "git status"}, ("never", "rule 3 (command $.c = 'git status') says never")),
        ({"c": "git status > f"}, ("required", "rule 4 (any arguments) says required")),
        ({"path": "/tmp/../home/x"}, ("required", "rule 4 (any arguments) says required")),
        ({}, ("required", "rule 4 (any arguments) says required")),
    ],
)
def test_the_first_rule_that_applies_counts(arguments, expected):
    assert policy_of(RULES, arguments) == expected


def test_without_a_rule_that_applies_there_is_no_policy():
    assert policy_of(RULES[:3], {"path": "/home/x"}) == (None, "no rule matches")


def test_without_rules_there_is_no_policy():
    assert policy_of((), {"path": "/home/x"}) == (None, "no rule matches")


def test_rules_from_mappings_are_the_rules_themselves():
    assert as_rules(({"policy": "never", "match": {"$.a": "x"}, "kind": "regex"},)) == (
        InterventionRule("never", {"$.a": "x"}, "regex"),
    )


def test_no_rules_are_no_rules():
    assert as_rules([]) == ()


# -- mistakes ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("match", "kind", "message"),
    [
        ({"$.a": "x"}, "globb", "kind: expected one of glob, regex, command, got 'globb'; did you mean 'glob'?"),
        ({"$.a": "x"}, None, "kind: expected one of glob, regex, command, got None"),
        ([], "glob", "match: expected paths with patterns such as {'$.path': '/tmp/*'}, got list"),
        (None, "glob", "match: expected paths with patterns such as {'$.path': '/tmp/*'}, got NoneType"),
        ({"$.a": 5}, "glob", "match['$.a']: expected a pattern as a string, got int; write 5 as '5', true as 'true'"),
        ({"a": "x"}, "glob", "match['a']: expected a path such as $.path; a path begins with `$` and goes on with"),
        ({5: "x"}, "glob", "match[5]: expected a path as a string, got int"),
        ({"$.a": "("}, "regex", "match['$.a']: is no regular expression: missing ), unterminated subpattern"),
        ({"$.a": "x{99999999999999999999}"}, "regex", "match['$.a']: is no regular expression: the repetition number"),
        ({"$.a": "(" * 900 + ")" * 100}, "regex", "match['$.a']: is no regular expression: "),
        (
            {"$.a": "x" * (LONGEST_REGEX + 1)},
            "regex",
            f"match['$.a']: expected at most {LONGEST_REGEX} characters, got {LONGEST_REGEX + 1}; use several rules",
        ),
        (
            {"$.a": "x" * (LONGEST_PATTERN + 1)},
            "glob",
            f"match['$.a']: expected a pattern of at most {LONGEST_PATTERN} characters, got {LONGEST_PATTERN + 1}",
        ),
        ({"$.a": "a; b"}, "command", "match['$.a']: expected one simple command such as `git add *`, got 2"),
        (
            {f"$.a{number}": "x" for number in range(MOST_PATHS + 1)},
            "glob",
            f"match: expected at most {MOST_PATHS} paths, got {MOST_PATHS + 1}; use several rules",
        ),
    ],
)
def test_a_mistake_in_a_pattern_says_where_and_what_was_expected(match, kind, message):
    assert fault(ArgumentPattern, match, kind).startswith(message)


def test_a_rule_is_checked_as_its_pattern_is():
    assert fault(InterventionRule, "never", {"$.a": "("}, "regex").startswith("match['$.a']: is no regular expression")


@pytest.mark.parametrize("policy", ["nver", "", None, 5, ["never"]])
def test_a_policy_is_one_of_three(policy):
    assert fault(InterventionRule, policy).startswith("policy: expected one of never, required, always, got ")


def test_a_misspelt_policy_is_answered_with_the_nearest():
    assert fault(InterventionRule, "nver").endswith("got 'nver'; did you mean 'never'?")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("never", "intervention: expected a list of rules, got str; put a single rule in a list"),
        (None, "intervention: expected a list of rules, got NoneType"),
        (InterventionRule("never"), "intervention: expected a list of rules, got InterventionRule; put a single rule"),
        ({"policy": "never"}, "intervention: expected a list of rules, got dict; put a single rule in a list"),
        ([{"policy": "never"}] * (MOST_RULES + 1), f"intervention: expected at most {MOST_RULES} rules, got"),
        (["never"], "intervention[0]: expected a rule as a mapping with policy, match, kind, got str"),
        ([{}], "intervention[0].policy: is missing; say one of never, required, always"),
        ([{"policy": "nver"}], "intervention[0].policy: expected one of never, required, always, got 'nver'"),
        ([{"policy": "never", "mtach": {}}], "intervention[0].'mtach': unknown key; did you mean 'match'?"),
        ([{"policy": "never", 5: {}}], "intervention[0].5: unknown key; known are policy, match, kind"),
        (
            [InterventionRule("never"), {"policy": "never", "match": {"$..pth": "x"}}],
            "intervention[1].match['$..pth']: can't read '..pth' at character 2",
        ),
        ([{"policy": "never", "kind": "x"}], "intervention[0].kind: expected one of glob, regex, command, got 'x'"),
    ],
)
def test_a_mistake_in_rules_says_which(value, message):
    assert fault(as_rules, value).startswith(message)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"kind": "glob"}, "match: is missing; an empty one fits any arguments"),
        ({}, "match: is missing"),
        (None, "expected a pattern as a mapping with match, kind, got NoneType"),
        ([], "expected a pattern as a mapping with match, kind, got list"),
        ({"match": {}, "kynd": "glob"}, "'kynd': unknown key; did you mean 'kind'?"),
        ({"match": {"$.a": "("}, "kind": "regex"}, "match['$.a']: is no regular expression"),
    ],
)
def test_a_pattern_from_json_is_checked(data, message):
    assert fault(ArgumentPattern.from_json, data).startswith(message)


def test_a_mistake_has_its_place_as_data():
    with pytest.raises(RuleError) as caught:
        as_rules([{"policy": "never", "match": {"x": "y"}}])

    assert caught.value.place == "intervention[0].match['x']"


def test_a_mistake_is_an_error_of_agentos_and_of_a_value():
    assert issubclass(RuleError, AgentOSError)
    assert issubclass(RuleError, ValueError)


def test_the_words_of_a_mistake_are_bounded():
    assert len(fault(ArgumentPattern, {"$.a": "x"}, "x" * 1_000_000)) < 300

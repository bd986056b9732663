"""The official JSON-Schema-Test-Suite, and every case where our validator and the `jsonschema` library disagree.

`tests/json_schema_suite.py` says where the suite comes from; docs/validation.md explains the disagreements to users.
"""

import re
from pathlib import Path
from typing import Any

import attrs
import json_schema_suite
import pytest
import referencing
from jsonschema import Draft202012Validator, FormatChecker

from agentos import ToolDefinitionError
from agentos.schema.validation import compile_schema

DOCS = Path(__file__).parents[2] / "docs" / "validation.md"


@attrs.frozen
class Case:
    """One test of the suite."""

    file: str
    case: str
    test: str
    schema: Any
    data: Any
    expected: str

    @property
    def key(self):
        return (self.file, self.case, self.test)


def word(is_valid):
    return "valid" if is_valid else "invalid"


CASES = [
    Case(file, case["description"], test["description"], case["schema"], test["data"], word(test["valid"]))
    for file, cases in json_schema_suite.read().items()
    for case in cases
    for test in case["tests"]
]
FILES = list(dict.fromkeys(case.file for case in CASES))
needs_the_suite = pytest.mark.skipif(not CASES, reason=json_schema_suite.MISSING)

# What `jsonschema` checks without any extra package, so that nobody's environment changes the verdicts.
FORMATS_OF_THE_REFERENCE = ("date", "email", "idn-email", "ipv4", "ipv6", "regex", "uuid")


def ours(case):
    try:
        validator = compile_schema(case.schema, "the schema")
    except ToolDefinitionError:
        return "refused"
    return word(validator.is_valid(case.data))


def theirs(case):
    checker = FormatChecker(())
    checker.checkers = {name: Draft202012Validator.FORMAT_CHECKER.checkers[name] for name in FORMATS_OF_THE_REFERENCE}
    validator = Draft202012Validator(case.schema, registry=referencing.Registry(), format_checker=checker)
    try:
        return word(validator.is_valid(case.data))
    except (referencing.exceptions.Unresolvable, re.error):
        return "refused"


def keys(listed):
    """Return a list of the form {file: {case: [test, ...]}} as keys."""
    return {(file, case, test) for file, cases in listed.items() for case, tests in cases.items() for test in tests}


# -- where we differ from the suite ------------------------------------------------------------------------------

# Schemas that need what is not in them: we refuse them when a tool is defined, and fetch nothing.
REFUSED = {
    "dynamicRef": [
        "strict-tree schema, guards against misspelled properties",
        "tests for implementation dynamic anchor and reference link",
        "$ref and $dynamicAnchor are independent of order - $defs first",
        "$ref and $dynamicAnchor are independent of order - $ref first",
        "$ref to $dynamicRef finds detached $dynamicAnchor",
    ],
    "optional/cross-draft": ["refs to historic drafts are processed as historic drafts"],
    "optional/format-assertion": [
        "schema that uses custom metaschema with format-assertion: false",
        "schema that uses custom metaschema with format-assertion: true",
    ],
    "refRemote": [
        "remote ref",
        "fragment within remote ref",
        "anchor within remote ref",
        "ref within remote ref",
        "base URI change",
        "base URI change - change folder",
        "base URI change - change folder in subschema",
        "root ref in remote ref",
        "remote ref with ref to defs",
        "Location-independent identifier in remote ref",
        "retrieved nested refs resolve relative to their URI not $id",
        "remote HTTP ref with different $id",
        "remote HTTP ref with different URN $id",
        "remote HTTP ref with nested absolute ref",
        "$ref to $ref finds detached $anchor",
    ],
    "vocabulary": [
        "schema that uses custom metaschema with with no validation vocabulary",
        "ignore unrecognized optional vocabulary",
    ],
}


def is_refused(case):
    return case.case in REFUSED.get(case.file, ())


def is_annotation_only(case):
    """Tell whether the suite wants a format that does not fit to be let through. We assert formats."""
    return case.file == "format" and case.test.endswith("is only an annotation by default")


def wanted(case):
    if is_refused(case):
        return "refused"
    return "invalid" if is_annotation_only(case) else case.expected


@needs_the_suite
def test_the_whole_suite_is_there():
    assert (len(FILES), len(CASES)) == (80, 1906)


@needs_the_suite
@pytest.mark.parametrize("file", FILES)
def test_our_verdicts_are_those_of_the_suite(file):
    cases = [case for case in CASES if case.file == file]

    assert {case.key: ours(case) for case in cases} == {case.key: wanted(case) for case in cases}


@needs_the_suite
def test_only_what_needs_a_remote_schema_is_refused():
    assert {case.key for case in CASES if ours(case) == "refused"} == {case.key for case in CASES if is_refused(case)}


@needs_the_suite
def test_nineteen_formats_are_asserted_where_the_suite_only_annotates():
    assert len([case for case in CASES if is_annotation_only(case)]) == 19


@needs_the_suite
@pytest.mark.parametrize(
    "case", [case for case in CASES if is_refused(case)], ids=lambda case: f"{case.case}-{case.test}"
)
def test_a_refused_schema_says_that_nothing_is_fetched(case):
    with pytest.raises(ToolDefinitionError, match=r"no remote references\): (Resource|Unknown meta-schema:) 'http"):
        compile_schema(case.schema, "the schema")


# -- where we differ from `jsonschema` ---------------------------------------------------------------------------

FORMATS = {
    "format": {
        "idn-hostname format": ["invalid idn-hostname string is only an annotation by default"],
        "hostname format": ["invalid hostname string is only an annotation by default"],
        "date-time format": ["invalid date-time string is only an annotation by default"],
        "time format": ["invalid time string is only an annotation by default"],
        "json-pointer format": ["invalid json-pointer string is only an annotation by default"],
        "relative-json-pointer format": ["invalid relative-json-pointer string is only an annotation by default"],
        "iri format": ["invalid iri string is only an annotation by default"],
        "iri-reference format": ["invalid iri-reference string is only an annotation by default"],
        "uri format": ["invalid uri string is only an annotation by default"],
        "uri-reference format": ["invalid uri-reference string is only an annotation by default"],
        "uri-template format": ["invalid uri-template string is only an annotation by default"],
        "duration format": ["invalid duration string is only an annotation by default"],
    },
    "optional/format/date-time": {
        "validation of date-time strings": [
            "an invalid date-time past leap second, UTC",
            "an invalid date-time with leap second on a wrong minute, UTC",
            "an invalid date-time with leap second on a wrong hour, UTC",
            "an invalid day in date-time string",
            "an invalid offset in date-time string",
            "an invalid closing Z after time-zone offset",
            "an invalid date-time string",
            "only RFC3339 not all of ISO 8601 are valid",
            "invalid non-padded month dates",
            "invalid non-padded day dates",
            "invalid non-ASCII '৪' (a Bengali 4) in date portion",  # noqa: RUF001
            "invalid non-ASCII '৪' (a Bengali 4) in time portion",  # noqa: RUF001
        ]
    },
    "optional/format/duration": {
        "validation of duration strings": [
            "an invalid duration string",
            "must start with P",
            "no elements present",
            "no time elements present",
            "no date or time elements present",
            "elements out of order",
            "missing time separator",
            "time element in the date position",
            "weeks cannot be combined with other units",
            "invalid non-ASCII '২' (a Bengali 2)",
            "element without unit",
        ]
    },
    "optional/format/hostname": {
        "validation of host names": [
            "a host name starting with an illegal character",
            "a host name containing illegal characters",
            "a host name with a component too long",
            "starts with hyphen",
            "ends with hyphen",
            "starts with underscore",
            "ends with underscore",
            "contains underscore",
            "exceeds maximum label length",
            "empty string",
            "single dot",
        ]
    },
    "optional/format/idn-hostname": {
        "validation of internationalized host names": [
            "illegal first char U+302E Hangul single dot tone mark",
            "contains illegal char U+302E Hangul single dot tone mark",
            "a host name with a component too long",
            "invalid label, correct Punycode",
            "invalid Punycode",
            'U-label contains "--" in the 3rd and 4th position',
            "U-label starts with a dash",
            "U-label ends with a dash",
            "U-label starts and ends with a dash",
            "Begins with a Spacing Combining Mark",
            "Begins with a Nonspacing Mark",
            "Begins with an Enclosing Mark",
            "Exceptions that are DISALLOWED, right-to-left chars",
            "Exceptions that are DISALLOWED, left-to-right chars",
            "MIDDLE DOT with no preceding 'l'",
            "MIDDLE DOT with nothing preceding",
            "MIDDLE DOT with no following 'l'",
            "MIDDLE DOT with nothing following",
            "Greek KERAIA not followed by Greek",
            "Greek KERAIA not followed by anything",
            "Hebrew GERESH not preceded by Hebrew",
            "Hebrew GERESH not preceded by anything",
            "Hebrew GERSHAYIM not preceded by Hebrew",
            "Hebrew GERSHAYIM not preceded by anything",
            "KATAKANA MIDDLE DOT with no Hiragana, Katakana, or Han",
            "KATAKANA MIDDLE DOT with no other characters",
            "Arabic-Indic digits mixed with Extended Arabic-Indic digits",
            "ZERO WIDTH JOINER not preceded by Virama",
            "ZERO WIDTH JOINER not preceded by anything",
            "empty string",
        ],
        "validation of separators in internationalized host names": [
            "single dot",
            "single ideographic full stop",
            "single fullwidth full stop",
            "single halfwidth ideographic full stop",
        ],
    },
    "optional/format/iri-reference": {
        "validation of IRI References": ["an invalid IRI Reference", "an invalid IRI fragment"]
    },
    "optional/format/iri": {
        "validation of IRIs": [
            "an invalid IRI based on IPv6",
            "an invalid relative IRI Reference",
            "an invalid IRI",
            "an invalid IRI though valid IRI reference",
        ]
    },
    "optional/format/json-pointer": {
        "validation of JSON-pointers (JSON String Representation)": [
            "not a valid JSON-pointer (~ not escaped)",
            "not a valid JSON-pointer (URI Fragment Identifier) #1",
            "not a valid JSON-pointer (URI Fragment Identifier) #2",
            "not a valid JSON-pointer (URI Fragment Identifier) #3",
            "not a valid JSON-pointer (some escaped, but not all) #1",
            "not a valid JSON-pointer (some escaped, but not all) #2",
            "not a valid JSON-pointer (wrong escape character) #1",
            "not a valid JSON-pointer (wrong escape character) #2",
            "not a valid JSON-pointer (multiple characters not escaped)",
            "not a valid JSON-pointer (isn't empty nor starts with /) #1",
            "not a valid JSON-pointer (isn't empty nor starts with /) #2",
            "not a valid JSON-pointer (isn't empty nor starts with /) #3",
        ]
    },
    "optional/format/relative-json-pointer": {
        "validation of Relative JSON Pointers (RJP)": [
            "an invalid RJP that is a valid JSON Pointer",
            "negative prefix",
            "explicit positive prefix",
            "## is not a valid json-pointer",
            "zero cannot be followed by other digits, plus json-pointer",
            "zero cannot be followed by other digits, plus octothorpe",
            "empty string",
        ]
    },
    "optional/format/time": {
        "validation of time strings": [
            "invalid time string with extra leading zeros",
            "invalid time string with no leading zero for single digit",
            "hour, minute, second must be two digits",
            "invalid leap second, Zulu (wrong hour)",
            "invalid leap second, Zulu (wrong minute)",
            "invalid leap second, zero time-offset (wrong hour)",
            "invalid leap second, zero time-offset (wrong minute)",
            "invalid leap second, positive time-offset (wrong hour)",
            "invalid leap second, positive time-offset (wrong minute)",
            "invalid leap second, negative time-offset (wrong hour)",
            "invalid leap second, negative time-offset (wrong minute)",
            "hour, minute in time-offset must be two digits",
            "an invalid time string with invalid hour",
            "an invalid time string with invalid minute",
            "an invalid time string with invalid second",
            "an invalid time string with invalid leap second (wrong hour)",
            "an invalid time string with invalid leap second (wrong minute)",
            "an invalid time string with invalid time numoffset hour",
            "an invalid time string with invalid time numoffset minute",
            "an invalid time string with invalid time with both Z and numoffset",
            "an invalid offset indicator",
            "only RFC3339 not all of ISO 8601 are valid",
            "no time offset",
            "no time offset with second fraction",
            "invalid non-ASCII '২' (a Bengali 2)",
            "offset not starting with plus or minus",
            "contains letters",
        ]
    },
    "optional/format/uri-reference": {
        "validation of URI References": ["an invalid URI Reference", "an invalid URI fragment"]
    },
    "optional/format/uri-template": {"format: uri-template": ["an invalid uri-template"]},
    "optional/format/uri": {
        "validation of URIs": [
            "an invalid protocol-relative URI Reference",
            "an invalid relative URI Reference",
            "an invalid URI",
            "an invalid URI though valid URI reference",
            "an invalid URI with spaces",
            "an invalid URI with spaces and missing scheme",
            "an invalid URI with comma in scheme",
        ]
    },
}
EMAIL = {
    "optional/format/email": {
        "validation of e-mail addresses": [
            "dot before local part is not valid",
            "dot after local part is not valid",
            "two subsequent dots inside local part are not valid",
            "an invalid domain",
            "an invalid IPv4-address-literal",
        ]
    }
}
REGEX = {
    "optional/ecmascript-regex": {
        "ECMA 262 regex escapes control codes with \\c and upper letter": ["does not match", "matches"],
        "ECMA 262 regex escapes control codes with \\c and lower letter": ["does not match", "matches"],
        "ECMA 262 \\d matches ascii digits only": [
            "NKO DIGIT ZERO does not match (unlike e.g. Python)",
            "NKO DIGIT ZERO (as \\u escape) does not match",
        ],
        "ECMA 262 \\D matches everything but ascii digits": [
            "NKO DIGIT ZERO matches (unlike e.g. Python)",
            "NKO DIGIT ZERO (as \\u escape) matches",
        ],
        "ECMA 262 \\w matches ascii letters only": ["latin-1 e-acute does not match (unlike e.g. Python)"],
        "ECMA 262 \\W matches everything but ascii letters": ["latin-1 e-acute matches (unlike e.g. Python)"],
        "ECMA 262 \\s matches whitespace": ["zero-width whitespace matches"],
        "ECMA 262 \\S matches everything but whitespace": ["zero-width whitespace does not match"],
        "patterns always use unicode semantics with pattern": [
            "ascii character in json string",
            "literal unicode character in json string",
            "unicode character in hex format in string",
            "unicode matching is case-sensitive",
        ],
        "\\w in patterns matches [A-Za-z0-9_], not unicode letters": [
            "literal unicode character in json string",
            "unicode character in hex format in string",
        ],
        "\\d in pattern matches [0-9], not unicode digits": [
            "non-ascii digits (BENGALI DIGIT FOUR, BENGALI DIGIT TWO)"
        ],
        "pattern with non-ASCII digits": [
            "ascii digits",
            "non-ascii digits (BENGALI DIGIT FOUR, BENGALI DIGIT TWO)",
            "ascii non-digits",
        ],
        "patterns always use unicode semantics with patternProperties": [
            "ascii character in json string",
            "literal unicode character in json string",
            "unicode character in hex format in string",
            "unicode matching is case-sensitive",
        ],
        "\\w in patternProperties matches [A-Za-z0-9_], not unicode letters": [
            "literal unicode character in json string",
            "unicode character in hex format in string",
        ],
        "\\d in patternProperties matches [0-9], not unicode digits": [
            "non-ascii digits (BENGALI DIGIT FOUR, BENGALI DIGIT TWO)"
        ],
        "patternProperties with non-ASCII digits": [
            "ascii digits",
            "non-ascii digits (BENGALI DIGIT FOUR, BENGALI DIGIT TWO)",
            "ascii non-digits",
        ],
    },
    "optional/format/ecmascript-regex": {"\\a is not an ECMA 262 control escape": ["when used as a pattern"]},
}
DEPENDENCIES = {
    "optional/dependencies-compatibility": {
        "single dependency": ["missing dependency"],
        "multiple dependents required": ["missing dependency", "missing other dependency", "missing both dependencies"],
        "dependencies with escaped characters": ["CRLF missing dependent", "quoted quotes missing dependent"],
        "single schema dependency": ["wrong type", "wrong type other", "wrong type both"],
        "boolean subschemas": [
            "object with property having schema false is invalid",
            "object with both properties is invalid",
        ],
        "schema dependencies with escaped characters": [
            "quoted quote",
            "quoted tab invalid under dependent schema",
            "quoted quote invalid under dependent schema",
        ],
    }
}
META_SCHEMAS = {
    "optional/format-assertion": {
        "schema that uses custom metaschema with format-assertion: false": [
            "format-assertion: false: valid string",
            "format-assertion: false: invalid string",
        ],
        "schema that uses custom metaschema with format-assertion: true": [
            "format-assertion: true: valid string",
            "format-assertion: true: invalid string",
        ],
    },
    "vocabulary": {
        "schema that uses custom metaschema with with no validation vocabulary": [
            "applicator vocabulary still works",
            "no validation: valid number",
            "no validation: invalid number, but it still validates",
        ],
        "ignore unrecognized optional vocabulary": ["string value", "number value"],
    },
}


@attrs.frozen
class Disagreement:
    """Cases in which we and `jsonschema` differ for one reason."""

    title: str
    why: str
    cases: Any


DISAGREEMENTS = [
    Disagreement(
        "formats it does not know",
        "Without extra packages it lets every text through as one of these formats; we check them all. In the file "
        "`format` the suite wants formats to be annotations; we and it assert those that we know.",
        FORMATS,
    ),
    Disagreement("e-mail addresses", "It only looks for an @; we go by the grammar of RFC 5321.", EMAIL),
    Disagreement(
        "regular expressions",
        "It uses Python's `re`, which knows no \\c and \\p, takes \\a, and means Unicode by \\d, \\w and \\s; the "
        "specification recommends ECMA-262, which we go by.",
        REGEX,
    ),
    Disagreement(
        "`dependencies`",
        "The keyword of older drafts; 2020-12 lets a validator support it still. It ignores it, we do not.",
        DEPENDENCIES,
    ),
    Disagreement(
        "unknown meta-schemas",
        "It ignores a `$schema` it does not know; we refuse the schema: what its keywords mean is said by the "
        "meta-schema, which is elsewhere.",
        META_SCHEMAS,
    ),
]


@needs_the_suite
def test_the_disagreements_with_jsonschema_are_those_listed_here():
    listed = set().union(*(keys(one.cases) for one in DISAGREEMENTS))

    assert {case.key for case in CASES if ours(case) != theirs(case)} == listed


def test_no_disagreement_is_listed_twice():
    listed = [key for one in DISAGREEMENTS for key in keys(one.cases)]

    assert len(listed) == len(set(listed))


@needs_the_suite
def test_wherever_we_give_a_verdict_of_our_own_it_is_the_suites():
    listed = set().union(*(keys(one.cases) for one in DISAGREEMENTS))
    judged = [case for case in CASES if case.key in listed and not is_refused(case) and not is_annotation_only(case)]

    assert [case.key for case in judged if ours(case) != case.expected] == []


@pytest.mark.parametrize("one", DISAGREEMENTS, ids=lambda one: one.title)
def test_the_docs_list_each_disagreement_with_its_number_of_cases(one):
    assert f"| {one.title} | {len(keys(one.cases))} |" in DOCS.read_text("utf-8")


@needs_the_suite
def test_the_docs_say_how_many_cases_there_are():
    listed = sum(len(keys(one.cases)) for one in DISAGREEMENTS)
    refused = len([case for case in CASES if is_refused(case)])

    text = DOCS.read_text("utf-8")

    assert f"{len(CASES):,} tests" in text
    assert f"{refused} of them" in text
    assert f"In {listed} of the tests" in text


# -- where we differ from `jsonschema` beyond the suite, found with random schemas ---------------------------------

BEYOND = [
    ("multiples of decimals", {"multipleOf": 0.1}, 3.8, "valid", "invalid"),
    ("multiples of large numbers", {"multipleOf": 3}, 1e111, "invalid", "valid"),
    ("multiples of integers beyond a float", {"multipleOf": 0.1}, 10**400, "valid", "OverflowError"),
    ("large numbers that are equal", {"const": 1e308}, 10**308, "valid", "invalid"),
    (
        "a reference inside of an embedded schema under `not`",
        {"not": {"$id": "urn:a", "$ref": "#/$defs/x", "$defs": {"x": {"type": "string"}}}},
        1,
        "valid",
        "_WrappedReferencingError",
    ),
    (
        "a reference that leads to itself",
        {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}},
        1,
        "valid",
        "RecursionError",
    ),
]
BEYOND_IDS = [title for title, *_ in BEYOND]


def verdict_or_error(case):
    try:
        return word(Draft202012Validator(case.schema, registry=referencing.Registry()).is_valid(case.data))
    except Exception as error:
        return type(error).__name__


@pytest.mark.parametrize(("title", "schema", "data", "our_verdict", "their_verdict"), BEYOND, ids=BEYOND_IDS)
def test_a_disagreement_beyond_the_suite_is_as_listed(title, schema, data, our_verdict, their_verdict):
    case = Case("beyond", title, title, schema, data, our_verdict)

    assert (ours(case), verdict_or_error(case)) == (our_verdict, their_verdict)


@pytest.mark.parametrize("title", BEYOND_IDS)
def test_the_docs_list_each_disagreement_beyond_the_suite(title):
    assert f"| {title} |" in DOCS.read_text("utf-8")

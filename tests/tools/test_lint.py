"""What lint finds in a pack, where, how bad it is, and what it says to do about it."""

import enum
from types import MappingProxyType, SimpleNamespace
from typing import Annotated, Any

import agentos_pack_calculator
import agentos_pack_datetime
import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thorough import examples

from agentos import PUBLIC, Descriptor, ExtensionPack, SecretRequirement, Tool, Toolset, tool
from agentos.tools.lint import findings as lint
from agentos.tools.lint import lint_rules as _lint_rules
from agentos.tools.lint.findings import Finding, hidden_characters, lint_pack, lint_tool
from agentos.tools.wire_names import wire_name

CLEAN = "Return the weather of a city for the next days."
STRING = {"type": "string"}
CITY = {"type": "string", "description": "Name of the city, such as Oslo"}


def closed(**properties):
    return {"type": "object", "properties": properties, "additionalProperties": False}


async def run(args, context):
    return "sunny"


def made(name="get_weather", **fields):
    """Return a tool about which there is nothing to say, but for what *fields* change."""
    given = {
        "description": CLEAN,
        "input_schema": closed(city=CITY),
        "effect": "read",
        "required_access": PUBLIC,
        "execute": run,
    }
    return Tool(name=name, **{**given, **fields})


def of_rule(rule, found):
    return [finding for finding in found if finding.rule == rule]


def remarks(rule, **fields):
    """Return the findings of one rule about one tool."""
    return of_rule(rule, lint_tool(made(**fields), "p:t"))


def severities(rule, **fields):
    return [finding.severity for finding in remarks(rule, **fields)]


def pack(*tools, name="weather", **fields):
    return ExtensionPack(name, "1.0", tools, **fields)


# -- findings ----------------------------------------------------------------------------------------------------


def test_a_tool_that_says_everything_has_no_findings():
    assert lint_pack(pack(made())) == []


def test_a_finding_reads_as_one_line():
    finding = Finding("warning", "mail:send(to)", "description", "no description", "write one")

    assert str(finding) == "warning: mail:send(to): no description; write one [description]"


def test_a_finding_is_a_value():
    assert hash(Finding("info", "a", "b", "c", "d")) == hash(Finding("info", "a", "b", "c", "d"))


def test_the_place_of_a_tool_is_its_qualified_id():
    assert [finding.place for finding in lint_pack(pack(made(description="")))] == ["weather:get_weather"]


def test_the_place_of_a_parameter_is_that_of_definition_errors():
    schema = closed(where=closed(city={"type": "string"}) | {"description": "Where the city is"})

    assert [finding.place for finding in remarks("parameter-description", input_schema=schema)] == ["p:t(where.city)"]


def test_every_finding_has_a_cure():
    found = lint_pack(pack(made("1.send", description="", input_schema={}, effect="destructive")))

    assert len(found) > 4
    assert all(finding.cure and finding.message for finding in found)


def test_findings_come_in_the_order_of_the_tools_then_of_the_rules():
    found = lint_pack(pack(made("list_b", description="", effect="mutate"), made("list_a", description="")))

    assert [(finding.place, finding.rule) for finding in found] == [
        ("weather:list_b", "description"),
        ("weather:list_b", "name-and-effect"),
        ("weather:list_b", "dry-run"),
        ("weather:list_a", "description"),
    ]


def test_the_same_pack_gives_the_same_findings_again():
    messy = pack(made("a.b", input_schema={"type": "object"}), made("c d", effect="destructive", description="x"))

    assert lint_pack(messy) == lint_pack(messy)


def test_what_is_no_pack_is_one_error():
    assert [(one.severity, one.rule) for one in lint_pack(None)] == [("error", "no-pack")]


def test_other_kinds_are_not_tools():
    assert [one.rule for one in lint_pack(pack(Descriptor("mood", "pirate", "Arr")))] == ["kinds"]


@pytest.mark.parametrize("module", [agentos_pack_calculator, agentos_pack_datetime], ids=lambda module: module.__name__)
def test_the_curated_packs_have_no_errors_and_no_warnings(module):
    found = lint_pack(module.create_extension_pack(SimpleNamespace(options={})))

    assert [str(finding) for finding in found if finding.severity != "info"] == []


# -- what is no tool, or can't be one ------------------------------------------------------------------------------


@attrs.define
class Duck:
    """A tool by its parts."""

    name: Any = "get_weather"
    description: Any = CLEAN
    input_schema: Any = attrs.field(factory=lambda: closed(city=CITY))
    effect: Any = "read"
    required_access: Any = PUBLIC

    async def execute(self, args, context):
        return "sunny"


def test_an_object_with_a_tools_parts_is_linted_as_a_tool():
    assert lint_tool(Duck(), "p:t") == []


def test_a_function_on_kind_tool_is_told_about_the_decorator():
    (finding,) = lint_pack(pack(Descriptor("tool", "len", len)))

    assert (finding.severity, finding.rule, finding.cure) == ("warning", "no-tool", "put @tool on the function")


@pytest.mark.parametrize(
    "payload", ["text", None, 5, Tool, {"name": "x"}, object()], ids=lambda payload: type(payload).__name__
)
def test_a_payload_that_is_no_tool_at_all_is_a_warning(payload):
    assert [(one.severity, one.rule) for one in lint_tool(payload, "p:t")] == [("warning", "no-tool")]


def test_a_payload_that_raises_while_it_is_read_is_a_warning():
    class Trap:
        name = "trap"
        effect = "read"
        required_access = PUBLIC

        @property
        def input_schema(self):
            raise RuntimeError("boom")

    assert [one.message for one in lint_tool(Trap(), "p:t")] == ["reading it raised RuntimeError"]


@pytest.mark.parametrize(("part", "rule"), [("effect", "effect"), ("required_access", "access")])
def test_a_missing_effect_or_access_is_an_error(part, rule):
    parts = {field.name: getattr(Duck(), field.name) for field in attrs.fields(Duck) if field.name != part}

    assert [(one.severity, one.rule) for one in lint_tool(SimpleNamespace(**parts), "p:t")] == [("error", rule)]


@pytest.mark.parametrize(
    ("effect", "expected"),
    [
        ("reads", "the effect 'reads' is unknown"),
        (5, "the effect '(no text)' is unknown"),
        (None, "no effect is said"),
    ],
)
def test_an_effect_that_is_none_is_an_error(effect, expected):
    assert [(one.severity, one.message) for one in lint_tool(Duck(effect=effect), "p:t")] == [("error", expected)]


def test_an_empty_access_is_an_error():
    (finding,) = lint_tool(Duck(required_access=()), "p:t")

    assert finding.severity == "error"
    assert "an empty tuple says nothing" in finding.message


def test_a_missing_input_schema_is_an_error():
    assert [(one.severity, one.rule) for one in lint_tool(Duck(input_schema=None), "p:t")] == [("error", "definition")]


@pytest.mark.parametrize("schema", [{"type": "text"}, {"$ref": "https://example.com/x"}, {"enum": [object()]}])
def test_an_input_schema_that_can_not_be_compiled_is_an_error(schema):
    assert [(one.severity, one.rule) for one in lint_tool(made(input_schema=schema), "p:t")] == [
        ("error", "definition")
    ]


def test_an_output_schema_that_can_not_be_compiled_is_an_error():
    (finding,) = remarks("definition", output_schema={"type": "text"})

    assert "the output schema" in finding.message


def test_a_descriptor_whose_id_is_not_the_tools_name_is_an_error():
    (finding,) = lint_pack(pack(Descriptor("tool", "weather", made())))

    assert (finding.severity, finding.rule) == ("error", "id")


def test_two_descriptors_with_one_id_are_an_error():
    found = lint_pack(pack(made(), made()))

    assert [(one.severity, one.rule) for one in found] == [("error", "duplicate-id")]


# -- descriptions --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("description", "expected"),
    [
        ("", ["error"]),
        ("  \n", ["error"]),
        ("Weather!", ["warning"]),
        ("Gets the weather.", ["warning"]),
        ("get_weather tool", ["warning"]),
        ("The oracle.", ["warning"]),
        ("Ask an oracle.", ["warning"]),
        ("Ask an oracle..", []),
        ("Atmospheric conditions per city", ["info"]),
        ("Return the weather of a city.", []),
        ("Sucht das Wetter einer Stadt für die nächsten Tage und nennt Wind, Regen und Temperatur", []),
        ("都市の天気予報を返す", []),
        ("x" * 1025 + " finds", ["warning"]),
        ("Find it. " + "x" * 1015, []),
    ],
)
def test_a_description_says_what_a_tool_does(description, expected):
    assert severities("description", description=description) == expected


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "string"}, ["warning"]),
        ({"type": "string", "description": ""}, ["warning"]),
        ({"type": "string", "description": "The city_name."}, ["warning"]),
        ({"type": "string", "description": "Such as Oslo"}, []),
        ({"anyOf": [{"type": "string", "description": "Such as Oslo"}, {"type": "null"}]}, []),
        ({"const": "city"}, []),
    ],
)
def test_a_description_says_what_a_parameter_means(schema, expected):
    assert severities("parameter-description", input_schema=closed(city_name=schema)) == expected


def test_a_parameter_may_be_described_by_what_it_refers_to():
    schema = closed(place={"$ref": "#/$defs/a~1~0b"}) | {"$defs": {"a/~b": {"type": "string", "description": "A town"}}}

    assert remarks("parameter-description", input_schema=schema) == []


def test_parameters_of_items_and_definitions_need_descriptions_too():
    schema = closed(places={"type": "array", "description": "Where to look", "items": closed(city={"type": "string"})})
    schema["$defs"] = {"Place": closed(street={"type": "string"})}

    places = [finding.place for finding in remarks("parameter-description", input_schema=schema)]

    assert places == ["p:t(places[].city)", "p:t($defs.Place.street)"]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("Return the weather\u202e of a city.", "U+202E RIGHT-TO-LEFT OVERRIDE"),
        ("Return the weather\u200b of a city.", "U+200B ZERO WIDTH SPACE"),
        ("Return the weather\x07 of a city.", "U+0007"),
        ("Return the weather of a city.\U000e0049", "U+E0049 TAG LATIN CAPITAL LETTER I"),
        ("Return the weather of a city.\U000e0101", "U+E0101 VARIATION SELECTOR-18"),
        ("Return the weather\u200d of a city.", "U+200D ZERO WIDTH JOINER"),
        ("Return the weather\ud800 of a city.", "U+D800"),
    ],
)
def test_hidden_characters_in_a_description_are_an_error_that_names_them(text, named):
    (finding,) = remarks("hidden-characters", description=text)

    assert finding.severity == "error"
    assert finding.message == f"the description has hidden characters: {named}"


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("é" + "\u200c\u200d" * 20 + "é", "U+200C ZERO WIDTH NON-JOINER, U+200D ZERO WIDTH JOINER"),
        ("é\u200c\u200cé", "U+200C ZERO WIDTH NON-JOINER"),
        ("é\u200d é", "U+200D ZERO WIDTH JOINER"),
        ("é\u200d\u00a0é", "U+200D ZERO WIDTH JOINER"),
        ("\u200dé", "U+200D ZERO WIDTH JOINER"),
        ("é\u200d", "U+200D ZERO WIDTH JOINER"),
        ("é\ufe0f\u200dé", "U+FE0F VARIATION SELECTOR-16, U+200D ZERO WIDTH JOINER"),
        ("a\ufe0f", "U+FE0F VARIATION SELECTOR-16"),
        ("é\ufe0e", "U+FE0E VARIATION SELECTOR-15"),
        ("\ufe0f", "U+FE0F VARIATION SELECTOR-16"),
        ("1\ufe0f 2", "U+FE0F VARIATION SELECTOR-16"),
        ("❤\ufe0f\ufe0f", "U+FE0F VARIATION SELECTOR-16"),
        ("❤\ufe00", "U+FE00 VARIATION SELECTOR-1"),
        ("a\u115fb\u1160", "U+115F HANGUL CHOSEONG FILLER, U+1160 HANGUL JUNGSEONG FILLER"),
        ("a\u3164b\uffa0", "U+3164 HANGUL FILLER, U+FFA0 HALFWIDTH HANGUL FILLER"),
        ("a\u034fb", "U+034F COMBINING GRAPHEME JOINER"),
        ("a\u17b4b\u17b5", "U+17B4 KHMER VOWEL INHERENT AQ, U+17B5 KHMER VOWEL INHERENT AA"),
        ("a\u180bb", "U+180B MONGOLIAN FREE VARIATION SELECTOR ONE"),
        ("a\u180fb", "U+180F MONGOLIAN FREE VARIATION SELECTOR FOUR"),
        ("a\u2800b\ufe0f", "U+2800 BRAILLE PATTERN BLANK, U+FE0F VARIATION SELECTOR-16"),
        ("a\u2800\ufe0f", "U+2800 BRAILLE PATTERN BLANK, U+FE0F VARIATION SELECTOR-16"),
        ("a\ufff0\u2065\U000e0fff", "U+FFF0, U+2065, U+E0FFF"),
        ("a\U0001d173", "U+1D173 MUSICAL SYMBOL BEGIN BEAM"),
        ("❤\U000e0100", "U+E0100 VARIATION SELECTOR-17"),
    ],
)
def test_characters_that_take_no_room_are_hidden(text, named):
    assert ", ".join(hidden_characters(text)) == named


@pytest.mark.parametrize(
    "text",
    [
        "می\u200cخواهم کتاب\u200cهای خود را ببینم",  # noqa: RUF001 - Persian
        "क्\u200dष और र्\u200dय",
        "ශ්\u200dරී ලංකා",
        "👨\u200d👩\u200d👧\u200d👦",
        "❤\ufe0f\u200d🔥",
        "👩🏽\u200d🔬",
        "🏳\ufe0f\u200d🌈 🏴\u200d☠\ufe0f",
        "👁\ufe0f\u200d🗨\ufe0f",
        "1\ufe0f\u20e3 #\ufe0f\u20e3 *\ufe0f\u20e3",
        "☀\ufe0f ✔\ufe0e ©\ufe0f ™\ufe0f ↔\ufe0f ‼\ufe0f ℹ\ufe0f 〰\ufe0f 〽\ufe0f ㊙\ufe0f 🅰\ufe0f",  # noqa: RUF001 - emoji
        "한국어 日本語 ⠓⠊",
    ],
)
def test_what_real_text_and_real_emoji_are_made_of_is_not_hidden(text):
    assert hidden_characters(text) == []


@pytest.mark.parametrize("text", ["Return:\n\t- the weather", "Return the 👩‍🔬 of a city", "می‌خواهم هوا را بدانم"])
def test_line_breaks_and_joiners_that_a_script_needs_are_not_hidden_characters(text):
    assert remarks("hidden-characters", description=text) == []


@pytest.mark.parametrize(
    ("schema", "path"),
    [
        (closed(city=CITY | {"description": "Such\u200b as Oslo"}), "$.properties.city.description"),
        (closed(city=CITY | {"enum": ["Oslo", "O\u200bslo"]}), "$.properties.city.enum[1]"),
        (closed(city=CITY) | {"if": {"title": "\u200b"}}, "$.if.title"),
        (closed(**{"ci\u200bty": CITY}), "$.properties"),
    ],
)
def test_hidden_characters_anywhere_in_the_schema_are_an_error(schema, path):
    (finding,) = remarks("hidden-characters", input_schema=schema)

    assert finding.message == f"the input schema at {path} has hidden characters: U+200B ZERO WIDTH SPACE"


def test_hidden_characters_in_a_system_prompt_are_an_error():
    assert severities("hidden-characters", system_prompt="Be\u200b kind") == ["error"]


def test_findings_themselves_have_no_hidden_characters():
    schema = closed(**{"a\u202eb\ud800": {"type": "string", "description": "\u202e"}})

    found = lint_tool(made(description="\u202e", input_schema=schema), "p:t")

    assert found
    assert all(str(finding).isprintable() for finding in found)


def test_a_place_shows_hidden_characters_escaped():
    (finding,) = remarks("parameter-description", input_schema=closed(**{"ci\u200bty": STRING}))

    assert finding.place == r"p:t(ci\u200bty)"


def test_a_long_name_is_clipped():
    (finding,) = remarks("wire-name", name="w" * 150)

    assert finding.message.startswith(f"the name '{'w' * 60}...' is refused by OpenAI")


def test_descriptions_that_are_nearly_the_same_are_a_warning_that_names_the_other():
    one = made("search_mails", description="Search the mails of a user by words in subject and body.")
    two = made("find_mails", description="Search the mails of the user by words in subject or body.")

    (finding,) = lint_pack(pack(one, two))

    assert (finding.severity, finding.rule, finding.place) == ("warning", "confusable", "weather:find_mails")
    assert "weather:search_mails" in finding.message


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("Delete a file in the folder.", "Create a file in the folder."),
        ("Convert a length from metres to feet.", "Convert a length from feet to metres."),
        ("", ""),
    ],
)
def test_descriptions_that_differ_in_a_word_that_counts_are_not_confusable(one, two):
    found = lint_pack(pack(made("do_one", description=one), made("do_two", description=two)))

    assert of_rule("confusable", found) == []


# -- schemas -------------------------------------------------------------------------------------------------------

OPEN = {"type": "object", "properties": {}, "additionalProperties": True}


def open_places(schema):
    return [(one.severity, one.place) for one in remarks("open-object", input_schema=schema)]


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({}, "p:t"),
        ({"type": "object"}, "p:t"),
        (OPEN, "p:t"),
        ({"type": "object", "properties": {}, "additionalProperties": {}}, "p:t"),
        ({"allOf": [closed(city=CITY)]}, "p:t"),
        (closed(where=OPEN), "p:t(where)"),
        (closed(where={"type": ["object", "null"]}), "p:t(where)"),
        (closed(where={"properties": {"x": CITY}}), "p:t(where)"),
        (closed(where=closed(deep=OPEN)), "p:t(where.deep)"),
        (closed(where={"type": "array", "items": OPEN}), "p:t(where[])"),
        (closed(where={"prefixItems": [OPEN]}), "p:t(where[])"),
        (closed(where={"anyOf": [OPEN, {"type": "null"}]}), "p:t(where)"),
        (
            closed(where={"type": "object", "additionalProperties": False, "patternProperties": {"x": OPEN}}),
            "p:t(where.*)",
        ),
        (closed() | {"$defs": {"Where": OPEN}}, "p:t($defs.Where)"),
        (closed() | {"definitions": {"Where": OPEN}}, "p:t(definitions.Where)"),
        ({"$ref": "#/$defs/Where", "$defs": {"Where": OPEN}}, "p:t($defs.Where)"),
    ],
)
def test_an_open_object_is_a_warning_at_any_level(schema, expected):
    assert open_places(schema) == [("warning", expected)]


@pytest.mark.parametrize(
    "schema",
    [
        closed(city=CITY),
        {"type": "object", "properties": {}, "unevaluatedProperties": False},
        {"type": "object", "anyOf": [closed(a=CITY), closed(b=CITY)]},
        closed(a=CITY, b=CITY) | {"anyOf": [{"required": ["a"]}, {"properties": {"b": {"minLength": 1}}}]},
        closed(a=CITY) | {"if": {"properties": {"a": {"const": "x"}}}, "then": {"required": ["a"]}},
        {"$ref": "#/$defs/Where", "$defs": {"Where": closed(city=CITY)}},
    ],
)
def test_a_closed_object_is_no_finding(schema):
    assert open_places(schema) == []


def test_a_map_with_typed_values_is_only_an_info():
    schema = closed(prices={"type": "object", "additionalProperties": {"type": "number"}})

    assert open_places(schema) == [("info", "p:t(prices)")]


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "integer", "enum": [1, 2]},
        {"enum": [1, 2], "description": "How loud it is"},
        {"enum": [1, 2], "description": "How loud, 1 to 2"},
        {"enum": [1, 2, 9], "description": "1 = low, 2 = high"},
        {"type": "integer", "minimum": 0, "maximum": 19},
        {"type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 5, "description": "from 1 to 5"},
        {"oneOf": [{"const": 1}, {"const": 2}]},
        {"type": "array", "items": {"enum": [1, 2]}, "description": "Which to show"},
        {"anyOf": [{"enum": [1, 2]}, {"type": "null"}]},
        {"enum": [-1, 1], "description": "One of -1 and 1"},
    ],
)
def test_numbers_that_are_codes_without_a_meaning_are_a_warning(schema):
    assert severities("number-codes", input_schema=closed(alert_level=schema)) == ["warning"]


@pytest.mark.parametrize(
    "schema",
    [
        {"enum": [1, 2], "description": "1 = low, 2 = high"},
        {"enum": [1, 2], "description": "How loud:\n 1: low\n 2: high"},
        {"enum": [1, 2], "description": "1 (low) or 2 (high)"},
        {"enum": [1, 2], "description": "low (1), high (2)"},
        {"enum": [1, 2], "description": "`1` means low, `2` means high"},
        {"enum": [1, 2], "description": "1. low 2. high"},
        {"enum": [-1, 1], "description": "-1 is down, 1 is up"},
        {"enum": [1, 2, 3, 4, 5], "description": "From 1 (calm) to 5 (storm)"},
        {"type": "array", "items": {"enum": [0, 1]}, "description": "0 off, 1 on"},
        {"oneOf": [{"const": 1, "title": "low"}, {"const": 2, "title": "high"}]},
        {"type": "integer", "minimum": 0, "maximum": 5, "description": "0 = calm ... 5 = storm"},
        {"type": "integer", "minimum": 0, "maximum": 20},
        {"type": "integer", "minimum": 0},
        {"enum": ["1", "2"]},
        {"enum": [True, False]},
        {"enum": [1]},
        {"enum": [1.5, 2.5]},
        {"enum": [10**5000, 10**5001]},
    ],
)
def test_numbers_with_a_meaning_are_no_finding(schema):
    assert severities("number-codes", input_schema=closed(alert_level=schema)) == []


@pytest.mark.parametrize(("last", "shown"), [(6, "1, 2, 3, 4, 5, 6"), (7, "1, 2, 3, 4, 5, 6, ...")])
def test_many_codes_are_cut(last, shown):
    (finding,) = remarks("number-codes", input_schema=closed(alert_level={"enum": list(range(1, last + 1))}))

    assert finding.message == f"the numbers {shown} are codes without a meaning"


def test_a_small_range_counts_as_codes_only_under_a_name_that_says_so():
    assert severities("number-codes", input_schema=closed(days={"type": "integer", "minimum": 1, "maximum": 7})) == []


def test_an_int_enum_whose_members_nobody_explains_is_a_warning():
    @tool(effect="read", required_access=PUBLIC)
    async def list_alerts(level: Annotated[Level, "How bad at least"]) -> list[str]:
        """List the weather alerts that are at least this bad."""

    assert [finding.place for finding in lint_tool(list_alerts, "p:t")] == ["p:t(level)"]


def test_an_int_enum_may_be_explained_by_its_parameter():
    @tool(effect="read", required_access=PUBLIC)
    async def list_alerts(level: Annotated[Level, "How bad at least: 1 = low, 2 = high"]) -> list[str]:
        """List the weather alerts that are at least this bad."""

    assert lint_tool(list_alerts, "p:t") == []


@pytest.mark.parametrize(
    ("schema", "provider", "obstacle"),
    [
        ({"type": "object", "additionalProperties": False}, "OpenAI", "a top that is no object with properties"),
        (closed(city=CITY) | {"anyOf": [{}]}, "OpenAI", "a top that is no object with properties"),
        (closed(city=CITY | {"allOf": [{"type": "string"}]}), "OpenAI", "allOf at city"),
        (closed(city=CITY | {"not": {"const": "x"}}), "OpenAI", "not at city"),
        (closed(city={"description": "Whatever it is"}), "OpenAI", "no type at city"),
        (closed(city=CITY | {"maxLength": 9}), "Anthropic", "maxLength at city"),
        (closed(days={"type": "integer", "minimum": 1}), "Anthropic", "minimum at days"),
        (closed(inner={"$ref": "#"}), "Anthropic", "recursion"),
        (closed(prices={"type": "object", "additionalProperties": CITY}), "Anthropic", "an open object at prices"),
    ],
)
def test_what_a_strict_mode_can_not_take_is_an_info(schema, provider, obstacle):
    found = [one for one in remarks("strict", input_schema=schema) if f"of {provider} " in one.message]

    assert [(one.severity, one.message.partition(": ")[2]) for one in found] == [("info", obstacle)]


@pytest.mark.parametrize(("names", "end"), [("abcd", "minLength at d"), ("abcde", "minLength at d, ...")])
def test_many_obstacles_to_a_strict_mode_are_cut(names, end):
    schema = closed(**{name: CITY | {"minLength": 1} for name in names})

    assert all(finding.message.endswith(end) for finding in remarks("strict", input_schema=schema))


def test_recursion_through_two_definitions_is_found():
    schema = closed(a={"$ref": "#/$defs/A"})
    schema["$defs"] = {"A": closed(b={"$ref": "#/$defs/B"}), "B": closed(a={"$ref": "#/$defs/A"})}

    assert [one.message.rpartition(": ")[2] for one in remarks("strict", input_schema=schema)] == ["recursion"]


def test_a_definition_that_is_used_twice_is_no_recursion():
    schema = closed(a={"$ref": "#/$defs/A"}, b={"$ref": "#/$defs/A"}) | {"$defs": {"A": closed()}}

    assert remarks("strict", input_schema=schema) == []


# -- names ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("word", ["list", "view", "get", "search", "find", "read"])
@pytest.mark.parametrize("effect", ["mutate", "destructive"])
def test_a_name_that_reads_with_an_effect_that_changes_is_an_error(word, effect):
    assert severities("name-and-effect", name=f"{word}_files", effect=effect) == ["error"]


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        *((word, "warning") for word in ("create", "edit", "update", "set", "write", "send")),
        *((word, "error") for word in ("delete", "remove")),
        *((word, "info") for word in ("run", "execute", "submit")),
    ],
)
def test_a_name_that_changes_with_the_effect_read_is_a_finding(word, expected):
    assert severities("name-and-effect", name=f"{word}_files", effect="read") == [expected]


@pytest.mark.parametrize("name", ["delete_file", "removeFile"])
def test_a_name_that_deletes_with_the_effect_mutate_is_an_info(name):
    assert severities("name-and-effect", name=name, effect="mutate") == ["info"]


@pytest.mark.parametrize("name", ["deleteFile", "delete-file", "DELETE_FILE", "files.delete_one", "delete"])
def test_the_first_word_counts_however_a_name_is_written(name):
    assert severities("name-and-effect", name=name, effect="read") == ["error"]


@pytest.mark.parametrize(
    ("name", "effect"),
    [
        ("get_file", "read"),
        ("create_file", "mutate"),
        ("delete_file", "destructive"),
        ("run_job", "mutate"),
        ("getaway_plan", "mutate"),
        ("settle_debt", "read"),
        ("weather", "read"),
        ("...", "read"),
    ],
)
def test_a_name_that_fits_its_effect_is_no_finding(name, effect):
    assert severities("name-and-effect", name=name, effect=effect) == []


@pytest.mark.parametrize(
    ("name", "providers"),
    [
        ("get.weather", ["OpenAI", "Anthropic", "Bedrock"]),
        ("1st_weather", ["Gemini"]),
        ("-weather", ["Gemini"]),
        ("wetter_für_heute", ["OpenAI", "Anthropic", "Gemini", "Bedrock", "MCP"]),
        ("get weather", ["OpenAI", "Anthropic", "Gemini", "Bedrock", "MCP"]),
        ("w" * 65, ["OpenAI", "Gemini", "Bedrock"]),
        ("w" * 129, ["OpenAI", "Anthropic", "Gemini", "Bedrock", "MCP"]),
    ],
)
def test_a_name_that_providers_refuse_is_a_warning_with_their_names_and_the_wire_name(name, providers):
    (finding,) = remarks("wire-name", name=name)

    assert finding.severity == "warning"
    assert [one for one in ("OpenAI", "Anthropic", "Gemini", "Bedrock", "MCP") if one in finding.message] == providers
    assert finding.message.endswith(f"on the wire it becomes {wire_name(name)!r}")


@pytest.mark.parametrize("name", ["w", "_weather", "getWeather", "get-weather", "w" * 64])
def test_a_name_that_every_provider_takes_is_no_finding(name):
    assert remarks("wire-name", name=name) == []


def test_an_alias_that_is_another_tools_name_is_an_error():
    found = lint_pack(pack(made(), made("find_rain", description="Find where it rains.", aliases=("get_weather",))))

    assert [(one.severity, one.rule, one.place) for one in found] == [("error", "alias", "weather:find_rain")]


def test_an_alias_that_another_tool_has_too_is_a_warning():
    rain = made("find_rain", description="Find where it rains.", aliases=("wet",))

    assert [(one.severity, one.rule) for one in lint_pack(pack(made(aliases=("wet",)), rain))] == [("warning", "alias")]


def test_an_alias_of_its_own_is_no_finding():
    assert lint_pack(pack(made(aliases=("weather",)))) == []


# -- what changes something ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("effect", ["mutate", "destructive"])
def test_a_tool_that_changes_something_without_a_dry_run_is_an_info(effect):
    assert severities("dry-run", name="plan", effect=effect) == ["info"]


def test_a_tool_that_changes_something_with_a_dry_run_is_no_finding():
    assert severities("dry-run", name="plan", effect="mutate", dry_run=run) == []


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"effect": "mutate"}, ["info"]),
        ({"effect": "mutate", "timeout": 5}, []),
        ({"effect": "mutate", "execute": run}, []),
        ({"effect": "read"}, []),
    ],
)
def test_a_sync_tool_that_changes_something_without_a_timeout_is_an_info(fields, expected):
    assert severities("timeout", name="plan", **{"execute": lambda args, context: 1, **fields}) == expected


# -- secrets -------------------------------------------------------------------------------------------------------


def needing(*secrets):
    return pack(Descriptor("search-engine", "web", object(), required_secrets=secrets))


def test_a_secret_that_is_not_in_the_catalog_is_a_warning_with_the_nearest_id():
    finding, _ = lint_pack(needing(SecretRequirement("openai.apikey")))[::-1]

    assert (finding.severity, finding.rule, finding.place) == ("warning", "secrets", "weather:web")
    assert "did you mean 'openai.apiKey'?" in finding.message


def test_a_secret_of_the_catalog_is_no_finding():
    assert [one.rule for one in lint_pack(needing(SecretRequirement("openai.apiKey")))] == ["kinds"]


# -- rules can be added ----------------------------------------------------------------------------------------------


@pytest.fixture
def rules(monkeypatch):
    monkeypatch.setattr(lint, "TOOL_RULES", kept := dict(lint.TOOL_RULES))
    monkeypatch.setattr(_lint_rules, "TOOL_RULES", kept)
    monkeypatch.setattr(lint, "PACK_RULES", kept := dict(lint.PACK_RULES))
    monkeypatch.setattr(_lint_rules, "PACK_RULES", kept)


@pytest.mark.usefixtures("rules")
def test_a_rule_about_tools_can_be_added():
    @lint.tool_rule("house")
    def _house(subject):
        yield "info", subject.place, f"{subject.name} is ours", "nothing"

    assert lint_pack(pack(made())) == [
        Finding("info", "weather:get_weather", "house", "get_weather is ours", "nothing")
    ]


@pytest.mark.usefixtures("rules")
def test_a_rule_about_packs_can_be_added():
    @lint.pack_rule("house")
    def _house(pack, subjects):
        yield "info", pack.name, f"{len(subjects)} tool", "nothing"

    assert lint_pack(pack(made())) == [Finding("info", "weather", "house", "1 tool", "nothing")]


@pytest.mark.usefixtures("rules")
def test_a_rule_that_raises_is_a_finding_and_what_it_said_before_is_kept():
    @lint.tool_rule("house")
    def _house(subject):
        yield "info", subject.place, "first", "nothing"
        raise KeyError("second")

    assert [one.message for one in lint_tool(made(), "p:t")] == ["first", "the rule raised KeyError"]


# -- whatever a pack brings --------------------------------------------------------------------------------------------

texts = st.text(max_size=40) | st.sampled_from(["get_x", "delete.y", "status", CLEAN, "1 = low", "\ud800", "\u202e"])
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
KEYWORDS = """$ref $defs definitions type properties items prefixItems anyOf oneOf allOf enum const minimum maximum
description title additionalProperties patternProperties not if required default $schema dependencies""".split()  # noqa: SIM905
schemas = st.recursive(
    json_values | st.sampled_from(["object", "integer", "#", "#/$defs/a", [1, 2], ["object", "null"]]),
    lambda inner: (
        st.dictionaries(st.sampled_from([*KEYWORDS, "status", "a"]), inner, max_size=5) | st.lists(inner, max_size=2)
    ),
    max_leaves=20,
)
anything = json_values | st.sampled_from([object(), len, Tool, PUBLIC, b"x", {1}, MappingProxyType({1: 2})])
ducks = st.fixed_dictionaries(
    {"name": texts | anything},
    optional={
        "description": texts | anything,
        "input_schema": schemas | anything,
        "output_schema": schemas,
        "effect": st.sampled_from(["read", "mutate", "destructive"]) | anything,
        "required_access": st.just(PUBLIC) | anything,
        "execute": st.just(run) | anything,
        "aliases": st.lists(texts, max_size=2).map(tuple) | anything,
        "timeout": anything,
        "dry_run": anything,
        "system_prompt": anything,
    },
).map(lambda parts: SimpleNamespace(**parts))
ids = st.text("abc_.1", min_size=1, max_size=3)


@st.composite
def tools(draw):
    """Return a tool that can be made, with any texts and any schema."""
    fields = {"effect": draw(st.sampled_from(["read", "mutate", "destructive"])), "aliases": ("zz",)}
    schema = draw(schemas.filter(lambda value: isinstance(value, dict)))
    return made(draw(ids), description=draw(texts), input_schema=schema, **fields)


descriptors = st.builds(
    Descriptor,
    st.sampled_from(["tool", "tool", "mood"]),
    ids,
    ducks | anything,
    required_secrets=st.lists(ids, max_size=2),
)


@settings(max_examples=examples(200))
@given(st.lists(tools() | descriptors, max_size=4))
def test_lint_never_raises_whatever_a_pack_brings(offered):
    found = lint_pack(ExtensionPack("p", None, offered))

    assert all(isinstance(finding, Finding) for finding in found)
    assert not [finding for finding in found if "the rule raised" in finding.message]


@settings(max_examples=examples(100))
@given(tools())
def test_what_lint_says_can_be_printed(subject):
    for finding in lint_tool(subject, "p:t"):
        assert str(finding).encode("utf-8")
        assert finding.severity in ("error", "warning", "info")


def test_a_toolset_is_linted_tool_by_tool():
    found = lint_pack(pack(Toolset("sky", [made(), made("find_rain", description="")])))

    assert [one.place for one in found] == ["weather:find_rain"]

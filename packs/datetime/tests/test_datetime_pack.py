"""The pack as a host sees it."""

import asyncio
import doctest
import inspect
import json
import tomllib
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import agentos_pack_datetime
import attrs
import jsonschema
import pytest
from agentos_pack_datetime._tools import create_tools

from agentos import PUBLIC, AgentOS, ExtensionPack, ToolCall

TOOLS = create_tools(lambda: datetime(2024, 7, 1, 12, tzinfo=UTC))
CALLS = {
    "now": {"tz": "Asia/Tokyo"},
    "convert_time": {"time": "2024-07-01T12:00", "from_tz": "UTC", "to_tz": "Asia/Tokyo"},
    "date_math": {"start": "2024-01-31", "months": 1, "until": "2024-12-31"},
    "parse_ics": {
        "text": "BEGIN:VCALENDAR\nBEGIN:VEVENT\nDTSTART:20240701\nEND:VEVENT\nEND:VCALENDAR\n",
        "limit": 5,
    },
}


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
class TestTool:
    def test_its_schema_is_closed_and_valid(self, tool):
        jsonschema.Draft202012Validator.check_schema(tool.input_schema)

        assert tool.input_schema["additionalProperties"] is False

    def test_its_schema_has_the_parameters_and_their_docs(self, tool):
        parameters = inspect.signature(tool.function).parameters

        assert list(parameters) == list(tool.input_schema["properties"])
        assert all(schema["description"] for schema in tool.input_schema["properties"].values())

    def test_every_parameter_is_bounded(self, tool):
        bounds = {"maxLength", "maximum", "maxItems", "enum"}

        for name, schema in tool.input_schema["properties"].items():
            assert bounds & {*schema, *(key for option in schema.get("anyOf", ()) for key in option)}, name

    def test_it_reads_and_is_public(self, tool):
        assert (tool.effect, tool.required_access) == ("read", PUBLIC)

    def test_it_describes_itself(self, tool):
        assert tool.description == inspect.getdoc(tool.function)

    def test_a_call_through_a_host_gives_json_that_fits_its_output_schema(self, tool):
        async def main():
            async with AgentOS() as host:
                await host.extensions.load_pack(ExtensionPack("p", descriptors=[tool]))
                return await host.tools.process_tool_call(ToolCall(tool.name, json.dumps(CALLS[tool.name])))

        result = asyncio.run(main())

        assert result.success, result.content
        jsonschema.validate(result.output, tool.output_schema)

    def test_its_result_is_a_frozen_value(self, tool):
        result = tool.function(**CALLS[tool.name])

        with pytest.raises(attrs.exceptions.FrozenInstanceError):
            setattr(result, attrs.fields(type(result))[0].name, None)


def pack(**options):
    return agentos_pack_datetime.create_extension_pack(SimpleNamespace(options=options))


def test_the_pack_offers_its_four_tools():
    found = pack()

    assert (found.name, found.version) == ("datetime", agentos_pack_datetime.__version__)
    assert [("tool", name) for name in CALLS] == [(d.kind, d.id) for d in found.descriptors]
    assert all(d.id == d.payload.name for d in found.descriptors)


def test_the_clock_is_an_option():
    tool = pack(clock=lambda: datetime(1999, 12, 31, tzinfo=UTC)).descriptors[0].payload

    assert tool().utc == "1999-12-31T00:00:00Z"


def test_a_clock_that_is_no_function_is_refused():
    with pytest.raises(ValueError, match=r"^options\.clock: expected a function .*, got str"):
        pack(clock="12:00")


@pytest.mark.parametrize(("name", "hint"), [("clok", r"did you mean `clock`\?"), ("zone", "known are clock")])
def test_an_option_that_is_not_known_is_refused(name, hint):
    with pytest.raises(ValueError, match=rf"^options\.{name}: is not known; {hint}$"):
        pack(**{"secrets": {}, name: 1})


def test_the_distribution_says_where_the_pack_is():
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))["project"]

    assert project["entry-points"] == {"agentos.packs": {"datetime": "agentos_pack_datetime"}}
    assert project["version"] == agentos_pack_datetime.__version__


def test_the_examples_of_the_readme_are_true():
    readme = Path(__file__).parents[1] / "README.md"

    assert doctest.testfile(str(readme), module_relative=False).failed == 0


def test_loading_it_imports_nothing_heavy(run_python):
    code = (
        "import sys\n"
        "import agentos_pack_datetime\n"
        "light = set(sys.modules)\n"
        "import agentos_pack_datetime._tools\n"
        "print({'attrs', 'whenever', 'icalendar'} & light, {'icalendar', 'dateutil'} & set(sys.modules))"
    )

    assert run_python(code) == "set() set()"

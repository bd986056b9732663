"""The pack as a host sees it."""

import asyncio
import doctest
import inspect
import json
import tomllib
from pathlib import Path
from types import SimpleNamespace

import agentos_pack_calculator
import attrs
import jsonschema
import pytest
from agentos_pack_calculator._tools import TOOLS

from agentos import PUBLIC, AgentOS, ExtensionPack, ToolCall

CALLS = {
    "calculate": {"expression": "1/3 + 2**70"},
    "convert_units": {"value": 25, "from": "degC", "to": "degF"},
    "statistics": {"values": [1, 2.5, 4]},
}


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
class TestTool:
    def test_its_schema_is_closed_and_valid(self, tool):
        jsonschema.Draft202012Validator.check_schema(tool.input_schema)

        assert tool.input_schema["additionalProperties"] is False

    def test_its_schema_has_the_parameters_and_their_docs(self, tool):
        assert list(CALLS[tool.name]) == list(tool.input_schema["properties"]) == tool.input_schema["required"]
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
        result = tool.execute(CALLS[tool.name], None)

        with pytest.raises(attrs.exceptions.FrozenInstanceError):
            setattr(result, attrs.fields(type(result))[0].name, None)


@pytest.mark.parametrize("name", ["from_unit", "to_unit"])
def test_the_names_that_python_has_for_the_units_are_no_parameters(name):
    async def main():
        async with AgentOS() as host:
            await host.extensions.load_pack(ExtensionPack("p", descriptors=TOOLS))
            return await host.tools.process_tool_call(
                ToolCall("convert_units", {**CALLS["convert_units"], name: "degC"})
            )

    assert asyncio.run(main()).error.type == "InvalidArguments"


def test_the_pack_offers_its_three_tools():
    pack = agentos_pack_calculator.create_extension_pack(SimpleNamespace(options={}))

    assert ("calculator", agentos_pack_calculator.__version__) == (pack.name, pack.version)
    assert [("tool", name) for name in CALLS] == [(d.kind, d.id) for d in pack.descriptors]
    assert all(d.id == d.payload.name for d in pack.descriptors)


def test_there_are_no_options():
    with pytest.raises(ValueError, match=r"^options\.precision: is not known; there are no options$"):
        agentos_pack_calculator.create_extension_pack(SimpleNamespace(options={"secrets": {}, "precision": 3}))


def test_the_distribution_says_where_the_pack_is():
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))["project"]

    assert project["entry-points"] == {"agentos.packs": {"calculator": "agentos_pack_calculator"}}
    assert project["version"] == agentos_pack_calculator.__version__


def test_the_examples_of_the_readme_are_true():
    readme = Path(__file__).parents[1] / "README.md"

    assert doctest.testfile(str(readme), module_relative=False).failed == 0


def test_loading_it_imports_nothing_heavy(run_python):
    code = (
        "import sys\n"
        "import agentos_pack_calculator\n"
        "light = set(sys.modules)\n"
        "import agentos_pack_calculator._tools\n"
        "print({'attrs'} & light, {'pint', 'simpleeval'} & set(sys.modules))"
    )

    assert run_python(code) == "set() set()"

"""OpenAPI operations: schemas that say what the document says, requests in which every argument keeps its place."""

import collections
import json
from email import message_from_bytes
from pathlib import Path
from urllib.parse import parse_qsl

import pytest

from agentos.errors import ToolDefinitionError
from agentos.openapi import document as openapi
from agentos.openapi import document_text as limits
from agentos.openapi.document import OpenAPIDocument, OpenAPIOperation
from agentos.openapi.json_schemas import name_of as schema_name
from agentos.schema.build import BuildError
from agentos.schema.validation import Checker, compile_schema

DATA = Path(__file__).parent / "data" / "openapi"


@pytest.fixture(scope="module")
def pets():
    return OpenAPIDocument.read(DATA / "petstore.yaml")


@pytest.fixture(scope="module")
def trees():
    return OpenAPIDocument.read(DATA / "trees.json")


@pytest.fixture(scope="module")
def hostile():
    return OpenAPIDocument.read(DATA / "hostile.json")


def document(paths, *, version="3.0.3", **parts):
    return OpenAPIDocument.read({"openapi": version, "info": {"title": "T", "version": "1"}, "paths": paths, **parts})


def operation(raw=None, path="/x", *, method="get", **parts) -> OpenAPIOperation:
    (found,) = document({path: {method: raw or {}}}, **parts).operations().values()
    return found


def parameter(name="a", place="query", **fields):
    return {"name": name, "in": place, **fields}


def taking(*parameters, path="/x", **parts):
    return operation({"parameters": list(parameters)}, path, **parts)


def sending(schema, media="application/json", *, required=True, parameters=(), details=None, **parts):
    body = {"required": required, "content": {media: {"schema": schema, **(details or {})}}}
    return operation({"requestBody": body, "parameters": list(parameters)}, method="post", **parts)


def answering(responses, **parts):
    return operation({"responses": responses}, **parts)


def json_of(schema):
    return {"description": "", "content": {"application/json": {"schema": schema}}}


def converted(schema, **parts):
    """Return *schema* as it is for an argument."""
    return taking(parameter(schema=schema), **parts).input_schema["properties"]["a"]


def converted_output(schema, **parts):
    return answering({"200": json_of(schema)}, **parts).output_schema


def refusal(call):
    with pytest.raises(ToolDefinitionError) as caught:
        call()
    return str(caught.value)


# -- reading a document ------------------------------------------------------------------------------------------

SMALL = {"openapi": "3.1.0", "info": {"title": "Small", "version": "1"}, "paths": {"/a": {"get": {}}}}
SMALL_YAML = "openapi: 3.1.0\ninfo: {title: Small, version: '1'}\npaths:\n  /a:\n    get: {}\n"


@pytest.mark.parametrize(
    "source",
    [SMALL, json.dumps(SMALL), json.dumps(SMALL).encode(), SMALL_YAML, b"\xef\xbb\xbf" + SMALL_YAML.encode()],
    ids=["mapping", "json", "json bytes", "yaml", "yaml bytes with a mark"],
)
def test_a_document_is_read_from(source):
    found = OpenAPIDocument.read(source)

    assert (found.title, found.version, list(found.operations())) == ("Small", "1", ["get_a"])


def test_a_document_is_read_from_a_path(tmp_path):
    (tmp_path / "small.yaml").write_text(SMALL_YAML, "utf-8")

    assert OpenAPIDocument.read(tmp_path / "small.yaml").title == "Small"


def test_a_document_is_not_changed_by_being_read():
    given = {**SMALL, "paths": {"/a": {"get": {"responses": {200: {"description": "ok"}}}}}}
    before = json.dumps(given)
    OpenAPIDocument.read(given).operation("get_a").input_schema  # noqa: B018 - read

    assert json.dumps(given) == before


def test_the_version_may_be_a_number_as_yaml_reads_it():
    assert OpenAPIDocument.read("openapi: 3.1\npaths: {}\n").operations() == {}


ALIASES = "openapi: 3.0.0\na: &a [1,2,3,4,5,6,7,8,9]\n" + "".join(
    f"{new}: &{new} [{', '.join([f'*{old}'] * 9)}]\n" for old, new in zip("abcdefg", "bcdefgh", strict=True)
)

BAD_DOCUMENTS = [
    ({"swagger": "1.2"}, "expected `openapi: 3.0.x` or `3.1.x`, or `swagger: 2.0`, got '1.2'"),
    ({"openapi": "3.2.0"}, "expected `openapi: 3.0.x` or `3.1.x`, or `swagger: 2.0`, got '3.2.0'"),
    ({"openapi": ["3.0.0"]}, "expected `openapi: 3.0.x` or `3.1.x`"),
    ({"title": "x"}, "got ''"),
    ({}, "it is empty"),
    ("[1]", "the document: expected a mapping, got a list"),
    ("just text", "the document: expected a mapping, got a string"),
    ("/etc/hosts.yaml", "write Path('/etc/hosts.yaml')"),
    ("petstore.json\n", "write Path('petstore.json\\n')"),
    (b"\xff\xfe", "expected text in UTF-8"),
    ('{"openapi": "3.0.0", "openapi": "3.0.1"}', "the key 'openapi' stands twice"),
    ('{"openapi": ', "can't be parsed"),
    ('{"a": ' + "[" * 100_000, "can't be parsed: nested too deep"),
    ("a: [1", "can't be parsed: line"),
    ("a: {<<: 1}", "line 1, column 9: expected a mapping, or a list of them, after <<"),
    ("a: &a [*a]", "line 1, column 8: an alias refers to what is not there, or to what it is a part of"),
    ("a: 1\n--- \nb: 1", "expected one document, got several"),
    ("a: .inf", "line 1, column 4: .inf is not JSON"),
    ("a: 1\nb: 2\na: 3", "line 3, column 1: the key 'a' stands twice in one mapping"),
    ("true: 1", "expected text as a key; put it in quotes"),
    ("a: !!int x", "a value does not fit its tag"),
    ("a: " + "9" * 5_000, "a number of more than 4000 digits"),
    ("a: \x00", "can't be parsed"),
    ("a: !!python/object/apply:os.system [ls]", "can't be parsed"),
    (ALIASES, "too large: more than"),
    ({"openapi": "3.0.0", "x": float("nan")}, "nan is not JSON"),
    ({"openapi": "3.0.0", "x": {1, 2}}, "a set is not JSON"),
    ({"openapi": "3.0.0", "x": {True: 1}}, "expected a string as key, got bool; put True in quotes"),
    ({"openapi": "3.0.0", "paths": []}, "paths: expected a mapping, got a list"),
    ({"openapi": "3.0.0", "paths": {"/a": 1}}, "paths['/a']: expected a mapping, got an integer"),
    ({"openapi": "3.0.0", "paths": {"/a": {"get": []}}}, "GET '/a': expected a mapping"),
    ({"openapi": "3.0.0", "paths": {"/a": {"$ref": "http://x/y"}}}, "refers to 'http://x/y'"),
    ({"openapi": "3.0.0", "info": "x"}, "info: expected a mapping, got a string"),
    (7, "expected a mapping, its text as JSON or YAML, or a Path, got int"),
    (None, "got NoneType"),
]


@pytest.mark.parametrize(("source", "words"), BAD_DOCUMENTS, ids=lambda value: repr(value)[:30])
def test_a_document_is_refused_in_words(source, words):
    assert words in refusal(lambda: OpenAPIDocument.read(source))


def test_a_file_that_is_not_there_is_named(tmp_path):
    message = refusal(lambda: OpenAPIDocument.read(tmp_path / "none.json"))

    assert "none.json: can't be read: No such file" in message


@pytest.mark.parametrize("source", ["x" * 60, b"x" * 60, "file"])
def test_a_document_that_is_too_long_is_refused(source, monkeypatch, tmp_path):
    monkeypatch.setattr(limits, "SIZE_LIMIT", 50)
    (tmp_path / "long.yaml").write_text("x" * 60, "utf-8")

    assert "larger than 50" in refusal(
        lambda: OpenAPIDocument.read(tmp_path / "long.yaml" if source == "file" else source)
    )


def test_a_document_that_is_nested_too_deep_is_refused():
    deep = []
    for _ in range(200):
        deep = [deep]

    assert "100 levels" in refusal(lambda: OpenAPIDocument.read({"openapi": "3.0.0", "x": deep}))


def test_a_document_with_too_many_operations_is_refused(monkeypatch):
    monkeypatch.setattr(openapi, "OPERATION_LIMIT", 3)
    paths = {f"/{number}": {"get": {}, "put": {}} for number in range(2)}

    assert "more than 3 operations" in refusal(lambda: document(paths))


def test_the_limit_of_operations_is_five_thousand():
    assert openapi.OPERATION_LIMIT == 5_000


def test_dates_and_numbers_that_yaml_makes_are_text_again(pets):
    assert pets.operation("bookVisit").input_schema["properties"]["day"]["examples"] == ["2026-05-01"]
    assert pets.operation("createPet").output_schema is not None


def test_any_mapping_will_do():
    class Name(str):
        __slots__ = ()

    given = collections.ChainMap({Name("openapi"): "3.0.0", "paths": {"/a": {"get": {"operationId": Name("a")}}}})

    assert list(OpenAPIDocument.read(given).operations()) == ["a"]


# -- operations --------------------------------------------------------------------------------------------------


def test_operations_are_keyed_by_their_ids(pets):
    assert list(pets.operations())[:4] == ["listPets", "createPet", "getPet", "updatePet"]


def test_an_operation_tells_what_it_is(pets):
    found = pets.operation("listPets")

    assert (found.id, found.method, found.path, str(found)) == ("listPets", "GET", "/pets", "GET /pets")
    assert (found.summary, found.deprecated) == ("List pets", False)
    assert found.description == "List the pets of the store, the newest first."
    assert pets.operation("deletePet").deprecated


def test_the_summary_of_a_path_counts_where_an_operation_has_none():
    found = document({"/a": {"summary": "All", "description": "Of it", "get": {}}}).operation("get_a")

    assert (found.summary, found.description) == ("All", "Of it")


def test_what_should_be_text_and_is_not_says_nothing():
    assert operation({"summary": ["x"], "description": 7}).summary == ""


def test_missing_and_doubled_ids_become_method_and_path(trees):
    assert list(trees.operations()) == ["get_trees_name", "post_trees", "draw", "get_shapes", "head_shapes"]


def test_made_up_ids_are_unique_and_never_take_one_that_is_said():
    found = document(
        {
            "/a/{b}": {"get": {}},
            "/a-b": {"get": {}},
            "/a_b": {"get": {}, "put": {"operationId": "get_a_b_2"}},
            "/ä": {"get": {}},
            "/" + "x" * 100: {"get": {}},
        }
    )

    assert list(found.operations()) == ["get_a_b", "get_a_b_3", "get_a_b_4", "get_a_b_2", "get", "get_" + "x" * 52]


@pytest.mark.parametrize("id", ["", " ", "a\nb", "x" * 300, 7, None, ["a"]])
def test_an_id_that_is_no_name_does_not_count(id):
    assert operation({"operationId": id}).id == "get_x"


def test_an_unknown_operation_suggests_the_nearest(pets):
    assert "there is no operation 'listPet'; did you mean 'listPets'?" in refusal(lambda: pets.operation("listPet"))


def test_operations_can_not_be_written_to(pets):
    with pytest.raises(TypeError):
        pets.operations()["x"] = None


def test_servers_are_told_with_the_defaults_of_their_variables(pets):
    assert pets.operation("listPets").servers == ("https://eu.pets.example/v1", "/v1")


def test_the_servers_of_an_operation_come_before_those_of_its_path_and_of_the_document():
    one, two = {"servers": [{"url": "/one"}]}, {"servers": [{"url": "/two/{x}"}]}
    found = document({"/a": {**two, "get": one, "put": {}}}, servers=[{"url": "/three"}]).operations()

    assert [each.servers for each in found.values()] == [("/one",), ("/two/{x}",)]
    assert operation().servers == ()


def test_variables_of_servers_are_filled_in_once():
    variables = {"a": {"default": "{b}{b}"}, "b": {"default": "x"}}

    assert operation(servers=[{"url": "/{a}", "variables": variables}]).servers == ("/{b}{b}",)


# -- references --------------------------------------------------------------------------------------------------

HOSTILE = {
    "remote": "refers to 'https://evil.example/steal.json#/p'; only references inside of the document",
    "file": "refers to 'file:///etc/passwd'",
    "relative": "refers to '../other.yaml#/a'",
    "anchor": "refers to '#here'",
    "missing": "refers to '#/components/parameters/none', which is not in the document",
    "circle": "leads back to itself",
    "dynamic": "$dynamicRef is not followed",
    "doubling": "refer to one another more than 10000 times",
    "dots": "the path has the segment '..'",
    "encoded_dots": "the path has the segment '%2e%2e'",
    "other_host": "is no path",
    "query_in_path": "is no path",
    "lines_in_path": "GET '/a b\\r\\nHost: evil': ",
    "no_slash": "is no path",
    "undivided": "can't be divided into its parameters",
    "unclosed": "can't be divided into its parameters",
    "undeclared": "a place for 'undeclared', but no parameter of that name is declared",
    "header_name": "can't be the name of a header",
    "place": "GET /place(a): a parameter needs a name and one of path, query, header, cookie",
    "nameless": "GET /nameless: a parameter needs a name",
    "style": "the style 'matrix' can't be written in a query",
    "content": "a parameter as 'application/xml' can't be written",
    "list": "parameters: expected a list, got an object",
    "schema": "a schema: expected a mapping, got a list",
    "media": "takes 'application/x+json\\r\\nX-Admin: 1'; only JSON, forms, text and files can be written",
    "form": "takes 'multipart/form-data' that is no object",
    "encoding": "the style 'label' can't be written in a form",
}


@pytest.mark.parametrize("id", HOSTILE)
def test_a_hostile_operation_is_refused_in_words_and_the_others_are_not(hostile, id):
    message = refusal(lambda: hostile.operation(id).input_schema)

    assert HOSTILE[id] in message
    assert message.isprintable()


def test_a_reference_out_of_the_document_is_refused_in_an_answer_too(hostile):
    assert "refers to 'http://evil.example/a'" in refusal(lambda: hostile.operation("answer").output_schema)


def test_a_schema_that_contains_itself_becomes_a_definition(trees):
    schema = trees.operation("post_trees").input_schema
    check = Checker(schema, "it")

    assert schema["properties"]["children"]["items"] == {"$ref": "#/$defs/Node"}
    assert set(schema["$defs"]) == {"Node", "Friend"}
    assert check.arguments({"value": 1, "children": [{"value": 2, "friend": {"value": 3}}]})
    with pytest.raises(ValueError, match="do not fit"):
        check.arguments({"value": 1, "children": [{"value": 2, "children": [{"value": 0}]}]})


def test_a_definition_is_the_same_whichever_operation_is_read_first():
    def schemas(first, second):
        found = OpenAPIDocument.read(DATA / "trees.json")
        made = {id: found.operation(id).input_schema for id in (first, second)}
        return json.dumps([made["draw"], made["post_trees"]])

    assert schemas("draw", "post_trees") == schemas("post_trees", "draw")


def test_a_reference_into_the_middle_of_a_schema_has_a_name_of_its_own(trees):
    schema = trees.operation("draw").input_schema
    (name,) = [each for each in schema["$defs"] if each.startswith("Colour")]

    assert schema["properties"]["colour"] == {"$ref": f"#/$defs/{name}"}
    assert schema["$defs"][name] == {"enum": ["red", "blue"]}


def test_a_reference_with_nothing_to_be_named_by_is_named_all_the_same():
    found = taking(parameter(schema={"$ref": "#/components/schemas/§~1"}), components={"schemas": {"§/": {}}})
    (name,) = found.input_schema["$defs"]

    assert found.input_schema["properties"]["a"] == {"$ref": f"#/$defs/{name}"}
    assert name.startswith("1_")
    assert schema_name("#/components/schemas/§", "#/components/schemas/").startswith("schema_")


def test_schemas_that_lead_to_too_many_others_are_refused(monkeypatch):
    monkeypatch.setattr("agentos.openapi.json_schemas.DEFINITION_LIMIT", 2)
    chain = {f"S{n}": {"items": {"$ref": f"#/components/schemas/S{n + 1}"}} for n in range(3)}
    found = taking(parameter(schema={"$ref": "#/components/schemas/S0"}), components={"schemas": {**chain, "S3": {}}})

    assert "lead to more than 2 others" in refusal(lambda: found.input_schema)


def test_a_chain_of_references_without_end_is_refused():
    chain = {f"S{n}": {"$ref": f"#/components/schemas/S{n + 1}"} for n in range(1_500)}
    found = taking(
        parameter(schema={"$ref": "#/components/schemas/S0"}), components={"schemas": {**chain, "S1500": {}}}
    )

    assert "refer to one another" in refusal(lambda: found.input_schema)


def test_a_schema_that_is_nothing_but_itself_is_taken():
    itself = {"A": {"allOf": [{"$ref": "#/components/schemas/A"}]}}
    found = taking(parameter(schema={"$ref": "#/components/schemas/A"}), components={"schemas": itself})

    assert Checker(found.input_schema, "it").arguments({"a": 1}) == {"a": 1}


# -- schemas -----------------------------------------------------------------------------------------------------

CONVERSIONS = [
    ({"type": "string", "nullable": True}, {"type": ["string", "null"]}),
    ({"type": "string", "nullable": False}, {"type": "string"}),
    ({"type": "string", "enum": ["a"], "nullable": True}, {"type": ["string", "null"], "enum": ["a", None]}),
    ({"type": "string", "enum": [None], "nullable": True}, {"type": ["string", "null"], "enum": [None]}),
    (
        {"allOf": [{"type": "string"}], "nullable": True, "description": "It."},
        {"description": "It.", "anyOf": [{"allOf": [{"type": "string"}]}, {"type": "null"}]},
    ),
    ({"nullable": True}, {}),
    ({"minimum": 1, "exclusiveMinimum": True}, {"exclusiveMinimum": 1}),
    ({"minimum": 1, "exclusiveMinimum": False}, {"minimum": 1}),
    ({"exclusiveMinimum": True}, {}),
    ({"maximum": 1, "exclusiveMaximum": True}, {"exclusiveMaximum": 1}),
    ({"exclusiveMaximum": 5}, {"exclusiveMaximum": 5}),
    ({"example": {"$ref": "#/data"}}, {"examples": [{"$ref": "#/data"}]}),
    ({"examples": [1]}, {"examples": [1]}),
    ({"examples": {"a": 1}}, {}),
    ({"xml": {}, "externalDocs": {}, "discriminator": {}, "x-a": 1, "title": "T", "$id": "x", "$schema": "y"}, {}),
    ({"enum": [{"$ref": "x"}]}, {"enum": [{"$ref": "x"}]}),
    ({"type": "string", "required": True}, {"type": "string"}),
    ({"type": "integer", "default": 3}, {"type": "integer", "description": "Default: 3."}),
    ({"default": "x" * 200}, {}),
    (
        {"properties": {"$ref": {"type": "string"}}, "required": ["$ref", 7]},
        {"properties": {"$ref": {"type": "string"}}, "required": ["$ref"]},
    ),
    ({"not": {"nullable": True, "type": "null"}}, {"not": {"type": "null"}}),
    ({"patternProperties": {"^x": {"example": 1}}}, {"patternProperties": {"^x": {"examples": [1]}}}),
    ({"additionalProperties": True, "prefixItems": [False]}, {"additionalProperties": True, "prefixItems": [False]}),
    (True, {}),
    (False, {"not": {}}),
]


@pytest.mark.parametrize(("given", "expected"), CONVERSIONS, ids=lambda value: json.dumps(value)[:50])
def test_a_schema_becomes_json_schema(given, expected):
    assert converted(given) == expected


COMPONENTS = {"schemas": {"A": {"type": "string"}}}
REFERENCE = {"$ref": "#/components/schemas/A", "description": "It.", "maxLength": 3}


def test_beside_a_reference_only_a_description_counts_in_3_0():
    assert converted(REFERENCE, components=COMPONENTS) == {"$ref": "#/$defs/A", "description": "It."}
    assert converted({"$ref": "#/components/schemas/A"}, components=COMPONENTS) == {"$ref": "#/$defs/A"}


def test_what_stands_beside_a_reference_counts_in_3_1():
    made = converted(REFERENCE, components=COMPONENTS, version="3.1.0")

    assert made == {"$ref": "#/$defs/A", "description": "It.", "maxLength": 3}


def test_a_default_is_told_but_never_filled_in(pets):
    schema = pets.operation("updatePet").input_schema

    assert schema["properties"]["status"]["description"] == 'How it is. Default: "free".'
    assert Checker(schema, "it").arguments({"petId": "7", "name": "Rex"}) == {"petId": "7", "name": "Rex"}


def test_what_is_read_only_is_not_sent(pets):
    schema = pets.operation("createPet").input_schema

    assert "id" not in schema["properties"]
    assert "pin" in schema["properties"]
    assert schema["required"] == ["name"]


def test_what_is_write_only_does_not_come_back(pets):
    schema = pets.operation("createPet").output_schema["$defs"]["Pet"]

    assert "pin" not in schema["properties"]
    assert schema["required"] == ["id", "name"]


def test_read_only_counts_behind_a_reference_and_beside_it():
    components = {"schemas": {"Id": {"type": "integer", "readOnly": True}, "Plain": {"type": "integer"}}}
    members = {
        "a": {"$ref": "#/components/schemas/Id"},
        "b": {"$ref": "#/components/schemas/Plain", "readOnly": True},
        "c": {"$ref": "#/components/schemas/Plain"},
        "d": True,
    }
    schema = sending({"type": "object", "properties": members}, components=components, version="3.1.0").input_schema

    assert list(schema["properties"]) == ["c", "d"]


# -- what comes back ---------------------------------------------------------------------------------------------

OUTPUTS = [
    ({}, None),
    ({"200": {"description": ""}}, None),
    ({"204": {"description": ""}}, None),
    ({"404": json_of({"type": "string"}), "default": json_of({"type": "string"})}, None),
    ({"200": {"content": {"text/plain": {}}}}, None),
    ({"200": {"content": {"application/json": {}}}}, None),
    ({"200": json_of(True)}, None),
    ({"200": json_of(False)}, {"not": {}}),
    ({"200": json_of({"type": "string"})}, {"type": "string"}),
    ({"2xx": json_of({"type": "string"})}, {"type": "string"}),
    ({"200": {"content": {"application/hal+json": {"schema": {"type": "array"}}}}}, {"type": "array"}),
    ({"200": {"content": {"text/csv": {}, "*/*": {"schema": {"type": "array"}}}}}, {"type": "array"}),
    ({"200": json_of({"type": "array"}), "201": json_of({"type": "array"})}, {"type": "array"}),
    ({"200": json_of({"type": "array"}), "202": {"description": ""}}, None),
    ({"200": json_of({"type": "array"}), "204": {}}, {"anyOf": [{"type": "array"}, {"type": "null"}]}),
    (
        {"200": json_of({"type": "array"}), "206": {"content": {"text/csv": {}}}},
        {"anyOf": [{"type": "array"}, {"type": "string"}]},
    ),
    ({"200": json_of({"type": "integer", "default": 3})}, {"type": "integer", "default": 3}),
]


@pytest.mark.parametrize(("responses", "expected"), OUTPUTS, ids=lambda value: json.dumps(value)[:50])
def test_the_output_schema_is_that_of_a_success(responses, expected):
    assert answering(responses).output_schema == expected


def test_objects_that_come_back_are_open(pets):
    schema = pets.operation("listPets").output_schema
    check = compile_schema(schema, "it")

    assert check.is_valid([{"id": 1, "name": "Rex", "added": "by the server"}])
    assert not check.is_valid([{"id": 1}])


def test_options_told_apart_by_their_fields_may_both_fit_once_they_are_open(trees):
    schema = trees.operation("draw").output_schema
    shape = schema["$defs"]["Shape"]

    assert set(shape) == {"anyOf"}
    assert compile_schema(schema, "it").is_valid({"kind": "circle", "radius": 1, "side": 2})
    assert compile_schema(schema, "it").is_valid(None)


def test_an_option_beside_others_stays_one_of_its_own():
    both = {"oneOf": [{"type": "string"}], "anyOf": [{"maxLength": 1}], "allOf": [{"minLength": 1}]}

    assert converted_output(both) == {
        "anyOf": [{"maxLength": 1}],
        "allOf": [{"minLength": 1}, {"anyOf": [{"type": "string"}]}],
    }


# -- access ------------------------------------------------------------------------------------------------------

SECURITY = [
    ([], None),
    (None, None),
    ([{}], None),
    ([{"key": []}], None),
    ([{"oauth": ["a", "b", "a"]}], ("a", "b")),
    ([{"oauth": ["a"], "other": ["b"], "key": []}], ("a", "b")),
    ([{"key": []}, {"oauth": ["a"]}, {"oauth": ["b"]}], ("a",)),
    ([{}, {"oauth": ["a"]}], ("a",)),
]


@pytest.mark.parametrize(("security", "expected"), SECURITY)
def test_access_is_the_scopes_of_the_first_alternative_that_has_some(security, expected):
    assert operation({"security": security}).access == expected


def test_the_security_of_the_document_counts_where_an_operation_says_nothing(pets):
    assert pets.operation("listPets").access == ("pets:read",)
    assert pets.operation("getPet").access is None
    assert pets.operation("deletePet").access == ("pets:write", "pets:delete")


def test_scopes_that_are_no_names_are_refused(hostile):
    assert "expected names of scopes" in refusal(lambda: hostile.operation("scopes").access)


# -- arguments ---------------------------------------------------------------------------------------------------


def test_parameters_of_every_place_are_arguments_and_the_schema_is_closed(pets):
    schema = pets.operation("listPets").input_schema

    assert list(schema["properties"]) == ["limit", "tags", "status", "filter", "sort", "X-Trace", "session"]
    assert schema["additionalProperties"] is False
    assert "required" not in schema
    assert schema["properties"]["limit"] == {
        "type": "integer",
        "maximum": 100,
        "exclusiveMinimum": 0,
        "description": "How many at the most. Default: 20.",
    }


def test_a_parameter_of_an_operation_replaces_that_of_its_path(pets):
    assert pets.operation("getPet").input_schema["properties"]["petId"]["description"] == "Which pet."
    assert pets.operation("updatePet").input_schema["properties"]["petId"] == {
        "type": "string",
        "description": "The pet to change.",
    }


@pytest.mark.parametrize(
    "name", ["Accept", "content-type", "AUTHORIZATION", "Host", "Content-Length", "Cookie", "Proxy-Authorization", "TE"]
)
def test_a_header_of_the_transport_is_no_argument(name):
    assert taking(parameter(name, "header", required=True)).input_schema["properties"] == {}


@pytest.mark.parametrize("place", ["query", "header", "cookie"])
def test_an_api_key_is_no_argument(place):
    schemes = {"key": {"type": "apiKey", "in": place, "name": "X-Key"}, "http": {"type": "http"}}
    found = taking(
        parameter("X-Key", place, required=True),
        parameter("other", place),
        components={"securitySchemes": {**schemes, "again": {"$ref": "#/components/securitySchemes/key"}}},
    )

    assert list(found.input_schema["properties"]) == ["other"]


def test_headers_have_no_case():
    one, two = ([parameter(name, "header")] for name in ("X-a", "x-A"))
    found = document({"/a": {"parameters": one, "get": {"parameters": two}}}).operation("get_a")

    assert list(found.input_schema["properties"]) == ["x-A"]


def test_a_parameter_of_the_path_that_has_no_place_there_is_left_out():
    assert taking(parameter("a", "path", required=True)).input_schema["properties"] == {}


def test_parameters_of_one_name_are_told_apart_by_their_places():
    found = taking(
        parameter("id", "query"),
        parameter("query_id", "query"),
        parameter("id", "path"),
        parameter("id", "header"),
        path="/{id}",
    )
    made = found.request({"id": "p", "query_id": "q", "query_query_id": "r", "header_id": "h"})

    assert list(found.input_schema["properties"]) == ["id", "query_id", "query_query_id", "header_id"]
    assert (made.url_path, made.query, made.headers) == ("/p", [("id", "q"), ("query_id", "r")], [("id", "h")])


def test_names_that_a_provider_refuses_are_replaced_and_sent_as_they_are():
    found = taking(
        parameter("filter[name]"),
        parameter("filter(name)"),
        parameter("filter{name}"),
        parameter("$top"),
        parameter("§"),
        parameter("x" * 70),
    )
    names = list(found.input_schema["properties"])
    made = found.request(dict.fromkeys(names, "v"))

    assert names == ["filter_name", "query_filter_name", "query_filter_name_2", "top", "query", "x" * 56]
    assert [name for name, _ in made.query] == [
        *("filter[name]", "filter(name)", "filter{name}", "$top", "§", "x" * 70)
    ]


def test_a_deprecated_parameter_says_so():
    assert taking(parameter(deprecated=True)).input_schema["properties"]["a"] == {"deprecated": True}


def test_the_members_of_a_plain_body_are_arguments(pets):
    schema = pets.operation("createPet").input_schema

    assert list(schema["properties"]) == ["X-Trace", "name", "nick", "born", "status", "pin"]


def test_a_body_whose_member_has_a_name_that_is_taken_is_one_argument(pets):
    found = pets.operation("setOwner")

    assert found.input_schema["required"] == ["petId", "body"]
    assert found.input_schema["properties"]["body"]["description"] == "Whose pet it is."
    assert found.request({"petId": "7", "body": {"petId": "8", "owner": "me"}}).body == b'{"petId": "8", "owner": "me"}'


OBJECT = {"type": "object", "properties": {"a": {"type": "string"}}}


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "array", "items": {"type": "string"}},
        {"type": "string"},
        {"type": "object"},
        {**OBJECT, "additionalProperties": True},
        {**OBJECT, "additionalProperties": {"type": "string"}},
        {**OBJECT, "minProperties": 1},
        {**OBJECT, "nullable": True},
        {**OBJECT, "required": ["b"]},
        {"allOf": [OBJECT]},
        {"type": "object", "properties": {"a[b]": {}, "a(b)": {}}},
        {},
        True,
    ],
    ids=json.dumps,
)
def test_a_body_that_is_no_plain_object_is_one_argument(schema):
    assert list(sending(schema).input_schema["properties"]) == ["body"]


def test_the_one_argument_of_a_body_has_a_name_that_is_free():
    found = sending({"type": "string"}, parameters=[parameter("body")])

    assert list(found.input_schema["properties"]) == ["body", "request_body"]


def test_members_with_names_that_a_provider_refuses_are_replaced_and_sent_as_they_are():
    found = sending({"type": "object", "properties": {"@type": {}, "ok": True}})

    assert list(found.input_schema["properties"]) == ["type", "ok"]
    assert found.request({"type": 1, "ok": 2}).body == b'{"@type": 1, "ok": 2}'


def test_a_body_that_may_be_missing_has_what_it_needs_or_nothing(pets):
    found = pets.operation("updatePet")
    check = Checker(found.input_schema, "it")

    assert found.input_schema["required"] == ["petId"]
    assert found.input_schema["dependentRequired"] == {"status": ["name"]}
    assert check.arguments({"petId": "7"}) == {"petId": "7"}
    with pytest.raises(ValueError, match="do not fit"):
        check.arguments({"petId": "7", "status": "free"})
    assert found.request({"petId": "7"}).body is None
    assert found.request({"petId": "7"}).content_type is None
    assert found.request({"petId": "7", "name": "Rex"}).body == b'{"name": "Rex"}'


def test_a_body_that_must_be_there_is_there_even_if_it_is_empty():
    assert sending(OBJECT).request({}).body == b"{}"
    assert sending({"type": "array"}, required=False).request({}).body is None


def test_a_large_body_that_may_be_missing_is_one_argument():
    members = {f"m{number}": {} for number in range(50)}
    schema = {"type": "object", "properties": members, "required": list(members)}

    assert list(sending(schema, required=False).input_schema["properties"]) == ["body"]
    assert len(sending({**schema, "required": ["m1"]}, required=False).input_schema["properties"]) == 50


def test_a_body_without_content_is_none():
    assert operation({"requestBody": {"content": {}}}, method="post").input_schema["properties"] == {}


MEDIA = [
    (["application/xml", "text/plain", "application/json"], "application/json"),
    (["application/x+json", "application/json"], "application/json"),
    (["application/x+json"], "application/x+json"),
    (["Application/JSON; charset=utf-8"], "application/json"),
    (["*/*"], "application/json"),
    (["application/*"], "application/json"),
    (["text/plain", "application/x-www-form-urlencoded"], "application/x-www-form-urlencoded"),
    (["text/plain"], "text/plain; charset=utf-8"),
]


@pytest.mark.parametrize(("offered", "expected"), MEDIA)
def test_of_several_media_types_the_one_that_carries_arguments_best_is_sent(offered, expected):
    content = {media: {"schema": {}} for media in offered}
    found = operation({"requestBody": {"content": content}}, method="post")

    assert found.request({"body": {} if "form" in expected else "x"}).content_type == expected


@pytest.mark.parametrize(
    "field",
    [
        True,
        {"contentMediaType": "text/html"},
        {"contentMediaType": "application/json"},
        {"contentMediaType": "image/png", "contentEncoding": "base64"},
    ],
)
def test_text_in_a_form_is_no_file(field):
    found = sending({"properties": {"a": field}}, "multipart/form-data", version="3.1.0")

    assert list(found.input_schema["properties"]) == ["a"]


# -- requests ----------------------------------------------------------------------------------------------------


def query(value, **fields):
    return taking(parameter(**fields)).request({"a": value}).query


QUERIES = [
    ("x", {}, [("a", "x")]),
    ("", {}, [("a", "")]),
    ("a=b&c#d/?", {}, [("a", "a=b&c#d/?")]),
    (3, {}, [("a", "3")]),
    (1.5, {}, [("a", "1.5")]),
    (True, {}, [("a", "true")]),
    (False, {}, [("a", "false")]),
    (None, {}, []),
    (["x", "y,z"], {}, [("a", "x"), ("a", "y,z")]),
    ([], {}, []),
    (["x", 2], {"explode": False}, [("a", "x,2")]),
    ([], {"explode": False}, []),
    (["x", "y"], {"style": "spaceDelimited"}, [("a", "x y")]),
    (["x", "y"], {"style": "pipeDelimited"}, [("a", "x|y")]),
    (["x", "y"], {"style": "pipeDelimited", "explode": True}, [("a", "x"), ("a", "y")]),
    ({"r": 1, "g": "2"}, {}, [("r", "1"), ("g", "2")]),
    ({"r": 1, "g": "2"}, {"explode": False}, [("a", "r,1,g,2")]),
    ({"r": 1, "g": {"b": True}}, {"style": "deepObject"}, [("a[r]", "1"), ("a[g][b]", "true")]),
    (["x", {"b": 1}], {"style": "deepObject"}, [("a[0]", "x"), ("a[1][b]", "1")]),
    (7, {"style": "deepObject"}, [("a", "7")]),
    ({"r": [1]}, {"content": {"application/json": {"schema": {}}}}, [("a", '{"r": [1]}')]),
]


@pytest.mark.parametrize(("value", "fields", "expected"), QUERIES)
def test_a_value_is_written_into_the_query(value, fields, expected):
    assert query(value, **fields) == expected


PATHS = [
    ("x", {}, "/x"),
    (7, {}, "/7"),
    ("a/b", {}, "/a%2Fb"),
    ("../../admin", {}, "/..%2F..%2Fadmin"),
    ("%2e%2e", {}, "/%252e%252e"),
    ("a?b#c;d\\e", {}, "/a%3Fb%23c%3Bd%5Ce"),
    ("ä \r\n", {}, "/%C3%A4%20%0D%0A"),
    (["a", "b/c"], {}, "/a,b%2Fc"),
    ({"r": 1, "g": 2}, {}, "/r,1,g,2"),
    ({"r": 1, "g": 2}, {"explode": True}, "/r=1,g=2"),
    ({"r": 1}, {"content": {"application/json": {}}}, "/%7B%22r%22%3A%201%7D"),
]


@pytest.mark.parametrize(("value", "fields", "expected"), PATHS)
def test_a_value_is_written_into_the_path(value, fields, expected):
    assert taking(parameter("a", "path", **fields), path="/{a}").request({"a": value}).url_path == expected


def test_text_around_a_parameter_of_the_path_stays():
    found = taking(parameter("a", "path"), parameter("b", "path"), path="/ä/v1:x/{a}...{b}.json/%20")

    assert found.request({"a": "m", "b": "n"}).url_path == "/%C3%A4/v1:x/m...n.json/%20"


def test_a_path_of_nothing_is_a_slash():
    assert operation(path="/").request({}).url_path == "/"


def test_values_are_written_into_headers_and_cookies():
    found = taking(
        parameter("X-One", "header"),
        parameter("X-Two", "header"),
        parameter("X-Three", "header", content={"application/json": {}}),
        parameter("c", "cookie"),
        parameter("d", "cookie", content={"application/json": {}}),
        parameter("X-None", "header"),
    )
    made = found.request({"X-One": "a b", "X-Two": ["x", 2], "X-Three": "ä", "c": "v=1", "d": 7, "X-None": None})

    assert made.headers == [("X-One", "a b"), ("X-Two", "x,2"), ("X-Three", '"\\u00e4"')]
    assert made.cookies == [("c", "v=1"), ("d", "7")]


def test_a_request_tells_its_target_and_all_of_its_headers(pets):
    made = pets.operation("listPets").request({"tags": ["a b", "c&d"], "X-Trace": "t", "session": "s"})

    assert made.target == "/pets?tags=a%20b&tags=c%26d"
    assert made.header_lines[1:] == [("X-Trace", "t"), ("Cookie", "session=s")]
    assert made.header_lines[0][0] == "Accept"
    assert (made.method, made.body, made.content_type) == ("GET", None, None)


def test_a_request_without_query_and_with_a_body_tells_so_too(pets):
    made = pets.operation("setNote").request({"petId": "7", "body": "ä"})

    assert made.target == "/pets/7/note"
    assert made.header_lines[1:] == [("Content-Type", "text/plain; charset=utf-8")]
    assert made.body == "ä".encode()


def test_a_request_does_not_show_what_is_in_it(pets):
    made = pets.operation("createPet").request({"name": "Rex", "X-Trace": "t"})

    assert repr(made) == "Request(method='POST', url_path='/pets', content_type='application/json')"


def test_a_form_is_written(pets):
    made = pets.operation("bookVisit").request(
        {"day": "2026-05-01", "hours": [9, 10], "visitor": {"name": "A&B"}, "address": {"city": "Köln"}}
    )

    assert made.content_type == "application/x-www-form-urlencoded"
    assert parse_qsl(made.body.decode(), strict_parsing=True) == [
        ("day", "2026-05-01"),
        ("hours", "9"),
        ("hours", "10"),
        ("visitor", '{"name": "A&B"}'),
        ("address[city]", "Köln"),
    ]


def test_null_in_a_form_is_left_out():
    found = sending({"type": "object", "properties": {"a": {}, "b": {}}}, "application/x-www-form-urlencoded")

    assert found.request({"a": None, "b": ""}).body == b"b="


def test_a_form_of_parts_is_written(pets):
    made = pets.operation("sendLetter").request({"subject": "--x\r\n", "lines": ["a", "b"], "reader": {"name": "ä"}})
    parts = message_from_bytes(f"Content-Type: {made.content_type}\r\n\r\n".encode() + made.body).get_payload()
    told = [(part.get_param("name", header="content-disposition"), part.get_content_type()) for part in parts]

    assert told == [
        ("subject", "text/plain"),
        ("lines", "text/plain"),
        ("lines", "text/plain"),
        ("reader", "application/json"),
    ]
    assert [part.get_payload(decode=True).decode() for part in parts] == ["--x\r\n", "a", "b", '{"name": "ä"}']


def test_the_same_arguments_make_the_same_request(pets):
    arguments = {"subject": "x", "lines": ["a"]}
    one, two = (pets.operation("sendLetter").request(arguments) for _ in range(2))

    assert (one.body, one.content_type) == (two.body, two.content_type)


# -- arguments that would leave their place ----------------------------------------------------------------------


def path_of(value, path="/{a}", **fields):
    return lambda: taking(parameter("a", "path", **fields), path=path).request({"a": value})


def two_in_one(**values):
    return lambda: taking(parameter("a", "path"), parameter("b", "path"), path="/{a}-{b}").request(values)


def beside(value, **fields):
    """Return what writes *value* as an object beside a parameter called `admin`, and an API key."""
    schemes = {"key": {"type": "apiKey", "in": "query", "name": "key"}}
    found = taking(parameter(**fields), parameter("admin"), parameter("a[x]"), components={"securitySchemes": schemes})
    return lambda: found.request({"a": value})


def in_header(value, **fields):
    return lambda: taking(parameter("a", "header", **fields)).request({"a": value})


def in_cookie(value, **fields):
    return lambda: taking(parameter("a", "cookie", **fields)).request({"a": value})


def in_form(value, media="multipart/form-data", schema=None, **details):
    found = sending(schema or {"type": "object", "additionalProperties": True}, media, details=details)
    return lambda: found.request({"body": value})


FORM = "application/x-www-form-urlencoded"
ESCAPES = [
    (path_of(""), "leads elsewhere"),
    (path_of("."), "leads elsewhere"),
    (path_of(".."), "leads elsewhere"),
    (path_of(".", "/.{a}"), "leads elsewhere"),
    (path_of("", "/%2e{a}."), "leads elsewhere"),
    (path_of([]), "leads elsewhere"),
    (path_of(None), "got null"),
    (path_of([["x"]]), "$.a[0]"),
    (path_of(["a,b"]), "expected no ','"),
    (path_of({"a=b": "c"}, explode=True), "expected no '='"),
    (path_of({"a": "b,c"}, explode=True), "expected no ','"),
    (path_of({"a,b": "c"}), "expected no ','"),
    (path_of("\ud800"), "surrogate"),
    (path_of({"\ud800": "x"}), "surrogate"),
    (path_of({"\ud800": "x"}, explode=True), "surrogate"),
    (two_in_one(a="x-y", b="z"), "expected no '-'"),
    (two_in_one(a="x", b="y-z"), "expected no '-'"),
    (two_in_one(a="x"), "$.b: missing"),
    (beside({"admin": "1"}), "the key 'admin' is a parameter of its own"),
    (beside({"a": "1"}), "the key 'a' is a parameter of its own"),
    (beside({"key": "1"}), "the key 'key' is a parameter of its own"),
    (beside({"x[admin]": "1"}), "no brackets"),
    (beside({"": "1"}), "not empty"),
    (beside({"\ud800": "1"}), "surrogate"),
    (beside({"b": None}), "got null"),
    (beside({"b": ["c"]}), "got a list"),
    (beside({"x": "1"}, style="deepObject"), "'a[x]' is a parameter of its own"),
    (beside({"b][admin": "1"}, style="deepObject"), "no brackets"),
    (beside({"b": None}, style="deepObject"), "got null"),
    (beside(["a,b"], explode=False), "expected no ','"),
    (beside(["a b"], style="spaceDelimited"), "expected no ' '"),
    (beside(["a|b"], style="pipeDelimited"), "expected no '|'"),
    (beside(float("nan")), "got a number"),
    (in_header("a\r\nX-Admin: 1"), "one line of ASCII"),
    (in_header("a\n"), "one line of ASCII"),
    (in_header("a\x00"), "one line of ASCII"),
    (in_header("ä"), "one line of ASCII"),
    (in_header(" a"), "no blank at either end"),
    (in_header(["a,b"]), "expected no ','"),
    (in_cookie("a; admin=1"), "for a cookie"),
    (in_cookie('"a"'), "for a cookie"),
    (in_cookie("a\r\n"), "for a cookie"),
    (in_cookie(["a"]), "got a list"),
    (in_cookie({"a": 1}, content={"application/json": {}}), "for a cookie"),
    (in_form({'a"; filename="x': "1"}), "without quotes and line ends"),
    (in_form({"a\r\nContent-Type: x": "1"}), "without quotes and line ends"),
    (in_form({"": "1"}), "without quotes and line ends"),
    (in_form({"\ud800": "1"}), "surrogate"),
    (in_form(["a"]), "expected an object, got a list"),
    (in_form({"a": [None]}), "got null"),
    (in_form({"\ud800": "1"}, FORM), "surrogate"),
    (in_form({"a": {"b": "1"}, "b": "2"}, FORM, encoding={"a": {"style": "form"}}), "a parameter of its own"),
    (in_form("\ud800", "application/json", {"type": "string"}), "surrogate"),
    (in_form(float("inf"), "application/json", {"type": "number"}), "expected JSON"),
    (in_form({"a"}, "application/json", {"type": "array"}), "expected JSON"),
    (in_form(["a"], "text/plain", {"type": "string"}), "got a list"),
    (lambda: taking(parameter()).request({"b": 1}), "$.b: unknown argument; known: a"),
    (lambda: operation().request({"b": 1}), "known: none"),
]


@pytest.mark.parametrize(("write", "words"), ESCAPES)
def test_an_argument_that_would_leave_its_place_is_refused(write, words):
    with pytest.raises(BuildError) as caught:
        write()
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in caught.value.path)

    assert words in f"${path}: {caught.value.message}"


def test_a_key_that_is_nobodys_name_goes_into_the_query():
    assert beside({"colour": "red"})().query == [("colour", "red")]

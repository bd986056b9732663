"""Swagger 2.0: its operations as those of OpenAPI 3."""

from urllib.parse import parse_qsl

import pytest

from agentos.errors import ToolDefinitionError
from agentos.openapi.document import OpenAPIDocument

SHOP = """
swagger: "2.0"
info: {title: Shop, version: "1"}
host: shop.example.org
basePath: /v1/
schemes: [http, https]
consumes: [application/json]
produces: [application/json]
security: [{account: ["shop:read"]}]
securityDefinitions:
  key: {type: apiKey, in: header, name: X-Key}
  account: {type: oauth2, flow: implicit, authorizationUrl: "https://a.example.org", scopes: {"shop:read": Read}}
parameters:
  page: {name: page, in: query, type: integer, minimum: 1, default: 1, description: Which page}
  order: {name: order, in: body, required: true, schema: {$ref: "#/definitions/Order"}}
responses:
  Orders: {description: Orders, schema: {type: array, items: {$ref: "#/definitions/Order"}}}
definitions:
  Order:
    type: object
    required: [article]
    properties:
      id: {type: integer, readOnly: true}
      article: {type: string}
      note: {type: string, x-nullable: true}
      next: {$ref: "#/definitions/Order"}
paths:
  /orders:
    parameters: [{name: X-Trace, in: header, type: string}]
    get:
      operationId: listOrders
      parameters:
        - {$ref: "#/parameters/page"}
        - {name: X-Key, in: header, type: string}
        - {name: ids, in: query, type: array, items: {type: integer}}
        - {name: tags, in: query, type: array, items: {type: string}, collectionFormat: multi}
        - {name: parts, in: query, type: array, items: {type: string}, collectionFormat: pipes}
        - {name: words, in: query, type: array, items: {type: string}, collectionFormat: ssv}
      responses: {200: {$ref: "#/responses/Orders"}}
    post:
      operationId: addOrder
      parameters: [{$ref: "#/parameters/order"}]
      responses: {201: {description: It, schema: {$ref: "#/definitions/Order"}}}
  /orders/{ids}/file:
    parameters: [{name: ids, in: path, required: true, type: array, items: {type: integer}}]
    put:
      operationId: addFile
      parameters:
        - {name: file, in: formData, type: file, required: true, description: The file}
        - {name: title, in: formData, type: string}
        - {name: tags, in: formData, type: array, items: {type: string}}
      responses: {200: {description: ok}}
    get:
      operationId: getFile
      produces: [image/png]
      responses: {200: {description: The file, schema: {type: file}}}
  /visits:
    post:
      operationId: addVisit
      consumes: [application/x-www-form-urlencoded]
      parameters:
        - {name: day, in: formData, type: string, format: date, required: true}
        - {name: hours, in: formData, type: array, items: {type: integer}}
        - {name: names, in: formData, type: array, items: {type: string}, collectionFormat: multi}
      responses: {204: {description: ok}}
  /text:
    post:
      operationId: addText
      consumes: [text/plain]
      parameters: [{name: text, in: body, schema: {type: string}}]
      responses: {}
  /tabs:
    get:
      operationId: tabs
      parameters: [{name: a, in: query, type: array, items: {type: string}, collectionFormat: tsv}]
      responses: {}
"""


@pytest.fixture(scope="module")
def shop():
    return OpenAPIDocument.read(SHOP)


def test_a_document_of_swagger_2_is_read(shop):
    assert (shop.title, shop.version) == ("Shop", "1")
    assert shop.operation("listOrders").servers == ("https://shop.example.org/v1", "http://shop.example.org/v1")
    assert shop.operation("listOrders").access == ("shop:read",)


@pytest.mark.parametrize(
    ("parts", "servers"),
    [
        ({}, ("/",)),
        ({"basePath": "/v2"}, ("/v2",)),
        ({"host": "a.example.org"}, ("https://a.example.org",)),
        ({"host": "a.example.org", "schemes": ["ws", "http"]}, ("http://a.example.org",)),
    ],
)
def test_the_server_is_said_in_parts(parts, servers):
    found = OpenAPIDocument.read({"swagger": "2.0", "paths": {"/a": {"get": {}}}, **parts})

    assert found.operation("get_a").servers == servers


def test_parameters_have_schemas_and_credentials_are_none(shop):
    schema = shop.operation("listOrders").input_schema

    assert list(schema["properties"]) == ["page", "ids", "tags", "parts", "words", "X-Trace"]
    assert schema["properties"]["page"] == {"type": "integer", "minimum": 1, "description": "Which page Default: 1."}


def test_lists_are_written_as_their_formats_say(shop):
    listed = {"ids": [1, 2], "tags": ["a", "b"], "parts": ["a", "b"], "words": ["a", "b"]}

    assert shop.operation("listOrders").request(listed).query == [
        ("ids", "1,2"),
        ("tags", "a"),
        ("tags", "b"),
        ("parts", "a|b"),
        ("words", "a b"),
    ]
    assert shop.operation("getFile").request({"ids": [1, 2]}).url_path == "/orders/1,2/file"


def test_a_format_that_can_not_be_written_is_refused(shop):
    with pytest.raises(ToolDefinitionError, match="the collection format 'tsv' can't be written"):
        shop.operation("tabs").input_schema  # noqa: B018 - read


def test_the_body_is_what_its_parameter_says(shop):
    found = shop.operation("addOrder")
    made = found.request({"article": "A/7", "next": {"article": "B"}})

    assert found.input_schema["required"] == ["article"]
    assert found.input_schema["properties"]["note"] == {"type": ["string", "null"]}
    assert list(found.input_schema["$defs"]) == ["Order"]
    assert (made.body, made.content_type) == (b'{"article": "A/7", "next": {"article": "B"}}', "application/json")


def test_a_body_of_text_is_text(shop):
    made = shop.operation("addText").request({"body": "abc"})

    assert (made.body, made.content_type) == (b"abc", "text/plain; charset=utf-8")


def test_a_form_is_written(shop):
    made = shop.operation("addVisit").request({"day": "2026-05-01", "hours": [9, 10], "names": ["a", "b"]})

    assert shop.operation("addVisit").input_schema["required"] == ["day"]
    assert parse_qsl(made.body.decode(), strict_parsing=True) == [
        ("day", "2026-05-01"),
        ("hours", "9,10"),
        ("names", "a"),
        ("names", "b"),
    ]


def test_a_form_with_a_file_has_parts(shop):
    made = shop.operation("addFile").request({"ids": [1], "file": {"text": "abc"}, "title": "T", "tags": ["a", "b"]})
    text = made.body.decode()

    assert made.content_type.startswith("multipart/form-data; boundary=")
    assert 'name="file"; filename="file"\r\nContent-Type: application/octet-stream\r\n\r\nabc\r\n' in text
    assert 'name="title"\r\n\r\nT\r\n' in text
    assert 'name="tags"\r\n\r\na,b\r\n' in text


def test_answers_have_the_schemas_of_their_responses(shop):
    listed = shop.operation("listOrders").output_schema

    assert listed["items"] == {"$ref": "#/$defs/Order"}
    assert shop.operation("addOrder").output_schema["$ref"] == "#/$defs/Order"
    assert [shop.operation(id).output_schema for id in ("addFile", "getFile", "addVisit")] == [None, None, None]


@pytest.mark.parametrize(
    ("operation", "words"),
    [
        ({"parameters": [{"in": "query"}]}, "a parameter needs a name"),
        ({"parameters": [{"in": "place", "name": "a"}]}, "one of path, query, header, cookie as `in`"),
        ({"parameters": 7}, "parameters: expected a list"),
        ({"parameters": [7]}, "a parameter: expected a mapping"),
        ({"consumes": "x"}, "consumes: expected a list"),
        ({"responses": []}, "responses: expected a mapping, got a list"),
        ({"$ref": "#/nothing"}, "refers to '#/nothing', which is not in the document"),
    ],
)
def test_an_operation_that_can_not_be_converted_is_refused_alone(operation, words):
    found = OpenAPIDocument.read({"swagger": "2.0", "paths": {"/a": {"get": operation, "put": {}}}})

    with pytest.raises(ToolDefinitionError) as caught:
        found.operation("get_a").input_schema  # noqa: B018 - read
    assert words in str(caught.value)
    assert found.operation("put_a").input_schema["properties"] == {}


def test_the_files_beside_it_are_converted_too(tmp_path):
    (tmp_path / "api.yaml").write_text("swagger: '2.0'\npaths:\n  /a: {$ref: a.yaml}\n", "utf-8")
    (tmp_path / "a.yaml").write_text(
        "post:\n  parameters:\n    - {name: b, in: body, required: true, schema: {$ref: 'b.yaml#/definitions/B'}}\n",
        "utf-8",
    )
    (tmp_path / "b.yaml").write_text(
        "definitions: {B: {type: object, required: [c], properties: {c: {type: string}}}}\n", "utf-8"
    )
    found = OpenAPIDocument.read(tmp_path / "api.yaml").operation("post_a")

    assert found.input_schema["required"] == ["c"]

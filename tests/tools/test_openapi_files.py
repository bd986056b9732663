"""Documents of several files, and references where a document may have none: followed, or refused with the reason."""

import json
import os
from pathlib import Path

import pytest

from agentos.errors import ToolDefinitionError
from agentos.openapi import document_text, neighbours
from agentos.openapi.document import OpenAPIDocument


def refusal(call):
    with pytest.raises(ToolDefinitionError) as caught:
        call()
    return str(caught.value)


@pytest.fixture
def folder(tmp_path):
    """A document in files, as large providers write theirs."""
    files = {
        "api.yaml": """
            openapi: 3.0.3
            info: {title: Servers, version: "2"}
            paths:
              /servers:
                get: {$ref: "resources/servers.yml#/list"}
                post: {$ref: resources/create.yml}
              /servers/{id}:
                $ref: ./resources/server.yml
            components:
              parameters:
                page: {name: page, in: query, schema: {type: integer}}
              schemas:
                Error: {type: object, required: [message]}
        """,
        "resources/servers.yml": """
            list:
              operationId: listServers
              summary: List the servers
              parameters:
                - {$ref: "../shared/parameters.yml#/tag"}
                - {$ref: "../api.yaml#/components/parameters/page"}
                - {$ref: "#/own"}
              responses:
                "200": {$ref: "../shared/responses.json#/servers"}
            own: {name: own, in: query, schema: {type: boolean}}
        """,
        "resources/create.yml": """
            operationId: createServer
            requestBody:
              required: true
              content: {application/json: {schema: {$ref: ../models/server.yml}}}
            responses: {}
        """,
        "resources/server.yml": """
            parameters: [{name: id, in: path, required: true, schema: {type: integer}}]
            delete:
              operationId: deleteServer
              parameters: [{name: X-Sure, in: header, required: true, schema: {type: string}}]
              responses: {}
        """,
        "shared/parameters.yml": "tag: {name: tag, in: query, required: true, schema: {type: string}}",
        "shared/responses.json": json.dumps(
            {"servers": {"content": {"application/json": {"schema": {"$ref": "../models/server.yml"}}}}}
        ),
        "models/server.yml": """
            type: object
            required: [name]
            properties:
              name: {type: string}
              parent: {$ref: server.yml}
              error: {$ref: "../api.yaml#/components/schemas/Error"}
        """,
    }
    for name, text in files.items():
        (tmp_path / "spec" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "spec" / name).write_text(text, "utf-8")
    return tmp_path / "spec"


def change(path, old, new):
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new), "utf-8")


def test_operations_in_other_files_are_those_of_the_document(folder):
    found = OpenAPIDocument.read(folder / "api.yaml")

    assert list(found.operations()) == ["listServers", "createServer", "deleteServer"]
    assert found.operation("listServers").summary == "List the servers"


def test_an_operation_behind_a_reference_has_all_of_its_parameters(folder):
    found = OpenAPIDocument.read(folder / "api.yaml")
    listed, deleted = found.operation("listServers").input_schema, found.operation("deleteServer").input_schema

    assert (list(listed["properties"]), listed["required"]) == (["tag", "page", "own"], ["tag"])
    assert deleted["required"] == ["id", "X-Sure"]


def test_schemas_in_other_files_become_definitions(folder):
    found = OpenAPIDocument.read(folder / "api.yaml")
    created, listed = found.operation("createServer").input_schema, found.operation("listServers").output_schema
    (name,) = [each for each in listed["$defs"] if each != "Error"]

    assert created["required"] == ["name"]
    assert created["properties"]["parent"] == {"$ref": f"#/$defs/{name}"}
    assert listed["$defs"]["Error"] == {"type": "object", "required": ["message"]}
    assert name.startswith("server_yml_")


INSIDE = "only references inside of the document and to files in its folder are followed"


@pytest.mark.parametrize(
    ("reference", "words"),
    [
        ("missing.yml", "refers to 'missing.yml'; there is no such file"),
        ("./resources/../missing.yml", "refers to 'missing.yml'; there is no such file"),
        ("../other.yml", f"refers to '../other.yml'; {INSIDE}"),
        ("..%2fother.yml", INSIDE),
        ("..\\\\other.yml", INSIDE),
        ("/etc/passwd", f"refers to '/etc/passwd'; {INSIDE}"),
        ("https://evil.example/a.yml", f"refers to 'https://evil.example/a.yml'; {INSIDE}"),
        ("file:///etc/hosts", INSIDE),
        ("notes.txt", "refers to 'notes.txt'; expected a file ending in .json, .yaml, .yml"),
        (".env", "expected a file ending in .json, .yaml, .yml"),
        ("link.yml", "refers to 'link.yml'; leads out of the document's folder"),
        ("broken.yml", "refers to 'broken.yml'; can't be parsed: line"),
        ("folder.yml", "refers to 'folder.yml'; there is no such file"),
        ("a" * 300 + ".yml", "can't be read"),
        ("resources/servers.yml#/nothing", "refers to 'resources/servers.yml#/nothing', which is not in the document"),
        ("resources/servers.yml#here", INSIDE),
    ],
)
def test_what_can_not_be_followed_is_refused_for_that_operation_alone(folder, reference, words):
    (folder.parent / "other.yml").write_text("operationId: other\n", "utf-8")
    (folder / "notes.txt").write_text("operationId: notes\n", "utf-8")
    (folder / "broken.yml").write_text("a: [", "utf-8")
    (folder / "folder.yml").mkdir()
    (folder / "link.yml").symlink_to(folder.parent / "other.yml")
    change(folder / "api.yaml", "post: {$ref: resources/create.yml}", f'post: {{$ref: "{reference}"}}')
    found = OpenAPIDocument.read(folder / "api.yaml")

    message = refusal(lambda: found.operation("post_servers").input_schema)
    assert words in message
    assert message.startswith("POST /servers: ")
    assert found.operation("listServers").input_schema


def test_a_description_in_another_file_is_no_reason_to_leave_something_out(folder):
    change(folder / "models" / "server.yml", "{type: string}", "{type: string, description: {$ref: 'texts.yml#/name'}}")
    found = OpenAPIDocument.read(folder / "api.yaml").operation("createServer")

    assert found.input_schema["properties"]["name"] == {"type": "string"}


def test_a_chain_of_references_that_leads_back_is_refused(folder):
    (folder / "resources" / "create.yml").write_text("$ref: ../resources/create.yml\n", "utf-8")
    found = OpenAPIDocument.read(folder / "api.yaml")

    assert "leads back to itself" in refusal(lambda: found.operation("post_servers").input_schema)


def test_the_files_of_a_document_are_bounded_together(folder, monkeypatch):
    size = (folder / "api.yaml").stat().st_size
    monkeypatch.setattr(document_text, "SIZE_LIMIT", size + 100)

    assert f"larger than {size + 100} bytes" in refusal(lambda: OpenAPIDocument.read(folder / "api.yaml"))


def test_the_number_of_files_is_bounded(folder, monkeypatch):
    monkeypatch.setattr(neighbours, "FILE_LIMIT", 3)

    assert "more than 3 other files" in refusal(lambda: OpenAPIDocument.read(folder / "api.yaml"))


def test_a_file_is_read_once(folder, monkeypatch):
    opened = []
    before = Path.open
    monkeypatch.setattr(
        Path, "open", lambda self, *args, **more: opened.append(self.name) or before(self, *args, **more)
    )
    OpenAPIDocument.read(folder / "api.yaml")

    assert sorted(opened) == sorted(name for _, _, names in os.walk(folder) for name in names)


def test_a_document_that_is_no_file_has_no_files_beside_it(folder):
    text = (folder / "api.yaml").read_text("utf-8").replace("$ref: ./resources/server.yml", "get: {}")
    found = OpenAPIDocument.read(text)

    assert "so bundle it into one" in refusal(lambda: found.operation("get_servers").input_schema)


# -- references in one document ------------------------------------------------------------------------------------


def document(paths, **parts):
    return OpenAPIDocument.read({"openapi": "3.0.3", "paths": paths, **parts})


def test_an_operation_may_refer_to_another():
    shared = {"operationId": "shared", "parameters": [{"name": "a", "in": "query", "required": True}]}
    found = document({"/a": {"delete": {"$ref": "#/x-shared/delete"}}}, **{"x-shared": {"delete": shared}})

    assert found.operation("shared").input_schema["required"] == ["a"]


def test_what_stands_beside_the_reference_of_an_operation_counts_first():
    shared = {"operationId": "shared", "summary": "One", "description": "Shared"}
    found = document({"/a": {"get": {"$ref": "#/x", "operationId": "mine", "summary": "Two"}}}, x=shared)
    mine = found.operation("mine")

    assert (mine.summary, mine.description) == ("Two", "Shared")


def test_what_stands_beside_the_reference_of_a_path_counts_too():
    shared = {"get": {"operationId": "get"}, "parameters": [{"name": "a", "in": "query"}]}
    found = document({"/a": {"$ref": "#/x-items/a", "put": {"operationId": "put"}}}, **{"x-items": {"a": shared}})

    assert list(found.operations()) == ["get", "put"]
    assert list(found.operation("put").input_schema["properties"]) == ["a"]


@pytest.mark.parametrize("reference", ["#/nothing", "https://evil.example/a", 7, None, ["a"]])
def test_an_operation_whose_reference_leads_nowhere_is_never_one_without_parameters(reference):
    operation = document({"/a": {"delete": {"$ref": reference}}}).operation("delete_a")

    for read in (lambda: operation.input_schema, lambda: operation.access, lambda: operation.request({})):
        assert "DELETE /a: " in refusal(read)


@pytest.mark.parametrize("word", ["parameters", "requestBody", "responses"])
def test_the_parts_of_an_operation_may_be_references(word):
    parts = {
        "parameters": [{"name": "a", "in": "query"}],
        "requestBody": {"content": {"$ref": "#/x/content"}},
        "responses": {"200": {"content": {"$ref": "#/x/content"}}},
        "content": {"application/json": {"schema": {"type": "object", "properties": {"a": {}}}}},
    }
    found = document({"/a": {"post": {word: {"$ref": f"#/x/{word}"}}}}, x=parts).operation("post_a")

    assert "a" in (found.output_schema if word == "responses" else found.input_schema)["properties"]

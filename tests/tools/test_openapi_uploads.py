"""Files in requests: as text or Base64 in an argument, byte for byte in the body."""

import base64
from email import message_from_bytes

import pytest

from agentos.errors import ToolDefinitionError
from agentos.openapi.document import OpenAPIDocument
from agentos.schema.build import BuildError
from agentos.schema.validation import BadArguments, Checker

BYTES = bytes(range(256)) + b"\r\n--"
PACKED = base64.b64encode(BYTES).decode()


def sending(schema, media="multipart/form-data", *, version="3.0.3", details=None, components=None):
    content = {media: {"schema": schema, **(details or {})}}
    operation = {"operationId": "send", "requestBody": {"required": True, "content": content}}
    document = {"openapi": version, "paths": {"/x": {"post": operation}}, "components": components or {}}
    return OpenAPIDocument.read(document).operation("send")


def parts_of(request):
    whole = message_from_bytes(f"Content-Type: {request.content_type}\r\n\r\n".encode() + request.body)
    return [
        (
            part.get_param("name", header="content-disposition"),
            part.get_filename(),
            part.get_content_type(),
            part.get_payload(decode=True),
        )
        for part in whole.get_payload()
    ]


FORMS = {
    "3.0": ({"type": "string", "format": "binary"}, "3.0.3", {}, "application/octet-stream"),
    "3.1": ({"contentMediaType": "image/png"}, "3.1.0", {}, "image/png"),
    "fastapi": (
        {"anyOf": [{"type": "string", "format": "binary"}, {"type": "null"}]},
        "3.1.0",
        {},
        "application/octet-stream",
    ),
    "encoding": ({}, "3.1.0", {"encoding": {"photo": {"contentType": "image/png, image/jpeg"}}}, "image/png"),
    "both": (
        {"type": "string", "format": "binary"},
        "3.0.3",
        {"encoding": {"photo": {"contentType": "image/gif"}}},
        "image/gif",
    ),
    "reference": ({"$ref": "#/components/schemas/File"}, "3.0.3", {}, "application/octet-stream"),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_file_is_sent_as_it_is(form):
    field, version, details, media = FORMS[form]
    schema = {"type": "object", "required": ["photo"], "properties": {"photo": field, "title": {"type": "string"}}}
    components = {"schemas": {"File": {"type": "string", "format": "binary"}}}
    found = sending(schema, version=version, details=details, components=components)
    made = found.request({"photo": {"base64": PACKED, "filename": "ä b.png"}, "title": "T"})

    assert found.input_schema["required"] == ["photo"]
    assert (
        f'Content-Disposition: form-data; name="photo"; filename="ä b.png"\r\nContent-Type: {media}\r\n\r\n'.encode()
        in (made.body)
    )
    assert made.body.count(BYTES) == 1
    assert parts_of(made)[1] == ("title", None, "text/plain", b"T")


def test_a_file_may_be_text_and_say_what_it_is():
    found = sending({"type": "object", "properties": {"data": {"type": "string", "format": "binary"}}})
    made = found.request({"data": {"text": "a,ä\n", "mediaType": "text/csv", "filename": "a.csv"}})

    assert parts_of(made) == [("data", "a.csv", "text/csv", "a,ä\n".encode())]


def test_a_file_without_a_name_is_named_as_its_field():
    found = sending({"type": "object", "properties": {"data": {"type": "string", "format": "binary"}}})

    assert parts_of(found.request({"data": {"text": "x"}})) == [("data", "data", "application/octet-stream", b"x")]


def test_several_files_are_several_parts():
    field = {"type": "array", "maxItems": 2, "items": {"type": "string", "format": "binary"}, "description": "Pages."}
    found = sending({"type": "object", "properties": {"pages": field}})
    made = found.request({"pages": [{"text": "1", "filename": "1.txt"}, {"text": "2", "filename": "2.txt"}]})

    assert [(name, filename) for name, filename, _, _ in parts_of(made)] == [("pages", "1.txt"), ("pages", "2.txt")]
    assert found.input_schema["properties"]["pages"]["maxItems"] == 2
    assert found.input_schema["properties"]["pages"]["description"] == "Pages."


@pytest.mark.parametrize(
    "value",
    ["text", {}, {"text": "a", "base64": "YQ=="}, {"text": "a", "path": "/etc/passwd"}, {"text": 1}, {"filename": "a"}],
)
def test_what_is_no_file_does_not_fit(value):
    found = sending({"type": "object", "properties": {"data": {"type": "string", "format": "binary"}}})

    with pytest.raises(BadArguments):
        Checker(found.input_schema, "it").arguments({"data": value})


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"base64": "not base64!"}, "expected Base64"),
        ({"base64": "YQ="}, "expected Base64"),
        ({"text": "a", "filename": 'a"\r\nX: 1'}, "expected a name without slashes"),
        ({"text": "a", "filename": "../a"}, "expected a name without slashes"),
        ({"text": "a", "mediaType": "a/b\r\nX: 1"}, "expected a media type"),
        ({"text": "a", "mediaType": 7}, "expected a media type"),
        ({"text": "\ud800"}, "half of a surrogate pair"),
        ("a", "expected a file: an object with `text` or `base64`"),
    ],
)
def test_what_would_leave_its_place_is_refused(value, words):
    found = sending({"type": "object", "properties": {"data": {"type": "string", "format": "binary"}}})

    with pytest.raises(BuildError, match=words):
        found.request({"data": value})


def test_an_encoding_that_is_no_media_type_gets_nothing_into_a_head():
    details = {"encoding": {"data": {"contentType": "image/png\r\nX-Admin: 1"}}}
    found = sending({"type": "object", "properties": {"data": {"format": "binary"}}}, details=details)

    with pytest.raises(BuildError, match="expected a media type"):
        found.request({"data": {"text": "a"}})


@pytest.mark.parametrize("media", ["image/png", "application/octet-stream", "application/xml", "application/pdf"])
def test_a_body_that_is_a_file_is_sent_as_it_is(media):
    found = sending({"type": "string", "format": "binary"}, media)
    made = found.request({"body": {"base64": PACKED}})

    assert (found.input_schema["required"], made.body, made.content_type) == (["body"], BYTES, media)


def test_of_a_range_the_caller_says_what_it_is():
    found = sending({}, "image/*")
    checker = Checker(found.input_schema, "it")

    assert found.request({"body": {"text": "x", "mediaType": "image/gif"}}).content_type == "image/gif"
    for wrong in ({"text": "x"}, {"text": "x", "mediaType": "text/html"}):
        with pytest.raises(BadArguments):
            checker.arguments({"body": wrong})


def test_a_person_is_shown_text_and_the_hash_of_other_files():
    schema = {"type": "object", "properties": {"a": {"format": "binary"}, "b": {"format": "binary"}}}
    shown = sending(schema).request({"a": {"text": "plain"}, "b": {"base64": PACKED}}).body_shown

    assert "\r\n\r\nplain\r\n" in shown
    assert f"\r\n\r\n[{len(BYTES)} bytes, sha256 " in shown
    assert shown.isascii()


def test_json_goes_before_files():
    content = {"image/png": {}, "application/json": {"schema": {"type": "object", "properties": {"url": {}}}}}
    document = {"openapi": "3.0.3", "paths": {"/x": {"post": {"requestBody": {"content": content}}}}}
    found = OpenAPIDocument.read(document).operation("post_x")

    assert found.request({"url": "u"}).content_type == "application/json"


@pytest.mark.parametrize(
    ("schema", "media", "words"),
    [
        (
            {"properties": {"a": {"format": "binary"}}},
            "application/x-www-form-urlencoded",
            r"POST /x\(a\): takes a file, which application/x-www-form-urlencoded can't carry",
        ),
        (
            {"allOf": [{"properties": {"a": {"format": "binary"}}}]},
            "multipart/form-data",
            r"POST /x\(a\): takes a file that is described inside of allOf",
        ),
        ({}, "multipart/mixed", "takes 'multipart/mixed'; only JSON, forms, text and files can be written"),
    ],
)
def test_a_file_that_can_not_be_sent_is_refused(schema, media, words):
    with pytest.raises(ToolDefinitionError, match=words):
        sending(schema, media).input_schema  # noqa: B018 - read

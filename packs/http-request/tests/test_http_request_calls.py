"""Requests through a host to real servers on loopback: what is sent, what comes back, who is asked before."""

import gzip
import json

import pytest

from agentos import ToolCall


async def call(host, name, **arguments):
    return await host.tools.process_tool_call(ToolCall(name, arguments))


async def answer(host, name, **arguments):
    result = await call(host, name, **arguments)
    assert result.success, result.content
    return result.output


async def test_a_read_returns_status_headers_and_body(hosting, site):
    async with hosting(site) as host:
        found = await answer(host, "http_get", url=f"{site.url}/")

    assert (found["status"], found["ok"], found["body"], found["url"]) == (200, True, "hello", f"{site.url}/")
    assert (found["media_type"], found["headers"]["content-type"]) == ("text/plain", "text/plain")
    assert (found["truncated"], found["total_chars"], found["body_bytes"]) == (False, 5, 5)


async def test_a_failure_of_the_server_is_an_answer(hosting, site):
    async with hosting(site) as host:
        found = await answer(host, "http_get", url=f"{site.url}/nowhere")

    assert (found["status"], found["ok"]) == (404, False)


async def test_head_returns_no_body(hosting, site):
    async with hosting(site) as host:
        found = await answer(host, "http_get", url=f"{site.url}/", method="HEAD")

    assert (found["status"], found["body"], found["headers"]["content-length"]) == (200, "", "5")


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
async def test_json_is_sent_as_json(hosting, site, method):
    async with hosting(site) as host:
        result = await call(host, "http_request", method=method, url=f"{site.url}/", json={"name": "ü", "n": [1, None]})
        if method == "DELETE":
            result = await host.approvals.approve(result.error.details["token"])

    assert result.success, result.content
    (sent,) = site.seen
    assert (sent.method, json.loads(sent.body)) == (method, {"name": "ü", "n": [1, None]})
    assert sent.header("content-type") == "application/json"


async def test_text_is_sent_as_it_is(hosting, site):
    async with hosting(site) as host:
        headers = {"Content-Type": "text/csv"}
        await answer(host, "http_request", method="PUT", url=f"{site.url}/", body="a,b\r\n1,2", headers=headers)

    assert (site.seen[0].body, site.seen[0].header("content-type")) == (b"a,b\r\n1,2", "text/csv")


async def test_null_stands_for_nothing(hosting, site):
    async with hosting(site) as host:
        arguments = {"method": "POST", "url": f"{site.url}/", "json": None, "body": None, "headers": None}
        await answer(host, "http_request", **arguments)

    assert (site.seen[0].body, site.seen[0].header("content-length")) == (b"", "0")


async def test_http_request_reads_too(hosting, site):
    async with hosting(site, mode="unattended") as host:
        found = [await answer(host, "http_request", method=method, url=f"{site.url}/") for method in ("GET", "HEAD")]

    assert [one["status"] for one in found] == [200, 200]


# -- who is asked ------------------------------------------------------------------------------------------------


async def test_a_request_that_changes_something_waits_for_a_person_who_sees_what_would_be_sent(hosting, site):
    key = f"http://127.0.0.1:{site.server_port}"
    options = {"hosts": {key: {"secret": "github.token"}}}
    async with hosting(site, mode="approve", secrets={"github.token": "ghp-very-secret"}, **options) as host:
        arguments = {"method": "POST", "url": f"{site.url}/", "json": {"a": 1}, "headers": {"X-A": "b"}}
        result = await call(host, "http_request", **arguments)
        (proposal,) = await host.approvals.pending()
        unsent = list(site.seen)
        done = await host.approvals.approve(result.error.details["token"])

    assert (result.error.type, unsent) == ("ApprovalRequired", [])
    assert proposal.preview == {
        "request": f"POST {site.url}/",
        "headers": {"X-A": "b"},
        "secret": "github.token as Authorization",
        "body": '{"a": 1}',
        "body_bytes": 8,
        "body_truncated": False,
    }
    assert (done.success, site.seen[0].body) == (True, b'{"a": 1}')


async def test_a_preview_says_why_a_call_would_be_refused(hosting, site, other):
    async with hosting(site, mode="approve") as host:
        await call(host, "http_request", method="POST", url=f"{other.url}/")
        (proposal,) = await host.approvals.pending()

    assert "may not be used" in proposal.preview["dry_run_failed"] or "add it" in proposal.preview["dry_run_failed"]


async def test_deleting_always_asks_even_in_mode_auto(hosting, site):
    async with hosting(site, mode="auto") as host:
        result = await call(host, "http_request", method="DELETE", url=f"{site.url}/")

    assert (result.error.type, site.seen) == ("ApprovalRequired", [])


async def test_reading_runs_where_changing_is_refused(hosting, site):
    async with hosting(site, mode="unattended") as host:
        read = await call(host, "http_get", url=f"{site.url}/")
        refused = await call(host, "http_request", method="POST", url=f"{site.url}/")

    assert (read.success, refused.error.type) == (True, "Refused")


# -- what comes back ---------------------------------------------------------------------------------------------


async def test_a_long_body_is_cut_and_says_so(hosting, site):
    site.pages["/"] = (200, {"Content-Type": "text/plain"}, b"x" * 5_000)
    async with hosting(site) as host:
        found = await answer(host, "http_get", url=f"{site.url}/", max_chars=100)

    assert (len(found["body"]), found["truncated"], found["total_chars"]) == (100, True, 5_000)


async def test_a_binary_body_is_left_out(hosting, site):
    site.pages["/"] = (200, {"Content-Type": "image/png"}, b"\x89PNG\0\0")
    async with hosting(site) as host:
        found = await answer(host, "http_get", url=f"{site.url}/")

    assert (found["is_binary"], found["body"], found["body_bytes"]) == (True, "", 6)


@pytest.mark.parametrize(
    ("headers", "body", "is_binary"),
    [
        ({}, b'{"a": 1}', False),
        ({"Content-Type": "application/octet-stream"}, b"plain", False),
        ({"Content-Type": "application/octet-stream"}, b"\xff\xfe\xfd", True),
        ({"Content-Type": "application/octet-stream"}, b"a\0b", True),
        ({"Content-Type": "application/problem+json"}, b"{}", False),
        ({"Content-Type": "application/zip"}, b"PK", True),
        ({"Content-Type": "application/zip"}, b"", False),
    ],
)
async def test_what_is_text_is_told_by_type_or_content(hosting, site, headers, body, is_binary):
    site.pages["/"] = (200, headers, body)
    async with hosting(site) as host:
        found = await answer(host, "http_get", url=f"{site.url}/")

    assert found["is_binary"] is is_binary


async def test_the_charset_of_the_answer_counts(hosting, site):
    site.pages["/"] = (200, {"Content-Type": 'text/plain; charset="iso-8859-1"'}, "grün".encode("latin-1"))
    async with hosting(site) as host:
        found = await answer(host, "http_get", url=f"{site.url}/")

    assert found["body"] == "grün"


async def test_hidden_characters_do_not_reach_the_model(hosting, site):
    site.pages["/"] = (200, {"Content-Type": "text/plain; charset=utf-8"}, "a\x1b[2J\u202eb\u200bc\nd".encode())
    async with hosting(site) as host:
        found = await answer(host, "http_get", url=f"{site.url}/")

    assert not {"\x1b", "\u202e", "\u200b"} & set(found["body"])
    assert found["body"].endswith("\nd")


async def test_cookies_are_neither_shown_nor_kept(hosting, site):
    site.pages["/"] = (200, {"Set-Cookie": "session=abcdef"}, b"")
    async with hosting(site) as host:
        found = await answer(host, "http_get", url=f"{site.url}/")
        await answer(host, "http_get", url=f"{site.url}/")

    assert "abcdef" not in str(found)
    assert [request.header("cookie") for request in site.seen] == [None, None]


async def test_many_or_long_headers_are_cut_and_say_so(hosting, site):
    site.pages["/"] = (200, {f"X-{number}": "v" for number in range(100)} | {"X-Long": "y" * 2_000}, b"")
    async with hosting(site) as host:
        found = await answer(host, "http_get", url=f"{site.url}/")

    assert (len(found["headers"]), found["truncated"]) == (60, True)


async def test_more_than_max_bytes_is_refused_and_says_so(hosting, site):
    site.pages["/"] = (200, {}, b"x" * 2_000)
    async with hosting(site, maxBytes=1_000) as host:
        result = await call(host, "http_get", url=f"{site.url}/")

    assert result.content == (
        "ToolRaised: WebError: 127.0.0.1 answered with more than 1000 bytes; ask for less, or raise max_bytes"
    )


async def test_a_gzip_bomb_is_refused(hosting, site):
    site.pages["/"] = (200, {"Content-Encoding": "gzip"}, gzip.compress(b"\0" * 50_000_000))
    async with hosting(site) as host:
        result = await call(host, "http_get", url=f"{site.url}/")

    assert "more than 1000000 bytes" in result.content

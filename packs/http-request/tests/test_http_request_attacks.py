"""What must not get through: hosts that were not named, secrets that go astray, headers that become two."""

import base64

import pytest
from agentos_pack_common import WebClient
from agentos_pack_http_request.settings import read_settings
from agentos_pack_http_request.tools import create_descriptors

from agentos import AgentOS, ExtensionPack, ToolCall

SECRET = 'ghp-a+b/c="q"&never-told'


async def call(host, name, **arguments):
    return await host.tools.process_tool_call(ToolCall(name, arguments))


def secured(site, **entry):
    """Return the options that send a secret to *site*."""
    return {"hosts": {site.url: {"secret": "github.token", **entry}}, "secrets": {"github.token": SECRET}}


def moved(url, status=302):
    return (status, {"Location": url}, b"")


# -- which hosts -------------------------------------------------------------------------------------------------


async def test_without_allow_nothing_is_reached_and_the_error_says_how_to_allow(hosting, site):
    async with hosting(allow=[], allowPrivate=[f"127.0.0.1:{site.server_port}"]) as host:
        for name, arguments in (("http_get", {}), ("http_request", {"method": "POST"})):
            result = await call(host, name, url=f"{site.url}/", **arguments)

            assert "no host may be reached" in result.content
            assert '{"allow": ["api.example.org"]}' in result.content
    assert site.seen == []


async def test_a_host_that_is_not_named_is_refused(hosting, site, other):
    async with hosting(site) as host:
        result = await call(host, "http_get", url=f"{other.url}/")

    assert "is refused" in result.content
    assert other.seen == []


async def test_a_named_host_at_a_private_address_is_refused_unless_allowed_as_such(hosting, site):
    async with hosting(site, allowPrivate=[]) as host:
        result = await call(host, "http_get", url=f"{site.url}/")

    assert "it is a loopback address" in result.content
    assert site.seen == []


@pytest.mark.parametrize(
    "url",
    [
        "http://169.254.169.254/latest/meta-data/",
        "http://2130706433/",
        "http://0x7f.1/",
        "http://[::ffff:127.0.0.1]/",
        "file:///etc/hostname",
        "gopher://127.0.0.1/",
        "http://user:pass@127.0.0.1/",
        "http://127.0.0.1\\@example.org/",
        "http://127.0.0.1/\r\nX: y",
    ],
)
async def test_an_address_that_leads_elsewhere_is_refused(hosting, site, url):
    async with hosting(site) as host:
        result = await call(host, "http_get", url=url)

    assert result.error.type == "ToolRaised"
    assert "refused" in result.content
    assert site.seen == []


async def test_a_redirect_to_a_host_that_is_not_named_is_refused(hosting, site, other):
    site.pages["/"] = moved(f"{other.url}/")
    async with hosting(site) as host:
        result = await call(host, "http_get", url=f"{site.url}/")

    assert "is refused" in result.content
    assert other.seen == []


async def test_a_name_that_turns_private_after_the_check_is_not_connected_to():
    asked = []

    async def rebinding(host, port):
        asked.append(host)
        return ["127.0.0.1"]

    settings = read_settings({"allow": ["rebind.example.org"]})
    client = WebClient(settings.policy, resolve=rebinding)
    pack = ExtensionPack("http-request", "1", create_descriptors(settings, client), on_deactivate=client.aclose)
    async with AgentOS() as host:
        await host.extensions.load_pack(pack)
        result = await call(host, "http_get", url="http://rebind.example.org/")

    assert asked == ["rebind.example.org"]
    assert "127.0.0.1 is a loopback address" in result.content


async def test_a_body_does_not_follow_a_redirect_to_another_origin(hosting, site, other):
    site.pages["/"] = moved(f"{other.url}/", 307)
    async with hosting(site, other) as host:
        result = await call(host, "http_request", method="POST", url=f"{site.url}/", json={"a": 1})

    assert "wants what was sent to go with it" in result.content
    assert other.seen == []


# -- headers -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "headers",
    [
        {"X-A": "b\r\nX-Evil: 1"},
        {"X-A": "b\nX-Evil: 1"},
        {"X-A\r\nX-Evil": "1"},
        {"X-A: b": "1"},
        {"X-A": "b\0"},
        {"X-A": " b"},
        {"": "b"},
        {"X-A": "é"},
        {"Host": "internal"},
        {"X-A": "1", "x-a": "2"},
        {"content-length": "0"},
        {"Transfer-Encoding": "chunked"},
        {"Connection": "X-A"},
        {"Upgrade": "h2c"},
        {"TE": "trailers"},
        {"Trailer": "X-A"},
        {"Keep-Alive": "1"},
        {"Expect": "100-continue"},
        {"Proxy-Authorization": "Basic eA=="},
        {"Accept-Encoding": "br"},
        {"X-HTTP-Method-Override": "DELETE"},
        {"x-http-method": "DELETE"},
        {"X-Method-Override": "DELETE"},
        {"X_HTTP_Method_Override": "DELETE"},
        {"X-HTTP_METHOD-OVERRIDE": "DELETE"},
        {"X.Http.Method": "DELETE"},
        {"X-A": "1", "x_a": "2"},
        {"Content_Length": "0"},
        {"Transfer_Encoding": "chunked"},
        {"Proxy_Authorization": "Basic eA=="},
    ],
)
@pytest.mark.parametrize("name", ["http_get", "http_request"])
async def test_a_header_that_changes_the_request_is_refused(hosting, site, name, headers):
    arguments = {"method": "POST"} if name == "http_request" else {}
    async with hosting(site) as host:
        result = await call(host, name, url=f"{site.url}/", headers=headers, **arguments)

    assert result.error.type == "ToolRaised"
    assert site.seen == []


@pytest.mark.parametrize("field", ["json", "body"])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_what_runs_unasked_carries_no_body(hosting, site, method, field):
    async with hosting(site, mode="unattended") as host:
        result = await call(host, "http_request", method=method, url=f"{site.url}/", **{field: "x"})

    assert f"{field}: a {method} has no body" in result.content
    assert site.seen == []


async def test_json_and_body_together_are_refused(hosting, site):
    async with hosting(site) as host:
        result = await call(host, "http_request", method="POST", url=f"{site.url}/", json=1, body="x")

    assert "not both" in result.content


@pytest.mark.parametrize("content", [{"json": ["ü" * 100_000] * 2}, {"body": "ü" * 150_000}])
async def test_a_body_that_is_too_large_is_refused(hosting, site, content):
    async with hosting(site) as host:
        result = await call(host, "http_request", method="POST", url=f"{site.url}/", **content)

    assert "at most 200,000 are sent" in result.content
    assert site.seen == []


@pytest.mark.parametrize("content", [{"json": "\ud800"}, {"body": "\ud800"}])
async def test_half_a_character_is_refused(hosting, site, content):
    async with hosting(site) as host:
        result = await call(host, "http_request", method="POST", url=f"{site.url}/", **content)

    assert result.error.type == "InvalidArguments"
    assert site.seen == []


# -- secrets -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("entry", "header", "value"),
    [
        ({}, "Authorization", f"Bearer {SECRET}"),
        ({"header": "X-Api-Key"}, "X-Api-Key", SECRET),
        ({"format": "token {}"}, "Authorization", f"token {SECRET}"),
        ({"format": "Basic {base64}"}, "Authorization", f"Basic {base64.b64encode(SECRET.encode()).decode()}"),
    ],
)
async def test_a_secret_is_sent_as_the_options_say(hosting, site, entry, header, value):
    async with hosting(site, **secured(site, **entry)) as host:
        result = await call(host, "http_get", url=f"{site.url}/")

    assert result.success, result.content
    assert site.seen[0].header(header) == value


async def test_a_secret_with_braces_stays_what_it_is(hosting, site):
    options = {**secured(site), "secrets": {"github.token": "a{}b{base64}"}}
    async with hosting(site, **options) as host:
        await call(host, "http_get", url=f"{site.url}/")

    assert site.seen[0].header("Authorization") == "Bearer a{}b{base64}"


async def test_a_secret_goes_to_its_own_host_alone(hosting, site, other):
    async with hosting(site, other, **secured(site)) as host:
        await call(host, "http_get", url=f"{other.url}/")

    assert SECRET not in str(other.seen[0].headers)
    assert other.seen[0].header("Authorization") is None


async def test_a_secret_meant_for_https_does_not_go_over_http(hosting, site):
    options = {**secured(site), "hosts": {f"127.0.0.1:{site.server_port}": {"secret": "github.token"}}}
    async with hosting(site, **options) as host:
        await call(host, "http_get", url=f"{site.url}/")

    assert site.seen[0].header("Authorization") is None


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("header", ["Authorization", "X-Api-Key", "Cookie"])
async def test_a_secret_does_not_follow_a_redirect_to_another_host(hosting, site, other, status, header):
    site.pages["/"] = moved(f"{other.url}/", status)
    async with hosting(site, other, **secured(site, header=header)) as host:
        result = await call(host, "http_get", url=f"{site.url}/", headers={"X-Mine": "1"})

    assert result.output["body"] == "the other"
    assert SECRET not in str(other.seen[0].headers)
    assert (other.seen[0].header(header), other.seen[0].header("X-Mine")) == (None, None)


async def test_a_secret_does_not_come_along_when_a_redirect_comes_back(hosting, site, other):
    site.pages["/"] = moved(f"{other.url}/")
    other.pages["/"] = moved(f"{site.url}/end")
    async with hosting(site, other, **secured(site)) as host:
        await call(host, "http_get", url=f"{site.url}/")

    assert [request.header("Authorization") is None for request in site.seen] == [False, True]


ECHOES = {
    "as it is": lambda value: value,
    "in JSON": lambda value: value.replace('"', '\\"'),
    "in JSON for web pages": lambda value: value.replace("+", "\\u002B"),
    "in a URL": lambda value: value.replace("+", "%2B").replace("/", "%2F").replace("=", "%3D"),
    "in base64": lambda value: base64.b64encode(value.encode()).decode(),
    "with hidden characters in it": "\u200b".join,
}


@pytest.mark.parametrize("echo", ECHOES.values(), ids=ECHOES.keys())
async def test_a_secret_that_the_server_echoes_is_masked(hosting, site, echo):
    plain_secret = "ghp-a+b/c=never-told"
    said = echo(plain_secret)
    site.pages["/"] = (200, {"Content-Type": "text/plain; charset=utf-8"}, f"you sent {said} twice {said}".encode())
    options = {**secured(site), "secrets": {"github.token": plain_secret}}
    async with hosting(site, **options) as host:
        result = await call(host, "http_get", url=f"{site.url}/")

    assert result.output["body"] == "you sent *** twice ***"
    assert "never-told" not in str(result)


async def test_a_secret_in_a_header_or_an_address_of_the_answer_is_masked(hosting, site):
    site.pages["/"] = (302, {"Location": "/end?token=ghp-plainly"}, b"")
    site.pages["/end"] = (200, {"X-Echo": "ghp-plainly"}, b"")
    options = {**secured(site), "secrets": {"github.token": "ghp-plainly"}}
    async with hosting(site, **options) as host:
        result = await call(host, "http_get", url=f"{site.url}/")

    assert result.output["headers"]["x-echo"] == "***"
    assert result.output["url"] == f"{site.url}/end?token=***"


async def test_a_secret_in_the_media_type_is_masked(hosting, site):
    site.pages["/"] = (200, {"Content-Type": "text/Ghp-Plainly"}, b"")
    options = {**secured(site), "secrets": {"github.token": "Ghp-Plainly"}}
    async with hosting(site, **options) as host:
        result = await call(host, "http_get", url=f"{site.url}/")

    assert result.output["media_type"] == "text/***"


async def test_the_password_of_a_basic_credential_is_masked_by_itself(hosting, site):
    site.pages["/"] = (200, {"Content-Type": "text/plain"}, b"wrong password: never-told")
    options = {**secured(site, format="Basic {base64}"), "secrets": {"github.token": "ann:never-told"}}
    async with hosting(site, **options) as host:
        result = await call(host, "http_get", url=f"{site.url}/")

    assert result.output["body"] == "wrong password: ***"


async def test_a_secret_is_masked_before_the_body_is_cut(hosting, site):
    site.pages["/"] = (200, {"Content-Type": "text/plain"}, b"x" * 90 + b"ghp-plainly-and-long")
    options = {**secured(site), "secrets": {"github.token": "ghp-plainly-and-long"}}
    async with hosting(site, **options) as host:
        result = await call(host, "http_get", url=f"{site.url}/", max_chars=100)

    assert "ghp" not in result.output["body"]


async def test_the_model_cannot_take_the_place_of_the_secret(hosting, site):
    async with hosting(site, **secured(site)) as host:
        result = await call(host, "http_get", url=f"{site.url}/", headers={"authorization": "Bearer mine"})

    assert "authorization is filled in for this host" in result.content
    assert site.seen == []


@pytest.mark.parametrize("name", ["x-api-key", "X_Api_Key", "X.Api-Key"])
async def test_the_model_cannot_send_beside_the_secret_what_a_server_takes_for_it(hosting, site, name):
    async with hosting(site, **secured(site, header="X-Api-Key")) as host:
        result = await call(host, "http_get", url=f"{site.url}/", headers={name: "mine"})

    assert f"{name} is filled in for this host" in result.content
    assert site.seen == []


async def test_a_missing_secret_bars_its_own_host_and_no_other(hosting, site, other):
    options = {"hosts": {site.url: {"secret": "github.token"}}}
    async with hosting(site, other, **options) as host:
        barred = await call(host, "http_get", url=f"{site.url}/")
        free = await call(host, "http_get", url=f"{other.url}/")

    assert "this host needs the secret github.token, which is not set" in barred.content
    assert (free.success, site.seen) == (True, [])


async def test_a_secret_that_is_no_header_is_refused_without_being_told(hosting, site):
    options = {**secured(site), "secrets": {"github.token": "line-one\r\nX-Evil: 1"}}
    async with hosting(site, **options) as host:
        result = await call(host, "http_get", url=f"{site.url}/")

    assert "the header Authorization has a value that can't be sent" in result.content
    assert "line-one" not in str(result)
    assert site.seen == []

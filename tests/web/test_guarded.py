"""Guarded HTTP against real servers on loopback: what must get through does, and no attack does."""

import asyncio
import gzip
import json
import logging
import socket
import ssl
import struct
import subprocess
import sys
import textwrap
import zlib
from ipaddress import ip_address
from urllib.parse import urlsplit

import httpx
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from loopback import PEM, Site, serving, speaking

from agentos.web import Headers, PolicyError, WebClient, WebError, WebPolicy, WebResponse
from agentos.web._addresses import nature_of
from agentos.web._urls import parse_url, redirect_target

SECRET = "hunter2-is-not-for-others"
TEXT = {"Content-Type": "text/plain"}


def gzipped(data):
    """Compress *data*, to the same bytes whenever it is done."""
    return gzip.compress(data, mtime=0)


@pytest.fixture
def site():
    with serving(Site()) as made:
        made.pages["/"] = (200, TEXT, b"hello")
        yield made


@pytest.fixture
def other():
    with serving(Site()) as made:
        made.pages["/"] = (200, TEXT, b"the other")
        yield made


def names(**addresses):
    """Return a resolver that knows *addresses*, as app_test for app.test, and counts what it is asked."""

    async def resolve(host, port):
        resolve.asked.append(host)
        known = addresses[host.replace(".", "_")]
        return known.pop(0) if isinstance(known[0], list) else known

    resolve.asked = []
    return resolve


def open_to(*sites, **fields):
    return WebPolicy(allow_private=[f"127.0.0.1:{one.server_port}" for one in sites], **fields)


async def refusal(client, url, method="GET", **fields):
    """Return the error of a request that must fail."""
    async with client:
        with pytest.raises(WebError) as caught:
            await client.request(method, url, **fields)
    return caught.value


def redirect(to, status=302):
    return (status, {"Location": to}, b"")


# -- what gets through -------------------------------------------------------------------------------------------


async def test_an_answer_has_status_headers_body_and_address(site):
    async with WebClient(open_to(site)) as client:
        answer = await client.request("get", f"{site.url}/")

    assert (answer.status, answer.body, answer.text, answer.url) == (200, b"hello", "hello", f"{site.url}/")
    assert answer.headers["CONTENT-TYPE"] == "text/plain"


async def test_a_failure_of_the_server_is_an_answer(site):
    async with WebClient(open_to(site)) as client:
        answer = await client.request("GET", f"{site.url}/nowhere")

    assert (answer.status, answer.text) == (404, "no such page")


async def test_parameters_join_the_query_encoded(site):
    params = {"b": ["x y", "&c=1"], "n": 2, "f": 1.5, "yes": True, "no": False, "none": None}
    async with WebClient(open_to(site)) as client:
        await client.request("GET", f"{site.url}/?a=1#part", params=params)
        await client.request("GET", f"{site.url}/", params=[("ü", "ß")])

    paths = [request.path for request in site.seen]
    assert paths == ["/?a=1&b=x%20y&b=%26c%3D1&n=2&f=1.5&yes=true&no=false", "/?%C3%BC=%C3%9F"]


async def test_no_parameters_leave_the_address_alone(site):
    async with WebClient(open_to(site)) as client:
        await client.request("GET", site.url, params={})

    assert site.seen[0].path == "/"


@pytest.mark.parametrize(
    ("fields", "media", "body"),
    [
        ({"json": {"a": "ü"}}, "application/json", '{"a": "ü"}'.encode()),
        ({"content": b"raw"}, None, b"raw"),
        ({"content": "text"}, "text/plain; charset=utf-8", b"text"),
        ({"data": {"a": "1 2", "b": [3, True]}}, "application/x-www-form-urlencoded", b"a=1%202&b=3&b=true"),
        ({"data": [("a", "1")]}, "application/x-www-form-urlencoded", b"a=1"),
        ({"json": [], "headers": {"content-type": "application/x+json"}}, "application/x+json", b"[]"),
        ({}, None, b""),
    ],
)
async def test_a_body_is_sent_as_what_it_is(site, fields, media, body):
    async with WebClient(open_to(site)) as client:
        await client.request("POST", site.url, **fields)

    sent = site.seen[0]
    assert (sent.header("content-type"), sent.body, sent.header("content-length")) == (media, body, str(len(body)))


async def test_files_are_sent_as_a_form(site):
    files = {"a": b"one", "b": ("b.txt", b"two"), "c": ("c.bin", b"three", "application/x-c")}
    async with WebClient(open_to(site)) as client:
        await client.request("POST", site.url, data={"note": ["x", "y"]}, files=files)

    sent = site.seen[0]
    assert sent.header("content-type").startswith("multipart/form-data; boundary=")
    for part in (
        b'name="note"\r\n\r\nx',
        b'name="note"\r\n\r\ny',
        b'filename="b.txt"',
        b"application/x-c\r\n\r\nthree",
    ):
        assert part in sent.body


async def test_who_asks_can_be_said_by_the_policy_and_by_the_caller(site):
    async with WebClient(open_to(site, user_agent="house/1")) as client:
        await client.request("GET", site.url)
        await client.request("GET", site.url, headers=[("User-Agent", "mine"), ("Accept", "text/html")])

    said = [(request.header("user-agent"), request.header("accept")) for request in site.seen]
    assert said == [("house/1", "*/*"), ("mine", "text/html")]


async def test_a_client_can_be_used_again_after_it_was_closed(site):
    client = WebClient(open_to(site))
    await client.aclose()
    await client.request("GET", site.url)
    await client.aclose()
    answer = await client.request("GET", site.url)
    await client.aclose()

    assert answer.text == "hello"


async def test_requests_side_by_side_get_their_own_answers(site):
    site.pages["/"] = lambda request: (200, {}, request.path.encode())
    async with WebClient(open_to(site)) as client:
        answers = await asyncio.gather(*(client.request("GET", f"{site.url}/?{n}") for n in range(50)))

    assert [answer.text for answer in answers] == [f"/?{n}" for n in range(50)]


async def test_cookies_of_an_answer_are_not_kept(site):
    site.pages["/"] = (200, {"Set-Cookie": "session=1"}, b"")
    async with WebClient(open_to(site)) as client:
        await client.request("GET", site.url)
        await client.request("GET", site.url)

    assert [request.header("cookie") for request in site.seen] == [None, None]


async def test_a_head_request_has_no_body_however_long_it_would_be(site):
    site.pages["/"] = (200, {"Content-Length": "999999999999"}, b"")
    async with WebClient(open_to(site)) as client:
        answer = await client.request("HEAD", site.url)

    assert (answer.status, answer.body, answer.headers["content-length"]) == (200, b"", "999999999999")


async def test_a_name_of_another_script_is_asked_for_as_dns_has_it(site):
    resolve = names(**{"xn--bcher-kva_test": ["127.0.0.1"]})
    policy = WebPolicy(allow_private=[f"bücher.test:{site.server_port}"])
    async with WebClient(policy, resolve=resolve) as client:
        answer = await client.request("GET", f"http://bücher.test:{site.server_port}/käse?ü#x")

    assert (resolve.asked, site.seen[0].path, answer.status) == (["xn--bcher-kva.test"], "/k%C3%A4se?%C3%BC", 404)
    assert site.seen[0].header("host") == f"xn--bcher-kva.test:{site.server_port}"


async def test_the_environments_proxies_are_ignored(site, other, monkeypatch):
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, other.url)
    async with WebClient(open_to(site)) as client:
        await client.request("GET", site.url)

    assert (len(site.seen), other.seen) == (1, [])


# -- addresses ---------------------------------------------------------------------------------------------------

FORBIDDEN = {
    "127.0.0.1": "loopback",
    "127.255.255.254": "loopback",
    "0.0.0.0": "unspecified",
    "0.1.2.3": "unspecified",
    "10.0.0.1": "private",
    "172.16.0.1": "private",
    "172.31.255.255": "private",
    "192.168.1.1": "private",
    "100.64.0.1": "provider's NAT",
    "100.127.255.255": "provider's NAT",
    "169.254.1.1": "link-local",
    "169.254.169.254": "metadata",
    "169.254.170.2": "metadata",
    "168.63.129.16": "metadata",
    "100.100.100.200": "metadata",
    "192.0.0.1": "reserved",
    "192.0.0.192": "metadata",
    "192.0.2.1": "documentation",
    "198.51.100.7": "documentation",
    "203.0.113.7": "documentation",
    "192.88.99.1": "6to4 relay",
    "198.18.0.1": "benchmarks",
    "198.19.255.255": "benchmarks",
    "224.0.0.1": "multicast",
    "239.255.255.255": "multicast",
    "240.0.0.1": "reserved",
    "255.255.255.255": "reserved",
    "::": "unspecified",
    "::1": "loopback",
    "::7f00:1": "IPv4-compatible",
    "::ffff:127.0.0.1": "IPv4-mapped",
    "::ffff:8.8.8.8": "IPv4-mapped",
    "::ffff:169.254.169.254": "metadata",
    "64:ff9b::7f00:1": "NAT64 address of 127.0.0.1",
    "64:ff9b::a00:1": "NAT64 address of 10.0.0.1",
    "64:ff9b::a9fe:a9fe": "metadata",
    "64:ff9b:1::1": "reserved",
    "100::1": "reserved",
    "2001::1": "Teredo",
    "2001:10::1": "reserved",
    "2001:2::1": "reserved",
    "2001:db8::1": "documentation",
    "2002:7f00:1::": "6to4",
    "2002:808:808::1": "6to4",
    "3fff::1": "documentation",
    "4000::1": "reserved",
    "5f00::1": "reserved",
    "fc00::1": "unique local",
    "fd12:3456::1": "unique local",
    "fd00:ec2::254": "metadata",
    "fe80::1": "link-local",
    "fec0::1": "reserved",
    "ff02::1": "multicast",
}
PUBLIC = [
    "8.8.8.8",
    "1.1.1.1",
    "172.15.0.1",
    "172.32.0.1",
    "100.63.0.1",
    "100.128.0.1",
    "2606:4700::1",
    "64:ff9b::808:808",
]


@pytest.mark.parametrize(("address", "why"), FORBIDDEN.items())
async def test_an_address_that_is_not_public_is_refused(address, why):
    host = f"[{address}]" if ":" in address else address

    error = await refusal(WebClient(), f"http://{host}/")

    assert (error.kind, why in str(error)) == ("refused", True), str(error)


@pytest.mark.parametrize("address", FORBIDDEN)
async def test_a_name_that_leads_to_such_an_address_is_refused(address):
    error = await refusal(WebClient(resolve=names(evil_test=[address])), "https://evil.test/")

    assert (error.kind, error.host) == ("refused", "evil.test")


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses_are_public(address):
    assert nature_of(ip_address(address)) is None
    WebPolicy().check_address(ip_address(address), "example.org", 443)


async def test_one_bad_address_among_good_ones_is_enough(site):
    resolve = names(evil_test=["127.0.0.1", "10.0.0.1"])
    policy = WebPolicy(allow_private=["127.0.0.1"], ports=[site.server_port])

    error = await refusal(WebClient(policy, resolve=resolve), f"http://evil.test:{site.server_port}/")

    assert ("10.0.0.1 is a private address" in str(error), site.seen) == (True, [])


@pytest.mark.parametrize("answer", ["fe80::1%eth0", "2606:4700::1%1", "127.1", "evil", ""])
async def test_what_a_name_leads_to_must_be_a_plain_address(answer):
    error = await refusal(WebClient(resolve=names(evil_test=[answer])), "http://evil.test/")

    assert error.kind == "refused"


async def test_localhost_is_what_it_is():
    error = await refusal(WebClient(), "http://localhost/")

    assert error.kind == "refused"
    assert "a loopback address; name the host or its network in `allow_private`" in str(error)


@pytest.mark.parametrize("host", ["metadata.google.internal", "METADATA.goog", "instance-data", "metadata"])
async def test_metadata_services_are_refused_by_name(host):
    resolve = names()

    error = await refusal(WebClient(WebPolicy(allow_private=[host]), resolve=resolve), f"http://{host}/latest")

    assert (error.kind, "metadata" in str(error), resolve.asked) == ("refused", True, [])


async def test_metadata_services_are_refused_even_if_their_network_is_allowed():
    error = await refusal(WebClient(WebPolicy(allow_private=["169.254.0.0/16"])), "http://169.254.169.254/")

    assert "metadata service" in str(error)


# -- rebinding ---------------------------------------------------------------------------------------------------


async def test_the_address_that_was_checked_is_connected_to(site):
    """A name that answers differently when it is asked again gains nothing: it is not asked again."""
    with serving(Site("127.0.0.2", site.server_port)) as inner:
        resolve = names(app_test=[["127.0.0.1"], ["127.0.0.2"], ["127.0.0.2"]])
        policy = WebPolicy(allow_private=["127.0.0.1"], ports=[site.server_port])
        async with WebClient(policy, resolve=resolve) as client:
            await client.request("GET", f"http://app.test:{site.server_port}/")

        assert (len(site.seen), inner.seen, resolve.asked) == (1, [], ["app.test"])


async def test_the_host_that_is_asked_for_is_told_to_the_server(site):
    resolve = names(app_test=["127.0.0.1"])
    policy = WebPolicy(allow_private=[f"app.test:{site.server_port}"])
    async with WebClient(policy, resolve=resolve) as client:
        await client.request("GET", f"http://APP.test:{site.server_port}/")

    assert site.seen[0].header("host") == f"app.test:{site.server_port}"


async def test_a_name_that_was_good_once_is_checked_again_for_the_next_connection(site):
    site.pages["/"] = (200, {"Connection": "close"}, b"hello")
    resolve = names(app_test=[["127.0.0.1"], ["10.0.0.1"]])
    policy = WebPolicy(allow_private=["127.0.0.1"], ports=[site.server_port])
    client = WebClient(policy, resolve=resolve)
    await client.request("GET", f"http://app.test:{site.server_port}/")

    error = await refusal(client, f"http://app.test:{site.server_port}/")

    assert "10.0.0.1 is a private address" in str(error)


async def test_another_address_is_tried_when_one_does_not_answer(site):
    resolve = names(app_test=["127.0.0.3", "127.0.0.1"])
    policy = WebPolicy(allow_private=["127.0.0.0/8"], ports=[site.server_port])
    async with WebClient(policy, resolve=resolve) as client:
        answer = await client.request("GET", f"http://app.test:{site.server_port}/")

    assert answer.text == "hello"


# -- how addresses are written -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    [
        *("http://2130706433/", "http://0177.0.0.1/", "http://0x7f.0.0.1/", "http://0x7f000001/", "http://127.1/"),
        *("http://127.0.1/", "http://1.2.3.4.5/", "http://127.0.0.01/", "http://1.2.3.999/", "http://evil.0x1/"),
        *("http://[::1%25lo]/", "http://[fe80::1%eth0]/", "http://[::1", "http://[]/", "http://[1.2.3.4]/"),
        *("http://user@example.org/", "http://user:pw@example.org/", "http://@example.org/", "http://a@b@c/"),
        *("http://example.org\\@evil.test/", "http:\\\\example.org/", "http://example.org\\.evil.test/"),
        *(" http://example.org/", "http://example.org/ x", "http://exam\tple.org/", "http://example.org/\r\nX: y"),
        *(
            "http://example.org/\x00",
            "http://example.org/\x7f",
            "http://example.org/\u200b",
            "http://ex\u00adample.org/",
        ),
        *("http://example.org./", "http://127.0.0.1./", "http://.example.org/", "http://a..b/", "http://-a.org/"),
        *(
            "http://\uff45xample.org/",
            "http://\uff11\uff12\uff17.0.0.1/",
            "http://example。org/",
            "http://ⓛocalhost/",
            "http://ex\u212aample.org/",
        ),
        *(
            "http://127。0。0。1/",
            "http://BÜCHER.de/",
            "http://%31%32%37.0.0.1/",
            "http://exa%6dple.org/",
            "http://a_b-/",
        ),
        *("http:///path", "http://", "http:example.org", "//example.org/", "example.org", "", "http://:80/"),
        *("ftp://example.org/", "file:///etc/passwd", "gopher://example.org/", "unix:///run/x", "data:text/plain,x"),
        *("http://example.org:/", "http://example.org:0/", "http://example.org:99999/", "http://example.org:8a/"),
        *("http://example.org:-1/", "http://example.org:80:80/", "http://" + "a" * 64 + ".org/"),
        *("http://" + ".".join(["abcdefgh"] * 30) + "/", "http://example.org/" + "a" * 9_000, "http://a b/"),
    ],
)
async def test_an_address_that_can_be_read_in_two_ways_is_refused(url):
    resolve = names()

    error = await refusal(WebClient(resolve=resolve), url)

    assert (error.kind, resolve.asked) == ("refused", [])


@pytest.mark.parametrize("url", [None, b"http://example.org/", 7])
def test_an_address_is_text(url):
    with pytest.raises(WebError, match="expected text"):
        parse_url(url)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("HTTP://Example.ORG", "http://example.org/"),
        ("https://example.org:443/a?b#c", "https://example.org/a?b"),
        ("https://example.org:8443?q", "https://example.org:8443/?q"),
        ("http://[2606:4700:0:0::1]:81/", "http://[2606:4700::1]:81/"),
        ("http://example.org/a b".replace(" ", "%20"), "http://example.org/a%20b"),
        ('http://example.org/"<>', "http://example.org/%22%3C%3E"),
        ("http://xn--bcher-kva.de/", "http://xn--bcher-kva.de/"),
    ],
)
def test_an_address_has_one_spelling(url, shown):
    assert str(parse_url(url)) == shown


ODD = st.text(alphabet="abcxn-1207.:/@[]%?#\\_ ~\t\u3002\uff41\u00fc", max_size=30)


@given(ODD.map("http://{}".format) | ODD.map("http://example.org{}".format))
@example("http://1.2.3.4:80/")
@example("http://example.org@a")
def test_an_address_that_is_taken_is_read_by_others_as_by_us(url):
    try:
        target = parse_url(url)
    except WebError:
        return

    assert parse_url(str(target)) == target
    for host in (urlsplit(url).hostname, httpx.URL(url).raw_host.decode()):
        assert host.encode("idna").decode() == target.host


# -- what a policy says ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("allow", "url", "is_allowed"),
    [
        (["example.org"], "https://example.org/", True),
        (["example.org"], "http://EXAMPLE.org:8080/", True),
        (["example.org"], "https://www.example.org/", False),
        (["example.org"], "https://example.org.evil.test/", False),
        (["example.org"], "https://notexample.org/", False),
        (["*.example.org"], "https://a.b.example.org/", True),
        (["*.example.org"], "https://example.org/", False),
        (["*.example.org"], "https://evilexample.org/", False),
        (["https://example.org"], "https://example.org/", True),
        (["https://example.org/"], "http://example.org/", False),
        (["https://example.org"], "https://example.org:8443/", False),
        (["example.org:9000"], "https://example.org:9000/", True),
        (["example.org:9000"], "https://example.org/", False),
        (["bücher.de"], "https://xn--bcher-kva.de/", True),
        (["a.org", "b.org"], "https://b.org/", True),
        ("example.org", "https://example.org/", True),
        ([], "https://anything.org/", True),
        ([], "https://anything.org:22/", False),
        ([], "https://anything.org:8443/", True),
        (["[2606:4700::1]:99"], "http://[2606:4700::1]:99/", True),
    ],
)
def test_only_allowed_hosts_and_ports_are_asked(allow, url, is_allowed):
    policy = WebPolicy(allow=allow)
    if is_allowed:
        policy.check(parse_url(url))
        return

    with pytest.raises(WebError) as caught:
        policy.check(parse_url(url))

    assert caught.value.kind == "refused"


@pytest.mark.parametrize(
    ("private", "host", "address", "is_allowed"),
    [
        ("localhost", "localhost", "127.0.0.1", True),
        ("localhost", "localhost", "::1", True),
        ("localhost", "evil.test", "127.0.0.1", False),
        ("*.intra.test", "wiki.intra.test", "10.1.1.1", True),
        ("*.intra.test", "wiki.intra.test", "169.254.1.1", False),
        ("*.intra.test", "wiki.intra.test", "0.0.0.0", False),
        ("*.intra.test", "wiki.intra.test", "::ffff:10.0.0.1", False),
        ("*.intra.test", "wiki.intra.test", "64:ff9b::a00:1", False),
        ("10.1.0.0/16", "any.test", "10.1.200.1", True),
        ("10.1.0.0/16", "any.test", "10.2.0.1", False),
        ("10.1.0.0/16", "any.test", "fd00::1", False),
        ("169.254.0.0/16", "any.test", "169.254.1.1", True),
        ("fd00::/8", "any.test", "fd00::1", True),
        ("127.0.0.1", "any.test", "127.0.0.1", True),
        ("127.0.0.1:80", "127.0.0.1", "127.0.0.1", True),
        ("127.0.0.1:81", "127.0.0.1", "127.0.0.1", False),
        ("localhost:81", "localhost", "127.0.0.1", False),
        ("[::1]", "any.test", "::1", True),
    ],
)
def test_private_places_are_reached_only_if_they_are_named(private, host, address, is_allowed):
    policy = WebPolicy(allow_private=[private])
    if is_allowed:
        policy.check_address(ip_address(address), host, 80)
        return

    with pytest.raises(WebError) as caught:
        policy.check_address(ip_address(address), host, 80)

    assert caught.value.kind == "refused"


def test_the_port_of_a_private_place_opens_no_port_elsewhere():
    policy = WebPolicy(allow_private=["127.0.0.1:5000", "10.0.0.0/8"])
    policy.check(parse_url("http://127.0.0.1:5000/"))

    with pytest.raises(WebError, match="the port 5000 may not be used"):
        policy.check(parse_url("http://example.org:5000/"))


async def test_a_host_that_is_not_allowed_is_not_even_looked_up():
    resolve = names()
    policy = WebPolicy(allow=["a.org", "b.org", "c.org", "d.org", "e.org", "f.org"])

    error = await refusal(WebClient(policy, resolve=resolve), "https://evil.test/")

    told = "evil.test is refused: it is not among the hosts that may be asked (a.org, b.org, c.org, d.org, e.org, ...)"
    assert (str(error), resolve.asked) == (f"{told}; add it to `allow`", [])


async def test_a_scheme_that_is_not_spoken_is_refused():
    error = await refusal(WebClient(WebPolicy(schemes="https")), "http://example.org/")

    assert str(error) == "example.org is refused: http is not spoken here; use https"


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"allow": ["*"]}, "allow"),
        ({"allow": ["*.*.org"]}, "allow"),
        ({"allow": ["ftp://example.org"]}, "allow"),
        ({"allow": ["example.org/path"]}, "allow"),
        ({"allow": ["user@example.org"]}, "allow"),
        ({"allow": [7]}, "allow"),
        ({"allow": [""]}, "allow"),
        ({"allow_private": ["10.0.0.1/8"]}, "allow_private"),
        ({"allow_private": ["http://localhost"]}, "allow_private"),
        ({"allow_private": ["0x7f.1"]}, "allow_private"),
        ({"max_bytes": 0}, "max_bytes"),
        ({"max_bytes": True}, "max_bytes"),
        ({"timeout": 0}, "timeout"),
        ({"timeout": float("nan")}, "timeout"),
        ({"timeout": True}, "timeout"),
        ({"timeout": "5"}, "timeout"),
        ({"max_redirects": -1}, "max_redirects"),
        ({"max_redirects": 1.5}, "max_redirects"),
        ({"schemes": ["ftp"]}, "schemes"),
        ({"schemes": []}, "schemes"),
        ({"ports": ["80"]}, "ports"),
        ({"user_agent": "a\r\nb"}, "user_agent"),
        ({"user_agent": " "}, "user_agent"),
    ],
)
def test_a_policy_that_says_nothing_usable_is_refused(fields, field):
    with pytest.raises(PolicyError) as caught:
        WebPolicy(**fields)

    assert caught.value.field == field


def test_policies_that_say_the_same_are_equal():
    assert WebPolicy(allow=["a.org"]) == WebPolicy(allow="a.org")
    assert "_patterns" not in repr(WebPolicy(allow=["a.org"]))


# -- redirects ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "location", ["/b?x=1", "b?x=1", "./b?x=1", "{url}/b?x=1", "//127.0.0.1:{port}/b?x=1", "/b?x=1#part"]
)
async def test_a_redirect_is_followed(site, location):
    site.pages["/a"] = redirect(location.format(url=site.url, port=site.server_port))
    site.pages["/b"] = (200, {}, b"here")
    async with WebClient(open_to(site)) as client:
        answer = await client.request("GET", f"{site.url}/a")

    assert (answer.text, answer.url) == ("here", f"{site.url}/b?x=1")


async def test_a_redirect_without_a_place_is_the_answer(site):
    site.pages["/a"] = (302, {}, b"")
    async with WebClient(open_to(site)) as client:
        assert (await client.request("GET", f"{site.url}/a")).status == 302


async def test_redirects_are_not_followed_if_none_are_allowed(site):
    site.pages["/a"] = redirect("http://169.254.169.254/")
    async with WebClient(open_to(site)) as client:
        answer = await client.request("GET", f"{site.url}/a", max_redirects=0)

    assert (answer.status, answer.headers["location"]) == (302, "http://169.254.169.254/")


async def test_redirects_without_end_are_ended(site):
    site.pages["/a"] = redirect("/a")

    error = await refusal(WebClient(open_to(site)), f"{site.url}/a")

    assert (error.kind, str(error), len(site.seen)) == ("bad_response", "127.0.0.1 redirects more than 5 times", 6)


@pytest.mark.parametrize(
    "location",
    [
        *("http://127.0.0.2/", "http://localhost/", "http://[::1]/", "http://169.254.169.254/latest/meta-data/"),
        *("http://metadata.google.internal/", "http://[::ffff:7f00:1]/", "http://[64:ff9b::7f00:1]/"),
        *(
            "http://[2002:7f00:1::]/",
            "http://2130706433/",
            "http://0x7f.1/",
            "//10.0.0.1/",
            "//[a/",
            "http://user:pw@127.0.0.1/",
        ),
        *(
            "file:///etc/passwd",
            "ftp://127.0.0.1/",
            "http://exa mple.org/",
            "http:\\\\127.0.0.1/",
            "http://[::1",
            "http://[a/",
        ),
        *("http://127.0.0.1:22/", "http:///x", "javascript:alert(1)"),
    ],
)
async def test_a_redirect_to_where_nobody_may_go_is_refused(site, location):
    site.pages["/a"] = redirect(location)

    error = await refusal(WebClient(open_to(site)), f"{site.url}/a")

    assert (error.kind, len(site.seen)) == ("refused", 1)


async def test_a_redirect_to_a_name_that_leads_inside_is_refused(site):
    site.pages["/a"] = redirect("http://rebound.test/")
    resolve = names(rebound_test=["127.0.0.1"])
    policy = WebPolicy(allow_private=[f"127.0.0.1:{site.server_port}"])

    error = await refusal(WebClient(policy, resolve=resolve), f"{site.url}/a")

    assert str(error).startswith("rebound.test is refused: 127.0.0.1 is a loopback address")


async def test_a_redirect_to_a_host_that_is_not_allowed_is_refused(site, other):
    site.pages["/a"] = redirect(f"{other.url}/")
    policy = open_to(site, other, allow=[f"127.0.0.1:{site.server_port}"])

    error = await refusal(WebClient(policy), f"{site.url}/a")

    assert ("not among the hosts" in str(error), other.seen) == (True, [])


@pytest.mark.parametrize("location", ["http://a.test/\n", "http://a.test/ b", "\u202ehttp://a.test", "http:\\\\a.test"])
def test_a_redirect_with_hidden_characters_is_refused(location):
    with pytest.raises(WebError, match=r"example\.org is refused: it redirects to an address with blanks"):
        redirect_target(parse_url("http://example.org/"), location)


CREDENTIALS = {"Authorization": f"Bearer {SECRET}", "Cookie": f"s={SECRET}", "X-Api-Key": SECRET, "Accept": "text/html"}


async def test_credentials_do_not_follow_to_another_origin(site, other):
    site.pages["/a"] = redirect(f"{other.url}/")
    async with WebClient(open_to(site, other)) as client:
        await client.request("GET", f"{site.url}/a", headers=CREDENTIALS)

    assert SECRET in site.seen[0].header("authorization")
    assert (SECRET in str(other.seen[0].headers), other.seen[0].header("accept")) == (False, "text/html")


async def test_credentials_do_not_come_back_with_a_redirect_home(site, other):
    site.pages["/a"], other.pages["/b"] = redirect(f"{other.url}/b"), redirect(f"{site.url}/")
    async with WebClient(open_to(site, other)) as client:
        await client.request("GET", f"{site.url}/a", headers=CREDENTIALS)

    assert [SECRET in str(request.headers) for request in site.seen] == [True, False]


async def test_credentials_follow_within_their_origin(site):
    site.pages["/a"] = redirect("/")
    async with WebClient(open_to(site)) as client:
        await client.request("GET", f"{site.url}/a", headers=CREDENTIALS)

    assert [request.header("x-api-key") for request in site.seen] == [SECRET, SECRET]


@pytest.mark.parametrize(
    ("status", "method", "then"),
    [
        *(
            (301, "POST", "GET"),
            (302, "POST", "GET"),
            (303, "PUT", "GET"),
            (303, "HEAD", "HEAD"),
            (302, "DELETE", "GET"),
        ),
        *((307, "POST", "POST"), (308, "PUT", "PUT"), (302, "GET", "GET"), (301, "HEAD", "HEAD")),
    ],
)
async def test_a_redirect_keeps_or_drops_what_was_sent_as_its_status_says(site, status, method, then):
    site.pages["/a"] = redirect("/", status)
    body = b"x" if method in ("POST", "PUT") else None
    async with WebClient(open_to(site)) as client:
        await client.request(
            method, f"{site.url}/a", content=body, headers={"Content-Type": "text/x"} if body else None
        )

    again = site.seen[1]
    is_kept = body is not None and then == method
    assert (again.method, again.body) == (then, b"x" if is_kept else b"")
    assert (again.header("content-type") is not None) == is_kept


async def test_what_was_sent_does_not_follow_to_another_origin(site, other):
    site.pages["/a"] = redirect(f"{other.url}/", 307)

    error = await refusal(WebClient(open_to(site, other)), f"{site.url}/a", "POST", json={"password": SECRET})

    assert (error.kind, other.seen) == ("refused", [])
    assert "wants what was sent to go with it" in str(error)


# -- TLS ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def secure_site():
    with serving(Site().secure()) as made:
        made.pages["/"] = (200, {}, b"secret hello")
        yield made


def trusting():
    return ssl.create_default_context(cafile=PEM)


async def test_tls_is_spoken_with_the_name_that_was_asked_for(secure_site):
    port, resolve = secure_site.server_port, names(app_test=["127.0.0.1"])
    async with WebClient(WebPolicy(allow_private=[f"app.test:{port}"]), resolve=resolve, tls=trusting()) as client:
        answer = await client.request("GET", f"https://app.test:{port}/")

    assert (answer.text, secure_site.names, secure_site.seen[0].header("host")) == (
        "secret hello",
        ["app.test"],
        f"app.test:{port}",
    )


@pytest.mark.parametrize(("host", "is_trusting"), [("other.test", True), ("app.test", False)])
async def test_a_certificate_that_does_not_hold_ends_the_request(secure_site, host, is_trusting):
    port, resolve = secure_site.server_port, names(app_test=["127.0.0.1"], other_test=["127.0.0.1"])
    policy = WebPolicy(allow_private=[f"{host}:{port}"])
    client = WebClient(policy, resolve=resolve, tls=trusting() if is_trusting else None)

    error = await refusal(client, f"https://{host}:{port}/")

    assert (error.kind, secure_site.seen) == ("unreachable", [])
    assert str(error).startswith(f"{host} can't be trusted: its certificate is invalid (")


async def test_a_server_without_tls_is_told(site):
    resolve = names(app_test=["127.0.0.1"])
    policy = WebPolicy(allow_private=[f"app.test:{site.server_port}"])

    error = await refusal(WebClient(policy, resolve=resolve), f"https://app.test:{site.server_port}/")

    assert (error.kind, str(error)) == ("unreachable", "app.test can't be trusted: it does not speak TLS as expected")


async def test_a_redirect_from_https_to_http_is_refused(secure_site, site):
    secure_site.pages["/a"] = redirect(site.url)
    resolve = names(app_test=["127.0.0.1"])
    policy = WebPolicy(allow_private=[f"app.test:{secure_site.server_port}", f"127.0.0.1:{site.server_port}"])

    client = WebClient(policy, resolve=resolve, tls=trusting())
    error = await refusal(client, f"https://app.test:{secure_site.server_port}/a")

    assert str(error) == "127.0.0.1 is refused: app.test redirects there from https to http"
    assert site.seen == []


# -- size and time -----------------------------------------------------------------------------------------------


async def from_bytes(script, **fields):
    """Return the error of a request to a server that speaks as *script* says."""
    policy = fields.pop("policy", {})
    async with speaking(script) as port:
        client = WebClient(WebPolicy(allow_private=[f"127.0.0.1:{port}"], **policy))
        return await refusal(client, f"http://127.0.0.1:{port}/?key={SECRET}", **fields)


async def test_a_body_that_says_it_is_too_large_is_not_read(site):
    site.pages["/"] = (200, {"Content-Length": "101"}, b"x" * 101)

    error = await refusal(WebClient(open_to(site, max_bytes=100)), site.url)

    assert (error.kind, str(error)) == (
        "too_large",
        "127.0.0.1 answered with more than 100 bytes; ask for less, or raise max_bytes",
    )


async def test_a_body_of_just_the_allowed_size_is_read(site):
    site.pages["/"] = (200, {}, b"x" * 100)
    async with WebClient(open_to(site, max_bytes=100)) as client:
        assert len((await client.request("GET", site.url)).body) == 100


async def test_a_body_without_end_is_cut_off():
    async def endless(writer):
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            writer.write(b"x" * 65_536)
            await writer.drain()

    error = await from_bytes(endless, policy={"max_bytes": 1_000_000})

    assert error.kind == "too_large"


async def test_chunks_without_end_are_cut_off():
    async def endless(writer):
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while True:
            writer.write(b"1000\r\n" + b"x" * 4_096 + b"\r\n")
            await writer.drain()

    error = await from_bytes(endless, policy={"max_bytes": 100_000})

    assert error.kind == "too_large"


async def test_a_caller_may_take_less_than_the_policy_allows_and_not_more(site):
    site.pages["/"] = (200, {}, b"x" * 100)
    policy = open_to(site, max_bytes=150)
    async with WebClient(policy) as client:
        assert (await client.request("GET", site.url, max_bytes=10**9)).status == 200
        with pytest.raises(WebError) as caught:
            await client.request("GET", site.url, max_bytes=50)

    assert caught.value.kind == "too_large"


def packed(data, wbits):
    stream = zlib.compressobj(9, zlib.DEFLATED, wbits)
    return stream.compress(data) + stream.flush()


@pytest.mark.parametrize("coding", ["gzip", "x-gzip", "GZIP", "deflate", "raw"])
async def test_packed_bodies_are_unpacked(site, coding):
    data = b"hello " * 10_000
    body = packed(data, {"deflate": 15, "raw": -15}.get(coding, 31))
    site.pages["/"] = (200, {"Content-Encoding": "deflate" if coding == "raw" else coding}, body)
    async with WebClient(open_to(site)) as client:
        answer = await client.request("GET", site.url)

    assert (answer.body == data, site.seen[0].header("accept-encoding")) == (True, "gzip, deflate")


@pytest.mark.parametrize(("coding", "wbits"), [("gzip", 31), ("deflate", 15), ("deflate", -15)])
async def test_a_bomb_does_not_go_off(site, coding, wbits):
    bomb = packed(b"\0" * 50_000_000, wbits)
    site.pages["/"] = (200, {"Content-Encoding": coding}, bomb)

    error = await refusal(WebClient(open_to(site, max_bytes=100_000)), site.url)

    assert (error.kind, len(bomb) < 100_000) == ("too_large", True)


@pytest.mark.parametrize(
    ("coding", "body"),
    [
        ("gzip", b"not gzip"),
        ("gzip", gzipped(b"hello")[:-4]),
        ("gzip", gzipped(b"hello") + b"more"),
        ("gzip", gzipped(b"hello") + gzipped(b"more")),
        ("deflate", b"\xff\xff\xff"),
        ("deflate", b"x"),
        ("br", b"\x0b\x02\x80hello\x03"),
        ("zstd", b"hello"),
        ("gzip, gzip", gzipped(gzipped(b"hello"))),
    ],
)
async def test_a_body_that_can_not_be_unpacked_is_refused(site, coding, body):
    site.pages["/"] = (200, {"Content-Encoding": coding}, body)

    error = await refusal(WebClient(open_to(site)), site.url)

    assert error.kind == "bad_response"


async def test_an_empty_body_is_empty_however_it_is_packed(site):
    site.pages["/"] = (204, {"Content-Encoding": "gzip"}, b"")
    async with WebClient(open_to(site)) as client:
        assert (await client.request("GET", site.url)).body == b""


async def test_a_packed_body_may_come_byte_by_byte():
    body = packed(b"hello", -15)

    async def drip(writer):
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Encoding: deflate\r\nTransfer-Encoding: chunked\r\n\r\n")
        for byte in body:
            writer.write(b"1\r\n" + bytes([byte]) + b"\r\n")
            await writer.drain()
        writer.write(b"0\r\n\r\n")

    async with speaking(drip) as port, WebClient(WebPolicy(allow_private=[f"127.0.0.1:{port}"])) as client:
        answer = await client.request("GET", f"http://127.0.0.1:{port}/")

    assert answer.text == "hello"


async def never(writer):
    await asyncio.Event().wait()


async def slow_head(writer):
    writer.write(b"HTTP/1.1 200 OK\r\n")
    while True:
        writer.write(b"X-More: 1\r\n")
        await writer.drain()
        await asyncio.sleep(0.05)


async def slow_body(writer):
    writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
    while True:
        writer.write(b"x")
        await writer.drain()
        await asyncio.sleep(0.05)


async def hints(writer):
    while True:
        writer.write(b"HTTP/1.1 103 Early Hints\r\n\r\n")
        await writer.drain()


@pytest.mark.parametrize("script", [never, slow_head, slow_body, hints])
async def test_the_whole_exchange_has_one_deadline(script):
    error = await from_bytes(script, timeout=0.3)

    assert (error.kind, str(error)) == (
        "timeout",
        "127.0.0.1 did not answer within 0.3 s; try again later, or ask for less",
    )


async def test_a_name_that_is_never_found_has_the_same_deadline():
    async def resolve(host, port):
        await asyncio.Event().wait()

    error = await refusal(WebClient(WebPolicy(timeout=0.05), resolve=resolve), "https://slow.test/")

    assert error.kind == "timeout"


async def test_redirects_share_one_deadline(site):
    site.pages["/a"] = redirect("/b")
    async with speaking(never) as port:
        site.pages["/b"] = redirect(f"http://127.0.0.1:{port}/")
        policy = WebPolicy(allow_private=["127.0.0.1"], ports=[port, site.server_port], timeout=0.3)

        error = await refusal(WebClient(policy), f"{site.url}/a")

    assert error.kind == "timeout"


async def test_a_cancelled_request_is_cancelled():
    async with speaking(never) as port, WebClient(WebPolicy(allow_private=[f"127.0.0.1:{port}"])) as client:
        task = asyncio.create_task(client.request("GET", f"http://127.0.0.1:{port}/"))
        await asyncio.sleep(0)
        task.cancel()

        with pytest.raises(asyncio.CancelledError):
            await task


# -- answers that are none ---------------------------------------------------------------------------------------

OK = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x00\x01\x02\r\n\r\n",
        b"SSH-2.0-OpenSSH\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1, 2\r\n\r\nx",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\nbad header\r\n\r\n",
        b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
        OK + b"".join(b"X-%d: 1\r\n" % number for number in range(300)) + b"\r\n",
        OK + b"X-Long: " + b"x" * 70_000 + b"\r\n\r\n",
        OK + b"X-Long: " + b"x" * 300_000 + b"\r\n\r\n",
    ],
)
async def test_an_answer_that_is_no_http_is_refused(data):
    async def say(writer):
        writer.write(data)

    error = await from_bytes(say)

    assert error.kind == "bad_response"


async def test_a_server_that_does_not_listen_is_unreachable():
    async with speaking(never) as port:
        pass

    error = await refusal(WebClient(WebPolicy(allow_private=[f"127.0.0.1:{port}"])), f"http://127.0.0.1:{port}/")

    assert (error.kind, error.host) == ("unreachable", "127.0.0.1")
    assert str(error) == "127.0.0.1 can't be connected to; see whether it runs, and on this port"
    assert not error.is_sent


async def test_a_connection_that_is_reset_is_unreachable():
    async def reset(writer):
        writer.write(OK + b"Content-Length: 9\r\n\r\nx")
        await writer.drain()
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()

    error = await from_bytes(reset)

    assert (error.kind, str(error)) == ("unreachable", "127.0.0.1 broke the connection off; try again later")
    assert error.is_sent


async def test_a_request_is_known_to_have_left_or_not_when_its_time_is_over():
    async def lost(host, port):
        await asyncio.Event().wait()

    async with speaking(never) as port:
        policy = WebPolicy(allow_private=["127.0.0.1", "app.test"], ports=(port,), timeout=0.2)
        async with WebClient(policy, resolve=lost) as client:
            asked = await refusal(client, f"http://127.0.0.1:{port}/")
            unknown = await refusal(client, f"http://app.test:{port}/")

    assert [(one.kind, one.is_sent) for one in (asked, unknown)] == [("timeout", True), ("timeout", False)]


async def test_an_answer_that_is_no_json_came_to_a_request_that_left(site):
    site.pages["/"] = (200, {}, b"<html>")
    async with WebClient(open_to(site)) as client:
        answer = await client.request("GET", site.url)

    with pytest.raises(WebError) as caught:
        answer.json()

    assert caught.value.is_sent


async def unknown(host, port):
    raise OSError(SECRET)


async def nothing(host, port):
    return []


@pytest.mark.parametrize("resolve", [unknown, nothing])
async def test_a_name_that_nobody_knows_is_unreachable(resolve):
    error = await refusal(WebClient(resolve=resolve), "https://nobody.test/")

    assert (error.kind, str(error)) == ("unreachable", "nobody.test is not known; correct the name")


# -- what is sent ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "headers",
    [
        {"X-A": "1\r\nX-B: 2"},
        {"X-A": "1\nX-B: 2"},
        {"X-A": "1\rX-B: 2"},
        {"X-A": "a\x00b"},
        {"X-A": " a"},
        {"X-A": "a "},
        {"X-A": "ü"},
        {"X-A": "a\u2028b"},
        {"X-A": b"bytes"},
        {"X-A": 7},
        {"X A": "1"},
        {"X-A:": "1"},
        {"": "1"},
        {"X-A\r\nX-B": "1"},
        {"X-Ü": "1"},
        {7: "1"},
        {"Host": "evil.test"},
        {"content-length": "0"},
        {"Transfer-Encoding": "chunked"},
        {"Content_Length": "0"},
        {"Transfer.Encoding": "chunked"},
        {"Connection": "x"},
        {"Proxy-Authorization": "x"},
        {"Accept-Encoding": "br"},
        {"Expect": "100-continue"},
        {"Upgrade": "h2c"},
        [("X-A", "1")] * 101,
        {"X-A": "x" * 40_000},
    ],
)
async def test_a_header_that_would_become_something_else_is_refused(site, headers):
    error = await refusal(WebClient(open_to(site)), site.url, headers=headers)

    assert (error.kind, site.seen) == ("refused", [])


async def test_a_value_is_not_told_when_it_is_refused(site):
    error = await refusal(WebClient(open_to(site)), site.url, headers={"Authorization": f"{SECRET}\r\n"})

    assert str(error).startswith("the request is refused: the header Authorization has a value that can't be sent")


@pytest.mark.parametrize("method", ["CONNECT", "TRACE", "GET / HTTP/1.1\r\nX: y", "G ET", "", None, "PROPFIND"])
async def test_a_method_that_is_not_of_the_usual_ones_is_refused(site, method):
    error = await refusal(WebClient(open_to(site)), site.url, method)

    assert (error.kind, site.seen) == ("refused", [])


@pytest.mark.parametrize(
    "fields",
    [
        {"json": {"a": object()}},
        {"json": float("nan")},
        {"json": "\ud800"},
        {"content": 7},
        {"content": ["x"]},
        {"data": {"a": object()}},
        {"data": {"a": "\ud800"}},
        {"params": {"a": float("inf")}},
        {"params": {"a": {"b": 1}}},
        {"json": 1, "content": b"2"},
        {"content": b"1", "files": {"a": b""}},
        {"files": {"a": "text"}},
        {"files": {"a": ("x",)}},
        {"files": {"a": ("x", "text")}},
        {"files": {"a": ("x", b"", "text/plain\r\nX-Evil: 1")}},
        {"files": {"a": ("x", b"", "text/plain\n\nbody")}},
    ],
)
async def test_what_can_not_be_sent_as_it_is_is_refused(site, fields):
    error = await refusal(WebClient(open_to(site)), site.url, "POST", **fields)

    assert (error.kind, site.seen) == ("refused", [])


async def test_names_of_files_and_fields_stay_in_their_place(site):
    files = {'a"\r\nX-Evil: 1': ('x"\r\n\r\nevil', b"one")}
    async with WebClient(open_to(site)) as client:
        await client.request("POST", site.url, data={'b"\r\n\r\nevil': "1"}, files=files)

    head, _, _ = site.seen[0].body.partition(b"one")
    assert (b"\r\nX-Evil" in head, b"\r\nevil" in head) == (False, False)


async def test_an_address_can_not_carry_a_second_request(site):
    async with WebClient(open_to(site)) as client:
        await client.request("GET", f"{site.url}/%0d%0aX-Evil:%201", params={"a": "\r\nX-Evil: 1"})

    assert site.seen[0].path == "/%0d%0aX-Evil:%201?a=%0D%0AX-Evil%3A%201"
    assert site.seen[0].header("x-evil") is None


# -- what is told ------------------------------------------------------------------------------------------------


async def resetting(writer):
    writer.transport.abort()


async def garbage(writer):
    writer.write(b"garbage\r\n\r\n")


async def echo_redirect(writer):
    writer.write(b"HTTP/1.1 302 Found\r\nLocation: http://10.0.0.1/?key=" + SECRET.encode() + b"\r\n\r\n")


@pytest.mark.parametrize("script", [resetting, garbage, echo_redirect, never])
async def test_no_error_tells_what_was_sent(script, caplog):
    caplog.set_level(logging.INFO)

    error = await from_bytes(script, headers=CREDENTIALS, timeout=0.3)

    chain, told = error, caplog.text
    while chain is not None:
        told += str(chain) + repr(chain) + repr(chain.args)
        chain = chain.__cause__ or chain.__context__
    assert SECRET not in told
    assert "127.0.0.1" in str(error) or "10.0.0.1" in str(error)


async def test_an_answer_shows_nothing_of_its_content(site):
    site.pages["/"] = (200, {"X-Echo": SECRET}, SECRET.encode())
    async with WebClient(open_to(site)) as client:
        answer = await client.request("GET", f"{site.url}/?key={SECRET}")

    assert repr(answer) == "WebResponse(status=200, host='127.0.0.1')"
    assert repr(answer.headers) == "<Headers server, date, x-echo, content-length>"


def test_a_host_is_shown_on_one_line_and_short():
    from agentos.web.web_errors import refused

    assert str(refused("a\nb" + "c" * 500, "x")) == "a\\nb" + "c" * 96 + "... is refused: x"


# -- what an answer is -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("media", "body", "text"),
    [
        ("text/plain; charset=iso-8859-1", b"\xfc", "ü"),
        ('text/plain; charset="utf-8"', "ü".encode(), "ü"),
        ("text/plain; charset=utf-16", "ü".encode("utf-16"), "ü"),
        ("text/plain; charset=rot13", b"abc", "abc"),
        ("text/plain", b"\xff", "\ufffd"),
        ("", b"\xef\xbb\xbfx", "x"),
    ],
)
def test_text_is_decoded_by_the_charset_that_is_named_if_it_is_a_usual_one(media, body, text):
    assert WebResponse(200, Headers([("Content-Type", media)]), body, "", "").text == text


def test_json_is_parsed():
    assert WebResponse(200, Headers(), b'{"a": [1, null]}', "", "").json() == {"a": [1, None]}


@pytest.mark.parametrize("body", [b"", b"{", b"NaN", b"[" * 100_000, b"1" * 5_000])
def test_what_is_no_json_is_refused(body):
    with pytest.raises(WebError, match=r"example\.org did not answer with JSON") as caught:
        WebResponse(200, Headers(), body, "", "example.org").json()

    assert caught.value.kind == "bad_response"


def test_headers_have_no_case_and_are_joined():
    headers = Headers([("A", "1"), ("a", "2"), ("B", "3")])

    assert (dict(headers), headers["A"], headers.get("c"), len(headers)) == ({"a": "1, 2", "b": "3"}, "1, 2", None, 2)


# -- what it costs to import -------------------------------------------------------------------------------------


def run(script):
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_importing_it_imports_no_library_of_http():
    loaded = run("""
        import json, sys
        import agentos.web
        print(json.dumps([name for name in ("httpx", "httpcore", "idna") if name in sys.modules]))
    """)

    assert loaded == []


async def test_without_the_libraries_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "httpcore", None)
    monkeypatch.delitem(sys.modules, "agentos.web._connections", raising=False)

    with pytest.raises(ImportError, match=r"httpcore is not installed; .*: pip install 'agentos-host\[http\]'"):
        await WebClient().request("GET", "http://example.org/")

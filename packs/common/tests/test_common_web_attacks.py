"""Requests that should reach a server inside, through the names that packs use: none arrives.

The servers are real, their port may be used, and only the guard stands between them and each attempt. What the client
does of itself is tested with agentos.web.
"""

import asyncio
import gzip
import itertools
import zlib
from ipaddress import IPv4Address

import pytest
from agentos_pack_common import (
    OptionsError,
    PolicyError,
    WebClient,
    WebError,
    WebOptions,
    WebPolicy,
    parse_url,
    read_options,
)
from loopback import Site, serving, speaking

METADATA = IPv4Address("169.254.169.254")
LOOPBACK = IPv4Address("127.0.0.1")
PRIVATE = IPv4Address("10.0.0.1")


@pytest.fixture
def inner():
    """A server that nobody may reach."""
    with serving(Site()) as site:
        yield site


@pytest.fixture
def outer():
    """A server that may be reached by the name app.test."""
    with serving(Site("127.0.0.3")) as site:
        yield site


def client(*sites, resolve=None, **options):
    """Return a client that may use the ports of *sites*; where to is left to the guard."""
    policy = read_options(WebOptions, options).policy(ports=[site.server_port for site in sites] or [80])
    return WebClient(policy, resolve=resolve)


def answering(*answers):
    """Return a resolver that gives these answers, one after the other, and the last one from then on."""
    left = list(answers)

    async def resolve(host, port):
        resolve.asked += 1
        return left.pop(0) if len(left) > 1 else left[0]

    resolve.asked = 0
    return resolve


async def refusal(client, url, method="GET", **fields):
    async with client:
        with pytest.raises(WebError) as caught:
            await client.request(method, url, **fields)
    return caught.value


# -- literal addresses -------------------------------------------------------------------------------------------


def spellings(address):
    """Return what programs have taken for an IPv4 address."""
    number = int(address)
    a, b, c, d = address.packed
    parts = [(str(part), hex(part), f"0{part:o}", f"000{part:o}", f"0x0000{part:x}") for part in (a, b, c, d)]
    yield from (".".join(each) for each in itertools.product(*(part[:3] for part in parts)))
    yield from (str(number), hex(number), hex(number).upper(), f"0{number:o}", f"{a}.{number & 0xFFFFFF}")
    yield from (
        f"{a}.{b}.{number & 0xFFFF}",
        f"{hex(a)}.{b}.{number & 0xFFFF}",
        f"{number + 2**32}",
        f"{a}.{b}.{c}.{d}.",
    )
    yield from (".".join(part[4] for part in parts), f"{address}%00", f"{address}%2e", str(address).replace(".", "%2e"))
    yield str(address).replace(".", "\u3002")
    yield "".join(chr(0xFF10 + int(char)) if char.isdigit() else char for char in str(address))
    yield "".join(
        "\u2460\u2461\u2462\u2463\u2464\u2465\u2466\u2467\u2468"[int(char) - 1] if char in "123456789" else char
        for char in str(address)
    )


def carriers(address):
    """Return the IPv6 addresses that carry an IPv4 address, by name."""
    high, low = int(address) >> 16, int(address) & 0xFFFF
    return {
        "IPv6-mapped": f"::ffff:{address}",
        "IPv6-mapped, in hexadecimal": f"::ffff:{high:x}:{low:x}",
        "IPv6-mapped, in full": f"0:0:0:0:0:FFFF:{high:04X}:{low:04X}",
        "IPv6-compatible": f"::{address}",
        "IPv6-translated": f"::ffff:0:{address}",
        "NAT64": f"64:ff9b::{address}",
        "NAT64, in hexadecimal": f"64:FF9B::{high:x}:{low:x}",
        "NAT64, of a local prefix": f"64:ff9b:1::{address}",
        "6to4": f"2002:{high:x}:{low:x}::",
        "6to4, with a host": f"2002:{high:x}:{low:x}::1",
        "Teredo": f"2001:0:{high:x}:{low:x}::{(~int(address) >> 16) & 0xFFFF:x}:{~int(address) & 0xFFFF:x}",
    }


@pytest.mark.parametrize("address", [LOOPBACK, METADATA, PRIVATE], ids=str)
async def test_no_spelling_of_an_address_inside_is_taken(inner, address):
    refused = []
    for host in spellings(address):
        async with client(inner) as web:
            with pytest.raises(WebError) as caught:
                await web.request("GET", f"http://{host}:{inner.server_port}/")
        refused.append(caught.value.kind)

    assert len(refused) > 90
    assert (set(refused), inner.seen) == ({"refused"}, [])


@pytest.mark.parametrize("address", [LOOPBACK, METADATA, PRIVATE], ids=str)
@pytest.mark.parametrize("kind", carriers(LOOPBACK))
async def test_no_address_that_carries_another_is_taken(inner, kind, address):
    host = carriers(address)[kind]

    error = await refusal(client(inner), f"http://[{host}]:{inner.server_port}/")

    assert (error.kind, inner.seen) == ("refused", [])


@pytest.mark.parametrize("kind", carriers(LOOPBACK))
async def test_no_carrier_is_taken_even_if_what_it_carries_is_allowed(inner, kind):
    """To allow 127.0.0.1 is not to allow every other way to it."""
    web = client(inner, allowPrivate=["127.0.0.1", "10.0.0.0/8"])

    error = await refusal(web, f"http://[{carriers(LOOPBACK)[kind]}]:{inner.server_port}/")

    assert (error.kind, inner.seen) == ("refused", [])


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST", "[::1]", "[0:0:0:0:0:0:0:1]", "[::]", "0.0.0.0", "0"])
async def test_this_machine_by_any_name_is_refused(inner, host):
    assert (await refusal(client(inner), f"http://{host}:{inner.server_port}/")).kind == "refused"
    assert inner.seen == []


@pytest.mark.parametrize(
    "host", ["224.0.0.1", "239.1.1.1", "255.255.255.255", "[ff02::1]", "[ff0e::1]", "[fe80::1]", "[fc00::1]"]
)
async def test_many_machines_at_once_and_the_neighbours_are_refused(host):
    assert (await refusal(client(), f"http://{host}/")).kind == "refused"


# -- how an address is written -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    [
        *(
            "http://example.org@127.0.0.1:{port}/",
            "http://127.0.0.1:{port}@example.org/",
            "http://a:b@127.0.0.1:{port}/",
        ),
        *(
            "http://example.org:80@127.0.0.1:{port}/",
            "http://127.0.0.1:{port}\\@example.org/",
            "http://@127.0.0.1:{port}/",
        ),
        *(
            "http://example.org#@127.0.0.1:{port}/",
            "http://127.0.0.1:{port}#.example.org/",
            "http://127.0.0.1:{port}?.example.org",
        ),
        *("http:127.0.0.1:{port}/", "http:/127.0.0.1:{port}/", "http:///127.0.0.1:{port}/", "//127.0.0.1:{port}/"),
        *(
            "hTTp://127.0.0.1:{port}/",
            "http://127.0.0.1:{port}",
            " http://127.0.0.1:{port}/",
            "\thttp://127.0.0.1:{port}/",
        ),
        *(
            "file:///etc/passwd",
            "file://127.0.0.1/etc/passwd",
            "gopher://127.0.0.1:{port}/_GET",
            "dict://127.0.0.1:{port}/",
        ),
        *("ftp://127.0.0.1:{port}/", "ldap://127.0.0.1:{port}/", "jar:http://127.0.0.1:{port}/!/", "data:text/html,x"),
        *(
            "unix:///var/run/docker.sock",
            "http+unix://%2Fvar%2Frun%2Fdocker.sock/",
            "javascript:alert(1)",
            "url:http://127.0.0.1/",
        ),
        *(
            "http://[::1]:{port}/",
            "http://[::1%25lo]:{port}/",
            "http://[::ffff:127.0.0.1]:{port}/",
            "http://127.0.0.1:{port}/\r\nX: y",
        ),
    ],
)
async def test_no_way_of_writing_it_gets_in(inner, url):
    resolve = answering([])

    error = await refusal(client(inner, resolve=resolve), url.format(port=inner.server_port))

    assert (error.kind in ("refused", "unreachable"), inner.seen) == (True, [])


def test_packs_read_addresses_as_the_client_does():
    assert parse_url("https://Example.org:443/a").origin == ("https", "example.org", 443)
    with pytest.raises(WebError):
        parse_url("https://user@example.org/")


# -- redirects ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "location",
    [
        *("http://127.0.0.1:{port}/", "//127.0.0.1:{port}/", "http://localhost:{port}/", "http://2130706433:{port}/"),
        *("http://0x7f.1:{port}/", "http://[::ffff:127.0.0.1]:{port}/", "http://[64:ff9b::7f00:1]:{port}/"),
        *("http://[2002:7f00:1::]:{port}/", "http://[::1]:{port}/", "http://169.254.169.254/latest/meta-data/"),
        *(
            "http://a@127.0.0.1:{port}/",
            "http://127.0.0.1:{port}\\@app.test/",
            "file:///etc/passwd",
            "http:127.0.0.1:{port}",
        ),
        *("\\\\127.0.0.1:{port}\\", "/\\127.0.0.1:{port}/", "gopher://127.0.0.1:{port}/", "http://evil.test:{port}/"),
    ],
)
@pytest.mark.parametrize("status", [302, 307])
async def test_no_redirect_leads_inside(inner, outer, status, location):
    outer.pages["/"] = (status, {"Location": location.format(port=inner.server_port)}, b"")

    async def resolve(host, port):
        return {"app.test": ["127.0.0.3"], "evil.test": ["127.0.0.1"], "localhost": ["127.0.0.1"]}[host]

    web = client(inner, outer, resolve=resolve, allowPrivate=[f"127.0.0.3:{outer.server_port}"])
    error = await refusal(web, f"http://app.test:{outer.server_port}/")

    assert (error.kind, len(outer.seen), inner.seen) == ("refused", 1, [])


async def test_no_chain_of_redirects_leads_inside(inner, outer):
    outer.pages["/"] = (302, {"Location": "/second"}, b"")
    outer.pages["/second"] = (307, {"Location": "third"}, b"")
    outer.pages["/third"] = (302, {"Location": f"http://127.0.0.1:{inner.server_port}/"}, b"")

    web = client(inner, outer, allowPrivate=[f"127.0.0.3:{outer.server_port}"])
    error = await refusal(web, f"{outer.url}/")

    assert (error.kind, len(outer.seen), inner.seen) == ("refused", 3, [])


async def test_no_redirect_leads_to_a_host_that_is_not_on_the_list(inner, outer):
    outer.pages["/"] = (302, {"Location": f"http://other.test:{outer.server_port}/"}, b"")
    allow = [f"app.test:{outer.server_port}"]
    web = client(outer, resolve=answering(["127.0.0.3"]), allow=allow, allowPrivate=["127.0.0.3"])

    error = await refusal(web, f"http://app.test:{outer.server_port}/")

    assert ("not among the hosts" in str(error), len(outer.seen)) == (True, 1)


# -- rebinding ---------------------------------------------------------------------------------------------------


@pytest.fixture
def twins():
    """Two servers on one port: the name first leads to the one that may be reached, then to the other."""
    with serving(Site("127.0.0.3")) as good, serving(Site("127.0.0.1", good.server_port)) as bad:
        good.pages["/"] = (200, {"Connection": "close"}, b"good")
        bad.pages["/"] = (200, {}, b"bad")
        yield good, bad


async def test_a_name_that_changes_between_check_and_connection_gains_nothing(twins):
    good, bad = twins
    resolve = answering(["127.0.0.3"], ["127.0.0.1"])
    async with client(good, resolve=resolve, allowPrivate=["127.0.0.3"]) as web:
        answer = await web.request("GET", f"http://app.test:{good.server_port}/")

    assert (answer.body, resolve.asked, bad.seen) == (b"good", 1, [])


async def test_a_name_that_changes_between_requests_is_refused(twins):
    good, bad = twins
    web = client(good, resolve=answering(["127.0.0.3"], ["127.0.0.1"]), allowPrivate=["127.0.0.3"])
    await web.request("GET", f"http://app.test:{good.server_port}/")

    error = await refusal(web, f"http://app.test:{good.server_port}/")

    assert (error.kind, bad.seen) == ("refused", [])


async def test_a_name_that_changes_between_redirects_is_refused(twins):
    good, bad = twins
    good.pages["/"] = (302, {"Location": "/again", "Connection": "close"}, b"")
    web = client(good, resolve=answering(["127.0.0.3"], ["127.0.0.1"]), allowPrivate=["127.0.0.3"])

    error = await refusal(web, f"http://app.test:{good.server_port}/")

    assert (error.kind, bad.seen) == ("refused", [])


@pytest.mark.parametrize("address", [*carriers(LOOPBACK).values(), "127.0.0.1", "169.254.169.254", "::1", "224.0.0.1"])
async def test_a_name_that_leads_inside_in_any_way_is_refused(twins, address):
    good, bad = twins
    web = client(good, resolve=answering(["127.0.0.3", address]), allowPrivate=["127.0.0.3"])

    error = await refusal(web, f"http://app.test:{good.server_port}/")

    assert (error.kind, good.seen, bad.seen) == ("refused", [], [])


# -- proxies -----------------------------------------------------------------------------------------------------


async def test_no_proxy_of_the_environment_is_asked(inner, outer, monkeypatch):
    outer.pages["/"] = (200, {}, b"direct")
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy", "FTP_PROXY"):
        monkeypatch.setenv(name, inner.url)
    monkeypatch.delenv("NO_PROXY", raising=False)
    async with client(outer, allowPrivate=["127.0.0.3"]) as web:
        answer = await web.request("GET", outer.url)

    assert (answer.body, inner.seen) == (b"direct", [])


# -- bombs -------------------------------------------------------------------------------------------------------


def raw_deflate(data):
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


@pytest.mark.parametrize(
    ("coding", "pack"), [("gzip", gzip.compress), ("deflate", zlib.compress), ("deflate", raw_deflate)]
)
async def test_a_bomb_goes_no_further_than_the_limit(outer, coding, pack):
    outer.pages["/"] = (200, {"Content-Encoding": coding}, pack(bytes(20_000_000)))

    error = await refusal(client(outer, allowPrivate=["127.0.0.3"], maxBytes=100_000), outer.url)

    assert error.kind == "too_large"


@pytest.mark.parametrize("coding", ["gzip, gzip", "br", "zstd", "compress", "gzip;q=1", "identity, gzip"])
async def test_a_bomb_within_a_bomb_is_not_opened(outer, coding):
    outer.pages["/"] = (200, {"Content-Encoding": coding}, gzip.compress(gzip.compress(bytes(1_000_000))))

    error = await refusal(client(outer, allowPrivate=["127.0.0.3"]), outer.url)

    assert error.kind == "bad_response"


@pytest.mark.parametrize("head", [b"X: y\r\n" * 300, b"X: " + b"y" * 200_000 + b"\r\n", b"X" * 200_000])
async def test_headers_are_bounded(head):
    async def script(writer):
        writer.write(b"HTTP/1.1 200 OK\r\n" + head + b"Content-Length: 0\r\n\r\n")

    async with speaking(script) as port:
        web = WebClient(WebPolicy(allow_private=[f"127.0.0.1:{port}"]))
        error = await refusal(web, f"http://127.0.0.1:{port}/")

    assert error.kind == "bad_response"


async def test_a_server_that_drips_has_no_more_than_its_time():
    dripping = asyncio.Event()

    async def script(writer):
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
        while not writer.is_closing():
            writer.write(b".")
            await writer.drain()
            await dripping.wait()

    async with speaking(script) as port:
        options = read_options(WebOptions, {"allowPrivate": [f"127.0.0.1:{port}"], "timeout": 0.2})
        error = await refusal(WebClient(options.policy()), f"http://127.0.0.1:{port}/")

    assert error.kind == "timeout"


# -- injection ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "headers",
    [
        *({"X": "a\r\nHost: evil"}, {"X": "a\nb"}, {"X\r\nY": "a"}, {"X: y\r\nZ": "a"}, {"X": "a\0"}, {"X": "\u560a"}),
        *(
            {"Host": "127.0.0.1"},
            {"Transfer-Encoding": "chunked"},
            {"Content-Length": "0"},
            {"Proxy-Authorization": "x"},
        ),
        *({"Connection": "X"}, {"": "x"}, {" X": "y"}, {"X": " y"}, {"Upgrade": "h2c"}),
    ],
)
async def test_no_header_becomes_another(outer, headers):
    error = await refusal(client(outer, allowPrivate=["127.0.0.3"]), outer.url, headers=headers)

    assert (error.kind, outer.seen) == ("refused", [])


@pytest.mark.parametrize("method", ["GET / HTTP/1.1\r\nX: y\r\n\r\nGET", "CONNECT", "TRACE", "get\n", "", None])
async def test_no_method_becomes_a_request(outer, method):
    error = await refusal(client(outer, allowPrivate=["127.0.0.3"]), outer.url, method=method)

    assert (error.kind, outer.seen) == ("refused", [])


async def test_no_parameter_becomes_a_request_or_another_parameter(outer):
    params = {"q": "a b&admin=1 HTTP/1.1\r\nX: y\r\n\r\n#/../", "ü\n": "?"}
    async with client(outer, allowPrivate=["127.0.0.3"]) as web:
        await web.request("GET", f"{outer.url}/find", params=params)

    assert len(outer.seen) == 1
    assert (
        outer.seen[0].path
        == "/find?q=a%20b%26admin%3D1%20HTTP%2F1.1%0D%0AX%3A%20y%0D%0A%0D%0A%23%2F..%2F&%C3%BC%0A=%3F"
    )


# -- options -----------------------------------------------------------------------------------------------------


def test_options_make_a_policy():
    said = {"allow": ["*.example.org"], "allowPrivate": ["10.0.0.0/8"], "timeout": 5, "maxBytes": 1_000}

    policy = read_options(WebOptions, said).policy(user_agent="mine/1")

    assert policy == WebPolicy(
        allow=["*.example.org"], allow_private=["10.0.0.0/8"], timeout=5, max_bytes=1_000, user_agent="mine/1"
    )


def test_options_that_make_no_policy_are_told_all_at_once():
    with pytest.raises(OptionsError) as caught:
        read_options(WebOptions, {"allow": ["ftp://x"], "allowPrivate": ["10.0.0.1/8"], "timeout": 0, "maxBytes": 0})

    places = [problem.path for problem in caught.value.problems]
    assert places == ["options.allow", "options.allowPrivate", "options.timeout", "options.maxBytes"]


def test_a_policy_that_can_not_be_is_told_to_its_author_too():
    with pytest.raises(PolicyError):
        WebOptions().policy(max_redirects=-1)

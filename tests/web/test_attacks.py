"""Names that lead elsewhere the second time, and redirects that want a credential: whole tables of them.

What `docs/security.md` says of the number of attempts is the number of cases here.
"""

import itertools
import ssl

import pytest
from loopback import PEM, Site, serving

from agentos.web import WebClient, WebError, WebPolicy

SECRET = "hunter2-is-not-for-others"
FORBIDDEN = (
    *("127.0.0.2", "127.255.255.254", "0.0.0.0", "0.1.2.3", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1"),
    *("100.64.0.1", "100.127.255.255", "169.254.1.1", "169.254.169.254", "169.254.170.2", "168.63.129.16"),
    *("100.100.100.200", "192.0.0.1", "192.0.0.192", "192.0.2.1", "198.51.100.7", "203.0.113.7", "192.88.99.1"),
    *("198.18.0.1", "198.19.255.255", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255", "::", "::1"),
    *("::7f00:1", "::ffff:127.0.0.1", "::ffff:8.8.8.8", "::ffff:169.254.169.254", "64:ff9b::7f00:1", "64:ff9b::a00:1"),
    *("64:ff9b::a9fe:a9fe", "64:ff9b:1::1", "100::1", "2001::1", "2001:10::1", "2001:db8::1", "2002:7f00:1::"),
    *("2002:808:808::1", "3fff::1", "4000::1", "5f00::1", "fc00::1", "fd12:3456::1", "fd00:ec2::254", "fe80::1"),
    *("fe80::1%lo", "fec0::1", "ff02::1", "127.1", "0x7f000001", "2130706433", "localhost", ""),
)
"""Addresses that are not public, and what is no address at all; `localhost` and the like are not looked up again."""


def redirect(to, status=302):
    return (status, {"Location": to}, b"")


def open_to(*sites):
    return WebPolicy(allow_private=[f"127.0.0.1:{one.server_port}" for one in sites])


def trusting():
    return ssl.create_default_context(cafile=PEM)


# -- rebinding -----------------------------------------------------------------------------------------------------


@pytest.fixture
def site():
    with serving(Site()) as made:
        made.pages["/"] = (200, {"Connection": "close"}, b"hello")
        yield made


def rebinding(*answers):
    """Return a resolver that gives one answer after another; the last one stays."""
    left = list(answers)

    async def resolve(host, port):
        return left.pop(0) if len(left) > 1 else left[0]

    return resolve


GOOD = "127.0.0.1"
"""The one address that may be reached here: it stands for a public one."""
WAYS = {
    "at once": ([], "/", lambda bad: [[bad]]),
    "the second time": (["/"], "/", lambda bad: [[GOOD], [bad]]),
    "behind a redirect to the same name": ([], "/same", lambda bad: [[GOOD], [bad]]),
    "behind a redirect to another name": ([], "/other", lambda bad: [[GOOD], [bad]]),
    "after a good one": ([], "/", lambda bad: [[GOOD, bad]]),
    "before a good one": ([], "/", lambda bad: [[bad, GOOD]]),
    "the second time, among good ones": (["/"], "/", lambda bad: [[GOOD], [GOOD, bad, GOOD]]),
}


@pytest.mark.parametrize("way", WAYS)
async def test_a_name_that_leads_to_a_forbidden_address_is_refused_whenever_it_does(site, way):
    """Each of the forbidden addresses, by each way: nothing is sent there, and what was good before stays good."""
    before, path, answers = WAYS[way]
    port = site.server_port
    site.pages["/same"] = (302, {"Location": f"http://app.test:{port}/", "Connection": "close"}, b"")
    site.pages["/other"] = (302, {"Location": f"http://sub.app.test:{port}/", "Connection": "close"}, b"")
    policy = WebPolicy(allow_private=[GOOD], ports=[port])
    through = []
    for bad in FORBIDDEN:
        async with WebClient(policy, resolve=rebinding(*answers(bad))) as client:
            for each in before:
                await client.request("GET", f"http://app.test:{port}{each}")
            try:
                await client.request("GET", f"http://app.test:{port}{path}")
                through.append(bad)
            except WebError as error:
                if error.kind != "refused":
                    through.append(f"{bad}: {error}")

    assert through == []


# -- credentials ---------------------------------------------------------------------------------------------------

CARRIERS = (
    *("Authorization", "authorization", "Cookie", "Cookie2", "X-Api-Key", "X-Auth-Token", "Api-Key", "X-Csrf-Token"),
    *("X-Amz-Security-Token", "X-Goog-Api-Key", "Private-Token", "X-Vault-Token", "X-Forwarded-User", "Referer"),
)
STATUSES = (301, 302, 303, 307, 308)


@pytest.fixture
def pair(site):
    """Two servers, the second one reached by many spellings of another origin."""
    with serving(Site()) as other:
        other.pages["/"] = (200, {}, b"the other")
        yield site, other


ELSEWHERE = {
    "another port": "http://127.0.0.1:{other}/",
    "another name": "http://evil.test:{other}/",
    "another name at the same place": "http://evil.test:{port}/",
    "a name beneath it": "http://sub.app.test:{port}/",
    "a name above it": "http://test:{port}/",
    "the address of the name": "http://127.0.0.1:{port}/",
    "without a scheme": "//evil.test:{other}/",
    "in capitals": "HTTP://EVIL.TEST:{other}/",
    "another port of the same name": "http://app.test:{other}/",
    "by a second redirect": "/again",
}


@pytest.mark.parametrize("place", ELSEWHERE)
async def test_no_credential_follows_to_another_origin(pair, place):
    """Each header that may be a credential, with each status of a redirect."""
    site, other = pair
    ports = {"port": site.server_port, "other": other.server_port}
    policy = WebPolicy(allow_private=[GOOD], ports=list(ports.values()))
    site.pages["/again"] = redirect(f"http://127.0.0.1:{other.server_port}/")
    leaked = []
    async with WebClient(policy, resolve=rebinding([GOOD])) as client:
        for status, carrier in itertools.product(STATUSES, CARRIERS):
            site.pages["/go"] = redirect(ELSEWHERE[place].format(**ports), status)
            site.seen.clear(), other.seen.clear()
            await client.request("GET", f"http://app.test:{ports['port']}/go", headers={carrier: SECRET})
            home = {f"app.test:{ports['port']}"}
            others = [*other.seen, *(one for one in site.seen if one.header("host") not in home)]
            if len(others) != 1 or any(SECRET in str(one.headers) for one in others):
                leaked.append((status, carrier))

    assert leaked == []


REFUSED = (
    *("http://user:pass@127.0.0.1:{other}/", "http://@127.0.0.1:{other}/", "http://127.0.0.1:{other}\\@app.test/"),
    *("http:/127.0.0.1:{other}/", "http:127.0.0.1:{other}/", "///127.0.0.1:{other}/x y", "http://127.0.0.1.:{other}/"),
    *(
        "http://0x7f.1:{other}/",
        "http://2130706433:{other}/",
        "http://[::ffff:127.0.0.1]:{other}/",
        "http://0:{other}/",
    ),
    *("ftp://127.0.0.1:{other}/", "file:///etc/passwd", "gopher://127.0.0.1:{other}/", "javascript:alert(1)"),
    *("data:text/plain,x", "http://127.0.0.1:{other}/a\tb#@app.test/", "//user@127.0.0.1:{other}/", "http://:{other}/"),
)


@pytest.mark.parametrize("status", STATUSES)
async def test_a_redirect_that_can_be_read_in_two_ways_is_not_followed(pair, status):
    site, other = pair
    through = []
    for location in REFUSED:
        site.pages["/go"] = redirect(location.format(other=other.server_port), status)
        async with WebClient(open_to(site, other)) as client:
            try:
                await client.request("GET", f"{site.url}/go", headers={"Authorization": SECRET})
                through.append(location)
            except WebError:
                pass

    assert (through, other.seen) == ([], [])


@pytest.mark.parametrize("status", STATUSES)
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST"])
async def test_no_redirect_leads_from_https_to_http(site, status, method):
    with serving(Site().secure()) as secure:
        port = secure.server_port
        secure.pages["/go"] = redirect(f"http://app.test:{site.server_port}/", status)
        policy = WebPolicy(allow_private=[f"app.test:{port}", f"app.test:{site.server_port}"])
        async with WebClient(policy, resolve=rebinding([GOOD]), tls=trusting()) as client:
            with pytest.raises(WebError, match=r"from https to http|wants what was sent"):
                await client.request(method, f"https://app.test:{port}/go", headers={"Authorization": SECRET})

    assert site.seen == []


@pytest.mark.parametrize("status", STATUSES)
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
async def test_no_body_follows_to_another_origin(pair, status, method):
    site, other = pair
    site.pages["/go"] = redirect(f"{other.url}/", status)
    async with WebClient(open_to(site, other)) as client:
        try:
            await client.request(method, f"{site.url}/go", content=SECRET)
        except WebError as error:
            assert error.kind == "refused"  # noqa: PT017 - or it became a GET without it

    assert [one for one in other.seen if one.method != "GET" or one.body] == []

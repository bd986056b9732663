"""Whom a token stands for: what holds, what does not, and what happens when keys and files change."""

import asyncio
import base64
import hashlib
import hmac
import json
import logging
import os
import stat
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import get_default_algorithms

from agentos import ManifestError, Principal
from agentos.mcp.auth import JWTVerifier, KeysUnavailableError, TokenFile, is_loopback
from agentos.mcp.auth.token_records import SecretHash

ISSUER = "https://issuer.example"
AUDIENCE = "https://tools.example/mcp"
SECRET = "a shared secret of more than sixty-four bytes, which nobody would choose by hand"
NOW = 1_800_000_000.0
ALICE = Principal("alice", access={"mail.read", "mail.send"})


class Clock:
    def __init__(self):
        self.now = NOW

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


# -- Keys and tokens of an issuer


class Pair:
    """A key pair of an issuer."""

    def __init__(self, kid, algorithm, private):
        self.kid, self.algorithm, self.private = kid, algorithm, private

    def jwk(self, **more):
        made = get_default_algorithms()[self.algorithm].to_jwk(self.private.public_key(), as_dict=True)
        return {**made, "kid": self.kid, "use": "sig", **more}

    def pem(self):
        return self.private.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )

    def sign(self, claims=None, headers=None, algorithm=None):
        named = {"kid": self.kid, **(headers or {})}
        return jwt.encode(claims or good(), self.private, algorithm or self.algorithm, headers=named)


RSA = Pair("rsa-1", "RS256", rsa.generate_private_key(65537, 2048))
NEXT = Pair("rsa-2", "RS256", rsa.generate_private_key(65537, 2048))
EC = Pair("ec-1", "ES256", ec.generate_private_key(ec.SECP256R1()))
ED = Pair("ed-1", "EdDSA", ed25519.Ed25519PrivateKey.generate())


def good(**changed):
    claims = {"iss": ISSUER, "aud": AUDIENCE, "sub": "alice", "exp": NOW + 600, "scope": "mail.read", **changed}
    return {name: value for name, value in claims.items() if value is not ...}


def by_keys(*pairs, clock, **options):
    options.setdefault("principals", {"alice": ALICE})
    return JWTVerifier(
        issuer=ISSUER, audience=AUDIENCE, jwks={"keys": [pair.jwk() for pair in pairs]}, clock=clock, **options
    )


def by_secret(clock, secret=SECRET, **options):
    options.setdefault("principals", {"alice": ALICE})
    return JWTVerifier(issuer=ISSUER, audience=AUDIENCE, secret=secret, clock=clock, **options)


def b64(data):
    raw = data if isinstance(data, bytes) else json.dumps(data).encode()
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


# -- JSON Web Tokens that hold


@pytest.mark.parametrize("pair", [RSA, EC, ED], ids=lambda pair: pair.algorithm)
async def test_a_token_signed_by_a_published_key_holds(pair, clock):
    verified = await by_keys(RSA, EC, ED, clock=clock).verify(pair.sign())

    assert verified.principal.id == "alice"


async def test_a_token_signed_with_the_shared_secret_holds(clock):
    verified = await by_secret(clock).verify(jwt.encode(good(), SECRET, "HS256"))

    assert verified.principal.id == "alice"


async def test_keys_are_read_from_a_file(tmp_path, clock):
    file = tmp_path / "keys.json"
    file.write_text(json.dumps({"keys": [EC.jwk()]}))
    verifier = JWTVerifier(issuer=ISSUER, audience=AUDIENCE, jwks=file, clock=clock)

    assert await verifier.verify(EC.sign())


async def test_a_token_without_kid_is_checked_by_the_only_key_that_fits(clock):
    token = jwt.encode(good(), RSA.private, "RS256")

    assert await by_keys(RSA, EC, clock=clock).verify(token)
    assert await by_keys(RSA, NEXT, clock=clock).verify(token) is None


async def test_what_a_token_tells_is_kept(clock):
    claims = good(jti="t-1", client_id="desk", scope="mail.read other")
    verified = await by_keys(RSA, clock=clock).verify(RSA.sign(claims))

    assert (verified.client, verified.token_id, verified.expires_at) == ("desk", "t-1", NOW + 600)
    assert verified.scopes == {"mail.read", "other"}


async def test_the_client_is_the_authorised_party_where_no_client_is_named(clock):
    verified = await by_keys(RSA, clock=clock).verify(RSA.sign(good(azp="desk")))

    assert verified.client == "desk"


async def test_a_token_without_id_gets_one_that_is_always_the_same(clock):
    verifier, token = by_secret(clock), jwt.encode(good(), SECRET, "HS256")

    assert (await verifier.verify(token)).token_id == (await verifier.verify(token)).token_id != ""


@pytest.mark.parametrize("audience", [AUDIENCE, ["https://other.example", AUDIENCE]])
async def test_an_audience_may_be_one_of_several(audience, clock):
    assert await by_keys(RSA, clock=clock).verify(RSA.sign(good(aud=audience)))


async def test_clocks_may_differ_by_the_leeway(clock):
    claims = good(exp=NOW - 20, nbf=NOW + 20, iat=NOW + 20)

    assert await by_secret(clock).verify(jwt.encode(claims, SECRET, "HS256"))
    assert await by_secret(clock, leeway=10).verify(jwt.encode(claims, SECRET, "HS256")) is None


@pytest.mark.parametrize("type", ["JWT", "at+jwt", "application/at+jwt"])
async def test_access_tokens_are_taken_by_their_types(type, clock):
    assert await by_keys(RSA, clock=clock).verify(RSA.sign(headers={"typ": type}))


# -- What a token narrows


@pytest.mark.parametrize(
    ("claims", "held"),
    [
        ({"scope": "mail.read"}, {"mail.read"}),
        ({"scope": "mail.read mail.send"}, {"mail.read", "mail.send"}),
        ({"scope": "mail.read root"}, {"mail.read"}),
        ({"scope": "*"}, set()),
        ({"scope": ""}, set()),
        ({"scope": ...}, set()),
        ({"scope": ["mail.send"]}, {"mail.send"}),
        ({"scope": 7}, set()),
        ({"scope": ..., "scp": ["mail.read", 3]}, {"mail.read"}),
        ({"scope": ..., "scp": "mail.read"}, {"mail.read"}),
        ({"scope": "", "scp": "mail.read"}, set()),
    ],
)
async def test_scopes_only_take_away(claims, held, clock):
    verified = await by_secret(clock).verify(jwt.encode(good(**claims), SECRET, "HS256"))

    assert verified.principal.held == held


async def test_a_star_is_never_held_through_a_token(clock):
    verifier = by_secret(clock, principals={"alice": Principal("alice", access={"*"})})
    verified = await verifier.verify(jwt.encode(good(scope="* mail.read"), SECRET, "HS256"))

    assert verified.principal.held == {"mail.read"} == verified.scopes


async def test_without_principals_a_subject_holds_nothing(clock):
    verifier = by_secret(clock, principals=None)
    verified = await verifier.verify(jwt.encode(good(sub="anyone"), SECRET, "HS256"))

    assert verified.principal == Principal("anyone", scopes=frozenset())


async def test_nobody_is_the_host_itself_by_its_name(clock):
    verifier = by_secret(clock, principals=None)

    assert await verifier.verify(jwt.encode(good(sub="system"), SECRET, "HS256")) is None


async def test_a_host_decides_by_claims_who_it_is(clock):
    def by_team(claims):
        return Principal(f"{claims['team']}-{claims['sub']}", access={"mail.read"})

    verified = await by_secret(clock, principals=by_team).verify(jwt.encode(good(team="red"), SECRET, "HS256"))

    assert verified.principal.id == "red-alice"


async def test_a_host_may_look_it_up(clock):
    async def look_up(claims):
        return None if claims["sub"] == "bob" else ALICE

    verifier = by_secret(clock, principals=look_up)

    assert await verifier.verify(jwt.encode(good(), SECRET, "HS256"))
    assert await verifier.verify(jwt.encode(good(sub="bob"), SECRET, "HS256")) is None


# -- Attacks


def signed(header, claims=None):
    """Sign whatever it is with the right key, so that nothing is wrong but what the test is about."""
    head = f"{b64(header)}.{b64(good() if claims is None else claims)}"
    return f"{head}.{b64(get_default_algorithms()['RS256'].sign(head.encode(), RSA.private))}"


def by_rsa(claims):
    return signed({"alg": "RS256", "kid": "rsa-1"}, claims)


def signed_with_the_public_key(key):
    head = f"{b64({'alg': 'HS256', 'typ': 'JWT', 'kid': 'rsa-1'})}.{b64(good())}"
    return f"{head}.{b64(hmac.digest(key, head.encode(), 'sha256'))}"


def tampered():
    head, _, tail = RSA.sign().split(".")
    return f"{head}.{b64(good(sub='root'))}.{tail}"


STRANGER = Pair("rsa-1", "RS256", rsa.generate_private_key(65537, 2048))

NO_TOKEN = "it is not a JSON Web Token"
NO_ALGORITHM = "its algorithm is not allowed"
NO_KEY = "no key is known that could have signed it"
NO_SIGNATURE = "its signature is wrong"
NO_TIMES = "its times are missing or can't be used"
NO_ISSUER = "its issuer is another"
NO_AUDIENCE = "its audience is another"
NO_SUBJECT = "it has no subject"
NO_HEADER = "its header can't be used"

ATTACKS = {
    "alg none": (f"{b64({'alg': 'none'})}.{b64(good())}.", NO_ALGORITHM),
    "alg None": (f"{b64({'alg': 'None', 'kid': 'rsa-1'})}.{b64(good())}.", NO_ALGORITHM),
    "no alg": (signed({"kid": "rsa-1"}), NO_HEADER),
    "alg is a list": (signed({"alg": ["RS256"], "kid": "rsa-1"}), NO_HEADER),
    "HS256 with the public key in PEM": (signed_with_the_public_key(RSA.pem()), NO_ALGORITHM),
    "HS256 with the modulus": (signed_with_the_public_key(RSA.jwk()["n"].encode()), NO_ALGORITHM),
    "another key of the same kid": (STRANGER.sign(), NO_SIGNATURE),
    "another key's kid": (RSA.sign(headers={"kid": "ec-1"}), NO_KEY),
    "another key's algorithm": (signed({"alg": "ES256", "kid": "rsa-1"}), NO_KEY),
    "tampered claims": (tampered(), NO_SIGNATURE),
    "no signature": (RSA.sign().rpartition(".")[0] + ".", NO_SIGNATURE),
    "ES256 with zeros": (f"{b64({'alg': 'ES256', 'kid': 'ec-1'})}.{b64(good())}.{b64(bytes(64))}", NO_SIGNATURE),
    "wrong issuer": (by_rsa(good(iss=ISSUER + "/")), NO_ISSUER),
    "issuer is a list": (by_rsa(good(iss=[ISSUER])), NO_ISSUER),
    "no issuer": (by_rsa(good(iss=...)), NO_ISSUER),
    "wrong audience": (by_rsa(good(aud=AUDIENCE + "/other")), NO_AUDIENCE),
    "no audience": (by_rsa(good(aud=...)), NO_AUDIENCE),
    "audience is a mapping": (by_rsa(good(aud={AUDIENCE: 1})), NO_AUDIENCE),
    "audience in a list in a list": (by_rsa(good(aud=[[AUDIENCE]])), NO_AUDIENCE),
    "expired": (by_rsa(good(exp=NOW - 31)), "it has expired"),
    "no expiry": (by_rsa(good(exp=...)), NO_TIMES),
    "expiry is text": (by_rsa(good(exp=str(NOW + 60))), NO_TIMES),
    "expiry is true": (by_rsa(good(exp=True)), NO_TIMES),
    "expiry is endless": (by_rsa(good(exp=float("inf"))), NO_TIMES),
    "expiry is no number": (by_rsa(good(exp=float("nan"))), NO_TIMES),
    "not before later": (by_rsa(good(nbf=NOW + 31)), "it is not valid yet"),
    "not before is null": (by_rsa(good(nbf=None)), NO_TIMES),
    "issued later": (by_rsa(good(iat=NOW + 31)), "it is not valid yet"),
    "no subject": (by_rsa(good(sub=...)), NO_SUBJECT),
    "subject is a number": (by_rsa(good(sub=7)), NO_SUBJECT),
    "subject with line breaks": (by_rsa(good(sub="alice\nroot")), NO_SUBJECT),
    "subject is long": (by_rsa(good(sub="a" * 201)), NO_SUBJECT),
    "unknown subject": (by_rsa(good(sub="mallory")), "its subject is unknown"),
    "kid is a path": (RSA.sign(headers={"kid": "../../../../dev/null"}), NO_KEY),
    "kid is SQL": (RSA.sign(headers={"kid": "x' UNION SELECT 'key'; --"}), NO_KEY),
    "kid is long": (RSA.sign(headers={"kid": "k" * 1000}), NO_HEADER),
    "kid is a number": (signed({"alg": "RS256", "kid": 7}), NO_TOKEN),
    "keys of its own (jwk)": (STRANGER.sign(headers={"kid": "own", "jwk": STRANGER.jwk()}), NO_KEY),
    "unknown extension": (signed({"alg": "RS256", "kid": "rsa-1", "crit": ["exp"], "exp": 1}), NO_TOKEN),
    "known extension": (
        signed({"alg": "RS256", "kid": "rsa-1", "crit": ["b64"], "b64": True}),
        "it asks for an extension",
    ),
    "unencoded payload": (signed({"alg": "RS256", "kid": "rsa-1", "b64": False, "crit": ["b64"]}), NO_TOKEN),
    "another type": (RSA.sign(headers={"typ": "logout+jwt"}), "it is of another type"),
    "type is a number": (signed({"alg": "RS256", "kid": "rsa-1", "typ": 7}), "it is of another type"),
    "claims are a list": (by_rsa([1]), "it has no claims"),
    "claims are no JSON": (by_rsa(b"{"), "it has no claims"),
    "claims are deep": (by_rsa(b"[" * 3000), "it has no claims"),
    "header is deep": (f"{b64(b'[' * 4000)}.{b64(good())}.eA", NO_TOKEN),
    "header is a list": (signed([1]), NO_TOKEN),
    "huge": ("a" * 9000, "it is too long"),
    "huge and signed": (by_rsa(good(pad="x" * 9000)), "it is too long"),
    "empty": ("", NO_TOKEN),
    "dots": ("..", NO_TOKEN),
    "five parts": ("a.b.c.d.e", NO_TOKEN),
    "unicode": ("\N{SNOWMAN}.\N{SNOWMAN}.\N{SNOWMAN}", NO_TOKEN),
    "surrogates": ("\ud800.\ud800.\ud800", NO_TOKEN),
    "white space": (" " + RSA.sign(), NO_TOKEN),
    "padding": (RSA.sign() + "=", NO_TOKEN),
}


@pytest.mark.parametrize(("token", "reason"), ATTACKS.values(), ids=ATTACKS)
async def test_a_token_that_does_not_hold_is_refused_and_the_log_says_why(token, reason, clock, caplog):
    caplog.set_level(logging.DEBUG)

    assert await by_keys(RSA, EC, clock=clock).verify(token) is None
    [record] = [record for record in caplog.records if record.name == "agentos.mcp.auth"]
    assert record.getMessage() == f"a request was refused: a JSON Web Token is invalid: {reason}"


@pytest.mark.parametrize("algorithm", ["RS256", "none", "HS512"])
async def test_a_shared_secret_takes_only_its_own_algorithm(algorithm, clock):
    key = {"RS256": RSA.private, "none": None}.get(algorithm, SECRET)

    assert await by_secret(clock).verify(jwt.encode(good(), key, algorithm)) is None


async def test_algorithms_can_be_fewer(clock):
    verifier = by_keys(RSA, clock=clock, algorithms=["PS256"])

    assert await verifier.verify(RSA.sign()) is None
    assert await verifier.verify(RSA.sign(algorithm="PS256"))


async def test_a_key_that_names_its_algorithm_takes_no_other(clock):
    verifier = JWTVerifier(issuer=ISSUER, audience=AUDIENCE, jwks={"keys": [RSA.jwk(alg="RS512")]}, clock=clock)

    assert await verifier.verify(RSA.sign()) is None
    assert await verifier.verify(RSA.sign(algorithm="RS512"))


WEAK = Pair("weak", "RS256", rsa.generate_private_key(65537, 1024))
PRIVATE = get_default_algorithms()["ES256"].to_jwk(EC.private, as_dict=True)


@pytest.mark.parametrize(
    "jwk",
    [
        {"kty": "oct", "k": b64(SECRET.encode()), "kid": "s", "alg": "HS256"},
        RSA.jwk(alg="HS256"),
        RSA.jwk(use="enc"),
        RSA.jwk(use=...) | {"use": 7},
        RSA.jwk(key_ops=["encrypt"]),
        RSA.jwk(key_ops=3),
        RSA.jwk(n="!"),
        RSA.jwk(n=7),
        EC.jwk(crv="secp256k1"),
        EC.jwk(x="AA"),
        WEAK.jwk(),
        PRIVATE,
        {"kty": "RSA"},
        {"kty": ["RSA"]},
        {},
        "RSA",
        None,
    ],
    ids=lambda jwk: str(jwk)[:30],
)
def test_keys_that_are_not_for_this_are_left_out(jwk):
    with pytest.raises(ValueError, match="public RSA, EC or Ed25519 key"):
        JWTVerifier(issuer=ISSUER, audience=AUDIENCE, jwks={"keys": [jwk]})


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "exactly one of"),
        ({"secret": SECRET, "jwks": {"keys": []}}, "exactly one of"),
        ({"secret": "short"}, "at least 32 bytes, got 5"),
        ({"secret": SECRET[:40], "algorithms": ["HS512"]}, "at least 64 bytes, got 40"),
        ({"secret": RSA.pem()}, "give published keys as jwks"),
        ({"secret": SECRET, "algorithms": ["RS256"]}, "with a shared secret expected some of HS256"),
        ({"secret": SECRET, "algorithms": ["none"]}, "with a shared secret expected some of"),
        ({"secret": SECRET, "algorithms": []}, "expected some of"),
        ({"jwks": {"keys": [RSA.jwk()]}, "algorithms": ["RS256", "HS256"]}, "with published keys expected some of"),
        ({"jwks": {"keys": [RSA.jwk()]}, "algorithms": ["none"]}, "with published keys expected some of"),
        ({"jwks": {"keys": {}}}, "public RSA, EC or Ed25519 key"),
        ({"jwks_url": "http://issuer.example/keys"}, "expected an https address"),
        ({"jwks_url": "file:///etc/passwd"}, "expected an https address"),
        ({"jwks_url": "https://user@issuer.example/keys"}, "expected an https address"),
        ({"jwks_url": "https:///keys"}, "expected an https address"),
        ({"secret": SECRET, "audience": []}, "audience: expected at least one"),
        ({"secret": SECRET, "audience": ""}, "audience: expected text"),
        ({"secret": SECRET, "issuer": ""}, "issuer: expected text"),
        ({"secret": SECRET, "leeway": -1}, "leeway: expected seconds"),
        ({"secret": SECRET, "leeway": float("inf")}, "leeway: expected seconds"),
    ],
)
def test_what_would_be_unsafe_is_refused_when_it_is_set_up(options, words):
    with pytest.raises(ValueError, match=words):
        JWTVerifier(**{"issuer": ISSUER, "audience": AUDIENCE, **options})


def test_algorithms_are_a_list():
    with pytest.raises(TypeError, match="expected a list"):
        JWTVerifier(issuer=ISSUER, audience=AUDIENCE, secret=SECRET, algorithms="HS256")


# -- Keys that are fetched


class KeyServer:
    """An issuer's keys over HTTP on loopback. What it answers can be changed, and held back."""

    def __init__(self):
        self.document = {"keys": [RSA.jwk()]}
        self.raw = None
        self.status = 200
        self.asked = []
        self.open = threading.Event()
        self.open.set()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self._server.server_port}/keys"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    def _handler(outer):
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                outer.asked.append(self.path)
                outer.open.wait(10)
                body = json.dumps(outer.document).encode() if outer.raw is None else outer.raw
                self.send_response(outer.status)
                self.send_header("Content-Length", str(len(body)))
                self.send_header("Location", outer.url + "/elsewhere")
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args):
                pass

        return Handler

    def close(self):
        self.open.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def issuer():
    server = KeyServer()
    yield server
    server.close()


def by_url(issuer, clock, **options):
    return JWTVerifier(issuer=ISSUER, audience=AUDIENCE, jwks_url=issuer.url, clock=clock, leeway=1e9, **options)


async def test_keys_are_fetched_once_and_kept(issuer, clock):
    verifier = by_url(issuer, clock)
    answers = [await verifier.verify(RSA.sign()) for _ in range(5)]

    assert all(answers)
    assert len(issuer.asked) == 1


async def test_those_who_come_at_once_share_one_fetch(issuer, clock):
    issuer.open.clear()
    verifier = by_url(issuer, clock)
    waiting = [asyncio.create_task(verifier.verify(RSA.sign())) for _ in range(20)]
    while not issuer.asked:
        await asyncio.sleep(0.001)
    issuer.open.set()

    assert all(await asyncio.gather(*waiting))
    assert len(issuer.asked) == 1


async def test_who_stops_waiting_does_not_stop_the_fetch_for_others(issuer, clock):
    issuer.open.clear()
    verifier = by_url(issuer, clock)
    first, second = (asyncio.create_task(verifier.verify(RSA.sign())) for _ in range(2))
    while not issuer.asked:
        await asyncio.sleep(0.001)
    first.cancel()
    issuer.open.set()

    assert await second
    assert first.cancelled()


async def test_a_rotated_key_is_fetched_when_a_token_names_it(issuer, clock):
    verifier = by_url(issuer, clock)
    await verifier.verify(RSA.sign())
    issuer.document = {"keys": [NEXT.jwk(), EC.jwk()]}
    clock.now += 61

    assert await verifier.verify(NEXT.sign())
    assert await verifier.verify(EC.sign())
    assert len(issuer.asked) == 2


async def test_a_key_that_was_taken_back_counts_no_more(issuer, clock):
    verifier = by_url(issuer, clock)
    await verifier.verify(RSA.sign())
    issuer.document = {"keys": [NEXT.jwk()]}
    clock.now += 61
    await verifier.verify(NEXT.sign())

    assert await verifier.verify(RSA.sign()) is None


async def test_unknown_kids_cause_one_fetch_a_minute(issuer, clock):
    verifier = by_url(issuer, clock)
    await verifier.verify(RSA.sign())
    for number in range(50):
        await verifier.verify(RSA.sign(headers={"kid": f"unknown-{number}"}))

    assert len(issuer.asked) == 1
    clock.now += 61
    for number in range(50):
        await verifier.verify(RSA.sign(headers={"kid": f"unknown-{number}"}))
    assert len(issuer.asked) == 2


async def test_old_keys_are_renewed_while_they_still_serve(issuer, clock):
    verifier = by_url(issuer, clock)
    await verifier.verify(RSA.sign())
    clock.now += 601
    issuer.open.clear()

    assert await verifier.verify(RSA.sign())
    issuer.document = {"keys": [NEXT.jwk()]}
    issuer.open.set()
    assert await verifier.verify(NEXT.sign())
    assert len(issuer.asked) == 2


async def test_an_outage_leaves_the_last_keys_for_an_hour(issuer, clock):
    verifier = by_url(issuer, clock)
    await verifier.verify(RSA.sign())
    issuer.status = 500
    clock.now += 3599

    assert await verifier.verify(RSA.sign())


async def test_after_an_hour_of_outage_nothing_can_be_said(issuer, clock):
    verifier = by_url(issuer, clock)
    await verifier.verify(RSA.sign())
    issuer.status = 500
    clock.now += 3601

    with pytest.raises(KeysUnavailableError, match="no keys could be fetched"):
        await verifier.verify(RSA.sign())


async def test_a_clock_that_was_set_back_does_not_keep_keys_alive(issuer, clock):
    verifier = by_url(issuer, clock)
    await verifier.verify(RSA.sign())
    issuer.status = 500
    clock.now -= 10_000

    with pytest.raises(KeysUnavailableError):
        await verifier.verify(RSA.sign())


async def test_keys_that_never_came_are_asked_for_again_after_some_seconds(issuer, clock):
    issuer.status = 503
    verifier = by_url(issuer, clock)
    for _ in range(3):
        with pytest.raises(KeysUnavailableError):
            await verifier.verify(RSA.sign())
    asked = len(issuer.asked)
    issuer.status = 200
    clock.now += 6

    assert await verifier.verify(RSA.sign())
    assert asked == 1


async def test_keys_that_nobody_serves_can_not_be_fetched(clock):
    verifier = JWTVerifier(issuer=ISSUER, audience=AUDIENCE, jwks_url="http://127.0.0.1:1/keys", clock=clock)

    with pytest.raises(KeysUnavailableError):
        await verifier.verify(RSA.sign())


@pytest.mark.parametrize(
    ("status", "raw"),
    [
        (302, b'{"keys": []}'),
        (200, b"not JSON"),
        (200, b"[]"),
        (200, b'{"keys": []}'),
        (200, b"[" * 100_000),
        (200, b'{"keys": [' + b" " * 300_000 + b"]}"),
    ],
)
async def test_an_answer_that_is_no_key_set_counts_as_an_outage(status, raw, issuer, clock):
    issuer.status, issuer.raw = status, raw
    with pytest.raises(KeysUnavailableError):
        await by_url(issuer, clock).verify(RSA.sign())

    assert issuer.asked == ["/keys"]


async def test_a_key_server_that_never_answers_is_given_up(issuer, clock):
    issuer.open.clear()

    with pytest.raises(KeysUnavailableError):
        await by_url(issuer, clock, fetch_timeout=0.05).verify(RSA.sign())


@pytest.mark.parametrize("header", ["jku", "x5u"])
async def test_where_a_token_says_that_keys_are_is_not_looked_at(header, issuer, clock):
    verifier = by_keys(RSA, clock=clock)
    token = STRANGER.sign(headers={"kid": "own", header: issuer.url})

    assert await verifier.verify(token) is None
    assert issuer.asked == []


# -- Static tokens


@pytest.fixture
def path(tmp_path):
    return tmp_path / "tokens.json"


@pytest.fixture
def tokens(path, clock):
    return TokenFile(path, clock=clock)


def id_of(token):
    return token.split("_")[1]


async def test_an_issued_token_stands_for_its_principal(tokens):
    verified = await tokens.verify(tokens.issue(ALICE))

    assert verified.principal == ALICE
    assert verified.scopes == ALICE.access


async def test_an_issued_token_is_narrowed_by_its_scopes(tokens):
    verified = await tokens.verify(tokens.issue(ALICE, scopes=["mail.read", "root", "*"]))

    assert verified.principal.held == {"mail.read"}
    assert verified.scopes == {"mail.read", "root"}


async def test_a_narrowed_principal_stays_narrow_in_its_token(tokens):
    verified = await tokens.verify(tokens.issue(ALICE.narrow(["mail.read"])))

    assert verified.principal.held == {"mail.read"}


async def test_a_token_without_scopes_may_hold_everything(tokens):
    verified = await tokens.verify(tokens.issue(Principal("me", access={"*"})))

    assert verified.principal == Principal("me", access={"*"})


async def test_a_service_stays_one_and_holds_what_is_named(tokens):
    verified = await tokens.verify(tokens.issue(Principal("robot", "service", {"mail.read", "*"})))

    assert verified.principal == Principal("robot", "service", {"mail.read"})


async def test_a_token_tells_its_audience_and_its_id(tokens):
    token = tokens.issue(ALICE, None, AUDIENCE, ttl=60)
    verified = await tokens.verify(token)

    assert (verified.audience, verified.expires_at) == (AUDIENCE, NOW + 60)
    assert verified.token_id == verified.client == id_of(token)


@pytest.mark.parametrize("ttl", [60, timedelta(minutes=1)])
async def test_a_token_ends_when_its_time_is_over(ttl, tokens, clock):
    token = tokens.issue(ALICE, ttl=ttl)
    clock.now += 59
    assert await tokens.verify(token)
    clock.now += 1
    assert await tokens.verify(token) is None


async def test_a_token_may_last_for_ever(tokens, clock):
    token = tokens.issue(ALICE, ttl=None)
    clock.now += 1e9

    assert (await tokens.verify(token)).expires_at is None


async def test_a_revoked_token_holds_no_more(tokens):
    token, other = tokens.issue(ALICE), tokens.issue(ALICE)

    assert tokens.revoke(id_of(token))
    assert await tokens.verify(token) is None
    assert await tokens.verify(other)
    assert not tokens.revoke(id_of(token))


@pytest.mark.parametrize(
    ("issued", "scopes", "now", "left"),
    [
        ({"a", "b"}, None, {"b", "c"}, {"b"}),
        ({"a", "b"}, ["a"], {"b", "c"}, set()),
        ({"*"}, None, {"b"}, {"b"}),
        ({"a"}, None, {"*"}, {"a"}),
        ({"*"}, None, {"*"}, {"*"}),
        ({"a"}, None, set(), set()),
    ],
)
async def test_a_token_leaves_its_principal_no_more_than_it_holds_now(path, clock, issued, scopes, now, left):
    token = TokenFile(path, clock=clock).issue(Principal("alice", access=issued), scopes)
    tokens = TokenFile(path, principals={"alice": Principal("alice", access=now)}, clock=clock)
    verified = await tokens.verify(token)

    assert verified.principal.held == left
    assert verified.scopes == (left if scopes is None else set(scopes))


@pytest.mark.parametrize("known", [{}, {"alice": Principal("alice", "service", {"mail.read"})}])
async def test_a_token_of_somebody_who_is_nobody_now_does_not_hold(path, clock, known):
    token = TokenFile(path, clock=clock).issue(ALICE)

    assert await TokenFile(path, principals=known, clock=clock).verify(token) is None


async def test_who_is_taken_away_while_it_is_served_is_refused_from_then_on(path, clock):
    known = {"alice": ALICE}
    tokens = TokenFile(path, principals=known, clock=clock)
    token = tokens.issue(ALICE)
    before = await tokens.verify(token)
    known.clear()

    assert (before is None, await tokens.verify(token)) == (False, None)


async def test_what_another_process_wrote_counts_at_once(tokens, path, clock):
    token = TokenFile(path, clock=clock).issue(ALICE)

    assert await tokens.verify(token)
    TokenFile(path, clock=clock).revoke(id_of(token))
    assert await tokens.verify(token) is None


async def test_without_its_file_nobody_is_known(tokens, path):
    token = tokens.issue(ALICE)
    path.unlink()

    assert await tokens.verify(token) is None


def test_the_file_holds_no_secret_and_is_for_its_owner_alone(tokens, path):
    token = tokens.issue(ALICE)

    assert token.split("_", 2)[2] not in path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_no_draft_stays_behind(tokens, path):
    tokens.issue(ALICE)

    assert {file.name for file in path.parent.iterdir()} == {"tokens.json", ".tokens.json.lock"}


def test_a_write_that_fails_leaves_the_old_file(tokens, path, monkeypatch):
    tokens.issue(ALICE)
    before = path.read_text()
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(28, "disk full")))

    with pytest.raises(OSError, match="disk full"):
        tokens.issue(ALICE)
    assert path.read_text() == before
    assert len(list(path.parent.iterdir())) == 2


def test_a_link_to_the_file_stays_one(tmp_path, clock):
    real, link = tmp_path / "real.json", tmp_path / "link.json"
    TokenFile(real, clock=clock).issue(ALICE)
    link.symlink_to(real)
    TokenFile(link, clock=clock).issue(ALICE)

    assert link.is_symlink()
    assert len(TokenFile(real).entries()) == 2


def test_processes_that_issue_at_once_lose_no_token(path, clock):
    with ThreadPoolExecutor(8) as threads:
        issued = list(threads.map(lambda _: TokenFile(path, clock=clock).issue(ALICE), range(24)))

    assert {entry.id for entry in TokenFile(path).entries()} == {id_of(token) for token in issued}


def test_entries_tell_everything_but_the_hash(tokens):
    tokens.issue(ALICE, ["mail.read"], AUDIENCE, ttl=60)
    [entry] = tokens.entries()

    assert (entry.principal, entry.access, entry.scopes) == ("alice", ALICE.access, {"mail.read"})
    assert entry.expires == datetime.fromtimestamp(NOW + 60, UTC)
    assert "hash" not in repr(entry)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda token: token + "x",
        lambda token: token[:-1],
        lambda token: token.replace("agentos_", "other_"),
        lambda token: f"agentos_{id_of(token)}_",
        lambda token: f"agentos_{id_of(token)}",
        lambda token: f"agentos_unknown_{token.split('_', 2)[2]}",
        lambda token: f"agentos_../x_{token.split('_', 2)[2]}",
        lambda token: f"agentos_{id_of(token)}_\N{SNOWMAN}",
        lambda token: token + "x" * 9000,
        lambda token: "",
    ],
)
async def test_a_static_token_that_is_not_exact_is_refused(spoil, tokens):
    token = tokens.issue(ALICE)

    assert await tokens.verify(spoil(token)) is None


async def test_an_unknown_id_costs_a_hash_like_a_known_one(tokens, monkeypatch):
    hashed = []
    token = tokens.issue(ALICE)
    matches = SecretHash.matches
    monkeypatch.setattr(SecretHash, "matches", lambda self, secret: hashed.append(self) or matches(self, secret))
    await tokens.verify(f"agentos_{id_of(token)}_wrong")
    await tokens.verify("agentos_unknown_wrong")

    assert len(hashed) == 2
    assert hashed[0] == hashed[1]


async def test_an_empty_file_knows_nobody(tokens):
    assert await tokens.verify("agentos_unknown_wrong") is None


async def test_the_secret_of_a_decoy_does_not_open_an_unknown_id(tokens):
    secret = tokens.issue(ALICE).split("_", 2)[2]

    assert await tokens.verify(f"agentos_unknown_{secret}") is None


def by_scrypt(secret, n=2**10):
    salt = b"salt-salt"
    return f"scrypt${n}$8$1${salt.hex()}${hashlib.scrypt(secret.encode(), salt=salt, n=n, r=8, p=1).hex()}"


def write(path, *entries, mode=0o600):
    path.write_text(json.dumps({"tokens": list(entries)}))
    path.chmod(mode)


def entry(**changed):
    made = {"id": "desk", "hash": by_scrypt("correct horse"), "principal": "alice", "access": ["mail.read"], **changed}
    return {key: value for key, value in made.items() if value is not ...}


async def test_a_chosen_secret_is_kept_under_scrypt(path):
    write(path, entry())
    tokens = TokenFile(path)

    assert (await tokens.verify("agentos_desk_correct horse")).principal == Principal("alice", access={"mail.read"})
    assert await tokens.verify("agentos_desk_battery staple") is None


async def test_scrypt_is_paid_once_per_token_and_file(path, monkeypatch):
    hashed = []
    matches = SecretHash.matches
    monkeypatch.setattr(SecretHash, "matches", lambda self, secret: hashed.append(secret) or matches(self, secret))
    write(path, entry())
    tokens = TokenFile(path)
    for _ in range(3):
        assert await tokens.verify("agentos_desk_correct horse")
    assert len(hashed) == 1

    write(path, entry(hash=by_scrypt("another")), entry(id="more"))
    assert await tokens.verify("agentos_desk_correct horse") is None
    assert len(hashed) == 2


async def test_unknown_ids_never_fill_the_memory_of_paid_hashes(path):
    write(path, entry())
    tokens = TokenFile(path)
    await tokens.verify("agentos_other_correct horse")

    assert tokens._proofs == {}


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (entry(id=...), "tokens[0]: expected the key 'id'"),
        (entry(hash=...), "tokens[0]: expected the key 'hash'"),
        (entry(principal=...), "tokens[0]: expected the key 'principal'"),
        (entry(id="a_b"), "tokens[0].id: expected 1 to 64 letters"),
        (entry(id=7), "tokens[0].id: expected a string"),
        (entry(principal=""), "tokens[0].principal: expected a name"),
        (entry(principal="system"), "tokens[0].principal: 'system' is the host itself"),
        (entry(kind="system"), "tokens[0].kind: expected user or service"),
        (entry(access="mail.read"), "tokens[0].access: expected a list of strings"),
        (entry(access=[""]), "tokens[0].access: expected a list of strings"),
        (entry(scopes=[1]), "tokens[0].scopes: expected a list of strings"),
        (entry(audience=1), "tokens[0].audience: expected a string"),
        (entry(expires="tomorrow"), "tokens[0].expires: expected a time with its zone"),
        (entry(expires="2027-01-31T12:00:00"), "tokens[0].expires: expected a time with its zone"),
        (entry(expires=7), "tokens[0].expires: expected a string"),
        (entry(scope=["x"]), "tokens[0].scope: unknown key; did you mean 'scopes'?"),
        (entry(hash="correct horse"), "tokens[0].hash: expected sha256$<salt>$<digest> or"),
        (entry(hash="sha256$00$00"), "tokens[0].hash: expected 8 to 64 bytes"),
        (entry(hash="sha256$" + "00" * 8 + "$00"), "tokens[0].hash: expected 32 to 32 bytes"),
        (entry(hash="sha256$" + "zz" * 8 + "$" + "00" * 32), "tokens[0].hash: expected 8 to 64 bytes"),
        (entry(hash="scrypt$1000$8$1$" + "00" * 8 + "$" + "00" * 32), "tokens[0].hash: scrypt: expected n a power"),
        (entry(hash="scrypt$1048576$8$1$" + "00" * 8 + "$" + "00" * 32), "scrypt: expected n a power of two"),
        (entry(hash="scrypt$1024$8$99$" + "00" * 8 + "$" + "00" * 32), "scrypt: expected n a power of two"),
        (entry(hash="scrypt$x$8$1$" + "00" * 8 + "$" + "00" * 32), "scrypt: expected n a power of two"),
        ("desk", "tokens[0]: expected a mapping"),
    ],
)
def test_a_file_that_is_wrong_is_refused_with_the_place(bad, words, path):
    write(path, bad)

    with pytest.raises(ManifestError) as caught:
        TokenFile(path)
    assert words in str(caught.value)


@pytest.mark.parametrize("data", [[], {"tokens": {}}, {"tokens": [], "more": 1}, {}])
def test_a_file_of_another_shape_is_refused(data, path):
    path.write_text(json.dumps(data))

    with pytest.raises(ManifestError, match="and nothing else"):
        TokenFile(path)


def test_an_id_stands_once(path):
    write(path, entry(), entry())

    with pytest.raises(ManifestError, match="'desk' stands twice"):
        TokenFile(path)


def test_a_file_has_a_bounded_number_of_tokens(path):
    write(path, *[{}] * 10_001)

    with pytest.raises(ManifestError, match="at most 10000 tokens"):
        TokenFile(path)


def test_a_file_that_others_can_write_to_is_refused(path):
    write(path, entry(), mode=0o620)

    with pytest.raises(ManifestError, match="chmod 600"):
        TokenFile(path)


def test_a_file_is_json():
    with pytest.raises(ValueError, match=r"ending in \.json"):
        TokenFile("tokens.txt")


async def test_a_file_that_breaks_later_lets_nobody_in(tokens, path):
    token = tokens.issue(ALICE)
    assert await tokens.verify(token)
    path.write_text("{")

    for _ in range(2):
        with pytest.raises(ManifestError):
            await tokens.verify(token)


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"principal": Principal.system()}, ValueError, "is the host itself"),
        ({"principal": ALICE, "scopes": "mail.read"}, TypeError, "expected a list of names"),
        ({"principal": ALICE, "ttl": 0}, ValueError, "expected a positive number"),
        ({"principal": ALICE, "ttl": float("inf")}, ValueError, "expected a positive number"),
    ],
)
def test_a_token_that_makes_no_sense_is_not_issued(arguments, error, words, tokens, path):
    with pytest.raises(error, match=words):
        tokens.issue(**arguments)
    assert not path.exists()


# -- Odds and ends


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("", False),
        ("10.0.0.1", False),
        ("localhost.evil.example", False),
        ("127.0.0.1.evil.example", False),
    ],
)
def test_what_counts_as_this_machine(host, expected):
    assert is_loopback(host) is expected


def test_importing_auth_imports_no_sdk():
    script = "import sys, agentos.mcp.auth; print(sorted({'mcp', 'jwt', 'httpx2', 'starlette'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("audience", [[], (), ""])
def test_a_verifier_without_an_audience_is_refused(audience):
    with pytest.raises(ValueError, match="audience"):
        JWTVerifier(issuer=ISSUER, audience=audience, secret=SECRET)

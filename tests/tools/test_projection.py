"""What is there already, as a tool: the host's callables, and operations that a real server answers."""

import asyncio
import base64
import functools
import json
import re
import threading
import types
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import parse_qsl, unquote, urlsplit

import attrs
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from thorough import examples

from agentos import PUBLIC, AgentOS, ExtensionPack, Principal, ToolCall, ToolContext, ToolDefinitionError, tool
from agentos.openapi.document import OpenAPIDocument
from agentos.openapi.projection import ProjectedTool, project, requires

DATA = Path(__file__).parent / "data" / "openapi"


def reading(subject, **fields):
    return project(subject, **{"owner": "app", "effect": "read", "required_access": PUBLIC, **fields})


def refusal(call):
    with pytest.raises(ToolDefinitionError) as caught:
        call()
    return str(caught.value)


async def call(made, arguments=None, principal=None):
    async with AgentOS(mode="auto") as host:
        await host.extensions.load_pack(ExtensionPack("app", "1.0", [made]))
        return await host.tools.process_tool_call(ToolCall(made.name, arguments or {}), principal)


# -- callables ---------------------------------------------------------------------------------------------------


@attrs.frozen
class User:
    name: str
    age: int = 0


def greet(user: User, times: Annotated[int, "How often"] = 1, *, context: ToolContext) -> str:
    """Greet a user.

    Args:
        user: Whom to greet.
    """
    return f"{context.principal.id} greets {user.name} {times} times"


async def greet_later(name: str) -> str:
    """Greet, but later."""
    return f"hello {name}"


def logged(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)

    return wrapper


class Users:
    """All users."""

    def __init__(self, prefix="u"):
        self.prefix = prefix

    def find(self, id: int) -> str:
        """Find a user."""
        return f"{self.prefix}{id}"

    @classmethod
    def kind(cls, id: int) -> str:
        """Name the class."""
        return f"{cls.__name__}{id}"

    @staticmethod
    def count(id: int) -> str:
        """Count."""
        return f"count{id}"

    @logged
    def wrapped(self, id: int) -> str:
        """Find, and log it."""
        return f"{self.prefix}{id}"


class FindUser:
    """Find one user."""

    def __call__(self, id: int) -> str:
        return f"called{id}"


class FindLater(FindUser):
    async def __call__(self, id: int) -> str:
        """Find one user, later."""
        return f"later{id}"


def find(prefix: str, id: int) -> str:
    """Find by prefix."""
    return f"{prefix}{id}"


async def find_later(prefix: str, id: int) -> str:
    """Find by prefix, later."""
    return f"{prefix}{id}"


CALLABLES = [
    (logged(find), {"prefix": "w", "id": 1}, "find", "Find by prefix.", "find", "w1"),
    (Users().find, {"id": 1}, "find", "Find a user.", "Users.find", "u1"),
    (Users.kind, {"id": 1}, "kind", "Name the class.", "Users.kind", "Users1"),
    (Users.count, {"id": 1}, "count", "Count.", "Users.count", "count1"),
    (Users().wrapped, {"id": 1}, "wrapped", "Find, and log it.", "Users.wrapped", "u1"),
    (functools.partial(find, "p"), {"id": 1}, "find", "Find by prefix.", "find", "p1"),
    (functools.partial(find, prefix="k"), {"id": 1}, "find", "Find by prefix.", "find", "k1"),
    (functools.partial(functools.partial(find, "n"), id=3), {}, "find", "Find by prefix.", "find", "n3"),
    (functools.partial(find_later, prefix="k"), {"id": 1}, "find_later", "Find by prefix, later.", "find_later", "k1"),
    (functools.partial(Users().find), {"id": 1}, "find", "Find a user.", "Users.find", "u1"),
    (FindUser(), {"id": 1}, "find_user", "Find one user.", "FindUser", "called1"),
    (FindLater(), {"id": 1}, "find_later", "Find one user, later.", "FindLater", "later1"),
]


@pytest.mark.parametrize(("subject", "arguments", "name", "description", "origin", "output"), CALLABLES)
async def test_a_callable_is_projected_as_it_is(subject, arguments, name, description, origin, output):
    made = reading(subject)
    result = await call(made, arguments)

    assert (made.name, made.description, made.owner) == (name, description, "app")
    assert made.origin == f"{__name__}:{origin}"
    assert set(made.input_schema["properties"]) == set(arguments)
    assert result.output == output


async def test_a_function_keeps_its_types_its_texts_and_its_context():
    made = reading(greet)
    result = await call(made, {"user": {"name": "Ada"}, "times": 2}, Principal("bob"))

    assert isinstance(made, ProjectedTool)
    assert made.input_schema["properties"]["times"]["description"] == "How often"
    assert made.input_schema["properties"]["user"]["description"] == "Whom to greet."
    assert made.output_schema == {"type": "string"}
    assert "context" not in made.input_schema["properties"]
    assert result.output == "bob greets Ada 2 times"


async def test_nothing_reaches_a_callable_that_its_hints_do_not_allow():
    reached = []

    def take(number: int) -> None:
        """Take a number."""
        reached.append(number)

    made = reading(take)
    results = [await call(made, arguments) for arguments in ({"number": "1"}, {}, {"number": 1, "more": 2})]

    assert [result.error.type for result in results] == ["InvalidArguments"] * 3
    assert reached == []


class Bound:
    def find(self, prefix: str, id: int) -> str:
        """Find by prefix."""
        return f"{prefix}{id}"

    mine = functools.partialmethod(find, prefix="mine")


BOUND = [
    functools.partial(find, prefix="mine"),
    functools.partial(functools.partial(find, prefix="mine")),
    logged(functools.partial(find, prefix="mine")),
    Bound().mine,
]


@pytest.mark.parametrize("subject", BOUND)
async def test_what_a_partial_has_bound_a_caller_can_not_change(subject):
    made = reading(subject, name="it")
    kept = await call(made, {"id": 1})
    changed = await call(made, {"id": 1, "prefix": "yours"})

    assert kept.output == "mine1"
    assert changed.error.type == "InvalidArguments"


def test_an_async_callable_runs_on_the_loop_and_a_sync_one_in_a_thread():
    assert reading(greet_later).is_async
    assert reading(functools.partial(find_later, "p")).is_async
    assert reading(FindLater()).is_async
    assert not reading(find).is_async


def test_a_projected_function_can_still_be_called_by_its_host():
    assert reading(find)("a", 1) == "a1"


def test_what_is_said_counts_more_than_what_is_read():
    made = reading(find, name="look_up", description="Look up.", timeout=3, output_schema=None, aliases="seek")

    assert (made.name, made.description, made.timeout) == ("look_up", "Look up.", 3)
    assert (made.output_schema, made.aliases) == (None, ("seek",))


def test_an_object_without_any_text_has_no_description():
    class Silent:
        def __call__(self, id: int) -> None: ...

    assert reading(Silent()).description == ""


async def test_a_projected_tool_can_be_bound_to_another_handler():
    made = reading(find).bind(lambda args, context: "bound")

    assert (made.owner, made.origin) == ("app", f"{__name__}:find")
    assert (await call(made, {"prefix": "a", "id": 1})).output == "bound"


@tool(effect="read", required_access=PUBLIC)
def a_tool() -> None:
    """Be a tool."""


class LikeTool:
    name = "like"
    description = ""
    input_schema = {"type": "object"}
    effect = "read"
    required_access = PUBLIC

    def execute(self, args, context): ...


@requires("shop:use")
class Shop:
    """A layer of the host."""

    def __init__(self):
        self.stock = {"tea": 3}
        self.callback = print

    def count(self, what: str) -> int:
        """Count what is there."""
        return self.stock[what]

    @requires("shop:sell")
    async def sell(self, what: str) -> int:
        """Sell one."""
        self.stock[what] -= 1
        return self.stock[what]

    @staticmethod
    def currency() -> str:
        """Name the currency."""
        return "EUR"

    @classmethod
    def name(cls) -> str:
        """Name the shop."""
        return cls.__name__

    @property
    def danger(self):
        raise AssertionError("nobody asked for it")

    def close(self) -> None:
        """Close it."""

    def _secret(self) -> None: ...


EFFECTS_OF_SHOP = {"count": "read", "sell": "mutate", "currency": "read", "name": "read", "close": "destructive"}


async def test_of_an_object_every_public_method_is_a_tool():
    made = project(Shop(), owner="shop", effect=EFFECTS_OF_SHOP)
    by_name = {one.name: one for one in made}

    assert {name: one.effect for name, one in by_name.items()} == EFFECTS_OF_SHOP
    assert {name: one.required_access for name, one in by_name.items()} == {
        **dict.fromkeys(EFFECTS_OF_SHOP, ("shop:use",)),
        "sell": ("shop:sell", "shop:use"),
    }
    assert by_name["count"].origin == f"{__name__}:Shop.count"
    async with AgentOS(mode="auto") as host:
        await host.extensions.load_pack(ExtensionPack("shop", "1.0", made))
        answers = [
            (await host.tools.process_tool_call(ToolCall(name, said))).output
            for name, said in (("sell", {"what": "tea"}), ("count", {"what": "tea"}), ("currency", {}), ("name", {}))
        ]
    assert answers == [2, 2, "EUR", "Shop"]


def test_methods_can_be_left_out_and_one_effect_said_for_all():
    made = project(Shop(), owner="shop", effect="read", without=["sell", "close"], timeout=3.0)

    assert [one.name for one in made] == ["count", "currency", "name"]
    assert {one.timeout for one in made} == {3.0}


class Bare:
    def one(self) -> None: ...

    @requires("b:use")
    def two(self, x: complex) -> None: ...

    @staticmethod
    @requires("b:static")
    def three() -> None: ...


def test_what_is_wrong_with_methods_is_told_of_each():
    said = refusal(lambda: project(Bare(), owner="app", effect={"one": "read", "two": "read"}))

    assert said.startswith(f"{__name__}:Bare: not all of its methods can be projected")
    assert "Bare.one(required_access): say who may use it" in said
    assert "has no JSON form" in said
    assert "Bare.three(effect): say what it does" in said


def test_rules_of_a_static_method_are_kept_beside_those_that_are_given():
    made = project(Bare(), owner="app", effect="read", required_access=["b:more"], without=["one", "two"])

    assert [one.required_access for one in made] == [("b:static", "b:more")]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"effect": {"cuont": "read"}}, "(effect): it has no public method 'cuont'; did you mean 'count'?"),
        ({"effect": "read", "without": ["danger"]}, "(without): it has no public method 'danger'"),
        ({"effect": "read", "name": "shop"}, "(name): it is for one tool"),
        ({"effect": "read", "description": "x"}, "(description): it is for one tool"),
        ({"effect": "read", "send": print}, "(send): it is for one tool"),
        ({"effect": "read", "required_access": PUBLIC}, "PUBLIC would drop 'shop:use'"),
        ({}, "it is never guessed"),
    ],
)
def test_what_an_object_can_not_be_projected_with_is_refused_in_words(fields, words):
    assert words in refusal(lambda: project(Shop(), owner="app", **fields))


REFUSED = [
    (lambda: reading(5), "an object with public methods or an OpenAPIOperation, got a int"),
    (lambda: reading(find, without=["x"]), "(without): it is for an object"),
    (lambda: reading(a_tool), "'a_tool' is a tool already; give it to a pack as it is"),
    (lambda: reading(LikeTool()), "'like' is a tool already"),
    (lambda: reading(User), "an object with public methods or an OpenAPIOperation, got User"),
    (lambda: reading(vars(Users)["kind"]), "got a classmethod"),
    (lambda: reading("find"), "got a str"),
    (lambda: reading(lambda: None), "a lambda has no name of its own; say name="),
    (lambda: reading(Users.find), "a method without its object; take it from an instance"),
    (lambda: reading(len), "positional-only"),
    (lambda: reading(find, send=print), "only an operation of an OpenAPI document is sent"),
    (lambda: reading(find, timeouts=1), "unknown keyword; did you mean 'timeout'?"),
    (lambda: reading(find, execute=print), "(execute): unknown keyword"),
    (lambda: reading(find, effect=None), "say what it does: read, mutate or destructive; it is never guessed"),
    (lambda: reading(find, effect="reads"), "expected one of read, mutate, destructive"),
    (lambda: reading(find, owner=""), "expected a name, got an empty string"),
    (lambda: reading(find, owner="a:b"), "expected a name without colon or white space"),
    (lambda: reading(find, owner=None), "expected a string, got NoneType"),
    (lambda: reading(find, owner="mcp/"), "expected the name of a server after mcp/"),
]


@pytest.mark.parametrize(("make", "words"), REFUSED)
def test_what_can_not_be_projected_is_refused_in_words(make, words):
    assert words in refusal(make)


@pytest.mark.parametrize("owner", ["builtin", "my-pack", "mcp/server"])
def test_an_owner_is_builtin_a_pack_or_an_mcp_server(owner):
    assert reading(find, owner=owner).owner == owner


def test_an_effect_on_the_function_itself_does_not_count():
    def marked() -> None: ...

    marked.__effect__ = "read"

    assert "it is never guessed" in refusal(lambda: reading(marked, effect=None))


# -- access ------------------------------------------------------------------------------------------------------


@requires("users:read")
def declared(id: int) -> str:
    """Need a rule."""
    return str(id)


@requires(PUBLIC)
def open_to_all(id: int) -> str:
    """Need nothing."""
    return str(id)


@requires("users:read")
@requires("users:write", "users:read")
def twice(id: int) -> None: ...


def unaware(function):
    def wrapper(id: int) -> None: ...

    wrapper.__wrapped__ = function
    return wrapper


@requires("base")
class Base:
    def plain(self) -> None: ...

    @requires("method")
    def ruled(self) -> None: ...

    @requires(PUBLIC)
    def open(self) -> None: ...

    @requires("class method")
    @classmethod
    def of_class(cls) -> None: ...

    @requires("static")
    @staticmethod
    def of_nobody() -> None: ...


@requires("derived")
class Derived(Base): ...


@requires("object")
class Callable:
    @requires("call")
    def __call__(self) -> None: ...


class Cached:
    @functools.lru_cache  # noqa: B019 - what wraps is no function
    @requires("cached")
    def __call__(self) -> None: ...


def marked_by_hand(value):
    def function() -> None: ...

    function.__required_access__ = value
    return function


DECLARED = [
    (declared, ("users:read",)),
    (open_to_all, PUBLIC),
    (twice, ("users:write", "users:read")),
    (logged(declared), ("users:read",)),
    (unaware(declared), ("users:read",)),
    (requires("outside")(unaware(declared)), ("outside", "users:read")),
    (functools.partial(declared, 1), ("users:read",)),
    (requires("bound")(functools.partial(declared, 1)), ("bound", "users:read")),
    (Base().plain, ("base",)),
    (Base().ruled, ("method", "base")),
    (Base().open, ("base",)),
    (Base.of_class, ("class method", "base")),
    (Base.of_nobody, ("static",)),
    (Derived().plain, ("base", "derived")),
    (Derived.of_class, ("class method", "base", "derived")),
    (Callable(), ("object", "call")),
    (Cached(), ("cached",)),
    (functools.lru_cache(declared), ("users:read",)),
    (logged(Base().ruled), ("method", "base")),
    (marked_by_hand("one"), ("one",)),
    (marked_by_hand(["one", "two"]), ("one", "two")),
    (marked_by_hand({"b", "a", "c"}), ("a", "b", "c")),
    (marked_by_hand(PUBLIC), PUBLIC),
]


@pytest.mark.parametrize(("subject", "expected"), DECLARED)
def test_access_is_read_from_where_it_is_declared(subject, expected):
    assert reading(subject, required_access=None, name="it").required_access == expected


def test_a_declaration_can_be_read_by_the_host_as_well():
    assert declared.__required_access__ == ("users:read",)
    assert Derived.__required_access__ == ("base", "derived")
    assert declared(3) == "3"


@pytest.mark.parametrize(
    ("subject", "given", "expected"),
    [
        (declared, "users:write", ("users:read", "users:write")),
        (declared, ("users:read",), ("users:read",)),
        (declared, {"b", "a"}, ("users:read", "a", "b")),
        (open_to_all, "users:write", ("users:write",)),
        (open_to_all, PUBLIC, PUBLIC),
        (find, "users:write", ("users:write",)),
        (find, PUBLIC, PUBLIC),
    ],
)
def test_an_argument_adds_rules_to_those_declared(subject, given, expected):
    assert reading(subject, required_access=given).required_access == expected


def test_public_does_not_replace_a_declared_rule():
    message = refusal(lambda: reading(twice, required_access=PUBLIC))

    assert "PUBLIC would drop 'users:write', 'users:read', declared where it is written" in message


def test_no_access_at_all_is_refused_with_both_ways_out():
    message = refusal(lambda: reading(find, required_access=None))

    assert "@requires(...)" in message
    assert "required_access=" in message


BAD_RULES = [
    ((), "an empty tuple says nothing"),
    (("",), "expected a name, got an empty string"),
    (("*",), "'*' is held by principals"),
    ((PUBLIC, "a"), "PUBLIC stands alone, not among rules"),
    ((7,), "expected rule ids or PUBLIC, got int"),
]


@pytest.mark.parametrize(("rules", "words"), BAD_RULES)
def test_bad_rules_are_refused_where_they_are_declared(rules, words):
    assert words in refusal(lambda: requires(*rules))


@pytest.mark.parametrize("value", [7, True, object(), {1, "a"}])
def test_a_declaration_that_names_no_rules_is_refused(value):
    assert "expected rule ids or PUBLIC" in refusal(lambda: reading(marked_by_hand(value), required_access=None))


def test_a_bad_declaration_is_not_taken_up_by_another():
    assert "expected rule ids or PUBLIC, got int" in refusal(lambda: requires("a")(marked_by_hand(7)))


@pytest.mark.parametrize("subject", [len, Users().find, a_tool, 7])
def test_where_nothing_can_be_declared_says_so(subject):
    assert "say required_access= where it is projected" in refusal(lambda: requires("a")(subject))


def test_an_object_that_wraps_without_end_is_refused():
    class Endless:
        def __call__(self) -> None: ...

        @property
        def __wrapped__(self):
            return Endless()

    assert "what they declare is not known" in refusal(lambda: reading(Endless()))


async def test_a_declared_rule_is_asked_of_the_caller():
    made = reading(declared, required_access=None)
    held = await call(made, {"id": 1}, Principal("ada", access={"users:read"}))
    lacked = await call(made, {"id": 1}, Principal("bob"))

    assert held.output == "1"
    assert lacked.error.type == "UnknownTool"


# -- operations, with a server that tells what it was sent -------------------------------------------------------


class Echo(BaseHTTPRequestHandler):
    """Answer with what was asked; `/answer/<name>` with what a test has put there."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True
    answers: dict[str, tuple[int, str | None, bytes]] = {}

    def answer(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.count += 1
        status, media, told = self.answers.get(self.path.removeprefix("/answer/"), (200, "application/json", None))
        if told is None:
            asked = {"method": self.command, "target": self.path, "headers": self.headers.items()}
            told = json.dumps({**asked, "body": base64.b64encode(body).decode()}).encode()
        self.send_response(status)
        if media is not None:
            self.send_header("Content-Type", media)
        self.send_header("Content-Length", str(len(told)))
        self.end_headers()
        self.wfile.write(told)

    do_GET = do_PUT = do_POST = do_PATCH = do_DELETE = answer

    def log_message(self, *args): ...


@pytest.fixture(scope="module")
def server():
    with ThreadingHTTPServer(("127.0.0.1", 0), Echo) as server:
        server.count = 0
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


class NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *args):
        return None


OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}), NoRedirect)


def sender(server):
    base = f"http://127.0.0.1:{server.server_address[1]}"

    def send(request, context):
        asked = urllib.request.Request(base + request.target, data=request.body, method=request.method)
        for name, value in request.header_lines:
            asked.add_header(name, value)
        try:
            with OPENER.open(asked) as response:
                return {"status": response.status, "headers": response.headers, "body": response.read()}
        except urllib.error.HTTPError as error:
            with error:
                return {"status": error.code, "headers": error.headers, "body": error.read()}

    return send


PETS = OpenAPIDocument.read(DATA / "petstore.yaml")


async def ask(server, operation, arguments, **fields):
    made = project(
        operation,
        **{"owner": "app", "effect": "read", "send": sender(server), "output_schema": None, **fields},
    )
    return await call(made, arguments)


def test_an_operation_is_projected_as_the_document_has_it():
    made = project(PETS.operation("listPets"), owner="pets", effect="read", send=print)

    assert (made.name, made.owner, made.origin) == ("listPets", "pets", "GET /pets")
    assert made.description == "List pets\n\nList the pets of the store, the newest first."
    assert made.required_access == ("pets:read",)
    assert made.input_schema == PETS.operation("listPets").input_schema
    assert made.output_schema == PETS.operation("listPets").output_schema


def test_the_description_of_an_operation_says_that_it_is_deprecated():
    made = project(PETS.operation("deletePet"), owner="pets", effect="destructive", send=print)

    assert made.description == "Deprecated."


def small(raw=None, path="/x", method="get", **parts):
    paths = {path: {method: raw or {}}}
    (found,) = OpenAPIDocument.read({"openapi": "3.1.0", "paths": paths, **parts}).operations().values()
    return found


def test_an_operation_without_any_text_is_described_by_its_method_and_path():
    assert reading(small(), send=print).description == "GET /x"


def test_a_very_long_description_is_cut():
    made = reading(small({"summary": "x" * 10_000}), send=print)

    assert len(made.description) == 4_000
    assert made.description.endswith("…")


def test_a_description_that_is_said_counts_more_than_the_document():
    assert reading(small({"summary": "x"}), send=print, description="Mine.").description == "Mine."


def test_an_id_with_a_colon_loses_it_as_a_name():
    assert reading(small({"operationId": "users:list"}), send=print).name == "users_list"
    assert reading(small({"operationId": "users:list"}), send=print, name="mine").name == "mine"


OPERATIONS_REFUSED = [
    (lambda: reading(small()), "say send=, a function (request, context)"),
    (lambda: reading(small(), send="x"), "say send="),
    (lambda: reading(small(), send=print, effect=None), "GET /x(effect): say what it does"),
    (lambda: reading(small(), send=print, required_access=None), "or the scopes of an operation's `security`"),
    (
        lambda: reading(PETS.operation("listPets"), send=print),
        "GET /pets(required_access): PUBLIC would drop 'pets:read'",
    ),
    (
        lambda: reading(small(), send=print, check_output="loud"),
        "GET /x(check_output): expected one of warn, error, off",
    ),
    (lambda: reading(PETS.operation("importPets"), send=print, required_access="a"), "takes 'multipart/mixed'"),
    (lambda: reading(small({"security": [{"a": ["*"]}]}), send=print), "'*' is held by principals"),
    (
        lambda: reading(
            small({"parameters": [{"name": "a", "in": "query", "schema": {"type": "string", "pattern": "("}}]}),
            send=print,
        ),
        "the input schema of GET /x: no usable JSON Schema",
    ),
    (
        lambda: reading(
            small({"responses": {"200": {"content": {"application/json": {"schema": {"type": "file"}}}}}}), send=print
        ),
        "the output schema of GET /x: no usable JSON Schema",
    ),
]


@pytest.mark.parametrize(("make", "words"), OPERATIONS_REFUSED)
def test_an_operation_that_can_not_be_projected_is_refused_in_words(make, words):
    assert words in refusal(make)


@pytest.mark.parametrize("id", OpenAPIDocument.read(DATA / "hostile.json").operations())
def test_every_hostile_operation_is_refused_but_the_one_that_only_has_a_strange_id(id):
    operation = OpenAPIDocument.read(DATA / "hostile.json").operation(id)
    if id == "get_id":
        assert reading(operation, send=print).name == "get_id"
    else:
        assert refusal(lambda: reading(operation, send=print)).isprintable()


def test_schemas_nested_so_deep_that_a_call_could_not_check_them_are_refused():
    chain = {f"S{n}": {"properties": {"x": {"$ref": f"#/components/schemas/S{n + 1}"}}} for n in range(400)}
    operation = small(
        {"parameters": [{"name": "a", "in": "query", "schema": {"$ref": "#/components/schemas/S0"}}]},
        components={"schemas": {**chain, "S400": {"type": "integer", "default": 1}}},
    )

    assert "nested too deep to be checked" in refusal(lambda: reading(operation, send=print))


def test_scopes_and_an_argument_are_both_required():
    made = project(PETS.operation("listPets"), owner="a", effect="read", send=print, required_access="staff")

    assert made.required_access == ("pets:read", "staff")


async def test_a_call_sends_every_argument_to_its_place(server):
    arguments = {
        "limit": 5,
        "tags": ["a b", "c&d"],
        "status": ["free", "taken"],
        "filter": {"name": "Rex", "age": {"min": 2}},
        "sort": {"by": "age"},
        "X-Trace": "t 1",
        "session": "s=1",
    }
    asked = (await ask(server, PETS.operation("listPets"), arguments)).output
    headers = {name.lower(): value for name, value in asked["headers"]}

    assert asked["method"] == "GET"
    assert urlsplit(asked["target"]).path == "/pets"
    assert parse_qsl(urlsplit(asked["target"]).query) == [
        ("limit", "5"),
        ("tags", "a b"),
        ("tags", "c&d"),
        ("status", "free,taken"),
        ("filter[name]", "Rex"),
        ("filter[age][min]", "2"),
        ("by", "age"),
    ]
    assert (headers["x-trace"], headers["cookie"]) == ("t 1", "session=s=1")
    assert headers["accept"].startswith("application/json")


async def test_a_call_sends_its_body(server):
    asked = (await ask(server, PETS.operation("createPet"), {"name": "Rex", "nick": None}, effect="mutate")).output
    headers = {name.lower(): value for name, value in asked["headers"]}

    assert (asked["method"], headers["content-type"]) == ("POST", "application/json")
    assert json.loads(base64.b64decode(asked["body"])) == {"name": "Rex", "nick": None}


async def test_an_argument_that_would_leave_its_place_is_an_invalid_argument_and_nothing_is_sent(server):
    before = server.count
    result = await ask(server, PETS.operation("updatePet"), {"petId": ".."}, effect="mutate")

    assert result.error.type == "InvalidArguments"
    assert "$.petId: expected text for a path, got '..', which leads elsewhere" in result.content
    assert server.count == before


@pytest.mark.parametrize("how", ["async", "sync that returns an awaitable", "object"])
async def test_send_may_be(how, server):
    plain = sender(server)

    async def send(request, context):
        return await asyncio.to_thread(plain, request, context)

    chosen = {
        "async": send,
        "sync that returns an awaitable": lambda request, context: send(request, context),
        "object": lambda request, context: types.SimpleNamespace(
            status_code=(found := plain(request, context))["status"],
            headers=list(found["headers"].items()),
            content=found["body"],
        ),
    }[how]
    result = await ask(server, PETS.operation("getPet"), {"petId": 7}, required_access=PUBLIC, send=chosen)

    assert result.output["target"] == "/pets/7"


async def test_send_is_given_the_context_of_the_call():
    def send(request, context):
        return {"status": 200, "body": [context.principal.id, context.tool.origin]}

    made = reading(small(), send=send)

    assert (await call(made, {}, Principal("ada"))).output == ["ada", "GET /x"]


async def test_send_that_raises_is_a_tool_that_raised():
    def send(request, context):
        raise OSError("no route")

    result = await call(reading(small(), send=send))

    assert (result.error.type, result.error.details["exception"]) == ("ToolRaised", "OSError")


# -- answers -----------------------------------------------------------------------------------------------------


def small_user(responses=None):
    return small(
        {"parameters": [{"name": "id", "in": "path", "schema": {"type": "integer"}}], "responses": responses or {}},
        "/users/{id}",
    )


async def told(response, responses=None):
    return await call(reading(small_user(responses), send=lambda request, context: response), {"id": 7})


JSON = {"Content-Type": "application/json; charset=utf-8"}
ANSWERS = [
    ({"status": 200, "headers": JSON, "body": b'{"a": [1, "\xc3\xa4"]}'}, {"a": [1, "ä"]}),
    ({"status": 201, "headers": JSON, "body": '{"a": 1}'}, {"a": 1}),
    ({"status": 200, "headers": {"content-type": "application/hal+json"}, "body": "[1]"}, [1]),
    ({"status": 200, "headers": [("CONTENT-TYPE", "application/json")], "body": bytearray(b"[1]")}, [1]),
    ({"status": 200, "body": b"[1]"}, [1]),
    ({"status": 200, "body": "plain"}, "plain"),
    ({"status": 200, "body": {"a": 1}}, {"a": 1}),
    ({"status": 200, "headers": JSON, "body": "null"}, None),
    ({"status": 204, "headers": None, "body": None}, None),
    ({"status": 204, "headers": JSON, "body": b" "}, None),
    ({"status": 200, "body": b""}, None),
    ({"status": 200}, None),
    ({"status": 200, "headers": {"Content-Type": "text/plain"}, "body": b"[1]"}, "[1]"),
    ({"status": 200, "headers": {"Content-Type": "text/plain"}, "body": b""}, ""),
    ({"status": 200, "headers": {"Content-Type": 'text/plain; charset="iso-8859-1"'}, "body": b"\xe4"}, "ä"),
    ({"status": 200, "headers": {"Content-Type": "text/plain; charset=rot13"}, "body": b"\xe4b"}, "\ufffdb"),
    ({"status": 200, "headers": {"Content-Type": "text/plain"}, "body": b"\xef\xbb\xbfx"}, "x"),
    ({"status": 200, "headers": JSON, "body": b"<html>"}, "<html>"),
    ({"status": 200, "headers": JSON, "body": b"[NaN]"}, "[NaN]"),
    ({"status": 200, "headers": JSON, "body": b"[" * 5_000}, "[" * 5_000),
]


@pytest.mark.parametrize(("response", "output"), ANSWERS, ids=lambda value: repr(value)[:60])
async def test_a_success_is_what_the_server_said(response, output):
    result = await told(response)

    assert result.success
    assert result.output == output


async def test_an_answer_is_held_against_the_output_schema():
    responses = {"200": {"content": {"application/json": {"schema": {"type": "object", "required": ["id"]}}}}}
    good = await told({"status": 200, "body": {"id": 1, "more": 2}}, responses)
    bad = await told({"status": 200, "body": {"more": 2}}, responses)

    assert good.output == {"id": 1, "more": 2}
    assert bad.error.type == "InvalidOutput"


REFUSALS = [
    ({"status": 404, "body": b"no such user"}, "404 Not Found: no such user"),
    ({"status": 500, "headers": JSON, "body": '{"a": 1}'}, '500 Internal Server Error: {"a": 1}'),
    ({"status": 409, "body": {"a": "ä", "b": {1}}}, '409 Conflict: {"a": "ä", "b": "set"}'),
    ({"status": 599}, "599"),
    ({"status": 503, "body": b"  "}, "503 Service Unavailable"),
    ({"status": 302, "body": None}, "302 Found; a redirect is not followed"),
    ({"status": 101}, "101 Switching Protocols"),
]


@pytest.mark.parametrize(("response", "message"), REFUSALS)
async def test_a_refusal_is_a_failure_with_its_status_and_its_words(response, message):
    result = await told(response)

    assert result.error.type == "ToolRaised"
    assert result.error.message == f"GET /users/7 answered {message}"
    assert result.error.details["status"] == response["status"]


@pytest.mark.parametrize("body", [b"x" * 50_000, "x" * 50_000, ["x" * 50_000]])
async def test_of_the_body_of_a_refusal_at_most_2000_characters_are_told(body):
    message = (await told({"status": 500, "body": body})).error.message
    shown = message.partition("Error: ")[2]

    assert len(shown) == 2_000
    assert shown.endswith("…")


@pytest.mark.parametrize(("body", "unit"), [(b"[" + b"1," * 1_500_000, "bytes"), ("x" * 3_000_000, "characters")])
async def test_a_body_that_is_too_large_is_cut_with_a_note(body, unit):
    responses = {"200": {"content": {"application/json": {"schema": {"type": "array"}}}}}
    result = await told({"status": 200, "headers": JSON, "body": body}, responses)

    assert result.success
    assert result.output is None
    assert result.content.startswith(f"[Cut: the answer has {len(body)} {unit}, of which 2000000 were read.")


@pytest.mark.parametrize("response", [None, "text", 200, {"status": "200"}, {"status": True}, {}, object()])
async def test_an_answer_without_a_status_is_told_to_whoever_wrote_send(response):
    result = await told(response)

    assert result.error.type == "ToolRaised"
    assert "without a status; return an object or a mapping with status, headers and body" in result.content


async def test_a_refusal_of_a_real_server_is_told(server):
    Echo.answers["none"] = (404, "application/json", b'{"detail": "gone"}')
    result = await ask(server, small(path="/answer/none"), {}, required_access=PUBLIC)

    assert result.error.message == 'GET /answer/none answered 404 Not Found: {"detail": "gone"}'


async def test_a_redirect_of_a_real_server_is_not_followed(server):
    Echo.answers["moved"] = (302, None, b"")
    result = await ask(server, small(path="/answer/moved"), {}, required_access=PUBLIC)

    assert "answered 302 Found; a redirect is not followed" in result.content


# -- whatever an argument is, it arrives as it is and where it belongs -------------------------------------------

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
SEGMENTS = TEXT.filter(lambda text: text not in ("", ".", ".."))
VISIBLE = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=30)
OCTETS = st.text(st.sampled_from("!#$%&'()*+-./0123456789:<=>?@ABCXYZ[]^_`abcxyz{|}~"), max_size=30)
NASTY = "../../admin?x=1&y=2#z;%2e%2e%00\r\nX-Admin: 1\r\n\r\n--x\"'\\"


def everywhere(media):
    """Return an operation with a parameter in every place, whose body is of a media type."""
    places = [("a", "path"), ("b", "path"), ("q", "query"), ("l", "query"), ("X-H", "header"), ("c", "cookie")]
    schemas = {"l": {"type": "array", "items": {"type": "string"}}}
    parameters = [
        {"name": name, "in": place, "schema": schemas.get(name, {"type": "string"})} for name, place in places
    ]
    deep = {"name": "d", "in": "query", "style": "deepObject", "schema": {"type": "object"}}
    body = {"type": "object", "properties": {"m": {"type": "string"}}}
    if media == "text/plain":
        body = {"type": "string"}
    return small(
        {
            "operationId": "everywhere",
            "parameters": [*parameters, deep],
            "requestBody": {"required": True, "content": {media: {"schema": body}}},
        },
        "/a/{a}/b/{b}",
        "put",
    )


def read_body(media, body):
    if media == "application/json":
        return json.loads(body)["m"]
    if media == "text/plain":
        return body.decode()
    if media == "application/x-www-form-urlencoded":
        (pair,) = parse_qsl(body.decode(), keep_blank_values=True, strict_parsing=True)
        return pair[1]
    raise AssertionError(media)


MEDIA = ["application/json", "application/x-www-form-urlencoded", "text/plain"]


@pytest.mark.parametrize("media", MEDIA)
@settings(max_examples=examples(60))
@given(
    a=SEGMENTS, b=SEGMENTS, q=TEXT, many=st.lists(TEXT, max_size=3), deep=TEXT, header=VISIBLE, cookie=OCTETS, body=TEXT
)
@example(a=NASTY, b="...", q=NASTY, many=[NASTY, ""], deep=NASTY, header="a: b", cookie="a=b", body=NASTY)
def test_every_argument_arrives_as_it_is_and_where_it_belongs(
    server, media, *, a, b, q, many, deep, header, cookie, body
):
    header = header.strip()
    arguments = {"a": a, "b": b, "q": q, "l": many, "d": {"k": deep}, "X-H": header, "c": cookie}
    arguments["body" if media == "text/plain" else "m"] = body
    result = asyncio.run(ask(server, everywhere(media), arguments, required_access=PUBLIC))
    asked = result.output
    target = urlsplit(asked["target"])
    headers = {name.lower(): value for name, value in asked["headers"]}

    assert [unquote(part, errors="strict") for part in target.path.split("/")] == ["", "a", a, "b", b]
    assert parse_qsl(target.query, keep_blank_values=True, strict_parsing=True) == [
        ("q", q),
        *(("l", each) for each in many),
        ("d[k]", deep),
    ]
    assert headers["x-h"] == header
    assert headers["cookie"] == f"c={cookie}"
    assert "x-admin" not in headers
    assert read_body(media, base64.b64decode(asked["body"])) == body


@settings(max_examples=examples(100))
@given(fields=st.dictionaries(TEXT, st.one_of(TEXT, st.lists(TEXT, min_size=1, max_size=2)), min_size=1, max_size=3))
@example(fields={"a": NASTY})
def test_every_field_of_a_form_of_parts_arrives_as_it_is_or_is_refused(fields):
    schema = {"type": "object", "additionalProperties": True}
    operation = small({"requestBody": {"required": True, "content": {"multipart/form-data": {"schema": schema}}}})
    try:
        request = operation.request({"body": fields})
    except ValueError:
        assert any(not name or re.search(r'[\x00-\x1f\x7f"\\]', name) for name in fields)
        return
    boundary = request.content_type.partition("boundary=")[2]
    start, *parts, end = request.body.split(f"--{boundary}".encode())
    read = []
    for part in parts:
        head, _, value = part.removeprefix(b"\r\n").removesuffix(b"\r\n").partition(b"\r\n\r\n")
        name = re.fullmatch(r'Content-Disposition: form-data; name="([^"]*)"', head.decode())[1]
        read.append((name, value.decode()))

    assert (start, end) == (b"", b"--\r\n")
    assert read == [
        (name, each) for name, value in fields.items() for each in (value if isinstance(value, list) else [value])
    ]


@settings(max_examples=examples(150))
@given(text=st.text(max_size=20), place=st.sampled_from(["path", "query", "header", "cookie"]))
@example(text="a\r\nHost: evil", place="header")
@example(text="a; admin=1", place="cookie")
def test_any_text_at_all_arrives_as_it_is_or_is_an_invalid_argument(server, text, place):
    operation = small(
        {"parameters": [{"name": "v", "in": place, "schema": {"type": "string"}}]}, "/{v}" if place == "path" else "/x"
    )
    before = server.count
    result = asyncio.run(ask(server, operation, {"v": text}, required_access=PUBLIC))
    if not result.success:
        assert result.error.type == "InvalidArguments"
        assert server.count == before
        return
    target = urlsplit(result.output["target"])
    headers = {name.lower(): value for name, value in result.output["headers"]}
    found = {
        "path": unquote(target.path[1:]),
        "query": dict(parse_qsl(target.query, keep_blank_values=True)).get("v"),
        "header": headers.get("v"),
        "cookie": headers.get("cookie", "").removeprefix("v="),
    }

    assert found[place] == text


# -- many --------------------------------------------------------------------------------------------------------


async def test_hundreds_of_operations_are_one_pack():
    paths = {
        f"/things{number}/{{id}}": {
            "parameters": [{"name": "id", "in": "path", "schema": {"type": "integer"}}],
            "get": {"responses": {"200": {"content": {"application/json": {"schema": {"type": "object"}}}}}},
            "put": {"requestBody": {"content": {"application/json": {"schema": {"type": "object"}}}}},
        }
        for number in range(250)
    }
    document = OpenAPIDocument.read({"openapi": "3.1.0", "paths": paths})
    tools = [
        reading(each, send=lambda request, _: {"status": 200, "body": {"path": request.url_path}})
        for each in document.operations().values()
    ]
    async with AgentOS() as host:
        await host.extensions.load_pack(ExtensionPack("app", "1.0", tools))
        listed = host.tools.list_available_tools()
        result = await host.tools.process_tool_call(ToolCall("get_things249_id", {"id": 3}))

    assert len(listed) == 500
    assert result.output == {"path": "/things249/3"}


def test_an_operation_is_read_once_and_only_when_it_is_asked_for(monkeypatch):
    read: list[Any] = []
    operations = OpenAPIDocument.read(DATA / "trees.json").operations()
    monkeypatch.setattr("agentos.openapi.document.read_body", lambda *args: read.append(args))
    schemas = [operations["draw"].input_schema for _ in range(2)]

    assert len(read) == 1
    assert schemas[0] is schemas[1]

"""`agentos serve`: the tools for MCP clients, over stdin and stdout or over HTTP, and the tokens that let those in."""

import contextlib
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from importlib import import_module
from pathlib import Path
from secrets import token_urlsafe
from typing import TYPE_CHECKING, Any

import attrs
import click
from click.core import ParameterSource

from agentos.base.extras import import_extra
from agentos.cli.app import App, Fail, app_of, examples, pass_app
from agentos.cli.host_session import UNUSABLE, USAGE
from agentos.cli.started_channels import served_channels
from agentos.cli.studio_settings import settings_beside_mcp
from agentos.cli.terminal.harmless_text import counted
from agentos.cli.terminal.log_output import FORMATS

if TYPE_CHECKING:
    from agentos.host import AgentOS
    from agentos.mcp.auth import TokenFile, Verifier
    from agentos.model.principal import Principal

_file = click.Path(dir_okay=False)
_NEVER = "never"
_STOP = 5.0
"""For how many seconds channels may finish when a server over stdin and stdout ends, as over HTTP."""


@attrs.frozen(kw_only=True)
class HTTPOptions:
    """Where clients come in over HTTP, and who."""

    bind: str
    port: int
    path: str
    url: str | None
    token_file: str | None
    jwks_url: str | None
    issuer: str | None
    audience: str | None
    require_scope: tuple[str, ...]
    allow_origin: tuple[str, ...]
    tls_cert: str | None
    tls_key: str | None
    limit: tuple[str, ...]
    metrics: str
    studio: bool

    @property
    def asks_for_tokens(self) -> bool:
        """Tell whether clients need a token."""
        return self.token_file is not None or self.jwks_url is not None


class _SearchThreshold(click.IntRange):
    """A number of tools, or `never`."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return value if value == _NEVER else super().convert(value, param, ctx)


@click.group(
    invoke_without_command=True,
    epilog=examples(
        "agentos serve",
        "agentos serve --principal ann",
        "agentos serve --no-approvals-tools",
        "agentos serve --http --port 8000",
        "agentos serve --http --log-format json --metrics anybody",
        "agentos serve --http --no-channels",
        "agentos serve --http --studio",
        "agentos serve --http --token-file tokens.json --bind 0.0.0.0 --url https://tools.example.com/mcp",
        "agentos serve --http --url https://tools.example.com/mcp --issuer https://login.example.com"
        " --jwks-url https://login.example.com/keys.json",
        "agentos serve tokens add --token-file tokens.json --principal ann --days 30",
    ),
)
@click.option("--stdio", is_flag=True, help="Serve one client over stdin and stdout, which started this; the default.")
@click.option("--http", is_flag=True, help="Serve many clients over streamable HTTP.")
@click.option("--studio", is_flag=True, help="With --http: serve the studio beside it, at /studio/.")
@click.option("--bind", default="127.0.0.1", show_default=True, metavar="ADDRESS", help="Where to listen.")
@click.option("--port", type=click.IntRange(0, 65535), default=8000, show_default=True, help="0 takes a free one.")
@click.option("--path", default="/mcp", show_default=True, help="The path of the endpoint.")
@click.option("--url", metavar="URL", help="The address by which clients know the server, if others can reach it.")
@click.option("--token-file", type=_file, metavar="FILE", help="Let in who has a token of this file, and nobody else.")
@click.option("--jwks-url", metavar="URL", help="Let in who has a JSON Web Token signed by a key published there.")
@click.option("--issuer", metavar="URL", help="Who issues those tokens: what their iss must be.")
@click.option("--audience", metavar="URL", help="What must be among their aud; --url unless said.")
@click.option("--require-scope", multiple=True, metavar="SCOPE", help="A scope that every token must have.")
@click.option("--allow-origin", multiple=True, metavar="ORIGIN", help="A web page's origin that may call; else none.")
@click.option("--tls-cert", type=_file, metavar="FILE", help="The certificate for https.")
@click.option("--tls-key", type=_file, metavar="FILE", help="The key of the certificate.")
@click.option(
    "--limit",
    multiple=True,
    metavar="NAME=NUMBER",
    help="A bound of the server, such as connections=5000, sessions_per_principal=20 or headers=5 (seconds).",
)
@click.option(
    "--metrics",
    type=click.Choice(("callers", "anybody", "off")),
    default="callers",
    show_default=True,
    help="Who may read /metrics: who may call the tools, anybody who reaches the server, or nobody.",
)
@click.option(
    "--log-format",
    type=click.Choice(FORMATS),
    default="text",
    show_default=True,
    help="How lines on stderr are written: with the time first, or as JSON objects.",
)
@click.option(
    "--search-above",
    type=_SearchThreshold(min=0),
    default=40,
    show_default=True,
    metavar="N",
    help="With more tools than this, clients search for them and load what they need; `never` lists all.",
)
@click.option(
    "--no-approvals-tools",
    is_flag=True,
    help="Offer no proposals_* tools: calls that wait are decided at the host, or where a client asks its user.",
)
@click.option(
    "--no-channels",
    is_flag=True,
    help="Leave out the channels that the manifest turns on: another host runs them, or nobody.",
)
@click.pass_context
def serve(
    context: click.Context,
    /,
    stdio: bool,
    http: bool,
    no_approvals_tools: bool,
    no_channels: bool,
    search_above: Any,
    log_format: str,
    **options: Any,
) -> None:
    """Serve the tools to MCP clients.

    Over stdin and stdout everything is done for --principal, else for the host itself. Over HTTP, a token says for
    whom: one of the manifest's principals, with what it holds now. Without --token-file or --jwks-url only this machine
    is let in, for --principal. What you change meanwhile counts: overrides, secrets, principals, and which packs are
    enabled. Ends with SIGTERM, Ctrl-C, or when the client closes stdin.

    The channels that the manifest turns on are run beside it, unless --no-channels says otherwise.

    With --studio, the same people are let in to the studio: by a link that is printed, or with their token.

    Over HTTP there are also /health, /ready and /metrics. Clients are told that the server is called what the manifest
    has as its name.
    """
    if context.invoked_subcommand is not None:
        return
    app = app_of(context)
    if stdio and http:
        raise Fail("--stdio and --http: serve one of them", code=USAGE)
    app.given["log_format"] = log_format
    shown = {
        "approvals_tools": not no_approvals_tools,
        "search_above": None if search_above == _NEVER else search_above,
    }
    if http:
        app.run(_run_http(app, HTTPOptions(**options), shown, has_channels=not no_channels))
    else:
        _refuse_options_of_http(context)
        app.out  # noqa: B018 - made while descriptor 1 is still what sys.stdout was made for
        with _reserved_streams() as (stdin, stdout):
            app.run(_serve_stdio(app, stdin, stdout, shown, has_channels=not no_channels))


def _refuse_options_of_http(context: click.Context) -> None:
    for parameter in context.command.params:
        name = str(parameter.name)
        is_given = context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        if is_given and name in {field.name for field in attrs.fields(HTTPOptions)}:
            raise Fail(f"{parameter.opts[0]} is for --http", code=USAGE)


def _load(module: str) -> Any:
    """Import a part of agentos.mcp; say what is missing if its library is not there."""
    try:
        import_extra("mcp", "mcp")
        return import_module(f"agentos.mcp.{module}")
    except ImportError as error:
        raise Fail(str(error), code=UNUSABLE) from None


# -- stdio -------------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _reserved_streams() -> Iterator[tuple[int, int]]:
    """Keep stdin and stdout for the protocol alone: what packs print and read while they load goes elsewhere."""
    sys.stdout.flush()
    stdin, stdout = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    try:
        os.dup2(nothing, 0)
        os.dup2(2, 1)
        yield stdin, stdout
    finally:
        sys.stdout.flush()
        os.dup2(stdin, 0)
        os.dup2(stdout, 1)
        for descriptor in (nothing, stdin, stdout):
            os.close(descriptor)


async def _serve_stdio(app: App, stdin: int, stdout: int, shown: Mapping[str, Any], *, has_channels: bool) -> None:
    from agentos.cli.live_changes import followed

    server_module, stdio = _load("server.mcp_server"), _load("server.stdio")
    async with (
        followed(app) as (host, principals),
        _beside(app, host, _STOP, has_channels=has_channels, is_for_one=True),
    ):
        server = server_module.MCPServer(host, principal=_caller(app, principals), name=_name(app), **shown)
        meant = ": this is for an MCP client to start; Ctrl-C ends it" if os.isatty(stdin) else ""
        app.out.note(f"serving {_count(app, host)} over stdin and stdout {_as_whom(app)}{meant}")
        try:
            ended_by = await stdio.run(server.server, stdin, stdout)
        finally:
            await server.close()
    if ended_by == signal.SIGINT:
        raise KeyboardInterrupt


def _beside(
    app: App, host: "AgentOS", seconds: float, *, has_channels: bool, is_for_one: bool = False
) -> contextlib.AbstractAsyncContextManager[None]:
    """Return what runs beside a server: the channels, unless they are left out."""
    if not has_channels:
        return contextlib.nullcontext()
    return served_channels(app, host, seconds=seconds, is_for_one=is_for_one)


def _caller(app: App, principals: Mapping[str, "Principal"]) -> "Principal | Callable[[Any], Principal | None]":
    """Return for whom everything is done: the host itself, or a principal as the manifest has it at the time."""
    id = app.principal.id
    return (lambda _: principals.get(id)) if app.given.get("principal") else app.principal


def _as_whom(app: App) -> str:
    if app.given.get("principal"):
        return f"as {app.principal.id}"
    return "as the host itself, which may call everything (--principal names another)"


def _name(app: App) -> str:
    """Return what clients are told that the server is called."""
    return app.config.manifest.name or "agentos"


def _count(app: App, host: "AgentOS") -> str:
    return counted(len(host.tools.list_available_tools(app.principal)), "tool")


# -- HTTP --------------------------------------------------------------------------------------------------------------


async def _run_http(app: App, options: HTTPOptions, shown: Mapping[str, Any], *, has_channels: bool) -> None:
    from agentos.cli.live_changes import followed

    http = _load("http.serving")
    _check_options(options)
    limits = _limits(http.HTTPLimits, options.limit)
    if options.asks_for_tokens and app.given.get("principal"):
        raise Fail("--principal: where tokens are asked for, the token says for whom a request is made", code=USAGE)
    if options.token_file is not None:
        _tokens(options.token_file)
        _require_file(options.token_file)
    async with (
        followed(app) as (host, principals),
        _beside(app, host, limits.stop, has_channels=has_channels),
    ):
        studio = _ServedStudio(app, host, options, principals) if options.studio else None
        serving = http.serve_http(
            host,
            bind=options.bind,
            port=options.port,
            path=options.path,
            verifier=_verifier(options, principals),
            resource_url=options.url,
            tls_cert=options.tls_cert,
            tls_key=options.tls_key,
            required_scopes=options.require_scope,
            allowed_origins=options.allow_origin,
            limits=limits,
            metrics=options.metrics,
            name=_name(app),
            mounts={} if studio is None else {studio.PATH: studio.make},
            ready=lambda address: _print_ready(
                app, host, address, has_tokens=options.asks_for_tokens, studio=studio, path=options.path
            ),
            **({} if options.asks_for_tokens else {"principal": _caller(app, principals)}),
            **shown,
        )
        try:
            await until_sigterm(serving)
        except ValueError as error:  # an address, a path or a certificate that can't be used
            raise Fail(str(error).removeprefix("serve_http: "), code=USAGE) from None


def _limits(kind: Any, given: Sequence[str]) -> Any:
    """Return the bounds of the server, with those that are given as NAME=NUMBER."""
    known = {field.name: field.type for field in attrs.fields(kind)}
    said = {}
    for pair in given:
        name, _, number = pair.partition("=")
        if name not in known:
            raise Fail(f"--limit: {name[:64]!r} is unknown; known are {', '.join(known)}", code=USAGE)
        try:
            said[name] = known[name](number)
        except ValueError:
            raise Fail(f"--limit {name}: expected a number, got {number[:64]!r}", code=USAGE) from None
    try:
        return kind(**said)
    except ValueError as error:
        raise Fail(f"--limit: {str(error).removeprefix('HTTPLimits.')}", code=USAGE) from None


def _verifier(options: HTTPOptions, principals: Mapping[str, "Principal"]) -> "Verifier | None":
    """Return who tells whom a token stands for: always one of the manifest's principals, as it is at the time."""
    if options.token_file is not None:
        return _tokens(options.token_file, principals)
    if options.jwks_url is None:
        return None
    try:
        made: Verifier = _load("auth").JWTVerifier(
            issuer=options.issuer,
            audience=options.audience or options.url,
            jwks_url=options.jwks_url,
            principals=lambda claims: principals.get(claims["sub"]),
        )
    except ValueError as error:
        raise Fail(str(error).removeprefix("JWTVerifier: "), code=USAGE) from None
    return made


def _check_options(options: HTTPOptions) -> None:
    """Refuse options that are not safe, in the words of the command line."""
    from agentos.mcp.auth import is_loopback

    if (options.tls_cert is None) != (options.tls_key is None):
        raise Fail("--tls-cert and --tls-key go together; give both or none", code=USAGE)
    _check_tokens(options)
    if is_loopback(options.bind):
        return
    if not options.asks_for_tokens:
        way = "give --token-file or --jwks-url, so that they need a token, or bind 127.0.0.1"
        raise Fail(f"{options.bind} can be reached by others; {way}", code=USAGE)
    if options.url is None:
        raise Fail(f"with --bind {options.bind} give --url, the address by which clients know the server", code=USAGE)


def _check_tokens(options: HTTPOptions) -> None:
    if options.token_file is not None and options.jwks_url is not None:
        raise Fail("--token-file and --jwks-url: give one of them", code=USAGE)
    if options.jwks_url is None and (options.issuer or options.audience):
        raise Fail("--issuer and --audience go with --jwks-url", code=USAGE)
    if options.jwks_url is not None and not (options.issuer and (options.audience or options.url)):
        raise Fail("with --jwks-url give --issuer, and --audience or --url: what tokens must say", code=USAGE)
    if options.require_scope and not options.asks_for_tokens:
        raise Fail("--require-scope: give --token-file or --jwks-url, so that there are tokens", code=USAGE)


class _ServedStudio:
    """The studio beside the endpoint: whoever may call that may sign in."""

    PATH = "/studio"

    def __init__(self, app: App, host: "AgentOS", options: HTTPOptions, principals: Mapping[str, "Principal"]) -> None:
        self._app = app
        self._host = host
        self._options = options
        self._principals = principals
        self._token = None if options.asks_for_tokens else token_urlsafe(32)
        load_studio()

    def make(self, bearer: Any) -> Any:
        """Return the app, for what accepts the tokens of this server."""
        is_secure = self._options.tls_cert is not None or (self._options.url or "").startswith("https:")
        who = None if bearer is not None else who_is_meant(self._app, self._principals)
        return load_studio().studio_app(
            self._host,
            principal=who,
            bearer=bearer,
            token=self._token,
            is_secure=is_secure,
            checks_host=False,
            settings=settings_beside_mcp(self._app, self._host),
        )

    def words(self, base: str) -> str:
        """Say where the studio is, and how to come in."""
        if self._token is None:
            return f"the studio is at {base}{self.PATH}/ for whoever has a token"
        return f"the studio: {base}{self.PATH}/sign-in?token={self._token}"


def load_studio() -> Any:
    """Import the studio; say what is missing if its libraries are not there."""
    try:
        import agentos.studio

        agentos.studio.studio_app  # noqa: B018 - imported now
    except ImportError as error:
        raise Fail(str(error), code=UNUSABLE) from None
    return agentos.studio


def who_is_meant(app: App, principals: Mapping[str, "Principal"]) -> "Principal | Callable[[], Principal | None]":
    """Return for whom a studio is opened: the host itself, or a principal as the manifest has it at the time."""
    id = app.principal.id
    return (lambda: principals.get(id)) if app.given.get("principal") else app.principal


def _print_ready(
    app: App, host: "AgentOS", address: str, *, has_tokens: bool, studio: _ServedStudio | None, path: str
) -> None:
    if has_tokens:
        app.out.note(f"serving at {address} to whoever has a token")
    else:
        app.out.note(f"serving {_count(app, host)} at {address} to everybody on this machine, {_as_whom(app)}")
    if studio is not None:
        app.out.note(studio.words(address.removesuffix(path)))


async def until_sigterm(serving: Any) -> None:
    """Serve until SIGTERM, which is how a service is ended: that is no failure."""
    import asyncio

    task = asyncio.ensure_future(serving)
    told: list[int] = []

    def end() -> None:
        told.append(signal.SIGTERM)
        task.cancel()

    with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):  # not on every platform, nor every thread
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, end)
    try:
        await task
    except asyncio.CancelledError:
        if not told:
            raise


# -- tokens ------------------------------------------------------------------------------------------------------------


def _tokens(path: str, principals: "Mapping[str, Principal] | None" = None) -> "TokenFile":
    auth = _load("auth")
    try:
        found: TokenFile = auth.TokenFile(path, principals=principals)
    except ValueError as error:
        raise Fail(str(error), code=USAGE) from None
    return found


_token_file = click.option("--token-file", type=_file, metavar="FILE", required=True, help="The file of tokens, .json.")


@serve.group(
    epilog=examples(
        "agentos serve tokens add --token-file tokens.json --principal ann",
        "agentos serve tokens list --token-file tokens.json",
        "agentos serve tokens remove 3f2a91c0d4e5 --token-file tokens.json",
    ),
)
def tokens() -> None:
    """Add, list and remove the tokens that let clients in over HTTP. The file holds hashes only."""


@tokens.command(
    epilog=examples(
        "agentos serve tokens add --token-file tokens.json --principal ann",
        "agentos serve tokens add --token-file tokens.json --principal ann --scope mail:read --days 7",
    ),
)
@_token_file
@click.option("--scope", "scopes", multiple=True, metavar="RULE", help="Narrow it to these rules; else all it holds.")
@click.option("--audience", metavar="URL", help="The address of the only server that takes it.")
@click.option(
    "--days",
    type=click.FloatRange(min=0, min_open=True),
    default=90,
    show_default=True,
    metavar="DAYS",
    help="For how many days it lasts.",
)
@click.option("--forever", is_flag=True, help="It does not expire.")
@pass_app
def add(app: App, token_file: str, scopes: Sequence[str], audience: str | None, days: float, forever: bool) -> None:
    """Make a token for --principal. It is shown now and never again."""
    if not app.given.get("principal"):
        raise Fail(
            "say whom the token stands for", code=USAGE, hint="--principal names one of the manifest's principals"
        )
    try:
        ttl = None if forever else timedelta(days=days)
        token = _tokens(token_file).issue(app.principal, scopes or None, audience, ttl)
    except (ValueError, OverflowError) as error:
        raise Fail(str(error), code=USAGE) from None
    entry = next(one for one in _tokens(token_file).entries() if f"_{one.id}_" in token)
    app.out.data({"token": token, **_data(entry)})
    app.out.say(token)
    app.out.note(f"token {entry.id} for {entry.principal}, {_until(entry)}; it is shown now and never again")


def _data(entry: Any) -> dict[str, Any]:
    return {key: value for key, value in entry.to_json().items() if key != "hash"}


def _until(entry: Any) -> str:
    if entry.expires is None:
        return "does not expire"
    word = "expired" if entry.expires <= datetime.now(UTC) else "expires"
    return f"{word} {entry.expires.isoformat(timespec='seconds')}"


@tokens.command("list", epilog=examples("agentos serve tokens list --token-file tokens.json --json"))
@_token_file
@pass_app
def list_(app: App, token_file: str) -> None:
    """List the tokens: for whom, narrowed to what, and until when; never the token itself."""
    found = _tokens(_require_file(token_file)).entries()
    app.out.data({"tokens": [_data(entry) for entry in found]})
    rows = [
        (
            (entry.id, "bold"),
            entry.principal,
            ", ".join(sorted(entry.access)),
            "" if entry.scopes is None else ", ".join(sorted(entry.scopes)) or "nothing",
            entry.audience,
            _until(entry),
        )
        for entry in found
    ]
    app.out.table(("id", "for", "holds", "narrowed to", "audience", "until"), rows, empty="There are no tokens.")


@tokens.command(epilog=examples("agentos serve tokens remove 3f2a91c0d4e5 --token-file tokens.json"))
@click.argument("id")
@_token_file
@pass_app
def remove(app: App, id: str, token_file: str) -> None:
    """Take the token of that ID out of the file; servers that run refuse it at once."""
    if not _tokens(_require_file(token_file)).revoke(id):
        raise Fail(f"there is no token {id[:64]!r} in {token_file}", hint="`agentos serve tokens list` shows their ids")
    app.out.data({"id": id, "state": "revoked"})
    app.out.say(f"token {id} is revoked")


def _require_file(path: str) -> str:
    if not Path(path).is_file():
        raise Fail(f"there is no file of tokens at {path}", hint="`agentos serve tokens add` makes one")
    return path

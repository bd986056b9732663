"""`agentos studio`: the host in a browser, on this machine unless asked otherwise."""

import os
import sys
from typing import Any

import attrs
import click

from agentos.cli.app import App, Fail, examples, pass_app
from agentos.cli.chat_endpoint import Endpoint, endpoint_of, endpoint_options
from agentos.cli.commands.serve import load_studio, until_sigterm, who_is_meant
from agentos.cli.host_session import UNUSABLE, USAGE
from agentos.cli.studio_settings import studio_settings

PORT = 8765
_file = click.Path(dir_okay=False)


@attrs.frozen(kw_only=True)
class StudioOptions:
    """Where the studio listens, and how browsers know it."""

    bind: str
    port: int
    url: str | None
    tls_cert: str | None
    tls_key: str | None


@click.command(
    epilog=examples(
        "agentos studio",
        "agentos studio --principal ann --no-browser",
        "agentos studio --model llama3.3 --base-url http://localhost:11434/v1",
        "agentos studio --port 0",
        "agentos studio --bind 0.0.0.0 --url https://studio.example.com --tls-cert cert.pem --tls-key key.pem",
    ),
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=PORT,
    show_default=True,
    help="0 takes a free one.",
)
@click.option("--no-browser", is_flag=True, help="Print the link and open nothing.")
@click.option("--bind", default="127.0.0.1", show_default=True, metavar="ADDRESS", help="The address to listen at.")
@click.option("--url", metavar="URL", help="The https address by which browsers know it, if others can reach it.")
@click.option("--tls-cert", type=_file, metavar="FILE", help="The certificate for https.")
@click.option("--tls-key", type=_file, metavar="FILE", help="The key of the certificate.")
@endpoint_options
@pass_app
def studio(app: App, /, no_browser: bool, **options: Any) -> None:
    """Open agentos in a browser: stacks, packs, tools, approvals, live calls, and the rest of the command.

    The link that is printed lets in, for --principal or else for the host itself; who has it may do what that may do.
    With --model the page Chat talks to it, at any endpoint that speaks the API.

    Only this machine is let in, unless --bind names another address: then --url has to be https, by --tls-cert and
    --tls-key or by a proxy in front of it. Ends with SIGTERM or Ctrl-C.
    """
    named = {name: options.pop(name) for name in ("model", "api", "base_url", "key")}
    endpoint = endpoint_of(named) if named["model"] else None
    opens_browser = not no_browser and can_open_browser()
    app.run(_serve(app, StudioOptions(**options), endpoint, opens_browser=opens_browser))


def can_open_browser() -> bool:
    """Tell whether a person sits at a machine with a screen."""
    has_screen = sys.platform in ("darwin", "win32") or any(
        os.environ.get(one) for one in ("DISPLAY", "WAYLAND_DISPLAY")
    )
    return has_screen and sys.stdout.isatty()


async def _serve(app: App, options: StudioOptions, endpoint: Endpoint | None, *, opens_browser: bool) -> None:
    from agentos.cli.live_changes import followed

    serve_studio = load_studio().serve_studio

    def tell(link: str) -> None:
        app.out.data({"link": link})
        app.out.say(link)
        whom = f"for {app.principal.id}" if app.given.get("principal") else "for the host itself"
        app.out.note(f"the studio is open {whom}; Ctrl-C ends it")
        if opens_browser:
            _open(link)

    async with followed(app) as (host, principals):
        settings = studio_settings(app, host, endpoint)
        whom = who_is_meant(app, principals)
        serving = serve_studio(host, principal=whom, ready=tell, settings=settings, **attrs.asdict(options))
        try:
            await until_sigterm(serving)
        except ValueError as error:
            raise Fail(str(error).removeprefix("serve_studio: "), code=USAGE) from None
        except OSError as error:
            hint = "--port 0 takes a free one"
            raise Fail(str(error.strerror or error), code=UNUSABLE, hint=hint) from None


def _open(link: str) -> None:
    import threading
    import webbrowser

    threading.Thread(target=webbrowser.open, args=(link,), daemon=True).start()

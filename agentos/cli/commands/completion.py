"""`agentos completion`: a script that makes a shell complete commands, options, and names of what is there."""

import click
from click.shell_completion import get_completion_class

from agentos.cli.app import App, examples, make_command, pass_app

_WHERE = {
    "bash": '~/.bashrc:  eval "$(agentos completion bash)"',
    "zsh": '~/.zshrc:  eval "$(agentos completion zsh)"',
    "fish": "~/.config/fish/completions/agentos.fish:  agentos completion fish | source",
}


@click.command(
    epilog=examples(
        'eval "$(agentos completion bash)"', "agentos completion fish > ~/.config/fish/completions/agentos.fish"
    )
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@pass_app
def completion(app: App, *, shell: str) -> None:
    """Print a completion script for your shell. It goes into the file that the shell reads when it starts."""
    found = get_completion_class(shell)
    assert found is not None  # noqa: S101 - click knows the three
    script = found(make_command(), {}, "agentos", "_AGENTOS_COMPLETE").source()
    app.out.data({"shell": shell, "script": script, "where": _WHERE[shell]})
    app.out.raw(script)

"""The command line: every command with its help, its options and its examples."""

import inspect
from collections.abc import Iterator

import click

from _generate.markdown import code, escaped, fence, table
from agentos.cli.app import make_command
from agentos.cli.command_list import OPTIONS


def pages() -> dict[str, str]:
    """Return the page of all commands."""
    parts = [_section(path, command) for path, command in commands()]
    head = (
        "# Commands\n\nWhat `agentos` and each of its commands say with `--help`. "
        "[The command `agentos`](../cli.md) and [tools, secrets, approvals and serving](../cli-tools.md) explain them, "
        "with examples that are run.\n\n## Options of every command\n\nThey may stand before or behind its name.\n\n"
    )
    everywhere = table(("option", ""), [(code(name), text) for name, text in OPTIONS.items()])
    return {"cli.md": head + everywhere + "\n" + "\n".join(parts)}


def commands() -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yield every command with the words that name it, groups before what is in them."""
    root = make_command()
    yield from _beneath(root, click.Context(root, info_name="agentos"), ())


def _beneath(
    group: click.Group, context: click.Context, words: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command is None or command.hidden:
            continue
        yield (*words, name), command
        if isinstance(command, click.Group):
            yield from _beneath(command, click.Context(command, info_name=name, parent=context), (*words, name))


def _section(words: tuple[str, ...], command: click.Command) -> str:
    name = " ".join(("agentos", *words))
    context = click.Context(command, info_name=name)
    usage = " ".join((name, *command.collect_usage_pieces(context)))
    parts = [
        f"{'#' * min(1 + len(words), 4)} {name}\n",
        _help(command),
        fence(usage, "sh"),
        _parameters(command, context),
        _examples(command),
    ]
    return "\n".join(part for part in parts if part)


def _help(command: click.Command) -> str:
    text = inspect.cleandoc(command.help or command.short_help or "").replace("\b", "")
    return escaped(text) + "\n"


def _parameters(command: click.Command, context: click.Context) -> str:
    shown = [one for one in command.params if "--help" not in one.opts]
    records = [record for one in shown if (record := one.get_help_record(context)) is not None]
    if not records:
        return ""
    return table(("option", ""), [(code(names), text) for names, text in records])


def _examples(command: click.Command) -> str:
    _, _, lines = (command.epilog or "").partition("Examples:\n")
    return f"Examples:\n\n{fence(inspect.cleandoc(lines), 'sh')}" if lines.strip() else ""


def variables() -> dict[str, str]:
    """Return the variables that options are read from, with the option that each is for."""
    found = {}
    for words, command in commands():
        for option in command.params:
            names = [option.envvar] if isinstance(option.envvar, str) else option.envvar or ()
            found |= {name: f"`{option.opts[0]}` of `agentos {' '.join(words)}`" for name in names}
    return found

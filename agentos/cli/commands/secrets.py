"""`agentos secrets`: which secrets are declared, where they come from and what they gate; never a value."""

import contextlib
import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs
import click

from agentos.checks.faults import faults_of_kept
from agentos.checks.probed import ProbeReport
from agentos.cli.app import App, Fail, completing, examples, pass_app
from agentos.cli.inspection import deadline_option, inspect_packs, warn_of_bad
from agentos.cli.layered_config import Config, kept_secrets, sources_of
from agentos.model.field_checks import did_you_mean, fault_of_name
from agentos.secrets.catalog import SecretCatalog, SecretDefinition
from agentos.secrets.sources import SecretSources, is_real
from agentos.secrets.vaults import VALUE_LIMIT, SecretVault

_REFERENCE = re.compile(r"\$\{secret:([A-Za-z0-9_.-]+)\}")
_PLACES = {"keyring": "the OS keyring", "file": "the encrypted file"}
_complete_known = completing(lambda _: [one.id for one in SecretCatalog.shipped()])


@click.group(
    epilog=examples("agentos secrets list", "agentos secrets add openai.apiKey", "agentos secrets check"),
)
def secrets() -> None:
    """See which secrets packs declare, where they come from and what they gate, and set them.

    A value is looked for in a pack's own options, the environment, the manifest's .env file, and then among those that
    `agentos secrets add` keeps: in the OS keyring where one works, else in an encrypted file. No value is ever shown.
    """


# -- what is known of secrets ------------------------------------------------------------------------------------------


@attrs.frozen(kw_only=True)
class SecretRow:
    """What is known of one secret. `origin` is where its value comes from; None if it has none."""

    id: str
    origin: str | None
    optional: bool
    gates: tuple[str, ...]
    kept: str | None
    definition: SecretDefinition | None

    @property
    def is_missing(self) -> bool:
        """Tell whether something waits for it."""
        return self.origin is None and not self.optional and bool(self.gates)

    @property
    def state(self) -> tuple[str, str]:
        """Say in a word whether it is there."""
        if self.origin is not None:
            return "set", "green"
        return ("missing", "bold yellow") if self.is_missing else ("not set", "bright_black")

    def to_json(self) -> dict[str, Any]:
        """Return what programs are told."""
        known = self.definition
        return {
            "id": self.id,
            "isSet": self.origin is not None,
            "isMissing": self.is_missing,
            "origin": self.origin,
            "optional": self.optional,
            "gates": self.gates,
            "kept": self.kept,
            "variables": () if known is None else known.variables,
            "label": None if known is None else known.label,
            "docsUrl": None if known is None else known.docs_url,
        }


def _rows(config: Config, report: ProbeReport, more: Iterable[str] = ()) -> list[SecretRow]:
    """Return a row for each secret that is declared, is kept, or is named in *more*."""
    known, kept = {**SecretCatalog.shipped().definitions, **report.secrets}, SecretVault().kept()
    wanted = _who_declares(report)
    sources = sources_of(config, kept_secrets())
    return [
        SecretRow(
            id=id,
            origin=_origin(id, wanted.get(id, ()), kept, sources),
            optional=id in wanted and all(one["optional"] for _, one in wanted[id]),
            gates=tuple(dict.fromkeys(gate for gate, _ in wanted.get(id, ()))),
            kept=kept.get(id),
            definition=known.get(id),
        )
        for id in dict.fromkeys((*wanted, *kept, *more))
    ]


def _who_declares(report: ProbeReport) -> dict[str, list[tuple[str, Mapping[str, Any]]]]:
    """Return who asks for each secret, as `kind:id (pack)`, and what became of it there."""
    found: dict[str, list[tuple[str, Mapping[str, Any]]]] = {}
    for stack in report.stacks:
        for entry in stack.entries:
            for secret in entry.secrets:
                found.setdefault(secret["id"], []).append((f"{stack.kind}:{stack.id} ({entry.pack})", secret))
    return found


def _origin(
    id: str, asked: Sequence[tuple[str, Mapping[str, Any]]], kept: Mapping[str, str], sources: SecretSources
) -> str | None:
    """Return where a value comes from: None as soon as one that asks has none."""
    origins = [one["origin"] for _, one in asked]
    if not asked:
        found = sources.find(id, {})
        origins = [None if found is None else found[1]]
    if None in origins:
        return None
    return str(_PLACES.get(kept.get(id, ""), origins[0]) if origins[0] == "the host" else origins[0])


def _print_rows(app: App, rows: Sequence[SecretRow], empty: str) -> None:
    shown = []
    for row in rows:
        known = row.definition
        variables, url = ("", "") if known is None else (f"({' or '.join(known.variables)})", known.docs_url)
        shown.append(((row.id, "bold"), row.state, row.origin or variables, ", ".join(row.gates), url))
    app.out.table(("secret", "state", "from", "needed by", "where to get one"), shown, empty=empty)


def _warn_of_kept(app: App) -> None:
    """Say what is wrong with the secrets that are kept: without that, they seem never to have been set."""
    for message, cure in faults_of_kept():
        app.out.warn(f"{message}; {cure}")


def _probe_and_warn(app: App, deadline: float) -> ProbeReport:
    report = inspect_packs(app, deadline)
    warn_of_bad(app, report)
    return report


# -- list, check -------------------------------------------------------------------------------------------------------


@secrets.command("list", epilog=examples("agentos secrets list", "agentos secrets list --all --json"))
@click.option("--all", "everything", is_flag=True, help="Also those that agentos knows and nothing here asks for.")
@deadline_option
@pass_app
def list_(app: App, everything: bool, deadline: float) -> None:
    """List the secrets that packs declare or that are kept: from where they come and what they gate."""
    more = [one.id for one in SecretCatalog.shipped()] if everything else []
    rows = _rows(app.config, _probe_and_warn(app, deadline), more)
    app.out.data({"secrets": [row.to_json() for row in rows]})
    _print_rows(app, rows, "No loaded pack declares a secret, and none is kept.")
    _warn_of_kept(app)


@secrets.command(epilog=examples("agentos secrets check", "agentos secrets check openai.apiKey serper.apiKey"))
@click.argument("ids", nargs=-1, shell_complete=_complete_known)
@deadline_option
@pass_app
def check(app: App, ids: Sequence[str], deadline: float) -> int:
    """Exit 1 if a secret is missing that something waits for, or one of IDS has no value."""
    rows = _rows(app.config, _probe_and_warn(app, deadline), ids)
    wrong = [row for row in rows if (row.id in ids and row.origin is None) or (not ids and row.is_missing)]
    app.out.data({"ok": not wrong, "missing": [{**row.to_json(), "isMissing": True} for row in wrong]})
    _warn_of_kept(app)
    if not wrong:
        app.out.say("Every secret that is asked for is there." if not ids else f"Set: {', '.join(ids)}")
        return 0
    _print_rows(app, wrong, "")
    if not app.out.is_json:
        app.out.fail(f"missing: {', '.join(row.id for row in wrong)}", f"agentos secrets add {wrong[0].id}")
    return 1


# -- add, remove -------------------------------------------------------------------------------------------------------


@secrets.command(
    epilog=examples(
        "agentos secrets add openai.apiKey", "pass show openai | agentos secrets add openai.apiKey --stdin"
    ),
)
@click.argument("id", shell_complete=_complete_known)
@click.option("--stdin", "from_stdin", is_flag=True, help="Read the value from stdin instead of asking for it.")
@click.option("--force", is_flag=True, help="Keep it even if nothing here declares such a secret.")
@deadline_option
@pass_app
def add(app: App, id: str, from_stdin: bool, force: bool, deadline: float) -> None:
    """Keep a secret: typed unseen, stored in the OS keyring where one works, else in an encrypted file.

    It is kept for this user, whatever the manifest. A variable of the environment or a line in .env counts before it.
    ID is one that agentos knows or a pack of the manifest declares; the name of its variable means it, too.
    """
    meant = _known_secret(app, id, deadline, force=force)
    id = meant.id
    value = _read_value(app, id, from_stdin=from_stdin)
    vault = SecretVault()
    where = vault.set(id, value)
    place = _PLACES[where] + (f" at {vault.path}" if where == "file" else "")
    nearer = _stronger_origin(app, meant)
    app.out.data({"id": id, "kept": where, "countsBefore": nearer})
    app.out.say(f"{id} is kept in {place}")
    if nearer is not None:
        app.out.warn(f"{nearer} has a value too, and that one counts")


def _known_secret(app: App, id: str, deadline: float, *, force: bool) -> SecretDefinition:
    """Return what is meant. Refuse what can't be an id, and what nothing asks for: nobody would read its value."""
    if fault := fault_of_name(id):
        raise Fail(f"{id!r} is no id of a secret: {fault}", code=2)
    catalog = SecretCatalog.shipped()
    if meant := _meant(app, id, catalog):
        return meant
    if force or id in SecretVault().kept():
        return SecretDefinition(id, None)
    declared = _declared_here(app, deadline)
    if meant := _meant(app, id, declared.values()):
        return meant
    hint = did_you_mean(id, [*declared, *(one.id for one in catalog)])
    way = "`agentos secrets list --all` shows what is known; --force keeps it all the same"
    raise Fail(f"nothing declares a secret called {id!r}{hint}", code=2, hint=way)


def _meant(app: App, name: str, known: Iterable[SecretDefinition]) -> SecretDefinition | None:
    """Return the secret of that id, or of the variable of that name."""
    for one in known:
        if name in one.variables:
            app.out.note(f"{name} is the variable of {one.id}")
        if name in (one.id, *one.variables):
            return one
    return None


def _declared_here(app: App, deadline: float) -> dict[str, SecretDefinition]:
    """Return the secrets that the manifest's packs and servers ask for; none without a manifest that can be used."""
    with contextlib.suppress(Fail):
        servers = _REFERENCE.findall(json.dumps(dict(app.config.manifest.mcp_servers), default=dict))
        report = _probe_and_warn(app, deadline)
        asked = {id: SecretDefinition(id, None) for id in (*servers, *_who_declares(report))}
        return {**asked, **report.secrets}
    return {}


def _read_value(app: App, id: str, *, from_stdin: bool) -> str:
    if from_stdin:
        value = _read_stdin(id, VALUE_LIMIT)
    elif app.out.can_ask:
        value = app.out.ask(f"Value of {id} (not shown)", hidden=True).strip()
    else:
        raise Fail("there is no terminal to type a value at", code=2, hint="pipe the value in, with --stdin")
    if not is_real(value):
        raise Fail(f"that is no value for {id}: it is blank, or what a template leaves in its place", code=2)
    return value


def _read_stdin(id: str, limit: int) -> str:
    """Return what is on stdin, as it is but for the end of its line; one character too many is enough to refuse it."""
    try:
        return sys.stdin.buffer.read(4 * limit + 2).decode("utf-8").rstrip("\r\n")
    except UnicodeDecodeError:
        raise Fail(f"that is no value for {id}: it is no text in UTF-8", code=2) from None


def _stronger_origin(app: App, secret: SecretDefinition) -> str | None:
    """Return where a value is found that counts before the one that is kept."""
    config = None
    with contextlib.suppress(Fail):  # a secret is kept whatever the manifest, and whether there is one
        config = app.config
    entries = () if config is None else config.entries
    own = {name: value for entry in entries for name, value in entry.options.get("secrets", {}).items()}
    sources = sources_of(config, known=SecretCatalog.of([secret] if secret.variables else []))
    found = sources.find(secret.id, {}) or sources.find(secret.id, own)
    return None if found is None else found[1]


@secrets.command(epilog=examples("agentos secrets remove openai.apiKey"))
@click.argument("id", shell_complete=completing(lambda _: SecretVault().kept()))
@pass_app
def remove(app: App, id: str) -> None:
    """Forget a secret that is kept. What the environment or .env say stays."""
    vault = SecretVault()
    kept = vault.kept()  # looked at first: to change what is kept, its folder is made
    if id not in kept or not vault.unset(id):
        raise Fail(f"no secret called {id!r} is kept{did_you_mean(id, kept)}")
    app.out.data({"id": id, "kept": None})
    app.out.say(f"{id} is not kept any more")

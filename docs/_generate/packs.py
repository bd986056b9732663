"""The curated packs: an index of what each offers and needs, and the README of each with links that hold here."""

import logging
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from _generate.markdown import code, first_sentence, table
from _generate.pack_facts import PREFIX, ROOT, Facts, Size, all_facts
from agentos import SecretCatalog, Tool
from agentos.loading.curated_packs import CURATED, CuratedPack

_LINK = re.compile(r"\[([^\]]*)\]\(([^)#\s]+)(#[^)\s]*)?\)")
_FENCE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
_OPTIONS = re.compile(r"^\| option \|.*\n(?:\|.*\n)+", re.MULTILINE)
_SENTENCE = re.compile(r"(?<=\.)\s(?=[A-Z])")
_MEGABYTE = 1_000_000
_INTRO = """# Curated packs

Each is a distribution of its own, `agentos-pack-<name>`; [Installing](../../installing.md) says where pip finds it.
`agentos packs add <name>` puts an installed one into the manifest; [a curated manifest](../../curated.md) takes several
at once. What stands here was read from the packs when this site was built: tools and secrets by loading each, sizes
from what was installed.
"""
_KEPT_INTRO = """# The curated packs at a glance

What each offers, needs and weighs; `packs/<name>/README.md` says more, [Curated packs](curated.md) how to take several
at once, [Installing](installing.md) where pip finds them. This page is made by `python -m _generate packs` in `docs/`,
and a test holds it against the packs: tools and secrets are read by loading each, sizes from what was installed where
the page was made.
"""
# A logger of Sphinx by its name: what is told here is a warning of the build, and those are errors.
_logger = logging.getLogger("sphinx.agentos.packs")


def pages() -> dict[str, str]:
    """Return the index, and a page for each pack that has a README. A pack that can't be loaded is warned of."""
    found = {file.parent.name: file for file in sorted(ROOT.glob("packs/*/README.md"))}
    texts = {name: _with_links(_titled(name, file.read_text("utf-8")), file) for name, file in found.items()}
    for one in all_facts():
        if one.fault:
            _logger.warning("the curated pack %s can't be loaded: %s", one.name, one.fault)
    return {**{f"packs/{name}.md": text for name, text in texts.items()}, "packs/index.md": index(all_facts(), texts)}


def index(facts: Iterable[Facts], readmes: Mapping[str, str]) -> str:
    """Return the page that lists *facts*: in one table first, then each pack by itself, by category."""
    told = _told(facts)
    parts = [_INTRO, *_listed(told, readmes)]
    libraries = sorted(set(readmes) - {one.name for one, _ in told})
    if libraries:
        links = ", ".join(f"[{code(PREFIX + name)}]({name}.md)" for name in libraries)
        parts.append(f"## What they share\n\n{links}\n")
    toctree = "\n".join(readmes)
    return "\n".join([*parts, f"```{{toctree}}\n:hidden:\n\n{toctree}\n```\n"])


def kept_index(facts: Iterable[Facts]) -> str:
    """Return the page that lists *facts* for whoever has no site: it is kept beside the pages that people write."""
    return "\n".join([_KEPT_INTRO, *_listed(_told(facts), {})])


def _told(facts: Iterable[Facts]) -> list[tuple[Facts, CuratedPack]]:
    """Return *facts* in the order of the catalog, each with what the catalog says."""
    known = {pack.name: pack for pack in CURATED}
    ordered = sorted(facts, key=lambda one: list(known).index(one.name) if one.name in known else len(known))
    return [(one, known.get(one.name) or CuratedPack(one.name, "other", "")) for one in ordered]


def _listed(told: Sequence[tuple[Facts, CuratedPack]], readmes: Mapping[str, str]) -> Iterator[str]:
    yield table(("pack", "category", "what it is for", "tools", "secrets", "size"), map(_row, told))
    for category in dict.fromkeys(pack.category for _, pack in told):
        yield f"## {category}\n"
        yield from (_section(one, pack, readmes.get(one.name)) for one, pack in told if pack.category == category)


def _row(told: tuple[Facts, CuratedPack]) -> tuple[object, ...]:
    one, pack = told
    secrets = [*map(code, one.required_secrets), *(f"{code(id)} (optional)" for id in one.optional_secrets)]
    secrets += [f"by {code('.'.join(pack.secrets_in_options))}"] if pack.secrets_in_options else []
    tools = len(one.tools) if one.fault is None else "?"
    return f"[{one.name}](#{one.name})", pack.category, pack.summary, tools, ", ".join(secrets), _total(one.size)


def _section(one: Facts, pack: CuratedPack, readme: str | None) -> str:
    summary = f"{pack.summary[:1].upper()}{pack.summary[1:]}. " if pack.summary else ""
    more = f" [Its README]({one.name}.md) says more." if readme else ""
    parts = [f"### {one.name}\n", f"{summary}`pip install {pack.distribution}`.{more}\n"]
    if one.fault is None:
        rows = [_tool(tool) for tool in one.tools]
        parts.append(table(("tool", "effect", "access", "dry run", "what it does"), rows))
    else:
        parts.append("It could not be loaded when this site was built.\n")
    parts.append("\n".join(f"- {fact}" for fact in _list(one, pack)) + "\n")
    if readme:
        options = _OPTIONS.search(readme)
        parts.append(options[0] if options else "There are no options that a manifest file could set.\n")
    return "\n".join(parts)


def _tool(tool: Tool) -> tuple[str, ...]:
    rules = tool.required_access
    access = ", ".join(map(code, rules)) if isinstance(rules, tuple) else "public"
    return (
        code(tool.name),
        tool.effect,
        access,
        "yes" if tool.dry_run else "",
        _SENTENCE.split(first_sentence(tool.description))[0],
    )


def _list(one: Facts, pack: CuratedPack) -> Iterator[str]:
    needs = {**dict.fromkeys(one.required_secrets, "required"), **dict.fromkeys(one.optional_secrets, "optional")}
    for id, need in needs.items():
        known = SecretCatalog.shipped().get(id)
        yield f"secret {code(id)}, {need}" + (f": {code(known.env_var)}" if known and known.env_var else "")
    if pack.secrets_unless:
        yield f"with the option {code(pack.secrets_unless)} it needs no secret"
    if pack.secrets_in_options:
        yield f"secrets: those that the option {code('.'.join(pack.secrets_in_options))} names"
    elif not needs and not one.fault:
        yield "secrets: none"
    yield f"depends on {', '.join(map(code, one.dependencies))}"
    for extra, requirements in one.extras.items():
        yield f"extra {code(extra)}: {', '.join(map(code, requirements))}"
    for permission in pack.permissions:
        yield f"needs the permission {code(permission)}"
    for kind, id in one.others:
        yield f"offers {code(id)} of kind {code(kind)} as well"
    yield f"size: {_sizes(one.size)}"


def _total(size: Size) -> str:
    return shown(size.own + sum(size.brought.values())) + (" and more" if size.unmeasured else "")


def _sizes(size: Size) -> str:
    """Say how large the pack is, and what it brings, the largest first."""
    largest = sorted(size.brought.items(), key=lambda item: (-item[1], item[0]))
    brought = ", ".join(f"{name} {shown(bytes_)}" for name, bytes_ in largest)
    said = f"{shown(size.own)} of its own"
    said += f", {shown(sum(size.brought.values()))} that agentos alone does not need: {brought}" if brought else ""
    return said + (f"; not measured, because {', '.join(size.unmeasured)}" if size.unmeasured else "")


def shown(bytes_: int) -> str:
    """Return a number of bytes, rounded."""
    return f"{bytes_ / _MEGABYTE:.1f} MB" if bytes_ >= _MEGABYTE else f"{max(1, round(bytes_ / 1000))} kB"


# -- READMEs -----------------------------------------------------------------------------------------------------------


def _titled(name: str, text: str) -> str:
    return text if text.lstrip().startswith("# ") else f"# {name}\n\n{text}"


def _with_links(text: str, origin: Path) -> str:
    """Return a README whose links to pages of the site lead there; what the site does not have is named only."""
    parts = _FENCE.split(text)
    return "".join(part if part.startswith("```") else _LINK.sub(lambda m: _moved(m, origin), part) for part in parts)


def _moved(link: re.Match[str], origin: Path) -> str:
    words, target, anchor = link[1], link[2], link[3] or ""
    if "://" in target:
        return link[0]
    file = (origin.parent / target).resolve()
    docs = ROOT.resolve() / "docs"
    if file.is_relative_to(docs) and file.suffix == ".md" and file.is_file():
        return f"[{words}]({os.path.relpath(file, docs / 'reference' / 'packs')}{anchor})"
    return words

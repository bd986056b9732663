"""Imports point downward only, cost little, and do nothing but import."""

import ast
import json
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import agentos

PACKAGE = Path(agentos.__file__).parent
ROOT = PACKAGE.parent

LAYERS = [
    # From the bottom to the top. A module imports what is beneath it, and its own room.
    *("errors", "_version", "base", "web", "schema", "model", "processes", "rules", "store", "stacks", "secrets"),
    *("loading", "extensions", "tools", "access", "openapi", "payloads", "guards", "calls", "kinds", "bus", "workers"),
    *("interop", "turn", "workflows", "channels", "mcp", "checks", "host", "studio", "testing", "cli"),
]
RANKS = {name: rank for rank, name in enumerate(LAYERS)}
FACADE = "agentos"
ABOVE_THE_FACADE = {"testing", "cli"}


def name_of(file):
    parts = file.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(file): file for file in sorted(PACKAGE.rglob("*.py"))}


def layer_of(module):
    """Return the first part of a module's name beneath agentos; empty for the facade itself."""
    return module.split(".")[1] if "." in module else ""


def imported_by(module, *, by_name=True):
    """Yield every module of agentos that *module* imports, within functions too and by its name as text; the line."""
    file = MODULES[module]
    package = module if file.name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(file.read_text("utf-8"), str(file))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names if is_ours(alias.name))
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*above, *filter(None, [node.module])])
            if is_ours(base):
                for alias in node.names:
                    inner = f"{base}.{alias.name}"
                    yield (inner if inner in MODULES else base), node.lineno
        elif by_name and is_import_by_name(node):
            yield from ((name, node.lineno) for name in names_in(node) if is_ours(name))


def is_ours(name):
    return name == FACADE or name.startswith(f"{FACADE}.")


def is_import_by_name(node):
    return isinstance(node, ast.Call) and ast.unparse(node.func) in ("importlib.import_module", "__import__")


def names_in(call):
    return [part.value for part in ast.walk(call) if isinstance(part, ast.Constant) and isinstance(part.value, str)]


def run(script):
    """Run *script* in a Python of its own and return what it prints, as JSON."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_every_module_has_its_layer():
    assert {layer_of(module) for module in MODULES} <= {"", *RANKS}


def test_every_module_imports_only_what_is_beneath_it():
    upward = [
        f"{MODULES[module]}:{line} imports {target}"
        for module in MODULES
        for target, line in (imported_by(module) if module != FACADE else ())
        if points_upward(layer_of(module), target)
    ]

    assert upward == []


def points_upward(mine, target):
    if layer_of(target) == mine or (target == FACADE and mine in ABOVE_THE_FACADE):
        return False
    return not RANKS.get(layer_of(target), len(LAYERS)) < RANKS.get(mine, len(LAYERS))


def test_no_module_imports_itself_by_a_detour():
    graph = {
        module: {target for target, _ in imported_by(module, by_name=False) if target in MODULES}
        for module in MODULES
        if module != FACADE
    }
    while removable := [module for module, targets in graph.items() if not targets & graph.keys()]:
        for module in removable:
            del graph[module]

    assert graph == {}


def test_the_rules_see_an_import_that_points_upward(tmp_path, monkeypatch):
    file = tmp_path / "agentos" / "model" / "bad.py"
    file.parent.mkdir(parents=True)
    file.write_text(
        textwrap.dedent("""
            import agentos.host
            from agentos.extensions import manager
            from ..stacks import entry
            from . import parsing

            def later():
                from agentos.extensions.events import Event
                import importlib
                importlib.import_module("agentos.extensions.services")
        """)
    )
    monkeypatch.setitem(MODULES, "agentos.model.bad", file)
    found = {target for target, _ in imported_by("agentos.model.bad")}

    assert found == {
        *("agentos.host", "agentos.extensions.manager", "agentos.stacks.entry", "agentos.model.parsing"),
        *("agentos.extensions.events", "agentos.extensions.services"),
    }


PAGE = (ROOT / "docs" / "architecture.md").read_text("utf-8")
DRAWINGS = PAGE.split("```")


def test_the_page_draws_the_rooms_in_their_order():
    drawn = [line.split()[0] for line in DRAWINGS[1].strip().splitlines()]

    assert drawn == [name for name in reversed(LAYERS) if (PACKAGE / name).is_dir() or name in ("errors", "host")]


def test_the_page_draws_the_steps_in_their_order():
    from agentos.calls.pipeline import STEPS

    drawing = DRAWINGS[3].splitlines()
    drawn = [line.split()[0] for line in drawing if line and line[0].isalpha()]

    assert drawn[1:] == [step.__name__ for step in STEPS]


def test_every_file_that_the_page_names_is_there():
    named = set(re.findall(r"`(agentos/[\w/.]+)`", PAGE)) | {
        f"agentos/{name}" for name in re.findall(r"^  → .*?([a-z_]+/[a-z_]+\.py)$", PAGE, re.MULTILINE)
    }

    assert len(named) > 20
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []


def test_everything_that_a_user_may_import_is_there():
    assert [name for name in agentos.__all__ if not hasattr(agentos, name)] == []


HEAVY = ["jsonschema", "rich", "ruamel", "dotenv", "packaging", "cattrs"]


@pytest.mark.parametrize("heavy", HEAVY)
def test_importing_agentos_does_not_import(heavy):
    loaded = run("""
        import json, sys
        before = set(sys.modules)
        import agentos
        print(json.dumps(sorted(set(sys.modules) - before)))
    """)

    assert [name for name in loaded if name.split(".")[0] == heavy] == []


def test_making_a_manager_from_values_imports_nothing_heavy():
    loaded = run("""
        import json, sys
        before = set(sys.modules)
        import agentos
        agentos.ExtensionManager(agentos.ExtensionManifest(packs=[agentos.PackEntry(module="m")]))
        print(json.dumps(sorted(set(sys.modules) - before)))
    """)

    assert [name for name in loaded if name.split(".")[0] in HEAVY] == []


def test_importing_any_module_of_agentos_opens_no_socket_starts_no_process_and_writes_no_file():
    done = run("""
        import importlib, json, os, pkgutil, sys
        import agentos  # third parties' own doings are not the subject
        import asyncio, jsonschema, ruamel.yaml, dotenv, packaging, cattrs

        seen = []

        def hook(event, args):
            starts = event.startswith(("socket.", "subprocess.", "os.system", "os.exec", "os.fork", "os.spawn"))
            is_named = event == "open" and not isinstance(args[0], int)  # a number was opened by its name before
            writes = is_named and args[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
            if starts or (writes and not str(args[0]).endswith(".pyc") and ".pyc." not in str(args[0])):
                seen.append([event, repr(args)])

        sys.addaudithook(hook)
        for name in [name for name in sys.modules if name == "agentos" or name.startswith("agentos.")]:
            del sys.modules[name]
        import agentos
        names = [info.name for info in pkgutil.walk_packages(agentos.__path__, "agentos.")]
        for name in names:
            if not name.endswith("__main__"):
                importlib.import_module(name)
        print(json.dumps({"seen": seen, "names": names}))
    """)

    assert done["seen"] == []
    assert "agentos.extensions.manager" in done["names"]


def test_importing_agentos_changes_no_setting_of_the_process():
    changed = run("""
        import json, logging, os, signal, sys, threading, warnings

        def handlers():
            found = [*logging.getLogger().handlers, *logging.getLogger("agentos").handlers]
            return [str(handler) for handler in found if not isinstance(handler, logging.NullHandler)]

        def state():
            return {
                "environment": dict(os.environ),
                "path": list(sys.path),
                "finders": [str(type(finder)) for finder in sys.meta_path],
                "warnings": len(warnings.filters),
                "handlers": handlers(),
                "level": logging.getLogger("agentos").level,
                "threads": threading.active_count(),
                "signals": str(signal.getsignal(signal.SIGINT)),
                "hooks": str((sys.excepthook, sys.displayhook)),
            }
        before = state()
        import agentos
        after = state()
        print(json.dumps([name for name in before if before[name] != after[name]]))
    """)

    assert changed == []


# -- names -------------------------------------------------------------------------------------------------------------

NAMED_FOR_SOMETHING = (
    "agentos.cli.commands.",
    "agentos.kinds.",
    "agentos.calls.steps.",
    "agentos.interop.",
    "agentos.studio.pages.",
)
"""Modules of these rooms have the name of their command, kind, step, library or page, whatever else is called so."""


def twice(named):
    """Return the names that several places have."""
    places = {}
    for name, place in named:
        places.setdefault(name, []).append(place)
    return {name: found for name, found in places.items() if len(found) > 1}


def test_no_two_classes_share_a_name():
    named = [
        (node.name.lstrip("_"), module)
        for module, file in MODULES.items()
        for node in ast.parse(file.read_text("utf-8")).body
        if isinstance(node, ast.ClassDef)
    ]

    assert twice(named) == {}


def test_no_two_public_modules_share_a_name():
    named = [
        (module.rpartition(".")[2], module)
        for module, file in MODULES.items()
        if file.name != "__init__.py" and not module.startswith(NAMED_FOR_SOMETHING) and "._" not in module
    ]

    assert twice(named) == {}

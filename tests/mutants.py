"""Change the modules that carry the promises, one small change at a time, and see whether the tests notice.

`make mutants` samples changes by a seed and runs, one change after another, the tests of its room that come by the
changed line, the quickest first. Which tests come by, and what became of each change, is kept in `.mutants`, so that
a run that was ended goes on. `--again TESTS` tries what survived once more with these files of tests. What can't be
noticed stands in `mutants.toml`, each with the reason.
"""

import argparse
import ast
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock
from typing import Any
from xml.etree import ElementTree as ET

import attrs

ROOT = Path(__file__).resolve().parent.parent
GOAL = 0.95
LIMIT = 600
"""Seconds that the tests of one mutant may take; tests that hang have noticed."""

PASSED, NOTHING_TO_RUN = 0, 5
"""Exit codes of pytest: all passed; all that were named are among the proofs."""

QUICK = "/dev/shm"
"""Where files are in memory, if there is such a place: tests wait for disks more than for anything else."""

_AUDIT = ("tests/access/test_audit.py", "tests/access/test_crashes.py")
_ACCESS = ("tests/access", "tests/calls/test_steps.py")
_CALLS = (
    "tests/calls",
    "tests/tools/test_pipeline.py",
    "tests/access/test_endings.py",
    "tests/access/test_guard_more.py",
)
_STACKS = (
    "tests/core/test_contract.py",
    "tests/core/test_concurrency.py",
    "tests/core/test_stateful.py",
    "tests/extensions",
)
_STORE = ("tests/store",)
_HTTP = ("tests/mcp/test_auth.py", "tests/mcp/test_http_gateway.py", "tests/mcp/test_http_serving.py")
_SCHEMA = ("tests/tools/test_validation.py", "tests/tools/test_validation_work.py")
_WORKERS = (
    "tests/workers/test_frames.py",
    "tests/workers/test_peer.py",
    "tests/workers/test_workers.py",
    "tests/workers/test_hostile_children.py",
    "tests/workers/test_kinds_across.py",
)
_MODULES: dict[tuple[str, ...], str] = {
    _AUDIT: "access: audit",
    _ACCESS: "access: budgets gate grants idempotency pins proposals, calls: approvals",
    _CALLS: "base: foreign, calls: invocation pipeline results threads, calls/steps: decide record run",
    _STACKS: "base: locks, extensions: activation pack_lifecycle, stacks: decide",
    _HTTP: "mcp/auth: jwt_verifier, mcp/http: gateway request_checks",
    (
        "tests/access/test_commands.py",
        "tests/access/test_rules.py",
        "tests/access/test_launchers.py",
    ): "rules: commands",
    _SCHEMA: "schema: bounded cost defaults validation",
    ("tests/secrets", "tests/core/test_masking.py"): "secrets: masking spellings",
    _STORE: "store: sqlite transactions",
    ("tests/guards",): "calls/steps: guard, guards: active_guards guarded_stream guardrails",
    ("tests/turn",): "turn: turn_run waiting_turns whole_turns turn_guards",
    ("tests/bus",): "bus: carriers message_bus store_link subscriptions",
    ("tests/channels",): "channels: channel_router inbox outbox running_channels",
    ("tests/processes",): "processes: lines programs spawned_process supervision",
    _WORKERS: "workers: frames peer wire_values worker worker_process",
}
ROOMS: dict[str, tuple[str, ...]] = {
    f"agentos/{room}/{name}.py": tests
    for tests, modules in _MODULES.items()
    for room, _, names in (one.strip().partition(": ") for one in modules.split(","))
    for name in names.split()
}
"""The modules, and the tests of the room that each is in."""


@attrs.frozen
class Mutant:
    """One small change of a module."""

    module: str
    line: int
    start: int
    end: int
    before: str
    after: str
    text: str
    """The line it is on, without its indentation."""
    statement: int
    """The first line of the statement that it is in."""
    number: int = 0
    """Which one of those that look the same, in the order of the module."""

    @property
    def key(self) -> str:
        """What tells it from all others, also when other lines of the module have changed."""
        return "\n".join([self.module, self.text, self.before, self.after, str(self.number)])

    @property
    def what(self) -> tuple[str, str, str]:
        """What `mutants.toml` names."""
        return self.module, self.text, self.after

    def __str__(self) -> str:
        return f"{self.module}:{self.line}: {_short(self.before)}  ->  {_short(self.after)}"

    def applied(self, source: bytes) -> bytes:
        """Return *source* with the change made."""
        return source[: self.start] + self.after.encode() + source[self.end :]


def _short(code: str) -> str:
    words = " ".join(code.split())
    return words if len(words) <= 70 else f"{words[:67]}..."


# -- what is changed ---------------------------------------------------------------------------------------------

_OPPOSITES: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
}

_LARGE = 16
"""From here on a number is a bound, which one more or less of it does not show; half of it does."""


def _changed(node: ast.AST) -> Iterator[str]:
    """Return what *node* can be changed to: one thing less, the opposite, or one more."""
    match node:
        case ast.Compare(left, [operator], [right]):
            yield _code(ast.Compare(left, [_OPPOSITES[type(operator)]()], [right]))
        case ast.BoolOp(operator, values):
            yield _code(ast.BoolOp(_OPPOSITES[type(operator)](), values))
        case ast.BinOp(left, ast.Add() | ast.Sub() as operator, right) if not _is_text(left) and not _is_text(right):
            yield _code(ast.BinOp(left, _OPPOSITES[type(operator)](), right))
        case ast.UnaryOp(ast.Not(), operand):
            yield _code(operand)
        case ast.Constant(value) if value is True or value is False:
            yield repr(not value)
        case ast.Constant(int(value)):
            yield repr(value + 1 if abs(value) < _LARGE else value // 2)
        case ast.Expr(ast.Call() | ast.Await()) | ast.Raise():
            yield "pass"
        case ast.Return(value) if value is not None and not isinstance(value, ast.Constant):
            yield "return None"


def _code(node: ast.expr) -> str:
    return f"({ast.unparse(ast.fix_missing_locations(node))})"


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _nodes(tree: ast.AST, statement: int = 1) -> Iterator[tuple[ast.AST, int]]:
    """Walk what runs, each with its statement's line: no annotations, no f-strings, whose parts have no own places."""
    for name, value in ast.iter_fields(tree):
        if name in ("annotation", "returns", "decorator_list"):
            continue
        for node in value if isinstance(value, list) else [value]:
            if isinstance(node, ast.AST) and not isinstance(node, ast.JoinedStr):
                line = node.lineno if isinstance(node, ast.stmt) else statement
                yield node, line
                yield from _nodes(node, line)


def mutants_of(module: str) -> list[Mutant]:
    """Return every change that is made to *module*."""
    source = (ROOT / module).read_bytes()
    lines = source.splitlines(keepends=True)
    begins = [0]
    for line in lines:
        begins.append(begins[-1] + len(line))
    found, alike = [], Counter[str]()
    for node, statement in _nodes(ast.parse(source)):
        for after in _changed(node):
            start = begins[node.lineno - 1] + node.col_offset
            end = begins[node.end_lineno - 1] + node.end_col_offset
            before, text = source[start:end].decode(), lines[node.lineno - 1].decode().strip()
            mutant = Mutant(module, node.lineno, start, end, before, after, text, statement)
            found.append(attrs.evolve(mutant, number=alike[mutant.key]))
            alike[mutant.key] += 1
    return found


# -- whether it is noticed ---------------------------------------------------------------------------------------


@attrs.frozen
class Workspace:
    """A copy of the project that is changed and tested."""

    folder: Path

    @classmethod
    def make(cls, folder: Path) -> "Workspace":
        """Copy what git knows into *folder*."""
        names = subprocess.run(
            ["git", "ls-files", "-z", "-co", "--exclude-standard"], cwd=ROOT, check=True, capture_output=True
        )
        for name in filter(None, names.stdout.decode().split("\0")):
            if (ROOT / name).is_file():
                target = folder / name
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, target)
        return cls(folder)

    def write(self, module: str, source: bytes) -> None:
        """Write *module* so that nobody reads what was compiled of it before."""
        path = self.folder / module
        path.write_bytes(source)
        for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
            compiled.unlink()

    def passes(self, *arguments: str, seconds: float = LIMIT) -> bool:
        """Run pytest; tell whether all tests passed within *seconds*."""
        left_out = (f"-pno:{plugin}" for plugin in ("cacheprovider", "xdist", "langsmith_plugin"))
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-m", "not proof", *left_out]
        temporary = self.folder / "tmp"
        temporary.mkdir(exist_ok=True)
        environment = {**os.environ, "PYTHONPATH": f"{self.folder}", "TMPDIR": f"{temporary}", "CI": "1"}
        with subprocess.Popen(
            [*command, *arguments], cwd=self.folder, env=environment, start_new_session=True,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        ) as tests:  # fmt: skip
            try:
                return tests.wait(seconds) in (PASSED, NOTHING_TO_RUN)
            except subprocess.TimeoutExpired:
                return False
            finally:
                _end_all(tests.pid)
                shutil.rmtree(temporary, ignore_errors=True)

    def measured(self, tests: str) -> "Measured":
        """Return which lines each test of the file *tests* comes by, and how long it takes; raise if one fails."""
        data, settings, times = (self.folder / f"measured.{end}" for end in ("data", "ini", "xml"))
        modules = ",".join(f"{self.folder / module}" for module in ROOMS)
        settings.write_text(f"[run]\ndata_file = {data}\ninclude = {modules}\n")
        options = ("--cov", f"--cov-config={settings}", "--cov-context=test", "--cov-report=")
        if not self.passes(*options, f"--junitxml={times}", "-o", "junit_family=xunit1", tests):
            raise SystemExit(f"fails as it is: {tests}")
        return Measured.read(self.folder, data, times)


def _end_all(group: int) -> None:
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        return


@attrs.frozen
class Measured:
    """What the tests come by, by module and line, and the seconds that each takes."""

    lines: dict[str, dict[int, list[str]]] = attrs.field(factory=dict)
    seconds: dict[str, float] = attrs.field(factory=dict)

    @classmethod
    def read(cls, folder: Path, data: Path, times: Path) -> "Measured":
        """Return what one run of a file of tests left behind."""
        from coverage import CoverageData

        covered = CoverageData(basename=str(data))
        covered.read()
        lines = {
            str(Path(name).relative_to(folder)): {
                line: sorted({one.partition("|")[0] for one in contexts if one})
                for line, contexts in covered.contexts_by_lineno(name).items()
            }
            for name in covered.measured_files()
        }
        seconds = {
            f"{case.get('file')}::{case.get('name')}": float(case.get("time", "0"))
            for case in ET.parse(times).iter("testcase")
        }
        return cls({name: each for name, each in lines.items() if name in ROOMS}, seconds)

    @classmethod
    def kept(cls, path: Path) -> "Measured":
        """Return what was kept at *path*."""
        kept = json.loads(path.read_text())
        lines = {name: {int(line): tests for line, tests in each.items()} for name, each in kept["lines"].items()}
        return cls(lines, kept["seconds"])

    def joined(self, other: "Measured") -> "Measured":
        """Return both."""
        lines = {name: dict(each) for name, each in self.lines.items()}
        for name, each in other.lines.items():
            ours = lines.setdefault(name, {})
            for line, tests in each.items():
                ours[line] = [*ours.get(line, []), *tests]
        return Measured(lines, {**self.seconds, **other.seconds})

    def coming_by(self, mutant: Mutant) -> list[str]:
        """Return the tests that come by *mutant*, quickest first; by its module where its line runs at import."""
        lines = self.lines.get(mutant.module, {})
        found = next((lines[line] for line in range(mutant.line, mutant.statement - 1, -1) if lines.get(line)), [])
        if not found:
            found = sorted({test for tests in lines.values() for test in tests})
        return sorted(found, key=lambda test: self.seconds.get(test, 1.0))


@attrs.frozen
class Kept:
    """What earlier runs found, in a folder: tests by line for each file of tests, and what became of each mutant."""

    folder: Path
    lock: Lock = attrs.field(factory=Lock)

    def measured(self, workspace: Workspace, tests: str) -> Measured:
        """Return what the tests of one file come by, measured once for each text of the file."""
        digest = hashlib.sha256((ROOT / tests).read_bytes()).hexdigest()[:16]
        path = self.folder / "lines" / f"{tests.replace('/', '-')}-{digest}.json"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(attrs.asdict(workspace.measured(tests))))
        return Measured.kept(path)

    def results(self) -> dict[str, dict[str, Any]]:
        """Return what became of each mutant by its key."""
        path = self.folder / "results.json"
        return json.loads(path.read_text()) if path.exists() else {}

    def add(self, mutant: Mutant, is_noticed: bool) -> None:
        """Keep whether *mutant* was noticed."""
        with self.lock:
            results = self.results()
            results[mutant.key] = {**attrs.asdict(mutant), "noticed": is_noticed}
            partial = self.folder / "results.partial"
            partial.write_text(json.dumps(results, indent=1))
            partial.replace(self.folder / "results.json")


def _files(tests: tuple[str, ...]) -> list[str]:
    """Return the files of tests in *tests*, each once."""
    found = dict.fromkeys(
        str(path.relative_to(ROOT))
        for one in tests
        for path in ([ROOT / one] if one.endswith(".py") else sorted((ROOT / one).glob("**/test_*.py")))
    )
    return [*found]


@attrs.frozen
class Effort:
    """How much is done for one mutant."""

    near: float
    """Seconds of tests that are tried first."""
    far: float
    """Seconds of tests at the most."""
    again: tuple[str, ...]
    """Files of tests, or tests, for what was not noticed before."""

    def is_noticed(self, workspace: Workspace, mutant: Mutant, measured: Measured) -> bool:
        """Tell whether a test notices *mutant*; the quickest that come by are asked first."""
        source = (workspace.folder / mutant.module).read_bytes()
        if source[mutant.start : mutant.end].decode() != mutant.before:
            raise SystemExit(f"{mutant.module} was changed while its mutants were tested: begin again")
        workspace.write(mutant.module, mutant.applied(source))
        try:
            if self.again:
                return not workspace.passes("-m", "", *self.again)  # the proofs among them as well
            return any(not workspace.passes("--timeout=60", *some) for some in self._portions(mutant, measured))
        finally:
            workspace.write(mutant.module, source)

    def _portions(self, mutant: Mutant, measured: Measured) -> Iterator[list[str]]:
        """Return the tests that come by *mutant*, in two portions."""
        spent = 0.0
        portions: tuple[list[str], list[str]] = ([], [])
        for test in measured.coming_by(mutant):
            spent += measured.seconds.get(test, 1.0)
            if spent > self.far and portions[0]:
                break
            portions[spent > self.near].append(test)
        return (portion for portion in portions if portion)


def equivalents() -> set[tuple[str, str, str]]:
    """Return what can't be noticed: the module, the line's text and what the change makes of its part."""
    listed = tomllib.loads((ROOT / "tests/mutants.toml").read_text())["equivalent"]
    return {(one["module"], one["line"], one["after"]) for one in listed}


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    say = parser.add_argument
    say("modules", nargs="*", help="parts of the modules' paths, such as access/audit; all if none is named")
    say("--seed", type=int, default=13, help="which changes are taken")
    say("--sample", type=int, default=8, help="how many changes of each module")
    say("--jobs", type=int, default=1, help="how many rooms are tested at a time, one mutant of each")
    say("--near", type=float, default=5, help="seconds of tests that come by the line, tried first")
    say("--far", type=float, default=60, help="seconds of tests that come by the line, in all")
    say("--keep", type=Path, default=ROOT / ".mutants", help="where results are kept, for a run to go on from")
    say("--again", nargs="+", default=(), metavar="TESTS", help="try what was not noticed once more, with these files")
    say("--list", action="store_true", help="show the sample, test nothing")
    say("--report", action="store_true", help="show what was found, test nothing")
    return parser.parse_args()


def main() -> int:
    """Sample, test, report."""
    chosen = _arguments()
    kept = Kept(chosen.keep)
    if chosen.again:
        samples = _survivors(chosen.modules, kept)
    else:
        samples = _samples(chosen.modules, chosen.seed, chosen.sample)
        print(f"seed {chosen.seed}, {chosen.sample} of each of {len(samples)} modules", flush=True)
    if chosen.list:
        for sample in samples.values():
            print(*sample, sep="\n")
        return 0
    if not chosen.report:
        os.setpriority(os.PRIO_PROCESS, 0, max(10, os.getpriority(os.PRIO_PROCESS, 0)))
        effort = Effort(chosen.near, chosen.far, tuple(chosen.again))
        rooms = dict.fromkeys(ROOMS[module] for module in samples)
        with ThreadPoolExecutor(chosen.jobs) as pool:
            for _ in pool.map(lambda tests: _test_room(tests, samples, kept, effort), rooms):
                pass
    return _report(kept.results())


def _samples(parts: list[str], seed: int, size: int) -> dict[str, list[Mutant]]:
    samples = {}
    for module in ROOMS:
        if not parts or any(part in module for part in parts):
            mutants = mutants_of(module)
            random.Random(f"{seed}:{module}").shuffle(mutants)  # a larger sample has all of a smaller one
            samples[module] = mutants[:size]
    return samples


def _survivors(parts: list[str], kept: Kept) -> dict[str, list[Mutant]]:
    """Return what was not noticed before, where it stands now."""
    results, known = kept.results(), equivalents()
    return {
        module: [one for one in mutants_of(module) if one.what not in known and _has_survived(results.get(one.key))]
        for module in ROOMS
        if not parts or any(part in module for part in parts)
    }


def _has_survived(result: dict[str, Any] | None) -> bool:
    return result is not None and not result["noticed"]


def _test_room(tests: tuple[str, ...], samples: dict[str, list[Mutant]], kept: Kept, effort: Effort) -> None:
    """Test what is not known yet of the modules whose room has *tests*."""
    results, known = kept.results(), equivalents()
    waiting = [
        mutant
        for module, sample in samples.items()
        for mutant in sample
        if ROOMS[module] == tests and mutant.what not in known and (effort.again or mutant.key not in results)
    ]
    if not waiting:
        return
    with tempfile.TemporaryDirectory(prefix="mutants-", dir=QUICK if os.access(QUICK, os.W_OK) else None) as folder:
        workspace = Workspace.make(Path(folder))
        measured = Measured()
        if not effort.again:
            for file in _files(tests):
                measured = measured.joined(kept.measured(workspace, file))
        for mutant in waiting:
            is_noticed = effort.is_noticed(workspace, mutant, measured)
            print(f"{'noticed ' if is_noticed else 'SURVIVED'}  {mutant}", flush=True)
            kept.add(mutant, is_noticed)


def _report(results: dict[str, dict[str, Any]]) -> int:
    """Print the figures of each room, and what is not noticed in a form that `mutants.toml` takes."""
    known = equivalents()
    rooms: dict[str, list[dict[str, Any]]] = {}
    for one in results.values():
        one["equivalent"] = (one["module"], one["text"], one["after"]) in known
        rooms.setdefault(one["module"].split("/")[1], []).append(one)
    asked = noticed = 0
    print("\nroom          sampled equivalent noticed survived")
    for room, mutants in sorted(rooms.items()):
        others = [one["noticed"] for one in mutants if not one["equivalent"]]
        print(f"{room:14}{len(mutants):7}{len(mutants) - len(others):11}{sum(others):8}{len(others) - sum(others):9}")
        asked, noticed = asked + len(others), noticed + sum(others)
    print(f"\n{noticed} of {asked} noticed ({noticed / max(asked, 1):.1%}, goal {GOAL:.0%})")
    for one in (one for one in results.values() if not one["equivalent"] and not one["noticed"]):
        print(f"\n{one['module']}:{one['line']}: {_short(one['before'])}  ->  {_short(one['after'])}")
        print(json.dumps({"module": one["module"], "line": one["text"], "after": one["after"]}))
    return 0 if noticed >= GOAL * asked else 1


if __name__ == "__main__":
    sys.exit(main())

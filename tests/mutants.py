"""Change the modules that carry the promises, one small change at a time, and see whether the tests notice.

`make mutants` samples changes by a seed, runs the tests that come by the changed line, then, if none of them fails, all
tests of its room, and prints what survived. What can't be noticed stands in `mutants.toml`, each with the reason.
"""

import argparse
import ast
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import attrs

ROOT = Path(__file__).resolve().parent.parent
GOAL = 0.95
LIMIT = 600
"""Seconds that the tests of one mutant may take; tests that hang have noticed."""

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
ROOMS: dict[str, tuple[str, ...]] = {
    "agentos/access/audit.py": _AUDIT,
    "agentos/access/budgets.py": _ACCESS,
    "agentos/access/gate.py": _ACCESS,
    "agentos/access/grants.py": _ACCESS,
    "agentos/access/idempotency.py": _ACCESS,
    "agentos/access/pins.py": _ACCESS,
    "agentos/access/proposals.py": _ACCESS,
    "agentos/base/foreign.py": _CALLS,
    "agentos/base/locks.py": _STACKS,
    "agentos/calls/approvals.py": _ACCESS,
    "agentos/calls/invocation.py": _CALLS,
    "agentos/calls/pipeline.py": _CALLS,
    "agentos/calls/results.py": _CALLS,
    "agentos/calls/steps/decide.py": _CALLS,
    "agentos/calls/steps/record.py": _CALLS,
    "agentos/calls/steps/run.py": _CALLS,
    "agentos/calls/threads.py": _CALLS,
    "agentos/extensions/activation.py": _STACKS,
    "agentos/extensions/pack_lifecycle.py": _STACKS,
    "agentos/mcp/auth/jwt_verifier.py": _HTTP,
    "agentos/mcp/http/gateway.py": _HTTP,
    "agentos/mcp/http/request_checks.py": _HTTP,
    "agentos/rules/commands.py": ("tests/access/test_commands.py", "tests/access/test_rules.py"),
    "agentos/schema/bounded.py": _SCHEMA,
    "agentos/schema/validation.py": _SCHEMA,
    "agentos/secrets/masking.py": ("tests/secrets", "tests/core/test_masking.py"),
    "agentos/stacks/decide.py": _STACKS,
    "agentos/store/sqlite.py": _STORE,
    "agentos/store/transactions.py": _STORE,
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


def _nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """Walk what runs: no annotations, no f-strings, whose parts have no places of their own."""
    for name, value in ast.iter_fields(tree):
        if name in ("annotation", "returns", "decorator_list"):
            continue
        for node in value if isinstance(value, list) else [value]:
            if isinstance(node, ast.AST) and not isinstance(node, ast.JoinedStr):
                yield node
                yield from _nodes(node)


def mutants_of(module: str) -> list[Mutant]:
    """Return every change that is made to *module*."""
    source = (ROOT / module).read_bytes()
    lines = source.splitlines(keepends=True)
    begins = [0]
    for line in lines:
        begins.append(begins[-1] + len(line))
    found = []
    for node in _nodes(ast.parse(source)):
        for after in _changed(node):
            start = begins[node.lineno - 1] + node.col_offset
            end = begins[node.end_lineno - 1] + node.end_col_offset
            before, text = source[start:end].decode(), lines[node.lineno - 1].decode().strip()
            found.append(Mutant(module, node.lineno, start, end, before, after, text))
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

    def passes(self, *arguments: str) -> bool:
        """Run pytest; tell whether all tests passed in time."""
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-x",
            "-m",
            "not proof",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:xdist",
        ]
        environment = {**os.environ, "PYTHONPATH": f"{self.folder}", "CI": "1"}
        with subprocess.Popen(
            [*command, *arguments], cwd=self.folder, env=environment, start_new_session=True,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        ) as tests:  # fmt: skip
            try:
                return tests.wait(LIMIT) == 0
            except subprocess.TimeoutExpired:
                return False
            finally:
                _end_all(tests.pid)

    def tests_by_line(self, tests: tuple[str, ...]) -> dict[str, dict[int, list[str]]]:
        """Return, for each module, the tests that come by each of its lines; raise if they fail as it is."""
        data = self.folder / "coverage.data"
        settings = self.folder / "coverage.ini"
        settings.write_text(f"[run]\ndata_file = {data}\n")
        options = ("--cov=agentos", f"--cov-config={settings}", "--cov-context=test", "--cov-report=")
        if not self.passes(*options, *tests):
            raise SystemExit(f"these fail as it is: {' '.join(tests)}")
        from coverage import CoverageData

        measured = CoverageData(basename=str(data))
        measured.read()
        return {
            str(Path(name).relative_to(self.folder)): {
                line: sorted({one.partition("|")[0] for one in contexts if one})
                for line, contexts in measured.contexts_by_lineno(name).items()
            }
            for name in measured.measured_files()
        }


def _end_all(group: int) -> None:
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        return


def survivors_of(
    workspace: Workspace, module: str, sample: list[Mutant], coming_by: dict[int, list[str]], near: int
) -> list[Mutant]:
    """Return those of *sample* that no test notices."""
    source = (ROOT / module).read_bytes()
    survivors = []
    for mutant in sample:
        workspace.write(module, mutant.applied(source))
        tests = coming_by.get(mutant.line, [])
        is_noticed = bool(tests) and not workspace.passes(*tests[:near])
        if not is_noticed and (not tests or len(tests) > near):  # more tests come by, or only other processes do
            is_noticed = not workspace.passes(*ROOMS[module])
        if not is_noticed:
            survivors.append(mutant)
            print(f"survived  {mutant}", flush=True)
    workspace.write(module, source)
    print(f"{len(sample) - len(survivors):4} of {len(sample):3} noticed  {module}", flush=True)
    return survivors


def equivalents() -> set[tuple[str, str, str]]:
    """Return what can't be noticed: the module, the line's text and what the change makes of its part."""
    listed = tomllib.loads((ROOT / "tests/mutants.toml").read_text())["equivalent"]
    return {(one["module"], one["line"], one["after"]) for one in listed}


def main() -> int:
    """Sample, test, report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "modules", nargs="*", help="parts of the modules' paths, such as access/audit; all if none is named"
    )
    parser.add_argument("--seed", type=int, default=13)
    parser.add_argument("--sample", type=int, default=16, help="how many changes of each module")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument(
        "--near", type=int, default=60, help="how many tests that come by the line are tried before all"
    )
    parser.add_argument("--list", action="store_true", help="show the sample, test nothing")
    chosen = parser.parse_args()
    known = equivalents()
    samples = {}
    for module in ROOMS:
        if not chosen.modules or any(part in module for part in chosen.modules):
            mutants = [one for one in mutants_of(module) if (module, one.text, one.after) not in known]
            order = random.Random(f"{chosen.seed}:{module}")
            samples[module] = order.sample(mutants, min(chosen.sample, len(mutants)))
    if chosen.list:
        for sample in samples.values():
            print(*sample, sep="\n")
        return 0
    return _report(samples, _tested(samples, chosen.jobs, chosen.near))


def _tested(samples: dict[str, list[Mutant]], jobs: int, near: int) -> dict[str, list[Mutant]]:
    def test(tests: tuple[str, ...]) -> dict[str, list[Mutant]]:
        with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
            workspace = Workspace.make(Path(folder))
            coming_by = workspace.tests_by_line(tests)
            return {
                module: survivors_of(workspace, module, sample, coming_by.get(module, {}), near)
                for module, sample in samples.items()
                if ROOMS[module] == tests
            }

    with ThreadPoolExecutor(jobs) as pool:
        found = pool.map(test, dict.fromkeys(ROOMS[module] for module in samples))
        return {module: survivors for each in found for module, survivors in each.items()}


def _report(samples: dict[str, list[Mutant]], survivors: dict[str, list[Mutant]]) -> int:
    total, left = sum(map(len, samples.values())), [one for each in survivors.values() for one in each]
    noticed = (total - len(left)) / max(total, 1)
    print(f"\n{total - len(left)} of {total} noticed ({noticed:.1%}, goal {GOAL:.0%})")
    for one in left:
        print(json.dumps({"module": one.module, "line": one.text, "after": one.after}))
    return 0 if noticed >= GOAL else 1


if __name__ == "__main__":
    sys.exit(main())

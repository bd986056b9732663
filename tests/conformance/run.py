"""Run the official conformance suite and the inspector against our server: `make conformance`.

Three servers are asked. The *whole* one has the fixture pack and additions.py: every scored scenario of both eras must
pass. The *pack* one is agentos and the fixture pack alone: what it does not do on purpose is in expected_failures.toml,
and nothing else may fail. The one with *nothing* shows which scenarios pass although what they call is not there: each
of those needs an assertion of our own (see `beside`), and every fixture must have been called.
"""

import argparse
import contextlib
import json
import os
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

import attrs
from fixture_pack import APPROVED, ERROR_TEXT, SIMPLE_TEXT
from ruamel.yaml import YAML

HERE = Path(__file__).resolve().parent
PACKAGES = {
    "node": "22.23.3",
    "conformance-handshake": "npm:@modelcontextprotocol/conformance@0.1.16",
    "conformance-requirements": "npm:@modelcontextprotocol/conformance@0.2.0-alpha.12",
    "@modelcontextprotocol/inspector": "2.12.0",
}
NODE = "node_modules/.bin/node"
LIMIT = 280.0
"""How many seconds the whole run may take."""
INSTALL, START, END = 120.0, 60.0, 15.0
"""How many seconds the packages may take to be installed, and a server to start and to end."""

Checks = Sequence[Mapping[str, Any]]


class UnavailableError(Exception):
    """What the run needs is not there: it is skipped."""


class BrokenError(Exception):
    """The run could not be made as it should be."""


def say(text: str) -> None:
    """Tell the person who runs this."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


# -- what is run ---------------------------------------------------------------------------------------------------


@attrs.frozen
class Programs:
    """The suite and the inspector, installed with a Node of their own."""

    folder: Path
    ends: float

    def node(self, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a program of an installed package, for as long as is left."""
        env = {**os.environ, "MCP_CATALOG_PATH": str(self.folder / "catalog.json")}
        command = [self.folder / NODE, self.folder / "node_modules" / program, *arguments]
        return _run([str(one) for one in command], self.ends, env=env)


def _run(command: Sequence[str], ends: float, **options: Any) -> subprocess.CompletedProcess[str]:
    left = ends - time.monotonic()
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=max(left, 1.0), check=False, **options)
    except subprocess.TimeoutExpired:
        raise BrokenError(f"{' '.join(command)} did not end in time") from None
    except OSError as error:
        raise UnavailableError(f"{command[0]} can't be run: {error.strerror}") from None


def installed(folder: Path, ends: float) -> Programs:
    """Install what is run, unless it is there already."""
    programs, wanted = Programs(folder, ends), json.dumps({"private": True, "dependencies": PACKAGES}, indent=2)
    done = folder / "installed.json"
    if done.is_file() and done.read_text() == wanted:
        return programs
    if shutil.which("npm") is None:
        raise UnavailableError("npm is not installed; it comes with Node")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "package.json").write_text(wanted)
    say("installing the conformance suite and the inspector")
    # Scripts of packages stay out, but for the one that fetches Node for this machine.
    quick = ["--no-audit", "--no-fund", "--fetch-retries=1", "--fetch-timeout=60000"]
    fetch = ["npm", "install", "--ignore-scripts", *quick]
    for command in (fetch, ["npm", "rebuild", "node"], [NODE, "--version"]):
        _install(command, folder, min(ends, time.monotonic() + INSTALL))
    done.write_text(wanted)
    return programs


def _install(command: Sequence[str], folder: Path, ends: float) -> None:
    try:
        made = _run(command, ends, cwd=folder)
    except BrokenError:
        raise UnavailableError(f"{' '.join(command)} took too long; is the registry out of reach?") from None
    if made.returncode:
        raise UnavailableError(f"{' '.join(command)} failed: {_last_words(made.stderr)}")


def _last_words(text: str) -> str:
    lines = [line for line in text.splitlines() if "error" in line.lower()]
    return " ".join(lines[:3])[:300] or "it does not say why"


# -- the servers ---------------------------------------------------------------------------------------------------


@attrs.frozen
class Served:
    """A server that runs."""

    title: str
    address: str
    calls: Path

    def take_calls(self) -> Counter[str]:
        """Return which fixtures were called since the last time."""
        noted = Counter(self.calls.read_text().splitlines()) if self.calls.is_file() else Counter()
        self.calls.write_text("")
        return noted


@contextlib.contextmanager
def served(title: str, folder: Path, problems: list[str]) -> Iterator[Served]:
    """Run a server over HTTP; it has to end in good order and to have no exception in its log."""
    port, calls, log = _free_port(), folder / f"{title}.calls", folder / f"{title}.log"
    only = [] if title == "whole" else ["--only", title]
    command = [sys.executable, str(HERE / "serve.py"), "--port", str(port), "--calls", str(calls), *only]
    with log.open("w") as errors, _started(command, errors) as process:
        try:
            yield Served(title, _address(process, log), calls)
        finally:
            ended = _end(process)
    if ended != 0:
        problems.append(f"{title}: the server ended with {ended}")
    if "Traceback" in (written := log.read_text()):
        problems.append(f"{title}: the server logged an exception: {written[-2000:]}")


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def _started(command: Sequence[str], errors: TextIO) -> subprocess.Popen[str]:
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)


def _address(process: subprocess.Popen[str], log: Path) -> str:
    ready, _, _ = select.select([process.stdout], [], [], START)
    address = process.stdout.readline().strip() if ready and process.stdout is not None else ""
    if not address:
        raise BrokenError(f"the server did not start: {log.read_text()[-2000:]}")
    return address


def _end(process: subprocess.Popen[str]) -> int:
    process.terminate()
    try:
        return process.wait(END)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()


# -- the suite -----------------------------------------------------------------------------------------------------


@attrs.frozen
class Suite:
    """A version of the suite, and what is asked of it."""

    title: str
    package: str
    requirements: str | None = None

    def scored(self, programs: Programs) -> frozenset[str] | None:
        """Return the scenarios that count; None if all that run do."""
        if self.requirements is None:
            return None
        file = programs.folder / "node_modules" / self.package / "requirements" / f"{self.requirements}.yaml"
        return frozenset(YAML(typ="safe").load(file)["server"])

    def run(self, programs: Programs, address: str) -> dict[str, Checks]:
        """Return the checks of every scenario."""
        with tempfile.TemporaryDirectory() as folder:
            asked = ["--requirements", self.requirements] if self.requirements else []
            program = f"{self.package}/dist/index.js"
            ran = programs.node(program, "server", "--url", address, "--output-dir", folder, *asked)
            found = {file.parent.name: json.loads(file.read_text()) for file in Path(folder).glob("*/checks.json")}
        if not found:
            raise BrokenError(f"the suite did not run: {(ran.stderr or ran.stdout)[-1000:]}")
        return {_scenario(name): checks for name, checks in sorted(found.items())}


def _scenario(folder: str) -> str:
    """Return the scenario of a folder such as server-tools-list-2026-11-16T09-14-18-031Z."""
    return folder.removeprefix("server-")[: -len("-2026-11-16T09-14-18-031Z")]


FIRST = Suite("suite 0.1, handshake", "conformance-handshake")
HANDSHAKE = Suite("suite 0.2, 2025-11-25", "conformance-requirements", "2025-11-25")
MODERN = Suite("suite 0.2, 2026-07-28", "conformance-requirements", "2026-07-28")

# -- our own assertions --------------------------------------------------------------------------------------------

NEEDS_NOTHING = frozenset(
    {
        "server-initialize",
        "ping",
        "dns-rebinding-protection",
        "sep-2164-resource-not-found",
        "input-required-result-unsupported-methods",
    }
)
"""Scenarios that ask for no fixture, and so pass without one for a good reason."""

CALLED: dict[str, tuple[str, ...]] = {
    "logging-set-level": ("logging/setLevel",),
    "completion-complete": ("completion/complete",),
    "tools-call-simple-text": ("test_simple_text",),
    "tools-call-image": ("test_image_content",),
    "tools-call-audio": ("test_audio_content",),
    "tools-call-embedded-resource": ("test_embedded_resource",),
    "tools-call-mixed-content": ("test_multiple_content_types",),
    "tools-call-with-logging": ("test_tool_with_logging",),
    "tools-call-error": ("test_error_handling",),
    "tools-call-with-progress": ("test_tool_with_progress",),
    "tools-call-sampling": ("test_sampling",),
    "tools-call-elicitation": ("test_elicitation",),
    "elicitation-sep1034-defaults": ("test_elicitation_sep1034_defaults",),
    "elicitation-sep1330-enums": ("test_elicitation_sep1330_enums",),
    "resources-read-text": ("test://static-text",),
    "resources-read-binary": ("test://static-binary",),
    "resources-templates-read": ("test://template/123/data",),
    "resources-subscribe": ("resources/subscribe",),
    "resources-unsubscribe": ("resources/unsubscribe",),
    "prompts-get-simple": ("test_simple_prompt",),
    "prompts-get-with-args": ("test_prompt_with_arguments",),
    "prompts-get-embedded-resource": ("test_prompt_with_embedded_resource",),
    "prompts-get-with-image": ("test_prompt_with_image",),
    "server-stateless": ("test_logging_tool", "test_trigger_tool_change", "test_trigger_prompt_change"),
    "input-required-result-basic-elicitation": ("test_input_required_result_elicitation",),
    "input-required-result-basic-sampling": ("test_input_required_result_sampling",),
    "input-required-result-basic-list-roots": ("test_input_required_result_list_roots",),
    "input-required-result-request-state": ("test_input_required_result_request_state",),
    "input-required-result-multiple-input-requests": ("test_input_required_result_multiple_inputs",),
    "input-required-result-multi-round": ("test_input_required_result_multi_round",),
    "input-required-result-missing-input-response": ("test_input_required_result_elicitation",),
    "input-required-result-non-tool-request": ("test_input_required_result_prompt",),
    "input-required-result-result-type": ("test_input_required_result_elicitation",),
    "input-required-result-capability-check": ("test_input_required_result_capabilities",),
    "input-required-result-ignore-extra-params": ("test_input_required_result_elicitation",),
    "input-required-result-validate-input": ("test_input_required_result_elicitation",),
}
"""Which fixtures a scenario calls."""
UNASKED = frozenset(tool.name for tool in APPROVED)
"""Fixtures that run only after a person approved, which no scenario does."""

Assertion = Callable[[dict[str, Any]], object]
BESIDE: dict[str, list[Assertion]] = {}


def beside(*scenarios: str) -> Callable[[Assertion], Assertion]:
    """Assert something beside scenarios: over the details of their checks, by the checks' ids."""

    def known(assertion: Assertion) -> Assertion:
        for scenario in scenarios:
            BESIDE.setdefault(scenario, []).append(assertion)
        return assertion

    return known


@beside("tools-list")
def _tools_are_listed(details: dict[str, Any]) -> None:
    wanted = {"test_simple_text", "test_error_handling", "proposals_apply", *UNASKED}
    assert wanted <= set(details["tools-list"]["tools"])


@beside("tools-call-simple-text")
def _text_is_the_tools(details: dict[str, Any]) -> None:
    result = details["tools-call-simple-text"]["result"]
    assert result["content"] == [{"type": "text", "text": SIMPLE_TEXT}]
    assert not result.get("isError")


@beside("tools-call-error")
def _error_is_the_tools(details: dict[str, Any]) -> None:
    assert ERROR_TEXT in details["tools-call-error"]["result"]["content"][0]["text"]


@beside("server-sse-multiple-streams")
def _all_streams_answer(details: dict[str, Any]) -> None:
    assert details["server-accepts-multiple-post-streams"]["statuses"] == [200, 200, 200]
    streams = details["server-sse-streams-functional"]["results"]
    events = [json.dumps(stream["event"]) for stream in streams if stream["type"] == "sse"]
    assert all("test_simple_text" in event for event in events)


@beside("resources-list")
def _pack_is_a_resource(details: dict[str, Any]) -> None:
    assert "agentos://packs/conformance" in details["resources-list"]["resources"]


@beside("prompts-list")
def _toolset_is_a_prompt(details: dict[str, Any]) -> None:
    assert "conformance:called" in details["prompts-list"]["prompts"]


@beside("caching")
def _a_resource_was_read(details: dict[str, Any]) -> None:
    assert details["sep-2549-resources-read-caching-hints"]["hasTtlMs"]


@beside("input-required-result-missing-input-response", "input-required-result-result-type")
def _it_asks_again(details: dict[str, Any]) -> None:
    (asked,) = (one["result"] for id, one in details.items() if id.startswith("sep-2322"))
    assert asked["inputRequests"]


@beside("input-required-result-validate-input")
def _wrong_input_is_refused(details: dict[str, Any]) -> None:
    number, nothing = details["sep-2322-validate-input-responses"], details["sep-2322-error-on-protocol-error"]
    assert number["error"]["code"] == -32602
    assert nothing.get("error") or nothing["result"]["resultType"] == "input_required"


@beside("input-required-result-tampered-state")
def _seal_is_checked(details: dict[str, Any]) -> None:
    answer = details["sep-2322-reject-tampered-state"]["tamperedResponse"]
    assert answer["data"] == {"reason": "invalid_request_state"}


@beside("input-required-result-request-state")
def _state_is_known_again(details: dict[str, Any]) -> None:
    text = details["sep-2322-request-state-complete"]["result"]["content"][0]["text"]
    assert text == "state-ok" or "nobody decided" in text


@beside("input-required-result-ignore-extra-params")
def _answer_is_taken(details: dict[str, Any]) -> None:
    result = details["sep-2322-ignore-unexpected-params"]["result"]
    assert result["resultType"] == "input_required" or result["content"][0]["text"] == "Hello, Alice!"


# -- judging -------------------------------------------------------------------------------------------------------


@attrs.define
class Judge:
    """Says what is wrong with what a suite found."""

    expected: Mapping[str, str]
    failed: set[str] = attrs.field(factory=set)
    passed: set[str] = attrs.field(factory=set)

    def problems(self, server: Served, scenario: str, checks: Checks, calls: Counter[str]) -> Iterator[str]:
        """Yield what is wrong with a scored scenario."""
        allowed = self.expected if server.title == "pack" else {}
        wrong = [check for check in checks if check["status"] == "FAILURE"]
        if server.title == "whole":
            wrong += [check for check in checks if check["status"] in ("WARNING", "SKIPPED")]
        if server.title == "pack":
            self._remember(scenario, checks)
        for check in wrong:
            if scenario not in allowed and f"{scenario}:{check['id']}" not in allowed:
                yield f"{check['id']}: {check.get('errorMessage') or check['status']}"
        if scenario not in allowed:
            yield from _unseen(server, scenario, calls)
            yield from _refuted(scenario, checks)

    def _remember(self, scenario: str, checks: Checks) -> None:
        for check in checks:
            found = self.failed if check["status"] == "FAILURE" else self.passed
            found.add(f"{scenario}:{check['id']}")
        has_failed = any(check["status"] == "FAILURE" for check in checks)
        (self.failed if has_failed else self.passed).add(scenario)

    def stale(self) -> list[str]:
        """Return what was expected to fail and did not."""
        return [key for key in self.expected if key in self.passed or key not in self.failed]


def _unseen(server: Served, scenario: str, calls: Counter[str]) -> Iterator[str]:
    names = set(CALLED.get(scenario, ())) - (UNASKED if server.title == "pack" else frozenset())
    for name in sorted(names):
        if not calls[name]:
            yield f"the fixture {name} was never called"


def _refuted(scenario: str, checks: Checks) -> Iterator[str]:
    details = {check["id"]: check.get("details") or {} for check in checks}
    for assertion in BESIDE.get(scenario, []):
        try:
            assertion(details)
        except (AssertionError, LookupError, TypeError, ValueError) as error:
            yield f"it is not so that {assertion.__name__.strip('_').replace('_', ' ')} ({error!r})"


def _passes(checks: Checks) -> bool:
    return not any(check["status"] == "FAILURE" for check in checks)


def judge_suite(judge: Judge, suite: Suite, server: Served, programs: Programs, problems: list[str]) -> None:
    """Run a suite against a server, and tell how it went."""
    server.take_calls()
    found, calls = suite.run(programs, server.address), server.take_calls()
    scored = suite.scored(programs)
    counted = {name: checks for name, checks in found.items() if scored is None or name in scored}
    wrong = [
        f"{server.title}, {suite.title}, {name}: {problem}"
        for name, checks in counted.items()
        for problem in judge.problems(server, name, checks, calls)
    ]
    wrong += [f"{server.title}, {suite.title}, {name}: it did not run" for name in (scored or set()) - found.keys()]
    problems += wrong
    _tell(server.title, suite.title, counted, {name: found[name] for name in found.keys() - counted.keys()})


def _tell(server: str, suite: str, counted: Mapping[str, Checks], others: Mapping[str, Checks]) -> None:
    passed = sum(map(_passes, counted.values()))
    checks = sum(len(checks) for checks in counted.values())
    line = f"{server:8} {suite:24} {passed:3} of {len(counted)} scored scenarios pass ({checks} checks)"
    failing = sorted(name for name, checks in others.items() if not _passes(checks))
    say(f"{line}; not scored: {len(others) - len(failing)} of {len(others)}" if others else line)


def check_vacuous(suite: Suite, server: Served, programs: Programs, problems: list[str]) -> None:
    """Ask a server that has nothing: what passes there needs an assertion of our own."""
    found, scored = suite.run(programs, server.address), suite.scored(programs) or frozenset()
    vacuous = sorted(name for name in scored & found.keys() if _passes(found[name]) and name not in NEEDS_NOTHING)
    problems += [
        f"{suite.title}, {name}: it passes without any fixture; assert something beside it"
        for name in vacuous
        if name not in BESIDE
    ]
    say(f"{server.title:8} {suite.title:24} {len(vacuous)} pass without what they call; we assert beside each")


# -- the inspector -------------------------------------------------------------------------------------------------


@attrs.frozen
class Look:
    """One look through the inspector, and what has to be seen."""

    method: str
    expected: str
    arguments: tuple[str, ...] = ()
    code: int = 0


LOOKS = [
    Look("tools/list", '"name":"test_simple_text"', ("--strict",)),
    Look("tools/call", SIMPLE_TEXT, ("--tool-name", "test_simple_text")),
    Look("tools/call", "proposals_apply", ("--tool-name", "test_streaming_elicitation")),
    Look("tools/call", '"isError":true', ("--tool-name", "test_error_handling"), code=5),
    Look("prompts/list", '"name":"conformance:called"'),
    Look("resources/read", "What the conformance suite calls.", ("--uri", "agentos://packs/conformance")),
]
STDIO = (sys.executable, str(HERE / "serve.py"), "--stdio")


def inspect(where: str, target: Sequence[str], looks: Iterable[Look], programs: Programs, problems: list[str]) -> None:
    """Look at a server through the inspector, in both eras."""
    seen = 0
    for era in ("legacy", "modern"):
        for look in looks:
            how = ["--protocol-era", era, "--format", "json", "--method", look.method, *look.arguments]
            program = "@modelcontextprotocol/inspector/clients/launcher/build/index.js"
            ran = programs.node(program, "--cli", *target, *how)
            if ran.returncode != look.code or look.expected not in ran.stdout:
                told = (ran.stdout + ran.stderr)[-600:]
                problems.append(f"inspector, {where}, {era}, {look.method}: ended with {ran.returncode}: {told}")
            seen += 1
    say(f"inspector over {where}: {seen} looks")


# -- everything ----------------------------------------------------------------------------------------------------


def everything(programs: Programs, folder: Path) -> list[str]:
    """Run everything; return what is wrong."""
    problems: list[str] = []
    judge = Judge(tomllib.loads((HERE / "expected_failures.toml").read_text()))
    with served("whole", folder, problems) as server:
        for suite in (FIRST, HANDSHAKE, MODERN):
            judge_suite(judge, suite, server, programs, problems)
        inspect("HTTP", [server.address], LOOKS, programs, problems)
    with served("pack", folder, problems) as server:
        for suite in (HANDSHAKE, MODERN):
            judge_suite(judge, suite, server, programs, problems)
    with served("nothing", folder, problems) as server:
        for suite in (HANDSHAKE, MODERN):
            check_vacuous(suite, server, programs, problems)
    inspect("stdio", STDIO, LOOKS[:3], programs, problems)
    problems += [f"{key}: listed in expected_failures.toml, and passes; take it out" for key in judge.stale()]
    return problems


def main() -> int:
    """Run everything that can be run here."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path(".venv/conformance"), help="where the suite is installed")
    options = parser.parse_args()
    began = time.monotonic()
    try:
        programs = installed(options.folder.resolve(), began + LIMIT)
        with tempfile.TemporaryDirectory() as folder:
            problems = everything(programs, Path(folder))
    except UnavailableError as error:
        say(f"conformance: skipped, nothing was checked: {error}")
        return 0
    except BrokenError as error:
        problems = [str(error)]
    for problem in problems:
        say(f"PROBLEM {problem}")
    say(f"conformance: {'failed' if problems else 'passed'} after {time.monotonic() - began:.0f} s")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())

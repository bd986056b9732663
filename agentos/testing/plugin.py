"""The pytest plugin: `pytest --agentos-pack NAME` makes one test of every conformance check of a pack.

It costs a program that does not use it next to nothing: whatever is needed is imported when a pack is named, or when
a fixture is asked for.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from agentos.testing._candidate import Candidate
    from agentos.testing._check_registry import Check
    from agentos.tools.tool import Tool

_FLAG = "--agentos-pack"
ISOLATIONS = ("inline", "process")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("agentos", "conformance of agentos packs")
    group.addoption(
        _FLAG,
        action="append",
        default=[],
        metavar="PACK",
        dest="agentos_packs",
        help="Run the conformance checks on a pack: an entry point's or import name, or a path. Can be repeated.",
    )
    group.addoption(
        "--agentos-options",
        metavar="FILE",
        dest="agentos_options",
        help="A .toml or .json file that says of packs, by name, what their checks need: options, secrets, samples, "
        "beneath, seed, prepare, sandboxed, isolation, limit, grace, cases, skip, only, strict.",
    )
    group.addoption(
        "--agentos-isolation",
        choices=ISOLATIONS,
        default=None,
        dest="agentos_isolation",
        help="Where the packs run: in this process (inline), or each in a process of its own.",
    )
    group.addoption(
        "--agentos-strict", action="store_true", dest="agentos_strict", help="Let packs fail for what is only remarked."
    )


def pytest_configure(config: pytest.Config) -> None:
    """Run the named packs alone if they were named on the command line without a path beside them."""
    is_typed = any(str(one).startswith(_FLAG) for one in config.invocation_params.args)
    if is_typed and config.args_source is not pytest.Config.ArgsSource.ARGS:
        config.args[:] = []
    if config.getoption("agentos_packs"):
        _read_options(config)  # here too: what is wrong with them is not told where a worker reads them


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    """Add a test for every check of every pack that was named; selecting among them comes later."""
    names = config.getoption("agentos_packs")
    if not names:
        return
    settings_by_pack = _read_options(config)
    for name in dict.fromkeys(names):
        collector = PackCollector.from_parent(
            session, name=name, nodeid=f"agentos-pack:{name}", settings_by_pack=settings_by_pack
        )
        report = collector.ihook.pytest_make_collect_report(collector=collector)
        collector.ihook.pytest_collectreport(report=report)
        items.extend(report.result)


def _read_options(config: pytest.Config) -> dict[str, Any]:
    path = config.getoption("agentos_options")
    if path is None:
        return {}
    from agentos.testing._examination_settings import read_table, refuse, settings_in, unknown_names

    file = config.invocation_params.dir / path
    try:
        settings_by_pack = read_table(file)
        if not isinstance(settings_by_pack, dict) or not all(
            isinstance(one, dict) for one in settings_by_pack.values()
        ):
            raise pytest.UsageError(f"{file}: expected a table for every pack, by its name")
        settings = {name: settings_in(file, one, f"{name}: ") for name, one in settings_by_pack.items()}
        packs = [*config.getoption("agentos_packs"), *(Path(one).name for one in config.getoption("agentos_packs"))]
        refuse(unknown_names(settings, packs, f"{file}", f"pack named by {_FLAG} for the table"))
    except ValueError as error:
        raise pytest.UsageError(f"--agentos-options: {error}") from None
    return settings


class PackCollector(pytest.Collector):
    """A pack whose checks are tests."""

    def __init__(self, *, settings_by_pack: dict[str, Any], **more: Any) -> None:
        super().__init__(**more)
        self.settings_by_pack = settings_by_pack

    def collect(self) -> Iterator["CheckItem"]:
        """Yield a test for every check: of the pack, and of each of its tools."""
        candidate, settings = self._candidate()
        tools = self._tools(candidate)
        skip, only = settings.get("skip", ()), settings.get("only", ())
        reasons = skip if isinstance(skip, dict) else {}
        self._check_names(candidate, skip, only, is_loaded=tools is not None)
        strict = bool(settings.get("strict", self.config.getoption("agentos_strict")))
        for check, tool in _pairs(candidate, tools, () if reasons else skip, only):
            name = check.id if tool is None else f"{check.id}[{tool.name}]"
            reason = reasons.get(check.id, reasons.get(f"{check.id}:{tool.name}" if tool else None))
            yield CheckItem.from_parent(
                self, name=name, candidate=candidate, check=check, tool=tool, strict=strict, reason=reason
            )

    def _candidate(self) -> "tuple[Candidate, dict[str, Any]]":
        from agentos.errors import AgentOSError
        from agentos.testing._candidate import Candidate
        from agentos.testing._examination_settings import OWN_FILE, folder_settings

        folder, given = self.config.invocation_params.dir / self.name, self.settings_by_pack
        try:
            named = given.get(self.name, given.get(Path(self.name).name))
            settings = named or folder_settings(folder)
            fields = {key: value for key, value in settings.items() if key not in ("skip", "only", "strict")}
            file = self.config.getoption("agentos_options") if named else folder / OWN_FILE
            fields["said_in"] = dict.fromkeys(settings, str(file))
            if (isolation := self.config.getoption("agentos_isolation")) is not None:
                fields["isolation"] = isolation
            return Candidate(self.name, name=self.name, **fields), settings
        except (AgentOSError, TypeError, ValueError) as error:
            raise pytest.UsageError(f"{_FLAG} {self.name}: {error}") from None

    def _check_names(self, candidate: "Candidate", skip: Any, only: Any, *, is_loaded: bool) -> None:
        from agentos.testing._check_registry import known_survey
        from agentos.testing.conformance import check_names, chosen_checks

        try:
            chosen_checks(skip, only, candidate.said_in)
            if is_loaded:
                check_names(candidate, known_survey(candidate), skip, only)
        except ValueError as error:
            raise pytest.UsageError(f"{_FLAG} {self.name}: {error}") from None

    def _tools(self, candidate: "Candidate") -> "list[Tool] | None":
        """Load the pack to see which tools it has; None if it can't be loaded, which the check `loads` will tell."""
        import asyncio

        from agentos.testing._sandbox import leaving_sandboxes
        from agentos.testing.checks import tools_of

        try:
            with leaving_sandboxes():
                return asyncio.run(tools_of(candidate))
        except Exception:  # noqa: BLE001 - a pack is foreign code; the check tells
            return None


def _pairs(
    candidate: "Candidate", tools: "list[Tool] | None", skip: Any, only: Any
) -> "Iterator[tuple[Check, Tool | None]]":
    """Yield the checks to make, with the tools that they are about; of a pack that can't be loaded there is one."""
    from agentos.testing.conformance import chosen_checks, is_wanted

    for check in chosen_checks(skip, only):
        if check.id != "loads" and tools is None:
            continue
        for tool in tools or () if check.is_about_tools else [None]:
            if tool is None or (check.applies(candidate, tool) and is_wanted(check.id, tool.name, skip, only)):
                yield check, tool


class ConformanceError(AssertionError):
    """What a check found."""


class CheckItem(pytest.Item):
    """One check of a pack, or of one of its tools."""

    def __init__(
        self,
        *,
        candidate: "Candidate",
        check: "Check",
        tool: "Tool | None",
        strict: bool,
        reason: str | None = None,
        **more: Any,
    ) -> None:
        super().__init__(**more)
        self.candidate = candidate
        self.check = check
        self.tool = tool
        self.strict = strict
        self.reason = reason
        """Why the check is not made."""
        self.extra_keyword_matches.update({"agentos", check.id})

    def runtest(self) -> None:
        """Make the check."""
        import asyncio

        from agentos.testing._sandbox import leaving_sandboxes
        from agentos.testing.conformance import is_failure, report

        if self.reason is not None:
            pytest.skip(self.reason)
        with leaving_sandboxes():
            found = asyncio.run(self.check.run(self.candidate, self.tool))
        wrong = [finding for finding in found if is_failure(finding, strict=self.strict)]
        remarks = [finding for finding in found if finding not in wrong and finding.severity == "warning"]
        self.user_properties += [("agentos", str(finding)) for finding in remarks]
        if wrong:
            raise ConformanceError(report(wrong))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Show what was found, without the way there."""
        if isinstance(excinfo.value, ConformanceError):
            return f"{self.check.id}: {self.check.summary}\n{excinfo.value}"
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, None, str]:
        """Say where the test is from: the pack."""
        return self.config.rootpath, None, f"{self.candidate.name}: {self.name}"


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """List what the checks only remark."""
    reports = [one for kind in ("passed", "failed") for one in terminalreporter.stats.get(kind, ())]
    told = [text for one in reports for name, text in getattr(one, "user_properties", ()) if name == "agentos"]
    if told:
        terminalreporter.section("agentos packs: remarks")
        for text in dict.fromkeys(told):
            terminalreporter.write_line(text)


# -- fixtures ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def agentos_host() -> Any:
    """Return `make_host`, to be entered with `async with` in tests that are async."""
    from agentos.testing.hosts import make_host

    return make_host


@pytest.fixture
def agentos_call() -> Any:
    """Return `call_tools`, for tests that are not async: `agentos_call(pack, ("tool", {...}))`."""
    from agentos.testing.hosts import call_tools

    return call_tools


@pytest.fixture
def agentos_clock() -> Any:
    """Return a FakeClock to give to a host as `clock=`."""
    from agentos.testing.fakes import FakeClock

    return FakeClock()


@pytest.fixture
def agentos_secrets() -> Any:
    """Return canaries for every secret that is asked for, to give to a host as `secrets=`."""
    from agentos.testing.fakes import fake_secrets

    return fake_secrets()


@pytest.fixture
def agentos_offline() -> Iterator[Any]:
    """Refuse everything but loopback for the time of the test; the value is the list of what was tried."""
    from agentos.testing.network import offline

    with offline() as attempts:
        yield attempts

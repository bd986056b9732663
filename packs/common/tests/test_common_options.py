"""Options are read strictly: what does not fit is told with its place, all at once, and no value is told."""

import enum
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, NewType, Optional

import attrs
import pytest
from agentos_pack_common import OptionsError, WebOptions, read_options

from agentos import AgentOS, AgentOSError, ExtensionPack, PackEntry

Name = NewType("Name", str)


class Colour(enum.Enum):
    RED = "red"
    DARK_BLUE = "dark-blue"


@attrs.frozen
class Inner:
    size: int
    deep_name: str = "x"


@attrs.frozen(kw_only=True)
class Options:
    flag: bool = False
    count: int = attrs.field(default=3, validator=attrs.validators.ge(1))
    ratio: float = 0.5
    name: str = "n"
    nick: str | None = None
    old_style: Optional[int] = None  # noqa: UP045 - as others may write it
    mode: Literal["fast", "slow", 3] = "fast"
    colour: Colour = Colour.RED
    hosts: tuple[str, ...] = ()
    pair: tuple[int, str] = (1, "a")
    numbers: list[int] = attrs.Factory(list)
    unique: frozenset[str] = frozenset()
    mutable: set[int] = attrs.Factory(set)
    several: Sequence[int] = ()
    table: dict[str, int] = attrs.Factory(dict)
    view: Mapping[str, list[Inner]] = attrs.Factory(dict)
    inner: Inner | None = None
    either: int | str | list[str] = 0
    number: int | float = 0
    folder: Path | None = None
    clock: Callable[[], Any] | None = None
    anything: Any = None
    new: Name = Name("x")
    noted: Annotated[int, "with a note"] = 1
    bare: list = attrs.Factory(list)  # type: ignore[type-arg]
    private: int = attrs.field(default=1, alias="private")
    computed: int = attrs.field(init=False, default=7)


def problems(cls, options):
    with pytest.raises(OptionsError) as caught:
        read_options(cls, options)
    return [str(problem) for problem in caught.value.problems]


@pytest.mark.parametrize(
    ("said", "read"),
    [
        ({}, {}),
        (None, {}),
        ({"flag": True, "count": 5, "name": "x"}, {"flag": True, "count": 5, "name": "x"}),
        ({"ratio": 1}, {"ratio": 1.0}),
        ({"nick": None, "oldStyle": 4}, {"nick": None, "old_style": 4}),
        ({"old_style": 4}, {"old_style": 4}),
        ({"mode": 3}, {"mode": 3}),
        ({"colour": "dark-blue"}, {"colour": Colour.DARK_BLUE}),
        ({"colour": Colour.RED}, {"colour": Colour.RED}),
        ({"hosts": ["a", "b"]}, {"hosts": ("a", "b")}),
        ({"hosts": ("a",)}, {"hosts": ("a",)}),
        ({"pair": [2, "b"]}, {"pair": (2, "b")}),
        ({"numbers": (1, 2)}, {"numbers": [1, 2]}),
        ({"unique": ["a", "a"]}, {"unique": frozenset({"a"})}),
        ({"mutable": [1]}, {"mutable": {1}}),
        ({"several": [1]}, {"several": (1,)}),
        ({"table": {"A_b": 1}}, {"table": {"A_b": 1}}),
        ({"view": {"a": [{"size": 1}]}}, {"view": {"a": [Inner(1)]}}),
        ({"inner": {"size": 2, "deepName": "y"}}, {"inner": Inner(2, "y")}),
        ({"inner": Inner(3)}, {"inner": Inner(3)}),
        ({"either": "x"}, {"either": "x"}),
        ({"either": ["x"]}, {"either": ["x"]}),
        ({"number": 2}, {"number": 2}),
        ({"folder": "a/b"}, {"folder": Path("a/b")}),
        ({"folder": Path("a")}, {"folder": Path("a")}),
        ({"clock": len}, {"clock": len}),
        ({"anything": {1: 2}}, {"anything": {1: 2}}),
        ({"new": "y", "noted": 2}, {"new": Name("y"), "noted": 2}),
        ({"bare": [1, "x"]}, {"bare": [1, "x"]}),
        ({"secrets": {"a.b": "hunter2"}}, {}),
    ],
)
def test_what_fits_is_read(said, read):
    assert read_options(Options, said) == Options(**read)


def test_a_whole_number_stays_one_where_both_are_allowed():
    assert isinstance(read_options(Options, {"number": 2}).number, int)


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ({"flag": 1}, "options.flag: expected true or false, got a whole number"),
        ({"flag": "true"}, "options.flag: expected true or false, got text"),
        ({"count": True}, "options.count: expected a whole number, got true or false"),
        ({"count": 1.0}, "options.count: expected a whole number, got a number"),
        ({"count": None}, "options.count: expected a whole number, got null"),
        ({"count": 0}, "options.count: must be >= 1: 0"),
        ({"ratio": "0.5"}, "options.ratio: expected a number, got text"),
        ({"ratio": float("nan")}, "options.ratio: expected a number, got a number that is not finite"),
        ({"ratio": 10**400}, "options.ratio: expected a number, got a whole number"),
        ({"name": 5}, "options.name: expected text, got a whole number"),
        ({"name": b"x"}, "options.name: expected text, got bytes"),
        ({"nick": ["x"]}, "options.nick: expected text, got a list"),
        ({"oldStyle": {}}, "options.oldStyle: expected a whole number, got a mapping"),
        ({"mode": "fats"}, "options.mode: expected one of 'fast', 'slow', 3; did you mean 'fast'?"),
        ({"mode": 4}, "options.mode: expected one of 'fast', 'slow', 3, got a whole number"),
        ({"mode": 3.0}, "options.mode: expected one of 'fast', 'slow', 3, got a number"),
        ({"colour": "darkblue"}, "options.colour: expected one of 'red', 'dark-blue'; did you mean 'dark-blue'?"),
        ({"hosts": "a"}, "options.hosts: expected a list, got text"),
        ({"hosts": ["a", 1]}, "options.hosts[1]: expected text, got a whole number"),
        ({"pair": [1]}, "options.pair: expected 2 items, got 1"),
        ({"pair": ["a", "b"]}, "options.pair[0]: expected a whole number, got text"),
        ({"unique": [["a"]]}, "options.unique[0]: expected text, got a list"),
        ({"table": []}, "options.table: expected a mapping, got a list"),
        ({"table": {"a": "b"}}, "options.table.a: expected a whole number, got text"),
        ({"table": {1: 2}}, "options.table.1: expected text, got a whole number"),
        ({"view": {"a": [{"size": "x"}]}}, "options.view.a[0].size: expected a whole number, got text"),
        ({"inner": {}}, "options.inner.size: is needed; say it"),
        ({"inner": {"size": 1, "sise": 2}}, "options.inner.sise: is not known; did you mean `size`?"),
        ({"inner": {"size": 1, "secrets": {}}}, "options.inner.secrets: is not known; known are deepName, size"),
        ({"inner": 3}, "options.inner: expected a mapping, got a whole number"),
        ({"either": 1.5}, "options.either: expected a whole number or text or a list, got a number"),
        ({"folder": 3}, "options.folder: expected a path, got a whole number"),
        ({"folder": ""}, "options.folder: expected a path, got text"),
        ({"folder": "a\0b"}, "options.folder: expected a path, got text"),
        ({"clock": "now"}, "options.clock: expected a function, got text"),
        ({"hsots": []}, "options.hsots: is not known; did you mean `hosts`?"),
        ({"OLD_STYLE": 1}, "options.OLD_STYLE: is not known; did you mean `oldStyle`?"),
        ({"old-style": 1}, "options.old-style: is not known; did you mean `oldStyle`?"),
        ({"computed": 1}, "options.computed: is not known; did you mean `noted`?"),
        ({"oldStyle": 1, "old_style": 2}, "options.old_style: is said twice; keep `oldStyle` only"),
    ],
)
def test_what_does_not_fit_is_told_with_its_place(said, problem):
    assert problems(Options, said) == [problem]


def test_every_problem_is_told_at_once():
    said = {"zzzzzz": 1, "count": 0, "ratio": "x", "hosts": [1, 2], "inner": {"size": "x", "deepname": 1}}

    with pytest.raises(OptionsError) as caught:
        read_options(Options, said)

    places = [problem.path for problem in caught.value.problems]
    assert sorted(places) == sorted(
        [
            "options.zzzzzz",
            "options.count",
            "options.ratio",
            "options.hosts[0]",
            "options.hosts[1]",
            "options.inner.size",
            "options.inner.deepname",
        ]
    )
    assert str(caught.value).startswith("the options have 7 problems:\n  options.")


def test_one_problem_is_one_line():
    with pytest.raises(OptionsError, match=r"\Aoptions.count: must be >= 1: 0\Z"):
        read_options(Options, {"count": 0})


@pytest.mark.parametrize("options", [[], "x", 3])
def test_options_are_a_mapping(options):
    assert problems(Options, options)[0].startswith("options: expected a mapping, got ")


def test_an_error_of_options_is_both_agentos_own_and_of_a_value():
    assert issubclass(OptionsError, AgentOSError)
    assert issubclass(OptionsError, ValueError)


SECRET = "hunter2-is-not-for-others"


@pytest.mark.parametrize(
    "said",
    [
        {"count": SECRET},
        {"mode": SECRET},
        {"colour": SECRET},
        {"hosts": SECRET},
        {"inner": SECRET},
        {"either": {"token": SECRET}},
        {"clock": SECRET},
        {"table": {"a": SECRET}},
    ],
)
def test_no_value_is_told(said):
    with pytest.raises(OptionsError) as caught:
        read_options(Options, said)

    assert SECRET not in f"{caught.value} {caught.value.__cause__} {caught.value.__context__}"


def test_a_key_stays_on_one_line_and_short():
    message = problems(Options, {"x\nY\x1b[31m" + "z" * 1_000: 1})[0]

    assert message.isprintable()
    assert len(message) < 500


@attrs.frozen
class Related:
    least: int = 1
    most: int = attrs.field(default=9)
    doubled: int = attrs.field()

    @doubled.default
    def _double(self):
        return 2 * self.most

    @most.validator
    def _check(self, attribute, value):
        if value < self.least:
            raise ValueError("'most' must not be less than least")

    def __attrs_post_init__(self):
        if self.doubled > 100:
            raise ValueError("doubled: at most 100")


def test_fields_may_be_judged_by_each_other():
    assert read_options(Related, {"least": 2, "most": 3}) == Related(2, 3, 6)
    assert problems(Related, {"least": 4, "most": 3}) == ["options.most: must not be less than least"]
    assert problems(Related, {"most": 60}) == ["options: doubled: at most 100"]


def test_a_field_that_is_judged_by_one_with_a_problem_is_not_told_twice():
    assert problems(Related, {"least": "x", "most": 3}) == ["options.least: expected a whole number, got text"]


def test_a_bug_of_a_validator_is_not_taken_for_a_problem_of_the_options():
    def check(instance, attribute, value):
        return value.nothing

    buggy = attrs.make_class("Buggy", {"x": attrs.field(default=1, validator=check, type=int)}, frozen=True)

    with pytest.raises(AttributeError):
        read_options(buggy, {"x": 2})


def test_a_class_may_have_a_field_of_its_own_named_secrets():
    own = attrs.make_class("Own", {"secrets": attrs.field(default=(), type=tuple[str, ...])})

    assert read_options(own, {"secrets": ["a"]}).secrets == ("a",)


def test_a_class_without_options_takes_none():
    assert problems(attrs.make_class("None_", []), {"a": 1}) == ["options.a: is not known; there are no options"]


def test_only_an_attrs_class_can_be_read():
    with pytest.raises(TypeError, match="no attrs class"):
        read_options(dict, {})


def test_the_options_of_requests_can_be_extended():
    @attrs.frozen(kw_only=True)
    class Mine(WebOptions):
        limit: int = 10

    read = read_options(Mine, {"limit": 3, "allow": ["example.org"]})

    assert (read.limit, read.policy().allow) == (3, ("example.org",))
    assert problems(Mine, {"alow": []}) == ["options.alow: is not known; did you mean `allow`?"]


async def test_a_pack_with_wrong_options_does_not_load_and_says_why():
    def create(context):
        read_options(Options, context.options)
        return ExtensionPack("strict")

    entry = PackEntry(factory=create, options={"coutn": 3, "secrets": {}}, identifier="strict")
    async with AgentOS() as host:
        outcome = await host.extensions.load(entry)

    assert "options.coutn: is not known; did you mean `count`?" in str(outcome.error)

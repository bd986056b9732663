"""Convert between units of measurement."""

import difflib
import functools
import re
from collections import Counter
from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any

import attrs

from agentos import Schema
from agentos_pack_calculator._numbers import as_json, as_text

if TYPE_CHECKING:
    from pint import UnitRegistry

MAX_VALUE_LENGTH = 100
MAX_VALUE_EXPONENT = 300
MAX_UNIT_LENGTH = 200
MAX_FACTORS = 8

_NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?(?:[eE](?P<exponent>[+-]?\d{1,5}))?", re.ASCII)
_FACTOR = re.compile(r"(?P<name>[A-Za-z_µ°%]+)(?:(?:\*\*|\^)(?P<power>[+-]?[0-9]))?")
_GREEK_MU = "\N{GREEK SMALL LETTER MU}"
_SIGN = re.compile(r"(?<!\*)\*(?!\*)|/")

# Their conversion raises the base to the value: 1e9 dB would be a number of a hundred million digits.
_LOGARITHMIC = frozenset(
    {"decade", "decibel", "decibelmicrowatt", "decibelmilliwatt", "decibelwatt", "neper", "octave"}
)


@attrs.frozen(kw_only=True)
class Conversion:
    """A quantity in another unit.

    `value` is the nearest JSON number, `text` has up to 28 significant digits. The units are spelled out in
    full, so that a symbol that was misunderstood can be noticed.
    """

    value: int | float
    text: str
    from_unit: str
    to_unit: str


def convert_units(
    value: Annotated[
        Annotated[str, Schema(minLength=1, maxLength=MAX_VALUE_LENGTH)]
        | Annotated[int | float, Schema(minimum=-1e301, maximum=1e301)],
        "The number to convert, such as 12.5; as text it keeps all its digits",
    ],
    from_unit: Annotated[
        str,
        "The unit it is in: names or symbols joined by * and /, with powers such as ^2, for example km/h, "
        "kg*m^2, degC, mmHg. Case matters: mW is not MW",
        Schema(minLength=1, maxLength=MAX_UNIT_LENGTH),
    ],
    to_unit: Annotated[
        str, "The unit to convert to, written the same way", Schema(minLength=1, maxLength=MAX_UNIT_LENGTH)
    ],
) -> Conversion:
    """Convert a number from one unit of measurement to another of the same dimension, temperatures included.

    It knows physical units only: no currencies, no logarithmic units such as dB, no parentheses.
    """
    number = _number(value)
    source, target = _parse(from_unit, "from"), _parse(to_unit, "to")
    result = _convert(number, source, target)
    try:
        nearest = as_json(result)
    except OverflowError:
        raise ValueError(f"value: the result in {to_unit} is too large; choose a larger unit") from None
    return Conversion(value=nearest, text=as_text(result)[0], from_unit=_spell(source), to_unit=_spell(target))


def _number(value: object) -> Fraction:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError(f"value: expected a number, got {type(value).__name__}")  # noqa: TRY004
    text = value.strip() if isinstance(value, str) else _plain(value)
    found = _NUMBER.fullmatch(text) if len(text) <= MAX_VALUE_LENGTH else None
    if found is None:
        raise ValueError(
            f"value: expected a decimal number of at most {MAX_VALUE_LENGTH} characters, such as -12.5 or "
            f"6.02e23, got {text[:40]!r}"
        )
    # Before the fraction is made: 1e99999 would be a number of as many digits.
    if abs(int(found["exponent"] or 0)) > MAX_VALUE_EXPONENT:
        raise ValueError(f"value: expected an exponent of -{MAX_VALUE_EXPONENT} to {MAX_VALUE_EXPONENT}, got {text!r}")
    return Fraction(text)


def _plain(value: float) -> str:
    if isinstance(value, int) and value.bit_length() > 4 * MAX_VALUE_LENGTH:
        return "a longer one"
    return repr(value)


def _parse(text: str, place: str) -> dict[str, int]:
    """Return the powers of the canonical units in *text*. Only names that pint knows get any further."""
    if len(text) > MAX_UNIT_LENGTH:
        raise ValueError(f"{place}: {len(text):,} characters; at most {MAX_UNIT_LENGTH} are allowed")
    compact = re.sub(r" *(\*\*|[*/^]) *", r"\1", text.strip()).replace(_GREEK_MU, "µ")
    signs = ["*", *_SIGN.findall(compact)]
    factors = _SIGN.split(compact)
    if len(factors) > MAX_FACTORS:
        raise ValueError(f"{place}: {len(factors)} factors; at most {MAX_FACTORS} are allowed")
    powers: Counter[str] = Counter()
    for index, (sign, factor) in enumerate(zip(signs, factors, strict=True)):
        if factor == "1" and index == 0 and len(factors) > 1:
            continue
        name, power = _factor(factor, place)
        powers[name] += power if sign == "*" else -power
    return {name: power for name, power in powers.items() if name and power}


def _factor(text: str, place: str) -> tuple[str, int]:
    found = _FACTOR.fullmatch(text)
    if found is None:
        raise ValueError(
            f"{place}: {text[:40]!r} is not a unit; write names joined by * and /, with powers of -9 to 9 "
            "such as m/s^2, and no numbers or parentheses"
        )
    return _canonical(found["name"], place), int(found["power"] or 1)


def _canonical(name: str, place: str) -> str:
    """Return pint's full name for *name*, an empty one for `dimensionless`."""
    from pint.errors import OffsetUnitCalculusError

    if name == "dimensionless":
        return ""
    registry = _registry()
    candidates = registry.parse_unit_name(name)
    if not candidates:
        raise _unknown(name, place)
    prefix, unit, _ = candidates[0]
    # pint keeps the prefixed units it has met, and would then prefix those again: kilokilometer.
    if prefix and any(inner for inner, _, _ in registry.parse_unit_name(unit)):
        raise _unknown(name, place)
    if unit in _LOGARITHMIC:
        raise ValueError(f"{place}: {name!r} is a logarithmic unit; use calculate with log10 and ** instead")
    try:
        return str(registry.get_name(name))
    except OffsetUnitCalculusError:
        raise ValueError(f"{place}: {name!r} has a prefix on a temperature scale; leave it out") from None


def _unknown(name: str, place: str) -> ValueError:
    registry = _registry()
    same = [*registry.parse_unit_name(name.lower()), *registry.parse_unit_name(name, case_sensitive=False)]
    near = sorted({prefix + unit for prefix, unit, _ in same})[:3]
    near = near or difflib.get_close_matches(name.lower(), _plain_names(), n=3, cutoff=0.7)
    hint = f"did you mean {' or '.join(near)}?" if near else "give its full English name in lower case"
    return ValueError(f"{place}: unknown unit {name[:40]!r}; {hint}")


def _convert(number: Fraction, source: Mapping[str, int], target: Mapping[str, int]) -> Fraction:
    from pint.errors import PintError

    registry = _registry()
    before, after = registry.UnitsContainer(source), registry.UnitsContainer(target)
    have, want = registry.get_dimensionality(before), registry.get_dimensionality(after)
    if have != want:
        raise ValueError(
            f"to: {_spell(source)} ({_spell(have)}) cannot become {_spell(target)} ({_spell(want)}); "
            "both must measure the same thing"
        )
    try:
        return Fraction(registry.Quantity(number, before).to(after).magnitude)
    except PintError:
        raise ValueError(
            f"from: {_spell(source)} to {_spell(target)} has a temperature scale as a part; use kelvin, "
            "or delta_degC and delta_degF for differences"
        ) from None


def _spell(powers: Mapping[str, Any]) -> str:
    above = [_raised(name, power) for name, power in powers.items() if power > 0]
    below = [_raised(name, -power) for name, power in powers.items() if power < 0]
    if not above and not below:
        return "dimensionless"
    return "/".join(["*".join(above) or "1", *below])


def _raised(name: str, power: int | Fraction) -> str:
    return name if power == 1 else f"{name}^{power}"


@functools.cache
def _registry() -> "UnitRegistry[Any]":
    # Fractions keep conversions exact: with Decimal 25 degC are 77.00000000000000000000000003 degF.
    from pint import UnitRegistry

    return UnitRegistry(non_int_type=Fraction, cache_folder=None)


@functools.cache
def _plain_names() -> tuple[str, ...]:
    return tuple(sorted(name for name in _registry() if _FACTOR.fullmatch(name)))

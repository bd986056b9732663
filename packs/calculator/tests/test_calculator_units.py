"""convert_units: what it answers, what it refuses, and what never reaches pint."""

import contextlib
from fractions import Fraction

import pytest
from agentos_pack_calculator import units
from agentos_pack_calculator.units import Conversion, convert_units
from hypothesis import given, settings
from hypothesis import strategies as st


@pytest.mark.parametrize(
    ("value", "source", "target", "text"),
    [
        (1, "inch", "cm", "2.54"),
        (1, "mile", "km", "1.609344"),
        (100, "km/h", "m/s", "27.77777777777777777777777778"),
        ("36", "km / hour", "m/s", "10"),
        (1, "kg*m/s**2", "N", "1"),
        (1, "kg * m ^ 2 / s ^ 2", "J", "1"),
        (1, "1/s", "Hz", "1"),
        (1, "J/kg/K", "J*kg^-1*K^-1", "1"),
        (1, "m**-2", "1/m^2", "1"),
        (0.1, "m", "mm", "100"),
        ("1e-3", "m", "µm", "1000"),
        (1, "\N{GREEK SMALL LETTER MU}m", "nm", "1000"),
        (50, "%", "dimensionless", "0.5"),
        (1, "m/m", "percent", "100"),
        (1, "GiB", "byte", "1073741824"),
        (1, "feet", "m", "0.3048"),
        (180, "degree", "radian", "3.141592653589793238462643383"),
        ("12345678901234567890.123", "m", "km", "12345678901234567.890123"),
        (-40, "degC", "degF", "-40"),
        (25, "degC", "degF", "77"),
        (98.6, "degF", "degC", "37"),
        (0, "kelvin", "degC", "-273.15"),
        (20, "°C", "K", "293.15"),
        (5, "delta_degC", "delta_degF", "9"),
        (1, "W/delta_degC", "W/K", "1"),
    ],
)
def test_conversions_are_exact(value, source, target, text):
    assert text == convert_units(value, source, target).text


def test_the_units_are_spelled_out():
    expected = Conversion(value=3.6, text="3.6", from_unit="meter/second", to_unit="kilometer/hour")

    assert expected == convert_units(1, "m/s", "km/h")


def test_a_prefix_and_a_symbol_are_told_apart():
    assert convert_units(1, "ft", "m").from_unit == "foot"
    assert convert_units(1, "mW", "W").value == 0.001
    assert convert_units(1, "MW", "W").value == 1_000_000


@pytest.mark.parametrize(
    ("source", "target", "text"),
    [
        ("m", "s", r"to: meter (\[length\]) cannot become second (\[time\])"),
        ("franklin", "coulomb", r"\[mass\]^1/2"),
        ("kg", "dimensionless", r"(dimensionless)"),
    ],
)
def test_another_dimension_is_refused(source, target, text):
    with pytest.raises(ValueError, match=text.replace("(", r"\(").replace(")", r"\)").replace("^", r"\^")):
        convert_units(1, source, target)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("metr", "did you mean metre or meter"),
        ("KM", "did you mean kilometer"),
        ("Celsius", "did you mean degree_Celsius"),
        ("fahrenheitt", "fahrenheit"),
        ("xyzzy", "give its full English name"),
    ],
)
def test_an_unknown_unit_suggests_the_nearest(name, hint):
    with pytest.raises(ValueError, match=f"^from: unknown unit '{name}'.*{hint}"):
        convert_units(1, name, "m")


@pytest.mark.parametrize("place", ["from", "to"])
def test_the_error_names_the_parameter(place):
    given_units = {"from_unit": "m", "to_unit": "m", f"{place}_unit": "nonsense"}

    with pytest.raises(ValueError, match=f"^{place}: unknown unit 'nonsense'"):
        convert_units(1, **given_units)


@pytest.mark.parametrize(
    "unit",
    [
        "",
        " ",
        "1",
        "2*m",
        "m*2",
        "m/1",
        "m^10",
        "m^-10",
        "m^2.5",
        "m**m",
        "m**2**2",
        "m***2",
        "m^^2",
        "(m)",
        "J/(kg*K)",
        "m s",
        "m//s",
        "m*",
        "/s",
        "m+s",
        "m.real",
        "m[0]",
        "__import__('os')",
        "'m'",
        "{m}",
        "m\x00",
        "m\ns",
        "m\N{SUPERSCRIPT TWO}",
        "\N{ARABIC-INDIC DIGIT TWO}*m",
        "m^\N{ARABIC-INDIC DIGIT TWO}",
    ],
)
def test_only_names_powers_and_signs_make_a_unit(unit):
    with pytest.raises(ValueError, match=r"^from: "):
        convert_units(1, unit, "m")


def test_the_number_of_factors_is_limited():
    assert convert_units(1, "*".join("m" * 8), "m^8").value == 1
    with pytest.raises(ValueError, match="9 factors; at most 8"):
        convert_units(1, "*".join("m" * 9), "m")


def test_the_length_of_a_unit_is_limited():
    with pytest.raises(ValueError, match="201 characters; at most 200"):
        convert_units(1, "m" * 201, "m")


@pytest.mark.parametrize(
    "value",
    [
        "nan",
        "inf",
        "-Infinity",
        "1_000",
        "1,000",
        "0x10",
        "1/3",
        "",
        "1e",
        "1 2",
        "9**9",
        "1" * 101,
        "1e301",
        "1e-301",
        "1e999999999",
        10**200,
        pytest.param(10**5000, id="five thousand digits"),
        float("nan"),
        float("inf"),
        5e-324,
        True,
        None,
        [1],
        "\N{ARABIC-INDIC DIGIT TWO}",
    ],
)
def test_only_decimal_numbers_of_bounded_size_are_values(value):
    with pytest.raises(ValueError, match=r"^value: "):
        convert_units(value, "m", "km")


def test_a_result_beyond_every_float_is_refused():
    with pytest.raises(ValueError, match="too large; choose a larger unit"):
        convert_units("1e300", "Ym^9", "ym^9")


@pytest.mark.parametrize("unit", ["degC/m", "degC^2", "degC*degC", "1/degF"])
def test_a_temperature_scale_stands_alone(unit):
    with pytest.raises(ValueError, match="use kelvin, or delta_degC"):
        convert_units(1, unit, unit.replace("degC", "kelvin").replace("degF", "kelvin"))


def test_a_temperature_scale_takes_no_prefix():
    with pytest.raises(ValueError, match="prefix on a temperature scale"):
        convert_units(1, "kdegC", "kelvin")


def test_a_unit_has_one_prefix_whatever_was_asked_before():
    """pint would know kilokilometer once it has met kilometer, and keep each such name for ever."""
    convert_units(1, "kilometer", "m")
    known = len(list(units._registry()))

    for name in ("kilokilometer", "kkm", "megakilometer", "kilokilokilometer"):
        with pytest.raises(ValueError, match="unknown unit"):
            convert_units(1, name, "m")
    assert known == len(list(units._registry()))


def test_every_logarithmic_unit_of_pint_is_listed():
    registry = units._registry()

    assert {
        definition.name for definition in registry._units.values() if definition.is_logarithmic
    } == units._LOGARITHMIC


@pytest.mark.parametrize("unit", ["dB", "dBm", "Np", "octave", "millidecade"])
def test_logarithmic_units_are_refused(unit):
    with pytest.raises(ValueError, match="is a logarithmic unit"):
        convert_units(1, unit, "dimensionless")


@pytest.mark.parametrize(
    ("value", "unit"),
    [
        ("1", "9**9**9*m"),
        ("1", "10**10**7"),
        ("1", "m**9**9**9"),
        ("1", "m^999999999"),
        ("10**10**7", "m"),
        ("1e999999999", "m"),
        ("1000000000", "dB"),
        ("1", "*".join(["m^9"] * 9)),
        ("1", "kilo" * 40 + "meter"),
    ],
)
def test_dangerous_units_and_values_are_refused_at_once(run_python, value, unit):
    code = (
        "import sys\n"
        "from agentos_pack_calculator.units import convert_units\n"
        "try:\n"
        "    print('value', convert_units(sys.argv[1], sys.argv[2], 'dimensionless'))\n"
        "except ValueError as exc:\n"
        "    print('refused', exc)"
    )

    assert run_python(code, value, unit).startswith("refused ")


FAMILIES = [
    ["m", "km", "inch", "foot", "mile", "light_year", "parsec", "nm"],
    ["g", "kg", "lb", "oz", "metric_ton", "grain"],
    ["s", "minute", "hour", "day", "week", "year"],
    ["J", "kWh", "cal", "BTU", "eV"],
    ["m/s", "km/h", "mph", "knot"],
    ["L", "m^3", "gallon", "cup", "inch^3"],
    ["kelvin", "degC", "degF"],
    ["Pa", "bar", "psi", "atm", "mmHg", "N/m^2"],
    ["radian", "degree", "turn"],
]

pairs = st.sampled_from(FAMILIES).flatmap(lambda family: st.tuples(*[st.sampled_from(family)] * 2))
numbers = st.decimals(-(10**9), 10**9, places=6, allow_nan=False)


@settings(deadline=None)
@given(numbers, pairs)
def test_there_and_back_again(value, pair):
    source, target = pair
    there = convert_units(format(value, "f"), source, target)
    back = convert_units(there.text, target, source)

    # 28 digits survive, but a temperature near a scale's zero loses those that the offset takes.
    assert abs(Fraction(back.text) - Fraction(value)) <= max(abs(Fraction(value)), 1) / 10**20


@settings(deadline=None)
@given(numbers, pairs)
def test_conversion_keeps_the_order(value, pair):
    source, target = pair
    smaller = convert_units(format(value, "f"), source, target)
    larger = convert_units(format(value + 1, "f"), source, target)

    assert Fraction(smaller.text) < Fraction(larger.text)


@settings(deadline=None)
@given(st.text(alphabet="kmgsdCF°%µ_*/^-0129 ()", max_size=30))
def test_any_text_is_a_unit_or_a_refusal(text):
    with contextlib.suppress(ValueError):
        assert convert_units(1, text, text).value == 1

"""Find personal data in a text by its format: patterns first, then check digits, issuers and ranges.

Names, street addresses and dates of birth have no format and are not looked for.
"""

import functools
import ipaddress
import itertools
from collections.abc import Callable, Iterator

import attrs
import re2
from agentos_pack_common.findings import Finding, decoded, encoded, in_characters, without_overlap

_LETTER = r"[\xc3-\xdf][\x80-\xbf]"
"""A letter of two bytes: Latin with marks, Greek, Cyrillic and others."""
_NO_WORD_BEFORE = r"(?:^|[^0-9A-Za-z_.%+@/=-])"


@attrs.frozen
class PersonalFormat:
    """How one type of personal data looks, and what a place that looks like it must fulfil besides."""

    kind: str
    pattern: str
    """With one group: what is personal."""
    valid_length: Callable[[str], int]
    """How many characters of such a place, from its beginning, are what was looked for; 0 if it is something else."""
    valid_within: Callable[[str], int] | None = None
    """The same for a place that begins within one that was something else; None where nothing can."""


def _digits(text: str) -> str:
    return "".join(one for one in text if one in "0123456789")


# -- payment cards -----------------------------------------------------------------------------------------------

_ISSUERS: tuple[tuple[int, int, tuple[int, ...]], ...] = (
    (4, 4, (13, 16, 19)),  # Visa
    (51, 55, (16,)),  # Mastercard
    (2221, 2720, (16,)),
    (34, 34, (15,)),  # American Express
    (37, 37, (15,)),
    (300, 305, (14, 16)),  # Diners Club
    (36, 36, (14, 15, 16, 17, 18, 19)),
    (38, 39, (14, 16)),
    (6011, 6011, (16, 17, 18, 19)),  # Discover
    (644, 659, (16, 17, 18, 19)),
    (35, 35, (16, 17, 18, 19)),  # JCB
    (1800, 1800, (15,)),
    (2131, 2131, (15,)),
    (62, 62, (16, 17, 18, 19)),  # UnionPay
    (2200, 2204, (16, 17, 18, 19)),  # Mir
    (56, 58, tuple(range(12, 20))),  # Maestro
    *((one, one, tuple(range(12, 20))) for one in (5018, 5020, 5038, 5893, 6304, 6759, 6761, 6762, 6763)),
)
"""The first and the last number that a card of an issuer begins with, and how long it is."""


def _is_card(text: str) -> bool:
    number = _digits(text)
    separators = {one for one in text if one in " -"}
    return len(separators) <= 1 and _is_issued(number) and _has_check_digit(number)


_CARD_GROUPS = ((4, 4, 4, 4), (4, 4, 4, 4, 3), (4, 6, 5), (4, 6, 4))
"""How the digits of a card are written in groups."""


def _length_of_card(text: str) -> int:
    """Return where the card ends: numbers may follow that look like more groups."""
    return len(text) if _is_card(text) else _length_of_card_among_numbers(text)


def _length_of_card_among_numbers(text: str) -> int:
    """Return the same where other numbers stand beside it: then its groups have to be those of a card."""
    ends = [len(text), *(end for end in range(len(text) - 1, 0, -1) if text[end] == " ")]
    return next((end for end in ends if _is_grouped(text[:end]) and _is_card(text[:end])), 0)


def _is_grouped(text: str) -> bool:
    sizes = tuple(map(len, text.replace("-", " ").split(" ")))
    return len(sizes) == 1 or sizes in _CARD_GROUPS


def _is_issued(number: str) -> bool:
    return any(
        len(number) in lengths and first <= int(number[: len(str(first))]) <= last for first, last, lengths in _ISSUERS
    )


def _has_check_digit(number: str) -> bool:
    """Tell whether the last digit fits the others (ISO/IEC 7812)."""
    doubled = [int(one) * 2 for one in number[-2::-2]]
    return (sum(map(int, number[-1::-2])) + sum(sum(divmod(one, 10)) for one in doubled)) % 10 == 0


# -- bank accounts, social security, addresses on the network ----------------------------------------------------

_IBAN_LENGTHS = {
    "AD": 24, "AE": 23, "AL": 28, "AT": 20, "AZ": 28, "BA": 20, "BE": 16, "BG": 22, "BH": 22, "BI": 27, "BR": 29, "BY": 28,
    "CH": 21, "CR": 22, "CY": 28, "CZ": 24, "DE": 22, "DJ": 27, "DK": 18, "DO": 28, "EE": 20, "EG": 29, "ES": 24, "FI": 18,
    "FK": 18, "FO": 18, "FR": 27, "GB": 22, "GE": 22, "GI": 23, "GL": 18, "GR": 27, "GT": 28, "HR": 21, "HU": 28, "IE": 22,
    "IL": 23, "IQ": 23, "IS": 26, "IT": 27, "JO": 30, "KW": 30, "KZ": 20, "LB": 28, "LC": 32, "LI": 21, "LT": 20, "LU": 20,
    "LV": 21, "LY": 25, "MC": 27, "MD": 24, "ME": 22, "MK": 19, "MN": 20, "MR": 27, "MT": 31, "MU": 30, "NI": 28, "NL": 18,
    "NO": 15, "OM": 23, "PK": 24, "PL": 28, "PS": 29, "PT": 25, "QA": 29, "RO": 24, "RS": 22, "RU": 33, "SA": 24, "SC": 31,
    "SD": 18, "SE": 24, "SI": 19, "SK": 24, "SM": 27, "SO": 23, "ST": 25, "SV": 28, "TL": 23, "TN": 24, "TR": 26, "UA": 29,
    "VA": 22, "VG": 24, "XK": 20, "YE": 30,
}  # fmt: skip


def _length_of_iban(text: str) -> int:
    """Return where the account number ends: words may follow that look like one more group."""
    size = _IBAN_LENGTHS.get(text[:2].upper(), 0)
    ends = [end for end, one in enumerate(text, 1) if one not in " -"]
    if not 0 < size <= len(ends) or text[ends[size - 1] : ends[size - 1] + 1].isalnum():
        return 0
    number = text[: ends[size - 1]].replace(" ", "").replace("-", "")
    return ends[size - 1] if int("".join(str(int(one, 36)) for one in number[4:] + number[:4])) % 97 == 1 else 0


def _is_social_security(text: str) -> bool:
    area, group, serial = text[:3], text[4:6], text[7:]
    return area not in ("000", "666") and area < "900" and group != "00" and serial != "0000" and text[3] == text[6]


_FEWEST_PARTS = 3
"""With fewer parts, such as `a::b`, it is more often a name in a program than an address."""


def _is_address(text: str) -> bool:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    if ":" in text and len([part for part in text.split(":") if part]) < _FEWEST_PARTS:
        return False
    return not (address.is_loopback or address.is_unspecified or text.startswith("255."))


def _is_mail(text: str) -> bool:
    local, _, domain = text.rpartition("@")
    return ".." not in local + domain and not domain.rpartition(".")[2].lower().startswith(
        ("png", "jpg", "gif", "webp")
    )


def _whole(is_valid: Callable[[str], bool]) -> Callable[[str], int]:
    return lambda text: len(text) if is_valid(text) else 0


_FORMATS = (
    PersonalFormat(
        "email",
        rf"(?:^|[^\w.%+'@/-])((?:\w|{_LETTER})(?:[\w.%+'-]|{_LETTER})*@(?:(?:[A-Za-z0-9-]|{_LETTER})+\.)+[A-Za-z]{{2,24}})",
        _whole(_is_mail),
    ),
    PersonalFormat("card", rf"{_NO_WORD_BEFORE}(\d(?:[ -]?\d){{11,18}})(?:[^0-9A-Za-z_%@/-]|$)", _length_of_card, _length_of_card_among_numbers),
    PersonalFormat("iban", rf"{_NO_WORD_BEFORE}([A-Za-z]{{2}}\d{{2}}(?:[ -]?[A-Za-z0-9]{{1,4}}){{3,16}})(?:[^0-9A-Za-z_]|$)", _length_of_iban, _length_of_iban),
    PersonalFormat("ssn", rf"{_NO_WORD_BEFORE}(\d{{3}}[ -]\d{{2}}[ -]\d{{4}})(?:[^0-9A-Za-z_-]|$)", _whole(_is_social_security)),
    PersonalFormat("ip", r"(?:^|[^0-9A-Za-z_.-])((?:\d{1,3}\.){3}\d{1,3})(?:[^0-9A-Za-z_.-]|\.?(?:\s|$)|$)", _whole(_is_address)),
    PersonalFormat("ip", r"(?:^|[^0-9A-Za-z_.:])([0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7})(?:[^0-9A-Za-z_:.]|\.?(?:\s|$)|$)", _whole(_is_address)),
)  # fmt: skip
KINDS = ("email", "card", "iban", "ssn", "ip", "phone")


def find(text: str, kinds: frozenset[str] = frozenset(KINDS[:-1]), region: str | None = None) -> list[Finding]:
    """Return the personal data of *kinds* in *text*; phone numbers as they are written in *region*, or with `+`."""
    data = encoded(text)
    found = without_overlap(one for format in _FORMATS if format.kind in kinds for one in _found(format, data))
    found = found if len(data) == len(text) else in_characters(found, data)
    return without_overlap(itertools.chain(found, _phones(text, region))) if "phone" in kinds else found


@functools.cache
def _compiled(pattern: str) -> re2._Regexp:
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1  # patterns see bytes
    return re2.compile(pattern.encode(), options)


def _found(format: PersonalFormat, data: bytes) -> Iterator[Finding]:
    """Look from each place on again: what follows a place that is not valid may begin within it."""
    position = other = 0
    while match := _compiled(format.pattern).search(data, position):
        start, end = match.span(1)
        place = decoded(data[start:end])
        valid_length = format.valid_within if start < other and format.valid_within else format.valid_length
        if length := valid_length(place):
            end = start + len(encoded(place[:length]))
            yield Finding(format.kind, start, end)
        elif format.valid_within is not None and " " in place:
            other, end = max(other, end), start + data[start:end].index(b" ")
        position = end


def _phones(text: str, region: str | None) -> Iterator[Finding]:
    import phonenumbers

    for match in phonenumbers.PhoneNumberMatcher(text, region):
        yield Finding("phone", match.start, match.end)

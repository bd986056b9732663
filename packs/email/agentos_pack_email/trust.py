"""Whether a sender is who the mail says: by what a trusted server wrote on it (RFC 8601), never by the mail itself.

Only the topmost Authentication-Results of the trusted server counts. Headers are put on top, so those that came with
a mail stand beneath; and a server that has this right removes those that carry its own name.
"""

import re
from collections.abc import Sequence

import attrs

from agentos_pack_email.addresses import domain_of
from agentos_pack_email.settings import Options

_LONGEST = 20_000
_RESULT = re.compile(r"([A-Za-z][A-Za-z0-9_-]*)(?:/[0-9]+)?=([A-Za-z]+)")
_PROPERTY = re.compile(r"([A-Za-z]+\.[A-Za-z0-9_-]+)=(.+)", re.DOTALL)
_DOMAINS = {"dmarc": ("header.from",), "dkim": ("header.d", "header.i"), "spf": ("smtp.mailfrom",)}
_EQUALS = re.compile(" ?= ?")


@attrs.frozen
class Result:
    """What a server found by one method, and of which domain."""

    method: str
    value: str
    properties: dict[str, str]


def is_verified(sender: str, fields: Sequence[str], options: Options) -> bool:
    """Tell whether the trusted server found that *sender* is who wrote the mail with these Authentication-Results."""
    if options.trust_server is None:
        return False
    topmost = next((one for one in fields if server_of(one) == options.trust_server.lower()), None)
    if topmost is None:
        return False
    found = [one for one in results_of(topmost) if one.method == options.trust_method]
    if options.trust_method != "dkim" and any(one.value != "pass" for one in found):
        return False
    return any(one.value == "pass" and _is_about(one, domain_of(sender)) for one in found)


def _is_about(result: Result, domain: str) -> bool:
    """Tell whether a result is about the very domain of the sender; of DMARC it is, unless it says otherwise."""
    said = [result.properties[name] for name in _DOMAINS[result.method] if name in result.properties]
    if not said:
        return result.method == "dmarc"
    return domain_of(said[0]) == domain


def server_of(field: str) -> str:
    """Return the name of the server that wrote an Authentication-Results field, in lower case; "" if it is unclear."""
    head = _parts(field)[0]
    is_named = len(head) == 1 or (len(head) == 2 and head[1].isdecimal())  # noqa: PLR2004 - the name and a version
    return head[0].lower() if is_named else ""


def results_of(field: str) -> list[Result]:
    """Return what an Authentication-Results field says; nothing of it counts if a part of it is malformed."""
    found: list[Result] = []
    for number, words in enumerate(_parts(field)):
        if number == 0 or [word.lower() for word in words] == ["none"]:
            continue
        first = _RESULT.fullmatch(words[0])
        if first is None:
            return []
        pairs = [match for word in words[1:] if (match := _PROPERTY.fullmatch(word))]
        properties: dict[str, str] = {}
        for match in pairs:
            properties.setdefault(match[1].lower(), match[2].lower())
        found.append(Result(first[1].lower(), first[2].lower(), properties))
    return found


def _parts(field: str) -> list[list[str]]:
    """Return the words of each part between semicolons, comments left out; the first may be empty, others are not."""
    words = _words(" ".join(field.split())) if len(field) <= _LONGEST else None
    parts: list[list[str]] = [[]]
    for word in words or ():
        if word is None:
            parts.append([])
        else:
            parts[-1].append(word)
    return [one for number, one in enumerate(parts) if one or number == 0]


def _words(field: str) -> list[str | None] | None:
    """Return the words of a field, None for each semicolon; None in place of all if quotes or brackets are open."""
    words: list[str | None] = []
    word, depth, is_quoted, is_escaped = "", 0, False, False
    for char in _EQUALS.sub("=", field):
        if is_escaped:
            word, is_escaped = word + (char if is_quoted else ""), False
        elif char == "\\" and (is_quoted or depth):
            is_escaped = True
        elif is_quoted:
            is_quoted = char != '"'
            word += char if is_quoted else ""
        elif depth or char == "(":
            depth += {"(": 1, ")": -1}.get(char, 0)
        elif char == '"':
            is_quoted = True
        elif char in "; ":
            words += [word] if word else []
            words += [None] if char == ";" else []
            word = ""
        else:
            word += char
    words += [word] if word else []
    return None if is_quoted or depth or is_escaped else words

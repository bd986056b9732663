"""What docstrings, Annotated and the validators of attrs say about parameters: texts and limits."""

import inspect
import re
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

import attrs

_NOTHING: Mapping[str, str] = MappingProxyType({})

# Where the prose of a docstring ends. Most docstrings have no sections, and then nothing has to be parsed.
_SECTION = re.compile(
    r"^(?:"
    r"(?P<GOOGLE>(?:Args|Arguments|Parameters|Params|Attributes|Returns|Yields|Raises|Exceptions|Except|Examples?)"
    r":[ ]*$)"
    r"|(?P<NUMPYDOC>(?:(?:Other )?(?:Parameters|Params|Arguments|Args)|Attributes|Returns|Yields|Receives|Raises|Warns"
    r"|Warnings?|Examples?|Notes?|References|See Also)[ ]*\n-{3,}[ ]*$)"
    r"|(?P<REST>:(?:param|parameter|arg|argument|attribute|key|keyword|ivar|cvar|var|type|returns?|rtype|yields?|raises?)\b)"
    r"|(?P<EPYDOC>@(?:param|type|return|rtype|raise)\b)"
    r")",
    re.MULTILINE,
)


@attrs.frozen
class Docs:
    """What a function says of itself: one sentence, the rest of the prose, and a text for each parameter."""

    short: str = ""
    long: str = ""
    parameters: Mapping[str, str] = _NOTHING

    @property
    def description(self) -> str:
        """Return the short and the long text as one."""
        return f"{self.short}\n\n{self.long}" if self.long else self.short


def read_docstring(text: str | None) -> Docs:
    """Read a docstring in the style of Google, numpy or reStructuredText."""
    if not text:
        return Docs()
    if "\n" not in text:
        return Docs(text.strip())
    text = inspect.cleandoc(text)
    section = _SECTION.search(text)
    prose = text if section is None else text[: section.start()].rstrip()
    short, _, long = prose.partition("\n\n")
    parameters = _NOTHING if section is None else _read_parameters(text, str(section.lastgroup))
    return Docs(" ".join(short.split()), long.strip("\n"), parameters)


def _read_parameters(text: str, style: str) -> Mapping[str, str]:
    if style == "GOOGLE":
        return _read_google(text)
    from docstring_parser import DocstringStyle, ParseError, parse

    try:
        found = parse(text, DocstringStyle[style]).params
    except ParseError:
        return _NOTHING
    return {
        name.strip(" *`"): " ".join(parameter.description.split())
        for parameter in found
        if parameter.description
        for name in parameter.arg_name.split(",")
    }


_GOOGLE = re.compile(r"^(?:Args|Arguments|Parameters|Params|Attributes):[ ]*\n((?:[ \t].*(?:\n|$)|\n)*)", re.MULTILINE)


def _read_google(text: str) -> Mapping[str, str]:
    """Read the sections about parameters of the usual style, for which docstring_parser takes long."""
    found = {}
    for body in _GOOGLE.findall(text):
        lines = body.strip("\n")
        indent = lines[: len(lines) - len(lines.lstrip())]
        for entry in re.split(rf"^{indent}(?=\S)", lines, flags=re.MULTILINE)[1:]:
            names, colon, words = entry.partition(":")
            if not colon:
                return _NOTHING
            for name in names.partition("(")[0].split(","):
                found[name.strip(" *`")] = " ".join(words.split())
    return found


def read_class(cls: type) -> Docs:
    """Read the docstring of a class; the one that dataclass and NamedTuple write themselves says nothing."""
    text = cls.__doc__
    if not text or text.startswith(f"{cls.__name__}("):
        return Docs()
    return read_docstring(text)


def text_of(metadata: Iterable[Any]) -> str | None:
    """Return the text in the metadata of an Annotated: the first string, `Doc("...")` or `Field(description="...")`."""
    for item in metadata:
        found = item if isinstance(item, str | type) else getattr(item, "documentation", None)
        if found is None:
            found = getattr(item, "description", None)
        if isinstance(found, str):
            return found.strip()
    return None


@attrs.frozen(init=False)
class Schema:
    """JSON Schema keywords for `Annotated`, merged over what the type says: `Annotated[str, Schema(maxLength=10)]`."""

    keywords: Mapping[str, Any]

    def __init__(self, **keywords: Any) -> None:
        self.__attrs_init__(keywords)

    def __hash__(self) -> int:
        return hash(tuple(sorted(self.keywords)))  # the values may be lists, and a Union hashes its members


# The words of annotated_types, and what they are called for each JSON type.
KEYWORDS: Mapping[str, tuple[tuple[str, str], ...]] = {
    **{
        word: (("integer", keyword), ("number", keyword))
        for word, keyword in {
            "ge": "minimum",
            "gt": "exclusiveMinimum",
            "le": "maximum",
            "lt": "exclusiveMaximum",
            "multiple_of": "multipleOf",
        }.items()
    },
    "min_length": (("string", "minLength"), ("array", "minItems"), ("object", "minProperties")),
    "max_length": (("string", "maxLength"), ("array", "maxItems"), ("object", "maxProperties")),
}


def limits_of(item: Any) -> Iterator[tuple[str, Any]]:
    """List the limits that a constraint in the manner of annotated_types states, or a `Field` of pydantic with some."""
    if not isinstance(item, str | type):
        inner = getattr(item, "metadata", ())
        for each in inner if isinstance(inner, list) else ():
            yield from limits_of(each)
        for word in KEYWORDS:
            limit = getattr(item, word, None)
            if limit is not None and not callable(limit) and (word, limit) != ("min_length", 0):
                yield word, limit


_OPERATORS = {">=": "ge", ">": "gt", "<=": "le", "<": "lt"}
_ANCHORS = {"fullmatch": ("^(?:", ")$"), "match": ("^(?:", ")"), "search": ("", "")}
_PYTHON_ONLY = re.compile(r"\(\?(?![:=!])|\\[AZ]|[*+?}]\+")


def checks_of(validator: Any) -> Iterator[tuple[str, Any]]:
    """List the limits that a validator of attrs states; besides the usual words, `pattern` and `options`."""
    if type(validator).__module__ not in {"attr.validators", "attr._make"}:
        return
    for part in getattr(validator, "_validators", ()):
        yield from checks_of(part)
    if type(validator).__name__ == "_OptionalValidator":
        for word, limit in checks_of(validator.validator):
            yield word, [*limit, None] if word == "options" else limit
    if type(validator).__name__ == "_InValidator" and not isinstance(validator.options, str):
        yield "options", getattr(validator, "_original_options", validator.options)
    if hasattr(validator, "compare_op"):
        yield _OPERATORS[validator.compare_op], validator.bound
    if hasattr(validator, "match_func"):
        yield from _pattern_of(validator.pattern, validator.match_func)
    yield from limits_of(validator)


def _pattern_of(pattern: re.Pattern[str], match: Any) -> Iterator[tuple[str, str]]:
    """Say a regular expression as JSON Schema does, if it has nothing that only Python knows."""
    if pattern.flags == re.UNICODE and not _PYTHON_ONLY.search(pattern.pattern) and match.__name__ in _ANCHORS:
        head, tail = _ANCHORS[match.__name__]
        yield "pattern", f"{head}{pattern.pattern}{tail}"

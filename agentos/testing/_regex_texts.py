"""A text that a regular expression matches: enough of one to make valid arguments from a schema."""

import importlib
from typing import Any

_LONGEST = 64


def text_matching(pattern: str) -> str | None:
    """Return a short text that *pattern* matches, or None if it is beyond this little machine."""
    parser: Any = importlib.import_module("re._parser")
    try:
        return "".join(_of(part) for part in parser.parse(pattern))
    except (_BeyondError, RecursionError, OverflowError, importlib.import_module("re").error):
        return None


class _BeyondError(Exception):
    """The expression uses something that nothing can be made for."""


def _of(part: tuple[Any, Any]) -> str:
    operation, argument = str(part[0]), part[1]
    maker = _MAKERS.get(operation)
    if maker is None:
        raise _BeyondError(operation)
    made: str = maker(argument)
    return made


def _repeated(argument: Any) -> str:
    least, _, inner = argument
    if least > _LONGEST:
        raise _BeyondError(least)
    return "".join(_of(part) for part in inner) * int(least)


def _one_of(choices: Any) -> str:
    if str(choices[0][0]) == "NEGATE":
        return next(char for char in "a0-_ .!" if not any(_takes(choice, char) for choice in choices[1:]))
    operation, argument = str(choices[0][0]), choices[0][1]
    if operation == "RANGE":
        return chr(argument[0])
    return _of((operation, argument))


def _takes(choice: tuple[Any, Any], char: str) -> bool:
    operation, argument = str(choice[0]), choice[1]
    if operation == "LITERAL":
        return chr(argument) == char
    if operation == "RANGE":
        return bool(argument[0] <= ord(char) <= argument[1])
    tests = {"CATEGORY_DIGIT": str.isdigit, "CATEGORY_SPACE": str.isspace, "CATEGORY_WORD": _is_word}
    test = tests.get(str(argument).replace("NOT_", ""))
    return test is not None and test(char) != ("NOT_" in str(argument))


def _is_word(char: str) -> bool:
    return char.isalnum() or char == "_"


def _category(argument: Any) -> str:
    return {"CATEGORY_DIGIT": "0", "CATEGORY_SPACE": " ", "CATEGORY_WORD": "a"}.get(str(argument), "-")


_MAKERS: dict[str, Any] = {
    "LITERAL": chr,
    "NOT_LITERAL": lambda code: "a" if code != ord("a") else "b",
    "ANY": lambda _: "a",
    "AT": lambda _: "",
    "ASSERT": lambda _: "",
    "ASSERT_NOT": lambda _: "",
    "IN": _one_of,
    "CATEGORY": _category,
    "MAX_REPEAT": _repeated,
    "MIN_REPEAT": _repeated,
    "POSSESSIVE_REPEAT": _repeated,
    "BRANCH": lambda argument: "".join(_of(part) for part in argument[1][0]),
    "SUBPATTERN": lambda argument: "".join(_of(part) for part in argument[-1]),
    "ATOMIC_GROUP": lambda argument: "".join(_of(part) for part in argument),
}

"""What may stand in an expression: checked as text, then as a tree, before anything is computed."""

import ast
import difflib
import re

from agentos_pack_calculator._operations import CONSTANTS, FUNCTIONS, OPERATORS

MAX_LENGTH = 1_000
MAX_DEPTH = 50

_TOKEN = re.compile(
    r"(?P<space> )"
    r"|(?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<sign>\*\*|//|[-+*/%(),]|[<>=!]=|[<>])",
    re.ASCII,
)
_SEPARATORS = "write numbers without thousands separators"
_HINTS = {
    "^": "write ** for a power",
    "=": "write == to compare",
    "\N{MULTIPLICATION SIGN}": "write *",
    "\N{DIVISION SIGN}": "write /",
    "\N{MINUS SIGN}": "write -",
    "\N{SQUARE ROOT}": "write sqrt(...)",
}


def parse(text: str) -> tuple[str, ast.expr]:
    """Return *text* on one line, and its tree, or raise a ValueError that says what does not belong there."""
    if len(text) > MAX_LENGTH:
        raise ValueError(f"expression: {len(text):,} characters; at most {MAX_LENGTH:,} are allowed")
    line = " ".join(text.split())
    if not line:
        raise ValueError("expression: is empty; give arithmetic such as (2 + 3) * 4")
    _check_tokens(line)
    try:
        tree = ast.parse(line, mode="eval").body
    except SyntaxError as exc:
        at = exc.offset or len(line)
        raise ValueError(f"expression: not valid arithmetic at character {at}: {exc.msg}") from None
    except (RecursionError, MemoryError):
        raise _too_deep() from None
    _check_tree(line, tree, 1)
    return line, tree


def segment(line: str, node: ast.expr) -> str:
    """Return the part of *line* that *node* was read from; the line is ASCII, so columns are characters."""
    return line[node.col_offset : node.end_col_offset]


def excerpt(line: str, node: ast.expr, width: int = 60) -> str:
    """Return the node's part of the line, short enough for a message."""
    text = segment(line, node)
    return text if len(text) <= width else text[: width - 3] + "..."


def _check_tokens(line: str) -> None:
    at, before = 0, None
    while at < len(line):
        token = _TOKEN.match(line, at)
        if token is None:
            hint = _HINTS.get(line[at], "use numbers, + - * / // % **, parentheses, comparisons and named functions")
            raise ValueError(f"expression: unexpected {line[at]!r} at character {at + 1}; {hint}")
        if token.lastgroup == "name":
            if before == "number":
                hint = _SEPARATORS if token[0].startswith("_") else "write * between"
                raise ValueError(f"expression: a number runs into {token[0]!r} at character {at + 1}; {hint}")
            _check_name(token[0], at)
        at, before = token.end(), token.lastgroup


def _check_name(name: str, at: int) -> None:
    known = [*FUNCTIONS, *CONSTANTS]
    if name in known:
        return
    near = difflib.get_close_matches(name[:40].lower(), known, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"known names are {', '.join(known)}"
    raise ValueError(f"expression: unknown name {name[:40]!r} at character {at + 1}; {hint}")


def _check_tree(line: str, node: ast.expr, depth: int) -> None:
    if depth > MAX_DEPTH:
        raise _too_deep()
    # A chain such as 1 + 2 + 3 + ... leans to the left; it is one level, however long it is.
    while isinstance(node, ast.BinOp):
        if type(node.op) not in OPERATORS:
            raise ValueError(f"expression: operator not allowed in {excerpt(line, node)!r}; use + - * / // % or **")
        _check_tree(line, node.right, depth + 1)
        node = node.left
    parts: list[ast.expr] = []
    match node:
        case ast.Constant():
            pass
        case ast.Name(id=name) if name in CONSTANTS:
            pass
        case ast.UnaryOp(operand=operand):
            parts = [operand]
        case ast.Compare(left=left, comparators=rest):
            parts = [left, *rest]
        case ast.Call(func=ast.Name(id=name), args=parts, keywords=[]) if name in FUNCTIONS:
            pass
        case _:
            raise ValueError(f"expression: {excerpt(line, node)!r} {_fault(node)}")
    for part in parts:
        _check_tree(line, part, depth + 1)


def _fault(node: ast.expr) -> str:
    match node:
        case ast.Name():
            return "is a function; give it arguments in parentheses"
        case ast.Tuple():
            return f"has a comma outside a function's arguments; {_SEPARATORS}"
        case ast.Call(func=ast.Name(id=name)) if name in FUNCTIONS:
            return "has an argument that is not a plain value"
        case ast.Call():
            return "calls something that is not a function; write * to multiply"
        case _:
            return "is not arithmetic"


def _too_deep() -> ValueError:
    return ValueError(f"expression: nested deeper than {MAX_DEPTH} levels; split it into several calculations")

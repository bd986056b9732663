"""Evaluate arithmetic that somebody else wrote."""

import ast
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Annotated

import attrs

from agentos import Schema
from agentos_pack_calculator import _grammar
from agentos_pack_calculator._numbers import Number, as_text, settle
from agentos_pack_calculator._operations import CONSTANTS, FUNCTIONS, OPERATORS

MAX_LITERAL_EXPONENT = 3_000


@attrs.frozen(kw_only=True)
class Calculation:
    """What an expression comes to.

    `value` is the number, or the answer of a comparison. `text` is the same written out, a fraction with up
    to 28 significant digits. `exact` is False if any step, or the text, was rounded.
    """

    value: int | float | bool
    text: str
    exact: bool


def calculate(
    expression: Annotated[
        str,
        "Arithmetic with + - * / // % **, parentheses and comparisons, such as (2 + 3) * sqrt(16) / 7. "
        "Functions: sqrt abs round min max sin cos tan asin acos atan log log10 log2 exp floor ceil "
        "factorial gcd. Constants: pi e tau. Angles are in radians; log(x) is the natural logarithm, "
        "log(x, b) the one to base b.",
        Schema(minLength=1, maxLength=1000),
    ],
) -> Calculation:
    """Evaluate an arithmetic expression of up to 1,000 characters.

    Whole numbers and decimal fractions are computed exactly; roots, logarithms and angles in double
    precision. Whole numbers may have up to 10,000 bits. There are no variables, units or complex numbers.
    """
    line, tree = _grammar.parse(expression)
    evaluation = _Evaluation(line)
    return _present(evaluation.run(tree), rounded=evaluation.rounded)


class _Evaluation:
    """One run of simpleeval over a checked tree: with our operators, and without its parser."""

    def __init__(self, line: str) -> None:
        from simpleeval import SimpleEval

        self.line = line
        self.rounded = False
        self._evaluator = SimpleEval(operators=OPERATORS, functions=FUNCTIONS, names=CONSTANTS)
        self._evaluator.nodes = {
            ast.Compare: self._evaluator.nodes[ast.Compare],
            ast.UnaryOp: self._evaluator.nodes[ast.UnaryOp],
            ast.Constant: self._literal,
            ast.Name: self._constant,
            ast.BinOp: self._chain,
            ast.Call: self._call,
        }

    def run(self, tree: ast.expr) -> Number | bool:
        """Return what the whole *tree* comes to."""
        try:
            return self._value_of(tree)
        except RecursionError:
            raise ValueError("expression: nested too deeply for this host; split it into several") from None

    def _value_of(self, node: ast.expr) -> Number | bool:
        result: Number | bool = self._evaluator.eval(self.line, previously_parsed=node)
        return result

    def _literal(self, node: ast.Constant) -> Number:
        text = _grammar.segment(self.line, node).replace("_", "")
        _, _, exponent = text.lower().partition("e")
        with self._named_in_errors(node):
            # Before the fraction is made: 1e999999999 would be a number of a billion digits.
            if abs(int(exponent or 0)) > MAX_LITERAL_EXPONENT:
                raise ValueError(f"is out of range; exponents go up to {MAX_LITERAL_EXPONENT:,}")
            return self._noted(settle(Fraction(text)))

    def _constant(self, node: ast.Name) -> Number:
        return self._noted(CONSTANTS[node.id])

    def _chain(self, node: ast.expr) -> Number | bool:
        """Evaluate a chain such as 1 + 2 + 3 + ... in a loop: it may be longer than the stack is deep."""
        links = []
        while isinstance(node, ast.BinOp):
            links.append(node)
            node = node.left
        value = self._value_of(node)
        for link in reversed(links):
            right = self._value_of(link.right)
            with self._named_in_errors(link):
                value = self._noted(OPERATORS[type(link.op)](value, right))
        return value

    def _call(self, node: ast.Call) -> Number:
        values = [self._value_of(argument) for argument in node.args]
        with self._named_in_errors(node):
            return self._noted(FUNCTIONS[_grammar.segment(self.line, node.func)](*values))

    def _noted(self, value: Number) -> Number:
        """Pass *value* on, and remember if it is one that was rounded."""
        self.rounded = self.rounded or isinstance(value, float)
        return value

    @contextmanager
    def _named_in_errors(self, node: ast.expr) -> Iterator[None]:
        try:
            yield
        except ZeroDivisionError:
            reason = "divides by zero"
        except OverflowError:
            reason = "is too large; whole numbers have up to 10,000 bits, others go up to about 1.8e308"
        except ValueError as exc:
            reason = str(exc)
        else:
            return
        raise ValueError(f"expression: {_grammar.excerpt(self.line, node)!r} {reason}")


def _present(result: Number | bool, *, rounded: bool) -> Calculation:
    if isinstance(result, bool):
        return Calculation(value=result, text=str(result).lower(), exact=not rounded)
    if isinstance(result, int):
        return Calculation(value=result, text=_digits(result), exact=not rounded)
    if isinstance(result, float):
        return Calculation(value=result, text=repr(result), exact=False)
    text, complete = as_text(result)
    try:
        return Calculation(value=float(result), text=text, exact=complete and not rounded)
    except OverflowError:
        raise ValueError(f"expression: the result {text} is too large for a fraction; divide with //") from None


def _digits(value: int) -> str:
    try:
        return str(value)
    except ValueError:
        limit = sys.get_int_max_str_digits()
        raise ValueError(f"expression: the result has more than the {limit:,} digits this host prints") from None

"""Schemas from signatures: what a function takes, what it returns, and what it says of itself.

    Signature      a function's signature, read once: `input`, `output` and `docs` derive what is asked for
    derive_input   parameters into a closed JSON Schema 2020-12 object, and what builds the arguments
    derive_output  the return annotation into a JSON Schema
    describe       the docstring and Annotated texts
    Schema         raw keywords for Annotated

The arguments are validated against the schema before they are built: a builder checks nothing twice. An int where a
`float` was declared arrives as a float; 1.0 where an `int` was declared is made an int at validation.
"""

import contextlib
import functools
import inspect
import re
from collections import abc
from collections.abc import Callable, Collection, Mapping
from types import CodeType, FunctionType, MethodType
from typing import Annotated, Any, ForwardRef, Literal, NamedTuple, get_args, get_origin

import attrs

from agentos.errors import ToolDefinitionError
from agentos.schema.build import BuildError, Json, build_arguments, to_plain
from agentos.schema.derive import SIMPLE, Deriver
from agentos.schema.docs import Docs, Schema, read_docstring, text_of
from agentos.schema.scopes import DerivedType, Field, Scope, TypePlace

__all__ = [
    "BuildError",
    "DerivedInput",
    "Docs",
    "Schema",
    "Signature",
    "derive_input",
    "derive_output",
    "describe",
    "to_plain",
]

_MISSING: Any = inspect.Parameter.empty


@attrs.frozen(kw_only=True)
class DerivedInput:
    """What a function takes: the schema of its arguments, what builds them, and where the context goes."""

    schema: Json
    build: Callable[[Mapping[str, Any]], dict[str, Any]] | None = None
    """Turns validated arguments into keywords of the declared types; None if they can be used as they are."""
    context_parameter: str | None = None


def derive_input(
    function: Callable[..., Any], *, skip: Collection[str] = ("context",), method: bool = False
) -> DerivedInput:
    """Derive the schema of a function's parameters.

    A parameter named in *skip*, or annotated as a ToolContext, is injected and not in the schema. *method* says that
    a plain function is a method, whose first parameter is bound later.
    """
    return Signature.of(function, method=method).input(skip)


def derive_output(function: Callable[..., Any]) -> Json | None:
    """Derive the schema of what a function returns; None if its annotation says nothing, or that it is a ToolResult."""
    return Signature.of(function).output()


def describe(function: Callable[..., Any]) -> Docs:
    """Read what a function says of itself and, from Annotated or else its docstring, of its parameters."""
    return Signature.of(function).docs


_OUTPUTS: Mapping[Any, Json | None] = {tp: {**derived.schema} or None for tp, derived in SIMPLE.items()}
"""What simple types are as outputs, once for all tools."""


class _Parameter(NamedTuple):
    name: str
    annotation: Any
    default: Any = _MISSING
    fault: str | None = None


@attrs.define(eq=False)
class Signature:
    """The part of a function's signature that counts here."""

    name: str
    parameters: list[_Parameter]
    returns: Any
    scope: Scope
    doc: str | None
    _docs: Docs | None = None

    @classmethod
    def of(cls, function: Callable[..., Any], *, method: bool = False) -> "Signature":
        """Read a signature; for a plain function inspect.signature would cost several times as much."""
        plain = function.__func__ if isinstance(function, MethodType) else function
        if type(plain) is not FunctionType or plain.__dict__ or _is_unusual(plain.__code__):
            return _inspect(function, method=method)
        annotations, defaults = plain.__annotations__, _defaults(plain)
        names = plain.__code__.co_varnames[: plain.__code__.co_argcount + plain.__code__.co_kwonlyargcount]
        bound = 1 if method or plain is not function else 0
        return cls(
            plain.__name__,
            [_Parameter(name, annotations.get(name, _MISSING), defaults.get(name, _MISSING)) for name in names[bound:]],
            annotations.get("return", _MISSING),
            Scope(plain.__globals__, _closure(plain)),
            plain.__doc__,
        )

    @property
    def docs(self) -> Docs:
        """Return what the function says of itself and of its parameters."""
        if self._docs is None:
            docs = read_docstring(self.doc)
            texts = {p.name: text for p in self.parameters if (text := _text(p.annotation, self.scope))}
            self._docs = attrs.evolve(docs, parameters={**docs.parameters, **texts}) if texts else docs
        return self._docs

    def input(self, skip: Collection[str] = ("context",)) -> DerivedInput:
        """Derive the schema of the parameters, and what builds them."""
        deriver = Deriver(self.name)
        members, context = _split(self, skip, deriver)
        node = deriver.run(lambda: deriver.members(members, self.docs.parameters, TypePlace(self.scope)))
        return DerivedInput(schema=node.schema, build=build_arguments(node.build), context_parameter=context)

    def output(self) -> Json | None:
        """Derive the schema of what is returned; None if its annotation says nothing, or that it is a ToolResult."""
        tp = self.returns
        if type(tp) is type and tp in SIMPLE:
            return _OUTPUTS[tp]
        if tp is _MISSING or _mentions(tp, "ToolResult"):
            return None
        deriver = Deriver(self.name, is_output=True)
        place = TypePlace(self.scope, ("return",))
        tp = deriver.resolve(tp, place)
        if tp is Any or tp is object or _mentions(tp, "ToolResult"):
            return None
        return deriver.run(lambda: _returned(deriver, tp, place)).schema


def _is_unusual(code: CodeType) -> bool:
    return bool(code.co_posonlyargcount or code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS))


def _defaults(function: FunctionType) -> dict[str, Any]:
    defaults = dict(function.__kwdefaults__ or ())
    if values := function.__defaults__:
        end = function.__code__.co_argcount
        defaults.update(zip(function.__code__.co_varnames[end - len(values) : end], values, strict=True))
    return defaults


def _closure(function: FunctionType) -> dict[str, Any]:
    """Return the names that a function took from around it; one that has no value yet is left out."""
    found = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        with contextlib.suppress(ValueError):
            found[name] = cell.cell_contents
    return found


def _inspect(function: Callable[..., Any], *, method: bool) -> Signature:
    """Read the signature of anything that can be called: a partial, a wrapped function, an object with `__call__`."""
    target = _innermost(function)
    name = getattr(function, "__name__", None) or getattr(target, "__name__", None) or type(function).__name__
    try:
        signature = None if isinstance(function, type) else inspect.signature(function)
    except (TypeError, ValueError):
        signature = None
    if signature is None:
        raise ToolDefinitionError(name, "", f"found {function!r}; write a function with annotated parameters")
    parameters = list(signature.parameters.values())
    is_bound = isinstance(function, MethodType) or not method
    return Signature(
        name,
        [_Parameter(p.name, p.annotation, p.default, _FAULTS.get(p.kind)) for p in parameters[0 if is_bound else 1 :]],
        signature.return_annotation,
        Scope(target.__globals__, _closure(target)) if isinstance(target, FunctionType) else Scope({}),
        target.__doc__,
    )


def _innermost(function: Any) -> Any:
    while isinstance(function, functools.partial):
        function = function.func
    if not hasattr(function, "__code__") and not isinstance(function, type) and not hasattr(function, "__wrapped__"):
        function = type(function).__call__
    function = inspect.unwrap(function)
    return function.__func__ if isinstance(function, MethodType) else function


_FAULTS: Mapping[Any, str] = {
    inspect.Parameter.VAR_POSITIONAL: "found *args; arguments have names, write a parameter of type list[...]",
    inspect.Parameter.VAR_KEYWORD: "found **kwargs; the schema is closed, write a parameter of type dict[str, ...]",
    inspect.Parameter.POSITIONAL_ONLY: "found a positional-only parameter; arguments have names, take the / away",
}


def _split(signature: Signature, skip: Collection[str], deriver: Deriver) -> tuple[list[Field], str | None]:
    """Tell the parameters that the model fills from the one that gets the context."""
    members, injected, contexts = [], [], []
    for name, annotation, default, fault in signature.parameters:
        if fault is not None:
            deriver.fail(TypePlace(signature.scope, (name,)), fault)
        if _mentions(annotation, "ToolContext"):
            contexts.append(name)
        elif name in skip:
            _check_injected(name, annotation, signature.scope, deriver)
            injected.append(name)
        else:
            members.append(Field(name, annotation, signature.scope, default is _MISSING, default))
    if len(contexts) > 1:
        deriver.fail(
            TypePlace(signature.scope, (contexts[1],)), f"{contexts[0]} is a ToolContext already; write only one"
        )
    return members, next(iter([*contexts, *injected]), None)


def _check_injected(name: str, annotation: Any, scope: Scope, deriver: Deriver) -> None:
    """Refuse a parameter that wants a value from the model under the name that gets the context."""
    if get_origin(annotation) is Annotated:
        annotation = annotation.__origin__
    if annotation in _SCALARS:
        shown = annotation if isinstance(annotation, str) else annotation.__name__
        message = (
            f"found {shown}, but a parameter of this name is given the ToolContext; rename it, or write ToolContext"
        )
        deriver.fail(TypePlace(scope, (name,)), message)


_SCALARS = (str, int, float, bool, "str", "int", "float", "bool")


def _mentions(annotation: Any, name: str) -> bool:
    """Tell whether an annotation names the class *name*, which may be known to type checkers only."""
    if annotation is _MISSING or (type(annotation) is type and annotation in SIMPLE):
        return False
    waiting, seen = [annotation], set()
    while waiting:
        part = waiting.pop()
        if id(part) not in seen:
            seen.add(id(part))
            if _names(part, name):
                return True
            waiting += _parts(part)
    return False


def _names(annotation: Any, name: str) -> bool:
    """Tell whether an annotation is the class *name*, or text with it."""
    if isinstance(annotation, ForwardRef):
        annotation = annotation.__forward_arg__
    if isinstance(annotation, str):
        return name in annotation and re.search(rf"\b{name}\b", annotation) is not None
    is_class = isinstance(annotation, type) and get_origin(annotation) is None
    return is_class and any(base.__name__ == name for base in annotation.__mro__)


def _parts(annotation: Any) -> tuple[Any, ...]:
    origin = get_origin(annotation)
    if origin is None or origin is Literal:
        return ()
    return (annotation.__origin__,) if origin is Annotated else (origin, *get_args(annotation))


def _returned(deriver: Deriver, tp: Any, place: TypePlace) -> DerivedType:
    """Derive a return type; what is streamed is an array, and what is awaited is what comes of it."""
    origin, args = get_origin(tp) or tp, get_args(tp)
    if origin in (abc.Awaitable, abc.Coroutine) and args:
        return deriver.node(args[-1], place)
    if origin not in _STREAMS:
        return deriver.node(tp, place)
    item = deriver.node(args[0], place.inside("[]")).schema if args else {}
    return DerivedType({"type": "array", "items": item} if item else {"type": "array"})


_STREAMS = (abc.Iterator, abc.Generator, abc.AsyncIterator, abc.AsyncIterable, abc.AsyncGenerator)


def _text(annotation: Any, scope: Scope) -> str | None:
    if isinstance(annotation, str):
        if not annotation.isidentifier() and "Annotated" not in annotation:
            return None
        with contextlib.suppress(Exception):  # whoever derives the type says what is wrong with it
            annotation = scope.find(annotation)
    return text_of(getattr(annotation, "__metadata__", ()))

"""Calling foreign functions: sync or async, with or without a parameter, to the end even when cancelled."""

import asyncio
import inspect
from collections.abc import Callable, Coroutine
from types import FunctionType, MethodType
from typing import Any, TypeVar

T = TypeVar("T")


def takes_argument(function: Callable[..., Any]) -> bool:
    """Tell whether *function* can be called with one positional argument."""
    plain = function.__func__ if isinstance(function, MethodType) else function
    if isinstance(plain, FunctionType) and not hasattr(plain, "__wrapped__"):
        bound = 1 if isinstance(function, MethodType) else 0
        return plain.__code__.co_argcount > bound or bool(plain.__code__.co_flags & inspect.CO_VARARGS)
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return True
    positional = (
        inspect.Parameter.POSITIONAL_ONLY,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        inspect.Parameter.VAR_POSITIONAL,
    )
    return any(parameter.kind in positional for parameter in parameters)


def call_with(function: Callable[..., Any], argument: Any) -> Any:
    """Call *function* with *argument* if it takes one."""
    if takes_argument(function):
        return function(argument)
    if _has_keyword_context(function):
        return function(context=argument)
    return function()


def _has_keyword_context(function: Callable[..., Any]) -> bool:
    try:
        parameter = inspect.signature(function).parameters.get("context")
    except (TypeError, ValueError):
        return False
    return parameter is not None and parameter.kind is inspect.Parameter.KEYWORD_ONLY


FOREIGN = (Exception, SystemExit, asyncio.CancelledError)
"""What foreign code may raise without taking the house down; see `let_cancellation_pass`."""


def let_cancellation_pass(error: BaseException) -> None:
    """Raise *error* again if it is the cancellation of the running task, and not one that foreign code made up."""
    if isinstance(error, asyncio.CancelledError):
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise error


async def settled(value: Any) -> Any:
    """Return *value*, awaited if it has to be."""
    return await value if inspect.isawaitable(value) else value


async def to_the_end(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run *coroutine* to its end even if the caller is cancelled meanwhile; the cancellation is raised afterwards."""
    task = asyncio.create_task(coroutine)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        if not task.cancelled():
            task.exception()  # seen: it is not reported as never retrieved
        raise cancelled
    return task.result()

"""Calling foreign functions: sync or async, with or without a parameter, to the end even when cancelled."""

import asyncio
import functools
import inspect
from collections.abc import Callable, Coroutine
from types import FunctionType
from typing import Any, TypeVar

T = TypeVar("T")


def takes_argument(function: Callable[..., Any]) -> bool:
    """Tell whether *function* asks for one positional argument.

    A parameter with a default asks for it only by its name: `lambda pack=pack: pack` keeps what it has.
    """
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return True
    first = parameters[0] if parameters else None
    if first is None or first.kind in (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD):
        return False
    if first.kind is inspect.Parameter.VAR_POSITIONAL or first.default is inspect.Parameter.empty:
        return True
    return first.name in ("context", "ctx") or first.default is None


def call_with(function: Callable[..., Any], argument: Any) -> Any:
    """Call *function* with *argument* if it takes one."""
    if type(function) is FunctionType and not function.__defaults__ and not hasattr(function, "__wrapped__"):
        code = function.__code__
        if code.co_argcount or code.co_flags & inspect.CO_VARARGS:
            return function(argument)
    elif takes_argument(function):
        return function(argument)
    if _has_keyword_context(function):
        return function(context=argument)
    return function()


def _has_keyword_context(function: Callable[..., Any]) -> bool:
    if type(function) is FunctionType and not function.__code__.co_kwonlyargcount and not function.__dict__:
        return False  # what nearly all functions say, without reading their signature
    try:
        parameter = inspect.signature(function).parameters.get("context")
    except (TypeError, ValueError):
        return False
    return parameter is not None and parameter.kind is inspect.Parameter.KEYWORD_ONLY


FOREIGN = (Exception, SystemExit, asyncio.CancelledError)
"""What foreign code may raise and fail by itself; see `let_cancellation_pass`."""


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
    task, cancelled = await ended(coroutine)
    if cancelled is not None:
        raise cancelled
    return task.result()


def _tell(over: "asyncio.Future[None]", _: object) -> None:
    if not over.done():
        over.set_result(None)


async def ended(coroutine: Coroutine[Any, Any, T]) -> tuple[asyncio.Task[T], asyncio.CancelledError | None]:
    """Run *coroutine* to its end; return its task, and the cancellation of the caller that came meanwhile."""
    task = asyncio.create_task(coroutine)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        over = asyncio.get_running_loop().create_future()  # `asyncio.wait` does the same at twice the cost
        task.add_done_callback(functools.partial(_tell, over))
        try:
            await over
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None and not task.cancelled():
        task.exception()  # seen: it is not reported as never retrieved
    return task, cancelled

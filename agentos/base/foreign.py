"""Calling foreign functions: sync or async, with or without a parameter, to the end even when cancelled.

Whatever they raise stops at one border, and whoever called makes a record of it.
"""

import asyncio
import functools
import inspect
import threading
import weakref
from collections.abc import Callable, Coroutine, Iterator
from types import FunctionType, TracebackType
from typing import Any, Self, TypeGuard, TypeVar

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


# -- the border --------------------------------------------------------------------------------------------------------


class Border:
    """Keeps what foreign code raises in the block, as `error`: an exit, a panic of Rust, anything.

    Three things come from outside and go on: the cancellation of the task that runs, the end of a coroutine that its
    task runs no more, and Ctrl-C. Only the main thread hears the latter, so there every KeyboardInterrupt counts as it.
    """

    __slots__ = ("_task", "error")

    def __init__(self) -> None:
        self.error: BaseException | None = None
        self._task = running_task()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if error is None or running_task() is not self._task:
            return False
        let_outside_pass(error)
        self.error = error
        return True

    @property
    def raised(self) -> BaseException:
        """Return what was raised, where something was: behind a block that returns."""
        assert self.error is not None  # noqa: S101 - as told
        return self.error


def let_outside_pass(error: BaseException) -> None:
    """Raise what of *error*, which foreign code raised, came from outside: for those for whom a Border costs much."""
    if is_a(error, Exception):
        return
    task, is_main = running_task(), threading.current_thread() is threading.main_thread()
    for one in _parts(error):
        is_cancellation = is_a(one, asyncio.CancelledError) and task is not None and task.cancelling()
        if is_cancellation or (is_a(one, KeyboardInterrupt) and is_main):
            raise one


def running_task() -> "asyncio.Task[Any] | None":
    """Return the task that runs; None where no loop does."""
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None


def is_a(value: object, kind: type[T] | tuple[type[T], ...]) -> TypeGuard[T]:
    """Tell what foreign code raised or returned. `isinstance` would ask the object, which may raise as well."""
    return issubclass(type(value), kind)


def type_name(value: object) -> str:
    """Return the name of the type of *value*. Foreign types may have a type of their own that refuses it."""
    return _type_name(type(value))


_type_name: Callable[[type], str] = vars(type)["__name__"].__get__


def _parts(error: BaseException) -> Iterator[BaseException]:
    """Yield *error*, or what it consists of if it is a group."""
    left = [error]
    while left:
        one = left.pop()
        if is_a(one, BaseExceptionGroup):
            left += _members(one)
        else:
            yield one


_members: Callable[[Any], tuple[BaseException, ...]] = vars(BaseExceptionGroup)["exceptions"].__get__
"""Return what a group consists of, whatever its class says."""


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


_carrying: "weakref.WeakSet[asyncio.Task[Any]]" = weakref.WeakSet()
"""The tasks that carry something to its end."""


def carries_to_the_end(task: "asyncio.Task[Any]") -> bool:
    """Tell whether *task* was made to carry something to its end, so that its caller never cancels it."""
    return task in _carrying


async def ended(coroutine: Coroutine[Any, Any, T]) -> tuple[asyncio.Task[T], asyncio.CancelledError | None]:
    """Run *coroutine* to its end; return its task, and the cancellation of the caller that came meanwhile."""
    task = asyncio.create_task(coroutine)
    _carrying.add(task)
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

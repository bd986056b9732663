"""Requests and answers between two processes, in both directions over one stream; asyncio and the library alone.

A request has a number, an operation and a body; it is answered once, with a value or an error. A function in a body
stays where it is: the other side gets a `RemoteFunction`, which asks for it by number as long as the request that it
came with is under way.

    {"id": 1, "op": "tool", "body": ...}      a request            {"re": 1, "value": ...}    its answer
    {"op": "log", "body": ...}                a notice             {"re": 1, "error": {...}}  or this one
    {"cancel": 1}                             nobody waits for it any more
    {"id": 2, "of": 1, "call": 0, "body": [args, kwargs]}          a function that came with request 1 is called;
                                                                   without an `id` nobody waits for what it returns
"""

import asyncio
import itertools
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextvars import Context, copy_context
from typing import Any

from agentos.workers.frames import MESSAGE_LIMIT, Frame, FrameTooLargeError, encode_frame
from agentos.workers.wire_values import Functions, Readers, decode, decode_error, encode, encode_answer, encode_error

_logger = logging.getLogger(__name__)

AT_ONCE = 1_000
"""How many requests of the other side may be under way at the same time."""

Handle = Callable[[str, Any], Awaitable[Any]]
"""Answers a request: its operation and its body."""


class PeerError(Exception):
    """The other side broke the rules of the conversation, or it is over."""


class RemoteFunction:
    """A function of the other side, for as long as the request that it came with is under way."""

    __slots__ = ("_number", "_peer", "_request")

    def __init__(self, peer: "Peer", request: int, number: int) -> None:
        self._peer = peer
        self._request = request
        self._number = number

    async def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call it, and return what it returns or raise what it raises."""
        return await self._peer._ask(self._frame(), [args, kwargs])  # noqa: SLF001 - its own

    def tell(self, *args: Any, **kwargs: Any) -> None:
        """Call it without waiting: what it returns or raises is not heard. From any thread where writing may be."""
        self._peer._say(self._frame(), [args, kwargs])  # noqa: SLF001 - its own

    @property
    def is_open(self) -> bool:
        """Tell whether the request that it came with is under way."""
        return self._request in self._peer._served  # noqa: SLF001 - its own

    def begin(self, *args: Any) -> "tuple[int, asyncio.Future[Any]]":
        """Call it without waiting: see `Peer.begin`."""
        return self._peer.begin(self._frame(), [args, {}])

    def _frame(self) -> Frame:
        return {"of": self._request, "call": self._number}


class _OpenRequest:
    """What was asked of the other side and is not answered yet."""

    __slots__ = ("answer", "context", "functions")

    def __init__(self, answer: "asyncio.Future[Any]", functions: Sequence[Callable[..., Any]]) -> None:
        self.answer = answer
        self.functions = functions
        self.context = copy_context()
        """In which its functions run: what they do is done on behalf of whoever asked."""


class Peer:
    """One side of the conversation. *write* takes lines, *handle* answers what the other side asks.

    What the other side raises is bounded once *mask* has hidden the known secrets in it.
    """

    def __init__(
        self,
        write: Callable[[bytes], None],
        handle: Handle,
        *,
        limit: int = MESSAGE_LIMIT,
        at_once: int = AT_ONCE,
        readers: Readers | None = None,
        mask: Callable[[str], str] | None = None,
    ) -> None:
        self._write = write
        self._mask = mask
        self._handle = handle
        self._limit = limit
        self._at_once = at_once
        self.readers = readers or {}
        self._kept: list[Callable[..., Any]] = []
        """Functions that last as long as the conversation."""
        self._numbers = itertools.count(1)
        self._asked: dict[int, _OpenRequest] = {}
        self._given_up: set[int] = set()
        """Questions that were cancelled here; their answers are no surprise."""
        self._served: dict[int, asyncio.Task[None]] = {}
        self._noticed: set[asyncio.Task[None]] = set()
        self._ended: BaseException | None = None
        self.stray = 0
        """How many answers came that nobody waited for: to an unknown question, or a second one."""

    # -- asking --------------------------------------------------------------------------------------------------------

    async def request(self, op: str, body: Any = None) -> Any:
        """Return the other side's answer, or raise what it raised, or why there is none.

        Raise FrameTooLargeError before anything is sent if the body is too large.
        """
        return await self._ask({"op": op}, body)

    def notify(self, op: str, body: Any = None) -> None:
        """Tell the other side something that is not answered. It holds no functions."""
        self._say({"op": op}, body)

    async def _ask(self, frame: Frame, body: Any) -> Any:
        number, answer = self.begin(frame, body)
        try:
            return await answer
        except asyncio.CancelledError:
            if number in self._asked and self._ended is None:
                self._given_up.add(number)
                self._write(encode_frame({"cancel": number}))
            raise
        finally:
            self._asked.pop(number, None)

    def begin(self, frame: Frame, body: Any) -> "tuple[int, asyncio.Future[Any]]":
        """Ask without waiting: return the number of the question, and what will have its answer."""
        if self._ended is not None:
            raise self._ended
        functions, number = Functions(self._keep), next(self._numbers)
        line = encode_frame({"id": number, **frame, "body": encode(body, functions)}, self._limit)
        answer = asyncio.get_running_loop().create_future()
        self._asked[number] = _OpenRequest(answer, functions)
        self._write(line)
        return number, answer

    def _say(self, frame: Frame, body: Any) -> None:
        if self._ended is None:
            self._write(encode_frame({**frame, "body": encode(body, None)}, self._limit))

    # -- hearing -------------------------------------------------------------------------------------------------------

    def receive(self, frame: Frame) -> None:
        """Take in a message; raise PeerError if it is not of this conversation: its stream is of no use then."""
        if self._ended is not None:
            return
        try:
            self._take_in(frame)
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            shown = ascii(frame)[:120]
            raise PeerError(f"a message that is not understood: {shown} ({type(error).__name__}: {error})") from error

    def _take_in(self, frame: Frame) -> None:
        if "re" in frame:
            self._answered(frame)
        elif "cancel" in frame:
            task = self._served.get(frame["cancel"])
            if task is not None:
                task.cancel()
        elif "id" in frame:
            self._asked_for(frame)
        elif "call" in frame:
            self._told(frame)
        else:
            op, body = _text(frame["op"]), decode(frame.get("body"), None)
            self._start(None, lambda: self._handle(op, body))

    def _answered(self, frame: Frame) -> None:
        number = frame["re"]
        question = self._asked.pop(number, None)
        if question is None or question.answer.done():
            if number in self._given_up:
                self._given_up.discard(number)
            else:
                self.stray += 1
        elif "error" in frame:
            question.answer.set_exception(decode_error(frame["error"], self._mask))
        else:
            self._settle(question, frame["value"])

    def _settle(self, question: _OpenRequest, said: Any) -> None:
        """Answer a question; one whose answer is not understood fails alone."""
        try:
            value = decode(said, None)
        except ValueError as error:
            question.answer.set_exception(PeerError(f"the answer: {error}"))
        else:
            question.answer.set_result(value)

    def _asked_for(self, frame: Frame) -> None:
        number = frame["id"]
        if type(number) is not int or number in self._served:
            raise ValueError("its id is invalid, or in use")
        if len(self._served) >= self._at_once:
            raise PeerError(f"it asked for more than {self._at_once} things at the same time")
        body = decode(frame.get("body"), lambda function: RemoteFunction(self, number, function), self.readers)
        if "call" in frame:
            function, (args, kwargs) = self._function(frame) or _over, body
            question = self._asked.get(frame["of"])
            self._start(number, lambda: _called(function, args, kwargs), None if question is None else question.context)
        else:
            op = _text(frame["op"])
            self._start(number, lambda: self._handle(op, body))

    def _told(self, frame: Frame) -> None:
        function = self._function(frame)
        if function is not None:
            args, kwargs = decode(frame["body"], None)
            try:
                function(*args, **kwargs)
            except Exception:
                _logger.warning("what the other process told could not be taken in", exc_info=True)

    def _keep(self, function: Callable[..., Any]) -> int:
        if function not in self._kept:
            self._kept.append(function)
        return self._kept.index(function) + 1

    def _function(self, frame: Frame) -> Callable[..., Any] | None:
        number: int = frame["call"]
        if number < 0:
            return self._kept[-number - 1]
        question = self._asked.get(frame["of"])
        return None if question is None else question.functions[number]

    # -- answering -----------------------------------------------------------------------------------------------------

    def _start(self, number: int | None, answer: Callable[[], Awaitable[Any]], context: Context | None = None) -> None:
        task = asyncio.get_running_loop().create_task(self._serve(number, answer), context=context)
        if number is None:
            self._noticed.add(task)
            task.add_done_callback(self._noticed.discard)
        else:
            self._served[number] = task
            task.add_done_callback(lambda _: self._served.pop(number, None))

    async def _serve(self, number: int | None, answer: Callable[[], Awaitable[Any]]) -> None:
        """Answer a request, whatever happens: its waiter has nothing else to end by."""
        try:
            frame = {"re": number, "value": encode_answer(await answer())}
        except BaseException as error:  # noqa: BLE001 - whatever it raised is the other side's to handle
            frame = {"re": number, "error": encode_error(error)}
        if number is not None and self._ended is None:
            self._write(self._answer_line(number, frame))

    def _answer_line(self, number: int, frame: Frame) -> bytes:
        try:
            return encode_frame(frame, self._limit)
        except FrameTooLargeError as error:
            return encode_frame({"re": number, "error": encode_error(error)})

    # -- the end -------------------------------------------------------------------------------------------------------

    def fail(self, error: BaseException) -> None:
        """End the conversation: whoever waits for an answer gets *error*, and what is being answered is cancelled."""
        if self._ended is not None:
            return
        self._ended = error
        for question in list(self._asked.values()):
            if not question.answer.done():
                question.answer.set_exception(error)
        for task in (*self._served.values(), *self._noticed):
            task.cancel()


async def _called(function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    value = function(*args, **kwargs)
    return await value if hasattr(value, "__await__") else value


def _over(*_: Any, **__: Any) -> Any:
    raise PeerError("the call that this function came with is over")


def _text(op: Any) -> str:
    if type(op) is not str:
        raise TypeError("its operation is not a text")
    return op

"""Packs that can come and go only once."""

import asyncio
import threading
import weakref

from testing.parts import count_letters, pack, undo

from agentos import Descriptor


def only_once():
    """Every pack of this factory shares what it never gives back."""
    return pack(on_activate=_take, on_deactivate=lambda: None)


def made_only_once(context):
    """What is made a second time in the same host can't be loaded."""
    hub = context.services._hub
    if hub in _seen:
        raise RuntimeError("there was one already")
    _seen.add(hub)
    return pack()


_seen = weakref.WeakSet()


def raises_when_it_goes():
    return pack(on_deactivate=_fail)


def part_raises_when_it_goes():
    return pack(Descriptor("tool", "count_letters", count_letters, on_deactivate=_fail))


def cant_be_switched_on_again():
    state = {"ended": False}

    def begin():
        if state["ended"]:
            raise RuntimeError("it was ended for good")

    return pack(on_activate=begin, on_deactivate=lambda: state.update(ended=True))


def works_on_from_the_second_time():
    times = []

    def begin():
        times.append(1)
        if len(times) > 1:
            over = threading.Event()
            undo.append(over.set)
            asyncio.get_running_loop().run_in_executor(None, over.wait, 60)

    return pack(on_activate=begin)


def _fail():
    raise RuntimeError("it does not want to go")


_taken: dict[int, int] = {}


def _take(context):
    services = id(context.services._hub)
    _taken[services] = _taken.get(services, 0) + 1
    if _taken[services] > 1:
        raise RuntimeError("it is taken already")

"""What happens now: live calls, and the steps of each."""

from typing import Final

from starlette.responses import Response

from agentos.studio.live_events import SeenCall
from agentos.studio.page import Page
from agentos.studio.view import PageView

_ROWS: Final = 100
_STATES: Final = ("running", "waiting", "done", "failed")


async def show(view: PageView) -> Response:
    """Show the newest calls that are wanted, and the one that the address names."""
    text, state = view.asked("text").strip(), view.asked("state")
    calls = [one for one in view.live.calls_for(view.principal) if _fits(one, text.lower(), state)]
    calls.sort(key=lambda one: one.number, reverse=True)
    number = view.asked("call")
    return view.whole(
        "calls.html",
        calls=calls[:_ROWS],
        text=text,
        state=state,
        states=_STATES,
        seen=_call(view, number) if number else None,
        asks_for_one=bool(number),
    )


async def one(view: PageView) -> Response:
    """Show the steps of one call."""
    return view.part("call.html", seen=_call(view, view.asked("call")))


def _call(view: PageView, number: str) -> SeenCall | None:
    found = view.live.calls.get(int(number)) if number.isdecimal() else None
    if found is None or not (view.is_operator or found.principal == view.principal.key):
        return None
    return found


def _fits(call: SeenCall, text: str, state: str) -> bool:
    names = f"{call.tool} {call.principal}".lower()
    return (not state or call.state == state) and text in names


CALLS = Page(
    id="calls",
    title="Calls",
    question="What happens now?",
    group="What happens",
    show=show,
    parts={"one": one},
    is_for_operators=False,
)

"""The kind `response-processor`: changes what is answered to a user, before the guardrails on output have it.

A payload is a function of a Response and a context, or an object with such a method `process` and, if wanted, a
`timeout`. It returns a Response, a text, or None for no change. The active ones run one after another, by priority.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import attrs

from agentos.base.foreign import Border, is_a, type_name
from agentos.errors import DescriptorError, GuardrailBlockedError, ResponseRefusedError
from agentos.extensions.event import Event
from agentos.model.crossing import Crossing, RemotePayload
from agentos.model.descriptor import Descriptor
from agentos.model.guarding import GuardAction, fault_of_parameters, fault_of_seconds
from agentos.model.kind import Kind, declare_own_kind
from agentos.model.principal import SYSTEM, Principal
from agentos.model.response import Response
from agentos.payloads.asked_payload import ask_payload
from agentos.payloads.foreign_job import Threads, took_too_long
from agentos.payloads.payload_context import PayloadContext, active_in_order
from agentos.secrets.masking import MaskingLogger, masked_fields
from agentos.stacks.entry import Entry

if TYPE_CHECKING:
    from agentos.extensions.manager import ExtensionManager
    from agentos.guards.guardrails import Guardrails

_TIMEOUT = 10.0


def _function(payload: Any) -> Callable[..., Any]:
    found: Callable[..., Any] = getattr(payload, "process", payload)
    return found


def _timeout(payload: Any) -> Any:
    return getattr(payload, "timeout", _TIMEOUT)


def _check(descriptor: Descriptor[Any]) -> None:
    payload = descriptor.payload
    fault = "expected an object, got a class" if isinstance(payload, type) else None
    fault = fault or fault_of_parameters(_function(payload), 2) or fault_of_seconds(_timeout(payload))
    if fault is not None:
        expected = "expected a function of a response and a context, or an object with process"
        raise DescriptorError(f"response-processor {descriptor.id!r}: {expected}; {fault}")


@attrs.frozen(kw_only=True)
class ResponseFailed(Event):
    """A response processor failed, and the response goes on without it."""

    type: ClassVar[str] = "response:failed"
    processor: str
    pack: str
    reason: str
    principal: str


class ResponseProcessors:
    """Runs responses through the processors in force, and then through the guardrails on output."""

    def __init__(self, manager: "ExtensionManager", guardrails: "Guardrails", threads: Threads) -> None:
        self._manager = manager
        self._registry = manager.registry(RESPONSE_PROCESSOR.name)
        self._guardrails = guardrails
        self._threads = threads
        self._logger = MaskingLogger("agentos.responses", manager.masker)

    async def respond(
        self, text: str | Response, principal: Principal | None, session: Mapping[str, Any] | None
    ) -> Response:
        """Return what is answered; raise GuardrailBlockedError or ResponseRefusedError if nothing must be."""
        response = text if isinstance(text, Response) else Response(text)
        for entry in active_in_order(self._registry):
            response = await self._processed(entry, response, principal or SYSTEM, {} if session is None else session)
        outcome = await self._guardrails.check_output(response.text, principal, session)
        if outcome.action is GuardAction.BLOCK:
            row = next(row for row in outcome.verdicts if row.verdict.action is GuardAction.BLOCK)
            raise GuardrailBlockedError(row.id, row.verdict.code, row.verdict.reason, "output")
        return response if outcome.value == response.text else attrs.evolve(response, text=outcome.value)

    async def _processed(
        self, entry: Entry, response: Response, principal: Principal, session: Mapping[str, Any]
    ) -> Response:
        context = PayloadContext(entry, principal, session)
        answer, error = await ask_payload(entry, _function, response, context, threads=self._threads, seconds=_TIMEOUT)
        with Border() as border:  # what it answered may have parts with code of their own
            if error is None and answer is None:
                return response
            if error is None and is_a(answer, str):
                return attrs.evolve(response, text=self._manager.masker.mask(str.__str__(answer)))
            if error is None and type(answer) is Response:
                return masked_fields(answer, self._manager.masker)
        error = error or border.error
        await self._failed(entry, _fault(answer, error), error, principal)
        return response

    async def _failed(self, entry: Entry, why: str, error: BaseException | None, principal: Principal) -> None:
        """Tell that one failed; a required one takes the response with it."""
        self._logger.warning("response-processor %s:%s %s", entry.source.pack, entry.id, why, exc_info=error)
        events = self._manager.events
        if events.is_heard:
            source = entry.source
            events.post(
                ResponseFailed(source=source, processor=entry.id, pack=source.pack, reason=why, principal=principal.key)
            )
            await events.deliver()
        if entry.descriptor.metadata.get("required"):
            raise ResponseRefusedError(entry.id, why)


def _fault(answer: Any, error: BaseException | None) -> str:
    if error is None:
        return f"answered with a {type_name(answer)}; expected a Response, a text or None"
    return "took too long" if took_too_long(error) else f"raised {type_name(error)}"


_CROSSING = Crossing(
    describe=lambda payload: {"timeout": _timeout(payload)},
    functions=lambda payload: {"process": _function(payload)},
    proxy=lambda said, functions: RemotePayload({**said, **functions}),
)

RESPONSE_PROCESSOR = declare_own_kind(
    Kind(
        "response-processor",
        check=_check,
        reader="`host.respond`, and turns that ask for it",
        crossing=_CROSSING,
    )
)

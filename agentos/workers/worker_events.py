"""What becomes of workers, told like everything else that happens to packs."""

from typing import ClassVar

import attrs

from agentos.extensions.events import PackEvent


@attrs.frozen(kw_only=True)
class WorkerEvent(PackEvent):
    """Something happened to the process of a pack. `mount` is the number of its start, `reason` says why."""

    mount: int
    reason: str = ""


@attrs.frozen(kw_only=True)
class WorkerMounting(WorkerEvent):
    """The process of a pack is being started."""

    type: ClassVar[str] = "worker:mounting"


@attrs.frozen(kw_only=True)
class WorkerReady(WorkerEvent):
    """The process of a pack can be asked."""

    type: ClassVar[str] = "worker:ready"


@attrs.frozen(kw_only=True)
class WorkerDied(WorkerEvent):
    """The process of a pack ended by itself, or was not ready in time."""

    type: ClassVar[str] = "worker:died"


@attrs.frozen(kw_only=True)
class WorkerDegraded(WorkerEvent):
    """The process of a pack died too often; until it is tried again, all that its pack offers is gated."""

    type: ClassVar[str] = "worker:degraded"


@attrs.frozen(kw_only=True)
class WorkerRecovered(WorkerEvent):
    """The process of a pack is ready again after it was degraded."""

    type: ClassVar[str] = "worker:recovered"

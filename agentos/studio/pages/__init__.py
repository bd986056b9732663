"""The pages of the studio, in the order of its navigation: one module each."""

from agentos.studio.page import Page
from agentos.studio.pages.approvals import APPROVALS
from agentos.studio.pages.audit import AUDIT
from agentos.studio.pages.calls import CALLS
from agentos.studio.pages.channels import CHANNELS
from agentos.studio.pages.chat import CHAT
from agentos.studio.pages.doctor import DOCTOR
from agentos.studio.pages.grants import GRANTS
from agentos.studio.pages.packs import PACKS
from agentos.studio.pages.pins import PINS
from agentos.studio.pages.secrets import SECRETS
from agentos.studio.pages.stacks import STACKS
from agentos.studio.pages.tools import TOOLS
from agentos.studio.pages.workers import WORKERS
from agentos.studio.pages.workflows import WORKFLOWS

PAGES: tuple[Page, ...] = (
    *(STACKS, PACKS, TOOLS),
    *(APPROVALS, CALLS, CHAT, WORKFLOWS, AUDIT),
    *(GRANTS, PINS, SECRETS),
    *(WORKERS, CHANNELS, DOCTOR),
)

"""The pages of the studio, in the order of its navigation: one module each."""

from agentos.studio.page import Page
from agentos.studio.pages.approvals import APPROVALS
from agentos.studio.pages.packs import PACKS
from agentos.studio.pages.stacks import STACKS

PAGES: tuple[Page, ...] = (STACKS, PACKS, APPROVALS)

"""The pure part: who is active on a stack, and why; and the registries that show it."""

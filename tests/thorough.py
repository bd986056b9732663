"""How many examples a property is tried with: a sample among the other tests, all of them among the proofs."""

import os

THOROUGH = os.environ.get("AGENTOS_TESTS") == "thorough"


def examples(count):
    """Return *count* for the proofs, and a sixth of it otherwise."""
    return count if THOROUGH else max(count // 6, 5)

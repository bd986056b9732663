"""What the tests of agentos and of the packs share."""

import gc
import logging
import os
import signal

import pytest
import warm_starts
from hypothesis import HealthCheck, settings
from thorough import examples

# What lands is decided by the same examples each time; new ones are looked for everywhere else.
settings.register_profile(
    "agentos",
    max_examples=examples(100),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize="CI" in os.environ,
)
settings.load_profile("agentos")


# Who starts the tests may ignore signals, as a shell does for what it runs behind its back; children inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGTERM, signal.SIG_DFL)
signal.signal(signal.SIGHUP, signal.SIG_DFL)


warm_starts.install()


@pytest.hookimpl(wrapper=True)
def pytest_collection(session):
    """Look for no garbage while twenty thousand tests come to be, and never among them: they stay to the end."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


def pytest_sessionfinish():
    """Let go of what was set aside: libraries complain of what is not gone when Python ends."""
    gc.unfreeze()


def pytest_make_parametrize_id(val, argname):
    """Name bytes by their place: with what they hold, such as a time, the workers would collect different tests."""
    return argname if isinstance(val, bytes) else None


LONGEST = (
    *("cli/test_interrupts.py", "packs/test_curated_packs.py", "access/test_crashes.py", "testing/test_bad_packs.py"),
    *("packs/test_install_lines.py",),
    *("access/test_races.py", "cli/test_serve.py", "tests/test_docs.py", "access/test_properties.py"),
    *("docs/test_site.py", "packs/test_wheels.py", "cli/test_golden.py", "cli/test_doctor.py", "access/test_audit.py"),
)
"""The files that take longest. They begin first, so that in the end no worker waits long for another."""


SAMPLE = 4
"""How many cases of a test with many belong to `make test`; the others belong to the proofs."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Leave what a test has too many cases of to the proofs; put the longest files first, each in its order.

    Properties are tried with a few examples here, and again, with all of them, among the proofs.
    """
    cases = {}
    for item in items:
        cases.setdefault((item.path, item.nodeid.partition("[")[0]), []).append(item)
        if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
            item.add_marker(pytest.mark.property)
    for alike in cases.values():
        kept = {round(place * (len(alike) - 1) / (SAMPLE - 1)) for place in range(SAMPLE)}
        for place, item in enumerate(alike):
            if len(alike) > SAMPLE and place not in kept:
                item.add_marker(pytest.mark.proof)
    items.sort(key=lambda item: next((place for place, end in enumerate(LONGEST) if end in item.nodeid), len(LONGEST)))


def log_as_at_first():
    """Undo what a test, or what it tried out, did to how this process logs: others listen to what is logged."""
    for name, level, handlers in (
        (None, logging.WARNING, None),
        ("agentos", logging.NOTSET, [logging.NullHandler()]),
        ("sqlalchemy", logging.NOTSET, []),
    ):
        logger = logging.getLogger(name)
        logger.setLevel(level)
        logger.propagate = True
        logger.handlers = logger.handlers if handlers is None else handlers
    logging.disable(logging.NOTSET)


@pytest.fixture(autouse=True)
def _log_as_at_first():
    log_as_at_first()
    yield
    log_as_at_first()


@pytest.fixture
def anyio_backend():
    return "asyncio"

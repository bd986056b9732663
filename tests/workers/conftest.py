import bridging
import pytest


@pytest.fixture(autouse=True)
def others():
    bridging.note_others()

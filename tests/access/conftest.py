"""What these tests write for the user goes to a folder of their own."""

import pytest


@pytest.fixture(scope="session", autouse=True)
def own_data(tmp_path_factory):
    """Have keys and marks of servers' stores kept apart from those of the user."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AGENTOS_DATA", str(tmp_path_factory.mktemp("data")))
        yield

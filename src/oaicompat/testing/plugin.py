"""A pytest fixture for the scripted server; it works under every plugin that runs async tests on asyncio.

Enable it in the root `conftest.py` with `pytest_plugins = ['oaicompat.testing.plugin']`.
"""

import pytest

from .server import ScriptedServer


@pytest.fixture
def scripted_server() -> type[ScriptedServer]:
    """Makes a server from a script.

    Example:
        `async with scripted_server([Reply.json(completion('Hi'))]) as server: ...`
    """
    return ScriptedServer

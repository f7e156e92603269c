"""Fixtures that all tests share."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from oaicompat import servers
from oaicompat._lessons import MEMORY

pytest_plugins = ['oaicompat.testing.plugin']


@pytest.fixture(autouse=True)
def clean_slate(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No test sees another's lessons or rows, nor keys from the environment that the tests run in."""
    variables = {name for row in servers.servers() for name in (*row.key_vars, *row.url_vars)}
    for name in [name for name in os.environ if name in variables or name.startswith('OPENAI_')]:
        monkeypatch.delenv(name)
    rows = dict(servers._registry)
    yield
    servers._registry.clear()
    servers._registry.update(rows)
    MEMORY.clear()

"""Fixtures that all tests share."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import settings

from oaicompat import servers
from oaicompat._memory import MEMORY

pytest.register_assert_rewrite('bodies', 'refusing')
pytest_plugins = ['oaicompat.testing.plugin']


EXAMPLES = os.environ.get('OAICOMPAT_FUZZ_EXAMPLES')
# A test run tries the same inputs everywhere, so that what passes here passes there; new ones are what fuzzing is for.
settings.register_profile('tests', derandomize=EXAMPLES is None, database=None, deadline=None, print_blob=True)
settings.load_profile('tests')


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Fuzzing (`make fuzz`) tries more inputs than a test run does, whatever a property asks for."""
    for item in items if EXAMPLES else ():
        test: Any = getattr(item, 'obj', None)
        own = getattr(test, '_hypothesis_internal_use_settings', None)
        if own is not None:
            test._hypothesis_internal_use_settings = settings(own, max_examples=int(str(EXAMPLES)))


@pytest.fixture(autouse=True)
def clean_slate(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No test sees another's lessons or rows, nor keys from the environment that the tests run in."""
    variables = {name for row in servers.servers() for name in (*row.key_vars, *row.url_vars)}
    for name in [name for name in os.environ if name in variables or name.startswith('OPENAI_')]:
        monkeypatch.delenv(name)
    rows = servers._registry
    yield
    servers._registry = rows
    MEMORY.clear()

"""The public surface is what `__all__` says, and no more."""

from __future__ import annotations

import types

import oaicompat


def test_exactly_the_listed_names_are_public() -> None:
    """Submodules become attributes when they are imported; they are reached by their own names."""
    public = [
        name
        for name, value in vars(oaicompat).items()
        if not name.startswith('_') and not isinstance(value, types.ModuleType) and name != 'annotations'
    ]
    assert sorted(public) == oaicompat.__all__ == sorted(oaicompat.__all__)


def test_the_version_is_there() -> None:
    assert oaicompat.__version__.count('.') == 2

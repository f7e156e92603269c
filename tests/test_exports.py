"""The public surface is what `__all__` says, and no more."""

from __future__ import annotations

import types

import oaicompat


def test_exactly_the_listed_names_are_public() -> None:
    """Submodules become attributes when they are imported; they are reached by their own names."""
    public = [
        name
        for name in dir(oaicompat)
        if not name.startswith('_') and not isinstance(getattr(oaicompat, name), types.ModuleType)
    ]
    public = [name for name in public if name != 'annotations']
    assert sorted(public) == oaicompat.__all__ == sorted(oaicompat.__all__)


def test_the_version_is_there() -> None:
    assert oaicompat.__version__.count('.') == 2

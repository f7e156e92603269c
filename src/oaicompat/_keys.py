"""Names of fields: one that servers send, and what the repairs put into an answer for the models to find. Pure."""

from __future__ import annotations

DETAILS = 'reasoning_details'
"""Key of a message or delta, and of `ThinkingPart.provider_details`: see `_details.py`."""

INLINE = 'oaicompat_thinking'
"""Key of a message or delta: reasoning that stood in its text."""

KEPT = 'oaicompat_details'
"""Key of a delta: the `reasoning_details` of the reasoning that ends here, and the field that its text stands in."""

WHOLE = 'oaicompat_arguments'
"""Key of a delta's call: its arguments as a whole, in place of all fragments before."""

CARRIED = 'oaicompat_repairs'
"""Key of a completion or response: the names, on their way to the mapping."""

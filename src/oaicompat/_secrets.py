"""What looks like a key, left out of what is shown: who mixes up arguments must not find it in a log. Pure."""

from __future__ import annotations

from oaicompat._patterns import lazy

# As the providers of `_rows.py` begin theirs, GitHub's, and the head of a JSON Web Token.
_KEY = lazy(
    r'(?<![A-Za-z0-9_.-])((?:sk|rk|pk|gsk|xai|hf|nvapi|pplx|csk|tgp|fw|r8|gh[opsu]|github_pat|sess)[-_]|AIza|eyJ)'
    r'[A-Za-z0-9_.-]{12,}'
)


def unkeyed(text: str) -> str:
    """`text` with no more than the first letters of what looks like a key."""
    return _KEY.sub(r'\1...', text)

"""Words: how servers say that they do not take something, in the languages that they speak. Patterns, pure data.

Letters count alike in upper and lower case. `plain()` takes contractions apart, so that no pattern has to know them.
"""

from __future__ import annotations

import re

from oaicompat._patterns import lazy

_TAKEN = r'(?:supported|allowed|permitted|enabled|available|accepted|recogni[sz]ed|implemented|known|expected|defined)'
BAD = (
    rf'(?:unsupported|unknown|unrecogni[sz]ed|unexpected|deprecated|forbidden|disabled|not (?:\w+ ){{0,2}}{_TAKEN}'
    rf'|no longer {_TAKEN}|not part of the schema'
    r'|not an? (?:valid|known|supported) (?:argument|param|field|propert|option))'
)
"""An adjective of a field that is not taken."""

DONE = r'(?:used|set(?! to)|specified|included|provided|passed|sent|present|supplied)\b'
NOT_DONE = rf'(?:can ?not|can.t|must not|may not|should not) be {DONE}'
IS_BAD = (
    rf'(?:(?:is|are|was) (?:an? )?{BAD}|(?:has|have) been (?:removed|deprecated|disabled)|should not exist|{NOT_DONE}'
    rf'|(?:not|no longer) {_TAKEN}|unsupported|does not exist|must not have additional)'
)
"""What is said behind the name of a field that is not taken."""

FIELD = (
    r'(?:request |keyword |body |query |input )?'
    r'(?:argument|parameter|param|field|propert(?:y|ies)|key|name|input|option)(?:s|\(s\))?'
)

# Chinese, German, French, Spanish, Japanese, Korean.
FIELD_ABROAD = (
    r'(?:\u53c2\u6570|\u5b57\u6bb5|parameter|feld(?:er)?|param[e\u00e8]tres?|champs?|par[a\u00e1]metros?|campos?'
    r'|\u30d1\u30e9\u30e1\u30fc\u30bf\u30fc?|\u30d5\u30a3\u30fc\u30eb\u30c9'
    r'|\ub9e4\uac1c ?\ubcc0\uc218|\ud30c\ub77c\ubbf8\ud130|\ud544\ub4dc)'
)
BAD_BEFORE_FIELD = (
    r'(?:\u4e0d\u652f\u6301\u7684?|\u672a\u77e5\u7684?|\u4e0d\u5141\u8bb8\u7684?|\u65e0\u6cd5\u8bc6\u522b\u7684?'
    r'|unbekannte[rsn]?|unerwartete[rsn]?|nicht unterst(?:\u00fc|ue)tzte[rsn]?'
    r'|\u30b5\u30dd\u30fc\u30c8\u3055\u308c\u3066\u3044\u306a\u3044|\u4e0d\u660e\u306a|\u672a\u5bfe\u5fdc\u306e'
    r'|\uc54c \uc218 \uc5c6\ub294|\uc9c0\uc6d0(?:\ub418|\ud558)\uc9c0 \uc54a\ub294)'
)
BAD_BEHIND_FIELD = (
    r'(?:inconnue?s?|inattendue?s?|non (?:pris en charge|support[e\u00e9]e?s?|autoris[e\u00e9]e?s?)'
    r'|desconocid[oa]s?|no (?:admitid|soportad|permitid|reconocid)[oa]s?|no compatibles?)'
)
BAD_ABROAD = (
    r'(?:\u4e0d(?:\u88ab)?(?:\u652f\u6301|\u5141\u8bb8)'
    r'|(?:wird|werden) nicht unterst(?:\u00fc|ue)tzt|(?:ist|sind) nicht (?:erlaubt|zul(?:\u00e4|ae)ssig)'
    r'|(?:ist|sind) unbekannt'
    r'|n.est pas (?:pris en charge|support[e\u00e9]|autoris[e\u00e9])|est inconnu'
    r'|no es compatible|no est[a\u00e1] (?:admitid|soportad|permitid)|no se (?:admite|permite|reconoce)|es desconocid'
    r'|\s?[\u306f\u304c]?\s?(?:\u30b5\u30dd\u30fc\u30c8|\u8a31\u53ef|\u5bfe\u5fdc)(?:\u3055\u308c|\u3057)\u3066\u3044\u307e\u305b\u3093'
    r'|(?:\uc740|\ub294|\uc774|\uac00)?(?:\(\ub294\)|\(\uac00\))?\s?\uc9c0\uc6d0(?:\ub418|\ud558)\uc9c0 \uc54a)'
)
"""What is said behind the name of a field that is not taken, in other languages."""

ABROAD = f'{BAD_BEFORE_FIELD}|{BAD_BEHIND_FIELD}|{BAD_ABROAD}'

_CONTRACTED = lazy(r'\b(is|are|was|were|do|does|did|has|have|must|should|could|would)n[\'\u2019]t\b', re.IGNORECASE)


def plain(text: str) -> str:
    """`text` with its contractions taken apart."""
    return _CONTRACTED.sub(r'\1 not', text)

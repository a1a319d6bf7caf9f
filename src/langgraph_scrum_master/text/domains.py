"""What kind of work a text is about, as the name of a gate or the report of a failure tells it."""

from __future__ import annotations

import re

USUAL = "feature"
"""What work is where nothing tells."""

_WORDS = {
    "testing": r"tests?|testing|coverage|pytest|jest|junit|fixtures?|assertions?|flaky|regressions?|qa",
    "security": r"security|secure|vulnerab\w+|cves?|secrets?|credentials?|auth|authenti\w+|authori[sz]\w+|encrypt\w+",
    "debugging": r"lint\w*|ruff|mypy|types|typing|type (?:check\w*|errors?)|builds?|compil\w+|syntax|crash\w*",
    "documentation": r"docs?|documentation|docstrings?|readme|changelog",
    "performance": r"perf|performance|latency|slow\w*|throughput|benchmarks?|timeouts?",
    "integration": r"deploy\w*|contracts?|apis?|integrations?|endpoints?|webhooks?|migrations?|releases?",
    "configuration": r"config\w*|settings?|env|environments?|dependenc\w+",
    "refactoring": r"refactor\w*|duplicat\w+|complexity|dead code",
}
_TELLS = re.compile("|".join(rf"(?P<{domain}>\b(?:{words})\b)" for domain, words in _WORDS.items()))
_BETWEEN = re.compile(r"[\W_]+")


def domain_of(*texts: str) -> str:
    """The domain that the first word to tell names, in the first of these texts that has any; else `USUAL`."""
    told = (_TELLS.search(_BETWEEN.sub(" ", text).lower()) for text in texts)
    return next((found.lastgroup or USUAL for found in told if found), USUAL)

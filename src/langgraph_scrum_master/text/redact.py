"""Keeping secrets out of what leaves: logs, the audit log, streams and traces."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Literal, TypeAlias, get_args

from langgraph_scrum_master._internal.logs import Redact
from langgraph_scrum_master.errors import ConfigError

Redaction: TypeAlias = Literal["all", "secrets", "emails"]
"""What is taken out: every word, keys and tokens and passwords, or e-mail addresses."""

REDACTED = "[redacted]"

_SECRETS = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"
    # Keys that say by their beginning whose they are.
    r"|\b(?:sk|pk|rk)[-_](?:[A-Za-z0-9]+[-_])*[A-Za-z0-9]{16,}\b"
    r"|\bgh[pousr]_[A-Za-z0-9]{20,}\b|\bgithub_pat_[A-Za-z0-9_]{20,}\b|\bglpat-[\w\-]{16,}\b"
    r"|\bxox[abeprs]-[\w\-]{10,}|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b|\bAIza[\w\-]{30,}\b|\bhf_[A-Za-z0-9]{20,}\b"
    r"|\blsv2_[a-z]{2}_[A-Za-z0-9_]{20,}\b|\bnpm_[A-Za-z0-9]{30,}\b|\bpypi-[\w\-]{30,}"
    # A JSON web token.
    r"|\beyJ[\w\-]{8,}\.[\w\-]{8,}\.[\w\-]*"
    # What is called a secret where it is written down.
    r"|(?<=bearer )[\w\-.~+/]{8,}=*|(?<=basic )[A-Za-z0-9+/]{8,}=*"
    r"|(?<=://)[^\s/:@]+:[^\s/@]+(?=@)",
    re.I | re.S,
)
_NAMED = re.compile(
    r"((?:api[_\- ]?key|secret|token|passw(?:or)?d|pwd|access[_\- ]?key|private[_\- ]?key|credentials?)"
    r"[\"']?\s*(?:[:=]|\bis\b)\s*[\"']?)([^\s\"',;&]{4,})",
    re.I,
)
_EMAIL = re.compile(r"\b[\w.+\-]{1,64}@[\w\-]+(?:\.[\w\-]+)+\b")


def redactor(wanted: Redaction | Redact | Iterable[Redaction | Redact]) -> Redact | None:
    """One function for all that is to be taken out, in this order; None if nothing is."""
    several = [wanted] if isinstance(wanted, str) or callable(wanted) else list(wanted)
    steps = [_step(each) for each in several]

    def redact(text: str) -> str:
        try:
            left: object = text
            for step in steps:
                left = step(str(left))
            return left if isinstance(left, str) else REDACTED
        # A text that cannot be cleaned must not leave as it is.
        except Exception:
            return REDACTED

    return redact if steps else None


def _step(wanted: object) -> Redact:
    if isinstance(wanted, str) and wanted in _READY:
        return _READY[wanted]
    if callable(wanted):
        return wanted
    raise ConfigError(f"redact must be among {get_args(Redaction)}, or a function of a text, got {wanted!r}")


def _all(text: str) -> str:
    return REDACTED if text else text


def _secrets(text: str) -> str:
    return _NAMED.sub(lambda found: found[1] + REDACTED, _SECRETS.sub(REDACTED, text))


def _emails(text: str) -> str:
    return _EMAIL.sub(REDACTED, text)


_READY: dict[str, Callable[[str], str]] = {"all": _all, "secrets": _secrets, "emails": _emails}

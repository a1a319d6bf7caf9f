"""Retrieved text is data: nothing in it may look like the frame around it."""

from __future__ import annotations

import re
from html import escape

FRAME_TAGS = ("injected_context", "context_item")
"""The tags of our own frame."""

_INVISIBLE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f\ud800-\udfff]"
)
_TAGS = "|".join(tag.replace("_", r"[\W_]*") for tag in FRAME_TAGS)
_FRAME = re.compile(rf"[<＜﹤‹](?=[\s/／\\]*(?:{_TAGS}))", re.I)
_ROLE_TOKEN = re.compile(r"<(?=\|)|\[(?=/?INST\])", re.I)


def as_data(text: str) -> str:
    """The text without invisible characters, and with whatever would open or close our frame made harmless."""
    visible = _INVISIBLE.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
    return _ROLE_TOKEN.sub(lambda m: {"<": "&lt;", "[": "&#91;"}[m[0]], _FRAME.sub("&lt;", visible))


def as_attribute(text: str) -> str:
    """The text fit to stand between quotes in a tag, on one line."""
    return escape(" ".join(_INVISIBLE.sub("", text).split()), quote=True)

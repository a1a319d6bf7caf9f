"""Caches of what is computed from texts, bounded by the number of characters that they hold."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps
from typing import TypeVar

T = TypeVar("T")


def text_cache(characters: int) -> Callable[[Callable[[str], T]], Callable[[str], T]]:
    """Cache a function of a text, whose results are not None and about as large as the text.

    When there are more characters than these, the cache starts anew. A text that takes a hundredth of them alone is
    not cached.
    """

    def decorate(compute: Callable[[str], T]) -> Callable[[str], T]:
        known: dict[str, T] = {}
        lock = threading.Lock()
        size = 0

        @wraps(compute)
        def cached(text: str) -> T:
            nonlocal size
            # A hot path: the words of each text are looked up.
            if (found := known.get(text)) is not None:
                return found
            value = compute(text)
            if len(text) <= characters // 100:
                with lock:
                    if size > characters:
                        known.clear()
                        size = 0
                    known[text] = value
                    size += len(text)
            return value

        return cached

    return decorate

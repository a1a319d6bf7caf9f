"""A token counter that never raises."""

from __future__ import annotations

from operator import index

from langgraph_scrum_master._internal.foreign import recordable
from langgraph_scrum_master._internal.logs import logger
from langgraph_scrum_master.protocols import TokenCounter


def reliable(count_tokens: TokenCounter) -> TokenCounter:
    """The counter. After its first failure, which is logged, a token per four characters is assumed."""
    failed = False

    def count(text: str) -> int:
        nonlocal failed
        if not failed:
            try:
                counted = count_tokens(text)
                tokens = index(counted)
                if tokens > 0 or (tokens == 0 and not text.strip()):
                    return tokens
                error = f"it returned {counted!r} for {len(text)} characters"
            # A tokenizer may raise any exception.
            except BaseException as raised:
                error = f"{type(raised).__name__}: {recordable(raised)}"
            failed = True
            logger.warning("tokens.estimated", error=f"Token counting failed: {error}")
        return -(-len(text) // 4)

    return count

"""A token counter that cannot fail."""

from __future__ import annotations

from operator import index

from langgraph_scrum_master._internal.logs import logger
from langgraph_scrum_master.protocols import TokenCounter


def reliable(count_tokens: TokenCounter) -> TokenCounter:
    """The counter, or a token for each four characters from where it first fails, which is logged once."""
    failed = False

    def count(text: str) -> int:
        nonlocal failed
        if not failed:
            try:
                counted = count_tokens(text)
                tokens = index(counted)
                if tokens > 0 or (tokens == 0 and not text.strip()):
                    return tokens
                error = f"it gave {counted!r} for {len(text)} characters"
            # Whatever a tokenizer raises, from whatever library.
            except Exception as raised:
                error = f"{type(raised).__name__}: {raised}"
            failed = True
            logger.warning("tokens.estimated", error=f"Token counting failed: {error}")
        return -(-len(text) // 4)

    return count

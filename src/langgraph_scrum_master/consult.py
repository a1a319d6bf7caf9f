"""An assistant is asked: against a deadline, and as if it were not there where it fails or has no opinion."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from langgraph_scrum_master.assistant import TOKENS_SPENT
from langgraph_scrum_master.detect.clarification import LIKELY
from langgraph_scrum_master.errors import steers_the_graph
from langgraph_scrum_master.logs import logger
from langgraph_scrum_master.model import ContextGap, Turn
from langgraph_scrum_master.protocols import Assistant

DOUBTFUL = 0.85
"""Gaps of less confidence are shown to the assistant."""

REMEMBERED = 256
"""Gaps whose tokens are kept until their result is made."""

T = TypeVar("T")


class Consulted:
    """Asks an assistant. Whatever it raises, and however late it is, the way without it is taken."""

    def __init__(self, assistant: Assistant) -> None:
        self._assistant = assistant
        self._tokens: OrderedDict[str, int] = OrderedDict()

    async def confirms(self, gap: ContextGap, turns: Sequence[Turn], deadline: float) -> bool:
        """Whether the gap is to be served."""
        if gap.confidence >= DOUBTFUL:
            return True
        said = await self._said("confirm", gap, lambda: self._assistant.confirm(gap, turns), deadline)
        return said if isinstance(said, bool) else gap.confidence >= LIKELY

    async def writes(self, gap: ContextGap, turns: Sequence[Turn], deadline: float) -> str:
        """What to look for; nothing if it does not say."""
        said = await self._said("query", gap, lambda: self._assistant.query(gap, turns), deadline)
        return said.strip() if isinstance(said, str) else ""

    async def picks(
        self, gap: ContextGap, query: str, candidates: Sequence[str], deadline: float
    ) -> tuple[int, ...] | None:
        """The places of the candidates that answer; None if it does not say."""
        said: object = await self._said("pick", gap, lambda: self._assistant.pick(query, candidates), deadline)
        if not isinstance(said, list | tuple):
            return None
        places = tuple(dict.fromkeys(i for i in said if type(i) is int and 0 <= i < len(candidates)))
        # Numbers that are none of the candidates' are no opinion; none at all is that nothing answers.
        return places if places or not said else None

    def tokens(self, gap: ContextGap) -> int:
        """The tokens that were used for a gap since this was asked."""
        return self._tokens.pop(gap.gap_id, 0)

    async def _said(
        self, question: str, gap: ContextGap, answer: Callable[[], Awaitable[T]], deadline: float
    ) -> T | None:
        if deadline <= 0:
            return None
        used: list[int] = []
        token = TOKENS_SPENT.set(used)
        try:
            return await asyncio.wait_for(_without_exit(answer), deadline)
        # Whatever a model or its library raises, also where it gives itself up; not where the host does.
        except (Exception, asyncio.CancelledError) as error:
            task = asyncio.current_task()
            cancelled = isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling()
            if cancelled or (isinstance(error, Exception) and steers_the_graph(error)):
                raise
            told = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            logger.warning("assistant.failed", question=question, gap_id=gap.gap_id, error=told)
            return None
        finally:
            TOKENS_SPENT.reset(token)
            if used:
                self._tokens[gap.gap_id] = self._tokens.get(gap.gap_id, 0) + sum(used)
                if len(self._tokens) > REMEMBERED:
                    self._tokens.popitem(last=False)


async def _without_exit(answer: Callable[[], Awaitable[T]]) -> T:
    """What is answered; an exit inside would end the event loop, and not only the call."""
    try:
        return await answer()
    except SystemExit as error:
        raise RuntimeError(f"it tried to end the process, with {error.code!r}") from error

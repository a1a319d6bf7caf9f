"""Calls an assistant with a deadline. On failure, timeout or no opinion, the caller falls back to the rules."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from langgraph_scrum_master._internal.foreign import awaited, contained, recordable
from langgraph_scrum_master._internal.logs import logger
from langgraph_scrum_master.model import ContextGap, Turn
from langgraph_scrum_master.protocols import Assistant
from langgraph_scrum_master.team.assistant import TOKENS_USED
from langgraph_scrum_master.team.tuning import DEFAULT_DETECTION, DetectionTuning

_DOUBTFUL = 0.85
"""Gaps below this confidence are sent to the assistant."""

_MOST_GAPS = 256
"""Maximum number of gaps with token counts in memory."""

T = TypeVar("T")


class AssistantCaller:
    """Calls an assistant. Errors and timeouts are logged and count as no opinion."""

    def __init__(self, assistant: Assistant, tuning: DetectionTuning = DEFAULT_DETECTION) -> None:
        self._tuning = tuning
        self._assistant = assistant
        self._tokens: OrderedDict[str, int] = OrderedDict()

    async def confirms(self, gap: ContextGap, turns: Sequence[Turn], deadline: float) -> bool:
        """Whether to serve the gap."""
        if gap.confidence >= _DOUBTFUL:
            return True
        answer = await self._call("confirm", gap, lambda: self._assistant.confirm(gap, turns), deadline)
        return answer if isinstance(answer, bool) else gap.confidence >= self._tuning.likely

    async def writes(self, gap: ContextGap, turns: Sequence[Turn], deadline: float) -> str:
        """The search query; empty if the assistant has no opinion."""
        answer = await self._call("query", gap, lambda: self._assistant.query(gap, turns), deadline)
        return answer.strip() if isinstance(answer, str) else ""

    async def picks(
        self, gap: ContextGap, query: str, candidates: Sequence[str], deadline: float
    ) -> tuple[int, ...] | None:
        """Indices of the candidates that answer; None if the assistant has no opinion."""
        answer: object = await self._call("pick", gap, lambda: self._assistant.pick(query, candidates), deadline)
        if not isinstance(answer, list | tuple):
            return None
        places = tuple(dict.fromkeys(i for i in answer if type(i) is int and 0 <= i < len(candidates)))
        # Only indices out of range: no opinion. An empty list: no candidate answers.
        return places if places or not answer else None

    def tokens(self, gap: ContextGap) -> int:
        """Model tokens used for the gap since the last call of this method."""
        return self._tokens.pop(gap.gap_id, 0)

    async def _call(self, question: str, gap: ContextGap, ask: Callable[[], Awaitable[T]], deadline: float) -> T | None:
        if deadline <= 0:
            return None
        used: list[int] = []
        token = TOKENS_USED.set(used)
        try:
            return await asyncio.wait_for(awaited(ask), deadline)
        # Anything that a model or its library raises, including its own cancellation, but not the host's.
        except BaseException as raised:
            task = asyncio.current_task()
            own = isinstance(raised, asyncio.CancelledError) and not (task is not None and task.cancelling())
            error = contained(raised) if own else recordable(raised)
            message = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            logger.warning("assistant.failed", question=question, gap_id=gap.gap_id, error=message)
            return None
        finally:
            TOKENS_USED.reset(token)
            if used:
                self._tokens[gap.gap_id] = self._tokens.get(gap.gap_id, 0) + sum(used)
                if len(self._tokens) > _MOST_GAPS:
                    self._tokens.popitem(last=False)

"""What hooks keep of a coding agent's sessions: the latest turns and a summary of each, on a shelf of the memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from langgraph_scrum_master.cli.memory import SESSIONS
from langgraph_scrum_master.cli.transcript import SessionTurn, is_said
from langgraph_scrum_master.memory.records import Memory, Record, created_of, session_of
from langgraph_scrum_master.model import digest, utc_now
from langgraph_scrum_master.text.trim import trim

if TYPE_CHECKING:
    from langgraph_scrum_master.memory.chroma import ChromaMemory

TURNS_PER_SESSION = 40
"""Only the latest turns of a session are kept."""

MAX_TURN = 2_000
"""Characters of a turn that are kept."""

_LATEST_PROMPTS, _MAX_PROMPT, _MAX_ANSWER = 3, 120, 400
"""A summary has the first prompt and this many of the latest, and the start of the last answer, in characters."""


_REDACTED = "[redacted]"
"""A turn of which nothing is left."""


class SessionLog:
    """The sessions of a namespace. Secrets are redacted before a text is stored, and whatever else is configured."""

    def __init__(self, memory: ChromaMemory, sessions: int, redact: Sequence[str] = ()) -> None:
        self.shelf = memory.beside(SESSIONS)
        self._sessions = sessions
        self._redacted = redact

    async def note(self, session: str, prompt: str) -> None:
        """Keep a prompt."""
        await self._keep(session, [SessionTurn(role="user", text=prompt, at=utc_now())])
        await self._prune(await self.shelf.list_all("memory"))

    async def end(self, session: str, turns: Iterable[SessionTurn]) -> None:
        """Keep these turns and a summary of the session, which may go on."""
        await self._keep(session, list(turns))
        records = await self.shelf.list_all("memory")
        own = sorted((each for each in records if session_of(each) == session), key=created_of)
        if own:
            at = own[-1].data.get("created_at") or utc_now()
            await self.shelf.end_session(session, _summary(own), str(at))
        await self._prune(records)

    async def _keep(self, session: str, turns: Sequence[SessionTurn]) -> None:
        if not session or not self._sessions:
            return
        said = [each for each in turns if is_said(each.text)][-TURNS_PER_SESSION:]
        storable = [each for each in map(self._storable, said) if each.text not in ("", _REDACTED)]
        memories = {memory.key: memory for memory in (_memory(session, each) for each in storable)}
        known = await self.shelf.get_many(list(memories))
        await self.shelf.store_many([memory for key, memory in memories.items() if key not in known])

    def _storable(self, turn: SessionTurn) -> SessionTurn:
        # Imported once an answer has been given: its patterns take long to compile.
        from langgraph_scrum_master.text.redact import redactor

        redact = redactor(["secrets", *self._redacted])  # type: ignore[list-item]
        # Cut before, which is faster, but not to its final length, which could cut a secret in two.
        text = turn.text[: 10 * MAX_TURN]
        text = redact(text) if redact else text
        return replace(turn, text=trim(" ".join(text.split()), lambda start: len(start) <= MAX_TURN))

    async def _prune(self, records: Sequence[Record]) -> None:
        """Delete all but the latest turns of the latest sessions."""
        by_session: dict[str, list[Record]] = {}
        for record in sorted(records, key=created_of, reverse=True):
            by_session.setdefault(session_of(record), []).append(record)
        kept = list(by_session)[: self._sessions]
        excess = [each for name in by_session for each in by_session[name][TURNS_PER_SESSION if name in kept else 0 :]]
        await self.shelf.drop(("memory",), [each.key for each in excess])
        forgotten = {name for name in by_session if name not in kept}
        if forgotten:
            summaries = await self.shelf.list_all("session")
            await self.shelf.drop(("session",), [each.key for each in summaries if session_of(each) in forgotten])


def _memory(session: str, turn: SessionTurn) -> Memory:
    key = f"turn:{digest(session, turn.role, turn.text)}"
    return Memory(content=turn.text, key=key, agent=turn.role, session=session, created_at=turn.at or utc_now())


def _summary(turns: Sequence[Record]) -> str:
    """The first prompt, the latest ones, and how the last answer starts."""
    prompts = [each.text for each in turns if each.data.get("agent") == "user"]
    answers = [each.text for each in turns if each.data.get("agent") == "assistant"]
    shown = dict.fromkeys([*prompts[:1], *prompts[-_LATEST_PROMPTS:]])
    quoted = "; ".join(f'"{_short(each, _MAX_PROMPT)}"' for each in shown)
    answer = f"The last answer: {_short(answers[-1], _MAX_ANSWER)}" if answers else ""
    return " ".join(part for part in (f"The user asked: {quoted}." if quoted else "", answer) if part)


def _short(text: str, most: int) -> str:
    return trim(text, lambda start: len(start) <= most) or text[:most]

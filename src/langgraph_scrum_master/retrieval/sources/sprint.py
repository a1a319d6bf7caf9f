"""The plan, progress and stories of the sprint, from the state."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from langgraph_scrum_master._internal.shapes import fields_text, items_of, read, text_of, truthy
from langgraph_scrum_master.model import Query, RetrievedContext
from langgraph_scrum_master.protocols import State
from langgraph_scrum_master.retrieval.sources.scoring import Piece, attempt, scored

_PROGRESS_LISTS = ("in_progress_stories", "blocked_stories", "remaining_stories", "completed_stories")


class SprintSource:
    """The stories with their dependencies and progress, the plan's rationale, and the state of the sprint."""

    name = origin = "sprint"

    async def find(self, query: Query, state: State) -> Iterable[RetrievedContext]:
        """Contexts scored by their text."""
        return await scored("sprint", query, _pieces, state.get("sprint_plan"), state.get("sprint_progress"))


def _pieces(plan: object, progress: object) -> Iterator[Piece | Exception]:
    yield from _stories(plan, progress)
    yield from attempt(_overview, plan, progress)


def _stories(plan: object, progress: object) -> Iterator[Piece | Exception]:
    stories: dict[str, dict[str, object]] = {}
    for story in (
        *items_of(read(plan, "stories")),
        *(story for name in _PROGRESS_LISTS for story in items_of(read(progress, name))),
    ):
        if name := text_of(read(story, "story_id")):
            fields = {field: read(story, field) for field in _FIELDS}
            stories.setdefault(name, {}).update({name: value for name, value in fields.items() if truthy(value)})
    blocks: dict[str, list[str]] = {}
    for name, fields in stories.items():
        for needed in items_of(fields.get("dependencies")):
            if isinstance(needed, str | int):
                blocks.setdefault(str(needed), []).append(name)
    for name in stories:
        yield from attempt(_story, name, stories, blocks.get(name, ()))


def _story(name: str, stories: dict[str, dict[str, object]], blocked: Sequence[str]) -> Iterator[Piece]:
    fields = stories[name]
    facts = {field: value for field, value in fields.items() if field not in ("title", "dependencies")}
    facts["depends on"] = [_with_status(str(other), stories) for other in items_of(fields.get("dependencies"))]
    facts["blocks"] = [_with_status(other, stories) for other in blocked]
    text = _story_text(name, text_of(fields.get("title")), facts)
    yield Piece(content=text, key=f"story:{name}", title=f"Story {name}")


def _with_status(name: str, stories: dict[str, dict[str, object]]) -> str:
    status = text_of(stories.get(name, {}).get("status"))
    return f"{name} ({status.replace('_', ' ')})" if status else name


_FIELDS = (
    "title",
    "description",
    "acceptance_criteria",
    "status",
    "blocked_reason",
    "dependencies",
    "agent_history",
    "metadata",
)


def _story_text(name: str, title: str, facts: dict[str, object]) -> str:
    return "\n".join(filter(None, (f"{name}: {title}".rstrip(": "), fields_text(facts))))


def _overview(plan: object, progress: object) -> Iterator[Piece]:
    if rationale := text_of(read(plan, "planning_rationale")):
        yield Piece(
            content=rationale, key="sprint:plan", title=f"Sprint plan {text_of(read(plan, 'sprint_id'))}".strip()
        )
    snapshot = read(progress, "snapshot")
    facts = {name: read(snapshot, name) for name in _COUNTS if read(snapshot, name) is not None}
    if facts:
        yield Piece(content=fields_text(facts), key="sprint:progress", title="Sprint progress")


_COUNTS = (
    "sprint_id",
    "current_story",
    "current_agent",
    "total_stories",
    "stories_completed",
    "stories_in_progress",
    "stories_blocked",
    "stories_remaining",
    "progress_percentage",
)

"""The console for tables and panels."""

from __future__ import annotations

from collections.abc import Iterable

from rich import console
from rich.segment import Segment

from langgraph_scrum_master.text.sanitize import visible


class Console(console.Console):
    """Prints texts without control characters. The only escape sequences are rich's own: colours, and progress."""

    def render(
        self, renderable: console.RenderableType, options: console.ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """The segments of a renderable."""
        return map(_harmless, super().render(renderable, options))


def _harmless(segment: Segment) -> Segment:
    if segment.control:
        return segment
    # Rich writes links as escape sequences, and their address may come from a text.
    style = segment.style.update_link(None) if segment.style and segment.style.link else segment.style
    return Segment(visible(segment.text), style)

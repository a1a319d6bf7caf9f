"""What can go wrong, as one tree.

    ScrumMasterError
    ├── ContextAssemblyError         context cannot be assembled
    │   ├── CannotCompressError      what there is to say is too long, however much it is compressed
    │   ├── InvalidContextTypeError  from sources that there are not (also a ValueError)
    │   └── QueryTooLongError        a user's turn alone is longer than the prompt may be (also a ValueError)
    ├── ConfigError     a setting has a value that cannot work (also a ValueError)
    ├── DecodeError     plain data does not have the shape of the value it should become (also a ValueError)
    ├── GraphError      a graph would lose what the scrum master writes
    ├── InjectionError  a prompt cannot be given context
    ├── NotFoundError   a thing that was named is not there: a file, a thread, a document, an entity
    └── StoreError      a memory cannot be opened, read or written
        └── EmbeddingError  its embedder fails, or gives something else than vectors

None of these leaves the node: inside a running graph a failure is recorded in the result and the graph goes on.
"""

from __future__ import annotations


class ScrumMasterError(Exception):
    """The root: catch this to catch all of ours."""


class ConfigError(ScrumMasterError, ValueError):
    """A setting has a value that cannot work."""


class DecodeError(ScrumMasterError, ValueError):
    """Plain data does not have the shape of the value it should become."""


class NotFoundError(ScrumMasterError):
    """A thing that was named is not there: a file, a thread, a session, a document, an entity, an experience."""


class ContextAssemblyError(ScrumMasterError):
    """Context cannot be assembled."""


class CannotCompressError(ContextAssemblyError):
    """What there is to say is too long, however much it is compressed."""


class InvalidContextTypeError(ContextAssemblyError, ValueError):
    """Context was asked for from sources that there are not."""


class QueryTooLongError(ContextAssemblyError, ValueError):
    """A user's turn alone is longer than the prompt may be."""


class GraphError(ScrumMasterError):
    """A graph would lose what the scrum master writes."""


class StoreError(ScrumMasterError):
    """A memory cannot be opened, read or written."""


class EmbeddingError(StoreError):
    """A memory's embedder fails, or gives something else than vectors."""


class InjectionError(ScrumMasterError):
    """A prompt cannot be given context."""


class ScrumMasterWarning(UserWarning):
    """Something works, but probably not as meant."""


def how_to_get(extra: str) -> str:
    """What installs an extra of this package, as it stands at the end of an error."""
    return f"pip install '.[{extra}]' in a clone of langgraph-scrum-master"


def with_article(kind: type) -> str:
    """A type's name as it stands in a sentence: an AgentPersonality, a UserPreferences."""
    return f"{'an' if kind.__name__[0] in 'AEIO' else 'a'} {kind.__name__}"


def steers_the_graph(error: BaseException) -> bool:
    """Whether the exception is how LangGraph interrupts or routes a run: it must pass every broad `except`."""
    return any(kind.__name__ == "GraphBubbleUp" for kind in type(error).__mro__)

"""The exceptions of this package.

    ScrumMasterError
    ├── ContextAssemblyError         context cannot be assembled
    │   ├── CannotCompressError      the text is too long even after compression
    │   ├── InvalidContextTypeError  unknown context types were requested (also a ValueError)
    │   └── QueryTooLongError        the user's turn alone exceeds the token limit (also a ValueError)
    ├── ConfigError     a setting is invalid (also a ValueError)
    ├── DecodeError     plain data cannot be decoded into a value (also a ValueError)
    ├── GraphError      a graph would lose what the scrum master writes
    ├── InjectionError  context cannot be added to a prompt
    ├── NotFoundError   a file, thread, document, entity or the like does not exist
    └── StoreError      a memory cannot be opened, read or written
        └── EmbeddingError  its embedder fails or does not return vectors

The node raises none of these: in a running graph, failures are recorded in the result and the graph continues.
"""

from __future__ import annotations


class ScrumMasterError(Exception):
    """Base class of all exceptions of this package."""


class ConfigError(ScrumMasterError, ValueError):
    """A setting is invalid."""


class DecodeError(ScrumMasterError, ValueError):
    """Plain data cannot be decoded into a value."""


class NotFoundError(ScrumMasterError):
    """A file, thread, session, document, entity or experience does not exist."""


class ContextAssemblyError(ScrumMasterError):
    """Context cannot be assembled."""


class CannotCompressError(ContextAssemblyError):
    """The text is too long even after compression."""


class InvalidContextTypeError(ContextAssemblyError, ValueError):
    """Unknown context types were requested."""


class QueryTooLongError(ContextAssemblyError, ValueError):
    """The user's turn alone exceeds the token limit."""


class GraphError(ScrumMasterError):
    """A graph would lose what the scrum master writes."""


class StoreError(ScrumMasterError):
    """A memory cannot be opened, read or written."""


class EmbeddingError(StoreError):
    """A memory's embedder fails or does not return vectors."""


class InjectionError(ScrumMasterError):
    """Context cannot be added to a prompt."""


class ScrumMasterWarning(UserWarning):
    """Something works, but probably not as intended."""


def how_to_get(extra: str) -> str:
    """The command that installs an extra of this package, for error messages."""
    return f"pip install '.[{extra}]' in a clone of langgraph-scrum-master"


def with_article(kind: type) -> str:
    """A type's name with its article: an AgentPersonality, a UserPreferences."""
    return f"{'an' if kind.__name__[0] in 'AEIO' else 'a'} {kind.__name__}"


def steers_the_graph(error: BaseException) -> bool:
    """Whether LangGraph uses the exception to interrupt or route a run: a broad `except` must re-raise it."""
    return any(kind.__name__ == "GraphBubbleUp" for kind in type(error).__mro__)

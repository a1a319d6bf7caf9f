from langgraph_scrum_master.learning.assembler import (
    ContextAssembler as ContextAssembler,
    FormattedContext as FormattedContext,
)
from langgraph_scrum_master.learning.indexers import (
    IndexReport as IndexReport,
    index_code as index_code,
    index_commits as index_commits,
    index_documents as index_documents,
    index_values as index_values,
)
from langgraph_scrum_master.learning.records import (
    CodeUnit as CodeUnit,
    Commit as Commit,
    ContextItem as ContextItem,
    Experience as Experience,
    Iteration as Iteration,
    Value as Value,
)
from langgraph_scrum_master.learning.searcher import Searcher as Searcher

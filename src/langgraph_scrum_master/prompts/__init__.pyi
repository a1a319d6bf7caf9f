from langgraph_scrum_master.prompts.pipeline import InjectionPipeline as InjectionPipeline
from langgraph_scrum_master.prompts.result import (
    DivergenceAlert as DivergenceAlert,
    PromptResult as PromptResult,
)
from langgraph_scrum_master.rank.recency import (
    RecencyFactor as RecencyFactor,
    RecencyWeights as RecencyWeights,
    get_recency_factor as get_recency_factor,
)

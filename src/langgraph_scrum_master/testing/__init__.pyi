from langgraph_scrum_master.testing.assertions import (
    assert_abstained as assert_abstained,
    assert_gap as assert_gap,
    assert_injected as assert_injected,
    assert_no_gap as assert_no_gap,
)
from langgraph_scrum_master.testing.builders import (
    FixedClock as FixedClock,
    a_memory as a_memory,
    a_state as a_state,
)
from langgraph_scrum_master.testing.cases import SnapshotCase as SnapshotCase
from langgraph_scrum_master.testing.conformance import MemoryConformance as MemoryConformance
from langgraph_scrum_master.testing.plugs import (
    DetectorConformance as DetectorConformance,
    EmbedderConformance as EmbedderConformance,
    SourceConformance as SourceConformance,
)
from langgraph_scrum_master.testing.scripted import ScriptedChatModel as ScriptedChatModel

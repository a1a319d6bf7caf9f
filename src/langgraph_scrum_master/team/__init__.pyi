from langgraph_scrum_master.team.assistant import ChatAssistant as ChatAssistant
from langgraph_scrum_master.team.checkpoint import (
    MSGPACK_TYPES as MSGPACK_TYPES,
    checkpoint_serde as checkpoint_serde,
)
from langgraph_scrum_master.team.delivery import context_for as context_for
from langgraph_scrum_master.team.detect.gap import gap as gap
from langgraph_scrum_master.team.node import ScrumMasterNode as ScrumMasterNode
from langgraph_scrum_master.team.observe import (
    cycle_analysis as cycle_analysis,
    health_status as health_status,
)
from langgraph_scrum_master.team.record.audit import JsonlRecorder as JsonlRecorder
from langgraph_scrum_master.team.record.snapshots import SnapshotRecorder as SnapshotRecorder
from langgraph_scrum_master.team.state import ScrumMasterState as ScrumMasterState
from langgraph_scrum_master.team.tools import request_context as request_context
from langgraph_scrum_master.team.tuning import (
    DetectionTuning as DetectionTuning,
    TalkWeights as TalkWeights,
)

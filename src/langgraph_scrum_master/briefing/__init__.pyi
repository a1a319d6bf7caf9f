from langgraph_scrum_master.briefing.bank import Lesson as Lesson
from langgraph_scrum_master.briefing.session import (
    Briefing as Briefing,
    SessionBriefing as SessionBriefing,
)

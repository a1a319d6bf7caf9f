"""The system prompt: instructions, personality and user preferences."""

from __future__ import annotations

from langgraph_scrum_master.dialogue.model import AgentPersonality, SystemPrompt, UserPreferences

_PERSONALITY = {
    "helpful": "You are an assistant who helps: answer correctly, briefly and to the purpose.",
    "expert": "You are a specialist in {domain}: answer in depth and with precision.",
    "conversational": "You are good company: talk naturally, and take an interest in the other.",
    "custom": "{description}",
}
_STYLE = {
    "formal": "Write formally.",
    "professional": "Write clearly and in a businesslike way.",
    "casual": "Write casually, as people talk.",
    "friendly": "Write warmly, as to a friend.",
}
_VERBOSITY = {
    "concise": "Answer in few words.",
    "moderate": "Answer at medium length.",
    "detailed": "Answer at length, and leave nothing out.",
}
_TECHNICAL_LEVEL = {
    "beginner": "Use plain words, and no jargon.",
    "intermediate": "Use technical terms, with a short explanation where it helps.",
    "expert": "Use technical terms without explaining them.",
}
_FORMATTING = {
    "use_bullets": "Write lists with bullet points.",
    "use_numbered_lists": "Number steps that follow each other.",
    "include_code_blocks": "Show code in code blocks.",
    "include_links": "Give links to what you mention.",
}


def system_prompt(
    instructions: str, personality: AgentPersonality | None = None, preferences: UserPreferences | None = None
) -> SystemPrompt:
    """Render personality and preferences as sentences."""
    return SystemPrompt(
        instructions=instructions,
        personality=format_personality(personality) if personality else "",
        preferences=format_preferences(preferences) if preferences else (),
    )


def format_personality(personality: AgentPersonality) -> str:
    """Describe the personality in a sentence."""
    template = _PERSONALITY[personality.kind]
    return template.format(domain=personality.domain, description=personality.description)


def format_preferences(preferences: UserPreferences) -> tuple[str, ...]:
    """Describe each preference in a sentence."""
    return (
        _STYLE[preferences.style],
        _VERBOSITY[preferences.verbosity],
        _TECHNICAL_LEVEL[preferences.technical_level],
        *(sentence for name, sentence in _FORMATTING.items() if getattr(preferences.formatting, name)),
        *preferences.custom_instructions,
    )

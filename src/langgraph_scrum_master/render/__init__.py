"""Kept contexts → the text that the agent reads."""

"""Relevance and order."""

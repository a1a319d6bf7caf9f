"""Ranking: features of texts, similarity spaces, and the score of a text for a query."""

"""Ways in, each a choice of stages and settings."""

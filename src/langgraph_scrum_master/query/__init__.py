"""What to look for: for a gap, and in a workspace."""

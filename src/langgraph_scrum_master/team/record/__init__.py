"""What is kept of a step: the audit log and snapshots, written and read."""

"""The records of a step: the audit log and snapshots."""

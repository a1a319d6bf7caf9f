"""Helpers that no other package knows of: threads, logging, telemetry, serialisation, reading what others wrote."""

"""Internal helpers: threads, logging, telemetry, serialisation, settings, and reading untrusted data."""

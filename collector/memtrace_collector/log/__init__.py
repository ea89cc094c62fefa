"""The durable log: untouched OTLP requests in segment files."""

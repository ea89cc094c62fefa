"""OTLP in: gRPC and HTTP, acknowledged only after the log has made the request durable."""

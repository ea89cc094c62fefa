"""OTLP out: destinations, and the outbox that delivers verdicts to them."""

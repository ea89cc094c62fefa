"""A verdict as OTLP: what goes back into the tools where the failing trace stands. Pure."""

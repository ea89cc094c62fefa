"""The environment variables that the host package reads. Names and meaning, once each."""

OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT = (
    "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
)
"""OpenTelemetry's switch for content: NO_CONTENT (default), SPAN_ONLY, EVENT_ONLY, SPAN_AND_EVENT.

This package writes content on spans only, so EVENT_ONLY captures none here. Any other value warns
and means NO_CONTENT. Digests and ids are always written."""

MEMTRACE_DIGEST_KEY = "MEMTRACE_DIGEST_KEY"
"""Key of the content digests, as text. ``plain`` asks for SHA-256 without a key."""

MEMTRACE_DIGEST_KEY_FILE = "MEMTRACE_DIGEST_KEY_FILE"
"""File that holds the digest key, read when MEMTRACE_DIGEST_KEY is not set.

Default: ``memtrace-otel/digest.key`` in the user's state folder, made on first use."""

XDG_STATE_HOME = "XDG_STATE_HOME"
"""The user's state folder (XDG base directories); default ``~/.local/state``."""

MEMTRACE_BAGGAGE = "MEMTRACE_BAGGAGE"
"""``true``: graph and conversation ids travel to, and are taken from, OpenTelemetry baggage."""

MEMTRACE_MAX_VALUE_CHARS = "MEMTRACE_MAX_VALUE_CHARS"
"""Captured characters per value; a longer one is shortened and listed in ``cut``. Default 8192."""

MEMTRACE_MAX_SPAN_CHARS = "MEMTRACE_MAX_SPAN_CHARS"
"""Captured characters per span, over all its values. Default 65536."""

MEMTRACE_RAISE_INTERNAL = "MEMTRACE_RAISE_INTERNAL"
"""``1``: this package's own errors are raised instead of logged. For its tests only."""

OTEL_SERVICE_NAME = "OTEL_SERVICE_NAME"
"""Name of the last resort graph ``service:<name>`` when the provider's resource has none."""

OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT = "OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT"
"""The SDK's limit for the characters of one span attribute; longer lineage is split."""

OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT = "OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT"
"""As above, for all attributes; the one for spans goes first."""

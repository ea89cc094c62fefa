"""Settings of what listens."""

from __future__ import annotations

from dataclasses import dataclass

from memtrace_collector.settings.checks import check

MARKERS = ("memtrace.", "gen_ai.memory.", "gen_ai.evaluation.")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerConfig:
    """Where to listen. Port 0 takes a free one; ``host`` is a name or an address."""

    host: str = "127.0.0.1"
    grpc_port: int = 4317
    http_port: int = 4318
    api_port: int = 4319
    allow_remote: bool = False
    """Listen on an address that other hosts reach though nobody is asked who is calling, or
    though tokens cross the network in the clear."""
    max_request_bytes: int = 64 * 1024 * 1024
    max_connections: int = 1_000
    """Of senders over HTTP, and as many over gRPC."""
    names: tuple[str, ...] = ()
    """Names of this server besides those of its own machine. Where there are any, or it listens on
    loopback, the API answers to no other: no web page can reach it under a name of its own."""
    markers: tuple[str, ...] = MARKERS
    """A span is read when its bytes contain one of these; any other is only passed on."""

    def validate(self) -> None:
        for name in ("grpc_port", "http_port", "api_port"):
            check(f"server.{name}", 0 <= getattr(self, name) <= 65_535, "0 to 65535")
        taken = [port for port in (self.grpc_port, self.http_port, self.api_port) if port]
        check("server.*_port", len(set(taken)) == len(taken), "three different ports")
        check("server.max_request_bytes", self.max_request_bytes >= 1024, "at least 1024")
        check("server.names", all(self.names), "names of hosts, without ports")
        check("server.max_connections", self.max_connections >= 1, "at least 1")
        check("server.markers", bool(self.markers) and all(self.markers), "at least one text")

"""Who may know whom (DESIGN section 2)."""

from __future__ import annotations

import sys
from collections import defaultdict

import pytest

from tests import imports
from tests.imports import Import

HOST_API = (
    "opentelemetry.baggage",
    "opentelemetry.context",
    "opentelemetry.propagate",
    "opentelemetry.trace",
    "opentelemetry.util.types",
    "opentelemetry.instrumentation",
    "wrapt",
)
SDK_USERS = {"memtrace_otel.sampler", "memtrace_otel.testing"}
"""Loaded by the SDK itself and by tests."""
INSTRUMENTED = ("mem0", "openai")
SHARED = {"memtrace_otel.semconv", "memtrace_otel.variables", "memtrace_otel.canonical_json"}
WIRING = {"__main__", "app", "bench", "cli", "commands", "demo", "runtime"}
"""Only these know everyone."""
SUPPORT = {"access", "config", "errors", "otlp", "settings", "telemetry"}
"""Known to everyone; they know no stage."""
STAGES = {
    "api",
    "attribution",
    "dialects",
    "exporter",
    "graph",
    "log",
    "processor",
    "receiver",
    "store",
}
MUST_NOT_KNOW = {
    "graph": STAGES - {"graph"},
    "store": STAGES - {"store", "graph", "log"},
    "dialects": STAGES - {"dialects", "graph"},
    "log": STAGES - {"log"},
    "receiver": {"store", "graph", "dialects", "processor", "attribution", "api"},
    "exporter": {"store", "graph", "dialects", "processor", "attribution", "api"},
    "processor": {"attribution", "api"},
    "attribution": {"processor", "api", "receiver", "dialects"},
    "api": {"processor", "receiver", "exporter", "dialects"},
}

ATTRIBUTION = "memtrace_collector.attribution"
ATTRIBUTION_ORDER = ("texts", "carrying", "rules", "unlabelled")
"""Each knows only those before it; none of them knows a model, a replay or the worker."""
ASKING = ("model", "agent", "replay", "work")

HOST = list(imports.of(imports.HOST))
COLLECTOR = list(imports.of(imports.COLLECTOR))


def under(target: str, *packages: str) -> bool:
    return any(target == package or target.startswith(f"{package}.") for package in packages)


def part(dotted: str) -> str:
    """The collector's package or module of a dotted name, as ``store``."""
    return dotted.split(".")[1] if "." in dotted else ""


def listed(wrong: list[Import]) -> str:
    return "\n".join(map(str, wrong))


def test_the_host_package_knows_nothing_of_the_collector() -> None:
    wrong = [each for each in HOST if under(each.target, "memtrace_collector")]
    assert not wrong, listed(wrong)


def test_the_host_package_needs_only_api_instrumentation_and_wrapt() -> None:
    def allowed(each: Import) -> bool:
        root = each.target.split(".")[0]
        if root in sys.stdlib_module_names or root == "memtrace_otel":
            return True
        if each.target == "opentelemetry" or under(each.target, *HOST_API):
            return True
        if under(each.target, "opentelemetry.sdk"):
            return each.module in SDK_USERS
        return root in INSTRUMENTED and under(each.module, "memtrace_otel.instrumentors")

    wrong = [each for each in HOST if not allowed(each)]
    assert not wrong, listed(wrong)


def test_the_shared_modules_are_pure() -> None:
    def allowed(each: Import) -> bool:
        root = each.target.split(".")[0]
        return root in sys.stdlib_module_names or each.target in SHARED

    wrong = [each for each in HOST if each.module in SHARED and not allowed(each)]
    assert not wrong, listed(wrong)
    assert not [each for each in HOST if each.module == "memtrace_otel.semconv"]


def test_the_host_package_does_not_lean_on_its_instrumentors() -> None:
    wrong = [
        each
        for each in HOST
        if under(each.target, "memtrace_otel.instrumentors")
        and not under(each.module, "memtrace_otel.instrumentors")
    ]
    assert not wrong, listed(wrong)


def test_the_collector_takes_only_names_and_references_from_the_host_package() -> None:
    wrong = [
        each
        for each in COLLECTOR
        if under(each.target, "memtrace_otel")
        and each.target not in SHARED
        and not under(each.module, "memtrace_collector.demo", "memtrace_collector.bench.pipelines")
    ]
    assert not wrong, listed(wrong)


@pytest.mark.parametrize("stage", sorted(MUST_NOT_KNOW))
def test_a_stage_knows_only_what_comes_before_it(stage: str) -> None:
    wrong = [
        each
        for each in COLLECTOR
        if part(each.module) == stage
        and under(each.target, "memtrace_collector")
        and part(each.target) in MUST_NOT_KNOW[stage]
    ]
    assert not wrong, listed(wrong)


def test_only_the_wiring_knows_the_wiring() -> None:
    wrong = [
        each
        for each in COLLECTOR
        if under(each.target, "memtrace_collector")
        and part(each.target) in WIRING
        and part(each.module) not in WIRING
    ]
    assert not wrong, listed(wrong)


def test_supporting_modules_know_no_stage() -> None:
    wrong = [
        each
        for each in COLLECTOR
        if part(each.module) in SUPPORT
        and under(each.target, "memtrace_collector")
        and part(each.target) in STAGES
    ]
    assert not wrong, listed(wrong)


@pytest.mark.parametrize("found", [HOST, COLLECTOR], ids=["memtrace_otel", "memtrace_collector"])
def test_imports_make_no_circle(found: list[Import]) -> None:
    known = {each.module for each in found}
    edges: dict[str, set[str]] = defaultdict(set)
    for each in found:
        if each.target in known and not each.for_types:
            edges[each.module].add(each.target)
    done: set[str] = set()

    def visit(module: str, path: tuple[str, ...]) -> None:
        assert module not in path, " -> ".join((*path[path.index(module) :], module))
        if module not in done:
            for target in sorted(edges[module] - {module}):
                visit(target, (*path, module))
            done.add(module)

    for module in sorted(known):
        visit(module, ())


@pytest.mark.parametrize("package", ATTRIBUTION_ORDER)
def test_the_rules_build_on_what_carries_and_that_on_texts(package: str) -> None:
    later = ATTRIBUTION_ORDER[ATTRIBUTION_ORDER.index(package) + 1 :]
    unknown = [f"{ATTRIBUTION}.{name}" for name in (*later, *ASKING)]
    wrong = [
        each
        for each in COLLECTOR
        if under(each.module, f"{ATTRIBUTION}.{package}") and under(each.target, *unknown)
    ]
    assert not wrong, listed(wrong)

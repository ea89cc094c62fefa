from __future__ import annotations

from pathlib import Path

import pytest

from memtrace_collector import config
from memtrace_collector.errors import ConfigError, NotInThisVersionError
from memtrace_collector.settings.server import MARKERS


def test_argument_beats_environment_beats_file_beats_default(tmp_path: Path) -> None:
    file = tmp_path / "memtrace.yaml"
    file.write_text(
        "server: {http_port: 1001, grpc_port: 1002, api_port: 1003}\nforward: {values: true}\n"
    )
    loaded = config.load(
        {"server.http_port": 3001},
        {"MEMTRACE_HTTP_PORT": "2001", "MEMTRACE_GRPC_PORT": "2002"},
        file,
    )
    assert loaded.server.http_port == 3001
    assert loaded.server.grpc_port == 2002
    assert loaded.server.api_port == 1003
    assert loaded.forward.values is True
    assert loaded.store == config.DEFAULT_STORE


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("server: {httpport: 1}", "unknown setting server.httpport"),
        ("server: {http_port: many}", "server.http_port .*not a whole number"),
        ("server: {http_port: 70000}", "server.http_port: expected 0 to 65535"),
        ("server: {http_port: 5, api_port: 5}", "three different ports"),
        ("forward: {url: 'localhost:4318'}", "forward.url: expected a URL"),
        (
            "forward: {profile: zipkin}",
            "forward.profile: expected jaeger or jaeger-badger or .* none",
        ),
        ("forward: {query_url: 'localhost:16686'}", "forward.query_url: expected a URL .*:16686"),
        (
            "forward: {profile: logfire, query_url: 'http://localhost:16686'}",
            "forward.profile: expected jaeger or jaeger-badger or jaeger-elasticsearch or tempo",
        ),
        ("- a\n- b", "expected a mapping"),
        ("a: [", "cannot read the configuration file"),
        ("attribution: {thresholds: {faithful: .nan}}", "thresholds .*not a number"),
        ("attribution: {method: guess}", "attribution.method: expected rules"),
        ("telemetry: {otlp_url: 'localhost:4318'}", "telemetry.otlp_url: expected a URL"),
        ("telemetry: {interval_seconds: 0}", "telemetry.interval_seconds: expected 0.1 to 3600"),
    ],
)
def test_a_wrong_setting_is_refused_by_name(tmp_path: Path, text: str, says: str) -> None:
    file = tmp_path / "memtrace.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=says):
        config.load({}, {}, file)


def test_thresholds_are_read_from_file_and_environment(tmp_path: Path) -> None:
    file = tmp_path / "memtrace.yaml"
    file.write_text("attribution: {thresholds: {faithfulness: 0.5}}")
    assert config.load({}, {}, file).attribution.thresholds == {"faithfulness": 0.5}
    environment = {"MEMTRACE_EVALUATION_THRESHOLDS": "a=0.1, b=2"}
    assert config.load({}, environment).attribution.thresholds == {"a": 0.1, "b": 2.0}


def test_an_address_that_others_reach_needs_allow_remote() -> None:
    with pytest.raises(ConfigError, match="--allow-remote"):
        config.load({"server.host": "0.0.0.0"}, {})
    allowed = config.load({"server.host": "0.0.0.0", "server.allow_remote": True}, {})
    assert allowed.server.host == "0.0.0.0"


REMOTE = {"server.host": "0.0.0.0"}
TOKENS = {"auth.tokens_file": "tokens.yaml"}
TLS = {"tls.certificate": "a.pem", "tls.key": "a.key"}


@pytest.mark.fault("F32")
@pytest.mark.parametrize(
    ("given", "says"),
    [
        (REMOTE, "asks who is calling"),
        ({**REMOTE, **TLS}, "asks who is calling"),
        ({**REMOTE, **TOKENS}, "tokens would cross the network in the clear"),
        ({"tls.certificate": "a.pem"}, "tls.certificate, tls.key: expected both"),
        ({"tls.client_ca": "ca.pem"}, "tls.client_ca: expected tls.certificate"),
        ({**TLS, "tls.client_ca": "ca.pem"}, "tls.client_ca: expected auth.tokens_file"),
    ],
)
def test_other_hosts_are_let_in_with_tokens_over_tls_only(given: dict[str, str], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        config.load(given, {})


@pytest.mark.parametrize(
    "given",
    [{**REMOTE, **TOKENS, **TLS}, {**REMOTE, **TOKENS, "server.allow_remote": True}, TOKENS],
)
def test_other_hosts_are_let_in_when_they_are_asked(given: dict[str, object]) -> None:
    assert config.load(given, {}).auth.is_on


def test_a_store_is_a_folder_or_a_database() -> None:
    url = "postgresql://db/memtrace"
    assert config.load({"store": url}, {}).store == url
    with pytest.raises(NotInThisVersionError, match="give --store a folder"):
        config.load({"store": "mysql://db/memtrace"}, {})


def test_a_method_that_needs_a_model_is_refused_clearly() -> None:
    with pytest.raises(ConfigError, match="--method rules"):
        config.load({"attribution.method": "agent"}, {})


def test_the_shipped_file_names_every_setting_and_is_valid() -> None:
    file = Path(__file__).parents[2] / "collector" / "memtrace.yaml"
    text = file.read_text()
    loaded = config.load({}, {}, file)
    assert loaded.server.markers == MARKERS
    for setting in config.SETTINGS:
        assert f"{setting.path.rpartition('.')[2]}:" in text
    assert len(text.splitlines()) < 60


@pytest.mark.parametrize(
    "template",
    [
        "http://localhost:16686/trace/{trace_id}?uiFind={span_id}",
        "https://traces.example/explore?trace={trace_id}",
    ],
)
def test_a_template_of_trace_addresses_is_taken(template: str) -> None:
    loaded = config.load({}, {"MEMTRACE_TRACE_URL": template})
    assert loaded.explorer.trace_url == template


@pytest.mark.parametrize(
    "template",
    [
        "localhost:16686/trace/{trace_id}",
        "javascript:alert('{trace_id}')",
        "http://localhost:16686/trace",
        "http://localhost:16686/trace/{span_id}",
        "http://localhost:16686/trace/{trace_id}/{service}",
        "http://localhost:16686/trace/{trace_id",
        "http://localhost:16686/trace/{trace_id!r}",
        "http://{trace_id}.example/{trace_id}",
        "http:///trace/{trace_id}",
        "http://[::1/trace/{trace_id}",
    ],
)
def test_a_template_that_gives_no_address_of_a_trace_is_refused(template: str) -> None:
    with pytest.raises(ConfigError, match=r"explorer\.trace_url: expected http"):
        config.load({}, {"MEMTRACE_TRACE_URL": template})


def test_an_empty_environment_variable_is_none() -> None:
    assert config.load({}, {"MEMTRACE_HTTP_PORT": ""}).server.http_port == 4318


@pytest.mark.parametrize(
    ("url", "refused"),
    [
        ("http://localhost:4318", True),
        ("grpc://127.0.0.1:4317", True),
        ("http://localhost:14318", False),
        ("http://jaeger:4318", False),
    ],
)
def test_spans_and_metrics_are_not_sent_to_where_spans_come_in(url: str, refused: bool) -> None:
    for settings in (
        config.Config(forward=config.ForwardConfig(url=url)),
        config.Config(telemetry=config.TelemetryConfig(otlp_url=url)),
    ):
        if refused:
            with pytest.raises(ConfigError, match="in circles"):
                settings.validate()
        else:
            settings.validate()

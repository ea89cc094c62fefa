# `make demo` and `make test` set up everything they need from nothing, and only once.

PYTHON ?= python3
ARGS ?=

VENV := .venv
VENV_MEM0_2 := .venv-mem0-2
BIN := $(VENV)/bin
CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/memtrace-otel
JAEGER_VERSION := v1.76.0
JAEGER := $(CACHE)/bin/jaeger-$(JAEGER_VERSION)
OTELCOL_VERSION := 0.160.0
OTELCOL := $(CACHE)/bin/otelcol-$(OTELCOL_VERSION)-2
PIP := -m pip --disable-pip-version-check --quiet

.PHONY: help demo test lint types jaeger otelcol node-sdk venv-mem0-2 clean

help:
	@echo "make demo         a wrong answer's way through a real memory, end to end"
	@echo "                  (ARGS=\"--forward http://localhost:4318\" shows it in Jaeger)"
	@echo "make test         every test (ARGS=\"-k name\" for some of them)"
	@echo "make lint types   ruff; mypy --strict"
	@echo "make jaeger       build Jaeger $(JAEGER_VERSION) (v2) for the tests that need it: Go, 4 minutes"
	@echo "make otelcol      build an OpenTelemetry Collector $(OTELCOL_VERSION) for the same: Go, 2 minutes"
	@echo "make node-sdk     install OpenTelemetry's SDK for Node for the same: npm, 1 minute"
	@echo "make clean        remove the virtual environments and caches"

demo: $(VENV)/.demo
	$(BIN)/memtrace-otel demo $(ARGS)

test: $(VENV)/.test $(VENV_MEM0_2)/.ready
	$(BIN)/python -m pytest $(ARGS)

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.test
	$(BIN)/mypy
	$(BIN)/mypy --python-version 3.11 dashboards/source

jaeger: $(JAEGER)

otelcol: $(OTELCOL)

node-sdk: $(NODE_SDK)

venv-mem0-2: $(VENV_MEM0_2)/.ready

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo $(VENV)/.test: $(VENV)/.%: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python $(PIP) install --editable '.[$*]'
	touch $@

$(VENV_MEM0_2)/.ready: pyproject.toml
	$(PYTHON) -m venv $(VENV_MEM0_2)
	$(VENV_MEM0_2)/bin/python $(PIP) install --editable '.[zero]' 'mem0ai==2.2.1' \
		'msgspec>=0.19' 'pytest>=8.3' 'pytest-asyncio>=0.25' 'pytest-timeout>=2.3'
	touch $@

$(JAEGER):
	tests/integration/build_jaeger.sh $(JAEGER_VERSION) $@

$(OTELCOL):
	tests/integration/build_otelcol.sh $(OTELCOL_VERSION) $@

$(NODE_SDK):
	tests/integration/install_node_sdk.sh $@

clean:
	rm -rf $(VENV) $(VENV_MEM0_2) .mypy_cache .ruff_cache .pytest_cache

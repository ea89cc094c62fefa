#!/usr/bin/env bash
# install_node_sdk.sh DIR: the OpenTelemetry SDK for Node with its three OTLP trace exporters, from
# the npm registry, into DIR (which names the versions, so that it is made once).
set -euo pipefail

target=$1
api=1.9.1
sdk=2.12.0
exporters=0.223.1

if ! command -v npm >/dev/null; then
    echo "the OpenTelemetry SDK for Node needs npm and Node 20 or later (https://nodejs.org)" >&2
    exit 1
fi
mkdir -p "$(dirname "$target")"
scratch=$(mktemp -d "$target.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
npm install --prefix "$scratch" --no-audit --no-fund --ignore-scripts --loglevel error \
    "@opentelemetry/api@$api" "@opentelemetry/sdk-trace-node@$sdk" \
    "@opentelemetry/exporter-trace-otlp-proto@$exporters" \
    "@opentelemetry/exporter-trace-otlp-http@$exporters" \
    "@opentelemetry/exporter-trace-otlp-grpc@$exporters"
mv "$scratch" "$target"

#!/usr/bin/env bash
# build_otelcol.sh VERSION TARGET: an OpenTelemetry Collector with the components of collector/otelcol.yaml,
# made by the official builder through the Go module proxy.
set -euo pipefail

version=$1
target=$2
manifest=$(cd "$(dirname "$0")" && pwd)/otelcol-builder.yaml

if ! command -v go >/dev/null; then
    echo "building a Collector needs Go 1.24 or later (https://go.dev/dl)" >&2
    exit 1
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"

echo "building an OpenTelemetry Collector; this takes a few minutes the first time"
sed "/^  version:/a\\  output_path: $scratch/source" "$manifest" >manifest.yaml
go run go.opentelemetry.io/collector/cmd/builder@v$version --config manifest.yaml
mkdir -p "$(dirname "$target")"
mv source/otelcol "$target"

#!/usr/bin/env bash
# build_jaeger.sh VERSION TARGET: build Jaeger v2 from source, through the Go module proxy.
#
# `go install …@VERSION` refuses a module whose go.mod has replace directives, and Jaeger's has
# one. So a scratch module takes over Jaeger's own go.mod and go.sum, requires Jaeger itself, and
# is built. The result has the whole query API, and a placeholder instead of its page.
set -euo pipefail

version=$1
target=$2
module=github.com/jaegertracing/jaeger

if ! command -v go >/dev/null; then
    echo "building Jaeger needs Go 1.24 or later (https://go.dev/dl)" >&2
    exit 1
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"

echo "building Jaeger $version; this takes a few minutes the first time"
go mod download -json "$module@$version" >download.json
go_mod=$(sed -n 's/^\t"GoMod": "\(.*\)",$/\1/p' download.json)
source=$(sed -n 's/^\t"Dir": "\(.*\)",$/\1/p' download.json)
sed '1,/^module /s/^module .*/module scratch/' "$go_mod" >go.mod
cp "$source/go.sum" go.sum
chmod u+w go.mod go.sum
go mod edit -require "$module@$version"
go build -mod=mod -ldflags '-s -w' -o jaeger "$module/cmd/jaeger"
mkdir -p "$(dirname "$target")"
mv jaeger "$target"

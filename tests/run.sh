#!/usr/bin/env bash
# Installs what is missing, builds and runs all tests (README: second command).
set -euo pipefail
cd "$(dirname "$0")/.."
.ci/build release
ctest --preset release -j "$(nproc)" "$@"

#!/usr/bin/env bash
# Installs what is missing, builds gradwire and runs the main job (README: first command): rank-dAD and
# its baselines on Fashion-MNIST over worker counts and network speeds.  Further flags go to the run.
set -euo pipefail
cd "$(dirname "$0")/.."
echo "gradwire: building (about 3 minutes the first time on two cores), then the run (seconds)" >&2
.ci/build release gradwire
build/release/gradwire run --platform star-1g --model mlp-mnist --dataset fashion-mnist \
  --algorithm rank-dad:rank=4 dsgd dsgd:form=authors dad powersgd:rank=4 top-columns \
  --workers 2,4,8,16 --bandwidth 100Mbps,1Gbps,10Gbps \
  --output build/report.json "$@"

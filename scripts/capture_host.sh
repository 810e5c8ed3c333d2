#!/bin/bash
# Capture this host for tests/hosts, without names, serial numbers and addresses: scripts/capture_host.sh NAME
# NAME says what it is, as vm-h200-x4. Knobs: BUSBW (the command; default: busbw). Look at what it holds before committing:
# tar tzf tests/hosts/NAME/host.tar.gz
set -euo pipefail
cd "$(dirname "$0")/.."
NAME=${1:?how is this kind of host called? scripts/capture_host.sh NAME}
BUSBW=${BUSBW:-busbw}
mkdir -p "tests/hosts/$NAME"
"$BUSBW" probe --anonymous -o "tests/hosts/$NAME/host.tar.gz" --json >"tests/hosts/$NAME/expected.json"
"$BUSBW" probe "tests/hosts/$NAME/host.tar.gz"

#!/usr/bin/env bash
# The demo does what it promises, with the release binary.
set -uo pipefail
cd "$(dirname "$0")/../.."
if said=$(./demo 2>&1 </dev/null); then
  echo "ok demo: everything expected happened"
else
  printf '%s\n' "$said"
  echo "not ok demo"
fi

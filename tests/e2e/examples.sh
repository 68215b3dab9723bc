#!/bin/sh
# Runs every example of a build to its end and looks for the lines that it must print. Exit 0 when all of it holds.
#   tests/e2e/examples.sh [BUILD_FOLDER]
set -eu

source_dir=$(cd "$(dirname "$0")/../.." && pwd)
build_dir=${1:-$source_dir/out/test}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export TMPDIR="$work"
failed=0

# check NAME LINE…: exit 0, and each of the lines is printed.
check() {
  name=$1
  shift
  if ! timeout 60 "$build_dir/examples/$name" >"$work/out" 2>"$work/err"; then
    echo "examples: FAILED: $name does not exit 0"
    cat "$work/out" "$work/err"
    failed=1
    return
  fi
  for line in "$@"; do
    grep -qxF -- "$line" "$work/out" && continue
    echo "examples: FAILED: $name does not print: $line"
    cat "$work/out" "$work/err"
    failed=1
    return
  done
  echo "examples: $name: ok"
}

check plain_task "4 requeued" "status: completed" "answer: {\"receipt\":{\"paid\":120}}" \
  "fetched 1 time, tried to pay 2 times"
check cpp_tools "outcome: awaiting_approval" "tickets before the approval: 0" "- approval_requested" \
  "status: completed" "answer: \"Ticket T-1 is open for Ada.\"" "tickets opened: 1"
check embedding "completed: 20" "shipped: 20" "stats: {\"completed\":20}"

for source in "$source_dir"/examples/*.cpp; do
  name=$(basename "$source" .cpp)
  grep -q "^check $name " "$0" || { echo "examples: FAILED: $name is not checked"; failed=1; }
done
exit $failed

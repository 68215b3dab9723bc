#!/bin/sh
# Slow on purpose: this is where ./demo kills the worker.
. ./tools/ledger.sh
note executed
sleep 2
echo '{"risk": "low"}'

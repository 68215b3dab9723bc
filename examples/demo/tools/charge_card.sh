#!/bin/sh
# The money has moved once the line is in the ledger; the answer takes its time.
. ./tools/ledger.sh
note executed
sleep 2
echo '{"receipt": "r-4711"}'

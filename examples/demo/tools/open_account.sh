#!/bin/sh
. ./tools/ledger.sh
note executed
echo '{"account": "a-17"}'

#!/bin/sh
. ./tools/ledger.sh
note executed
echo '{"customer": "c-17", "name": "Ada"}'

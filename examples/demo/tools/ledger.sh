# Sourced by the tools: one line in the ledger for each time that one is really executed.
note() { echo "$(date +%s%3N) $HOLDFAST_TOOL $1 $HOLDFAST_IDEMPOTENCY_KEY" >>ledger; }
arguments=$(cat)

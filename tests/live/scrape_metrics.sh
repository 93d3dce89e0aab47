#!/bin/bash
# scrape_metrics.sh PROGRAM: starts the metrics example, reads /metrics as Prometheus would, until it tells of
# rounds of both kinds, and of a connection to and a vote of each node in REDLOCK_NODES.
set -euo pipefail

IFS=, read -r -a nodes <<<"$REDLOCK_NODES"
exec 3< <(METRICS_ADDRESS=127.0.0.1:0 exec "$1")
program=$!
trap 'kill "$program" 2>/dev/null || true' EXIT
read -r -t 20 url <&3 || { echo "the program did not say where it serves"; exit 1; }
port=${url#http://127.0.0.1:}
port=${port%/metrics}

scrape() {
    exec 4<>"/dev/tcp/127.0.0.1/$port"
    printf 'GET /metrics HTTP/1.0\r\nHost: localhost\r\n\r\n' >&4
    timeout 20 cat <&4
    exec 4<&-
}

told() {  # LINE's beginning: some line of the page begins so and ends in a number of 1 or more
    grep -E "^$1[^#]* [1-9][0-9]*(\.[0-9]+)?"$'\r?$' <<<"$page" >/dev/null
}

complete() {
    told 'redlock_round_seconds_count\{command="acquire"\}' || return 1
    told 'redlock_round_seconds_count\{command="release"\}' || return 1
    local node
    for node in "${nodes[@]}"; do
        told "redlock_connections\{node=\"${node#redis://}\"\}" || return 1
        told "redlock_votes_total\{node=\"${node#redis://}\",vote=\"granted\"\}" || return 1
    done
}

until page=$(scrape) && complete; do
    ((SECONDS < 20)) || { echo "after $SECONDS s still:"; echo "$page"; exit 1; }
    sleep 0.1
done

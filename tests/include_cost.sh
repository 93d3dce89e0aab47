#!/bin/sh
# Measures the cost of `#include <redlock/redlock.hpp>` for a compiler, as a multiple of the standard headers that users
# include anyway. The measure is the smallest user time of several alternating runs at -O0. Fails above LIMIT.
#
# Usage: include_cost.sh [COMPILER [LIMIT [RUNS]]]
set -eu
unset CDPATH
include=$(cd -- "$(dirname -- "$0")/../include" && pwd)
compiler=${1:-c++} limit=${2:-1.7} runs=${3:-7}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

for header in chrono string vector memory functional mutex system_error; do
    echo "#include <$header>"
done >"$work/std.cpp"
echo '#include <redlock/redlock.hpp>' >"$work/redlock.cpp"

# Prints the user time of a compilation. `times` reports all processes of a separate shell: "0m0.87s 0m0.05s", user and
# system.
cost() {
    sh -c '"$@" && times' sh "$compiler" -std=c++20 -O0 -I"$include" -c "$work/$1.cpp" -o "$work/$1.o" |
        sed -n '2s/^\([0-9]*\)m\([0-9.]*\)s .*/\1 \2/p' | awk '{ print $1 * 60 + $2 }'
}

least() {
    sort -n "$work/$1.times" | head -n 1
}

run=0
while [ "$run" -lt "$runs" ]; do
    run=$((run + 1))
    cost std >>"$work/std.times"
    cost redlock >>"$work/redlock.times"
done
awk -v std="$(least std)" -v redlock="$(least redlock)" -v limit="$limit" 'BEGIN {
    printf "<redlock/redlock.hpp> %.2f s, the std headers %.2f s: %.2f times, at most %.2f\n",
        redlock, std, redlock / std, limit
    exit redlock / std > limit
}'

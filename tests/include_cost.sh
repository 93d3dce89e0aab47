#!/bin/sh
# What `#include <redlock/redlock.hpp>` costs a compiler, as a multiple of the std headers that its users have
# anyway: user time at -O0, in alternating runs, the least of each. Fails above LIMIT.
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

# The user time of the compiler, in hundredths of a second.
cost() {
    { TIMEFORMAT=%U && export TIMEFORMAT && command time -p "$compiler" -std=c++20 -O0 -I"$include" -c "$work/$1.cpp" \
        -o "$work/$1.o"; } 2>&1 | sed -n 's/^user *\([0-9]*\)[.]\([0-9][0-9]\).*/\1\2/p'
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
        redlock / 100, std / 100, redlock / std, limit
    exit redlock / std > limit
}'

#!/bin/sh
# sh tests/fuzz/run.sh [SECONDS [SEED]]: installs missing packages, builds, and fuzzes each target for SECONDS (default:
# 60). With a SEED, and without a corpus of earlier runs, the inputs and their order are always the same.
#
# It starts from the inputs in tests/fuzz/corpus and from the inputs it has found before, which it keeps in
# build/fuzz/corpus. It fails at the first finding, and prints where the input is and how to replay it.
set -eu
unset CDPATH
cd -- "$(dirname -- "$0")/../.."
seconds=${1:-60}
case $seconds in
'' | 0 | *[!0-9]*)
    echo "usage: sh tests/fuzz/run.sh [SECONDS [SEED]]" >&2
    exit 2
    ;;
esac
seed=${2:-0} # 0: a different seed each time
build=build/fuzz
log=$build.log
findings=$build/findings
mkdir -p "$findings"

sh cmake/install-packages.sh build fuzz

jobs=$(getconf _NPROCESSORS_ONLN)
echo "build: $build, $jobs jobs"
{ cmake --preset fuzz && cmake --build --preset fuzz --parallel "$jobs"; } >"$log" 2>&1 || {
    cat "$log" >&2
    exit 1
}

# Some kernels randomise memory mappings more than the AddressSanitizer of clang 14 tolerates.
quiet_layout=
if setarch -R true 2>/dev/null; then quiet_layout='setarch -R'; fi
export UBSAN_OPTIONS=print_stacktrace=1

# fuzz TARGET MAX_LEN: a longer input is slower, and finds no more than several short ones.
fuzz() {
    target=$1
    program=$build/tests/fuzz/$target
    log=$build/$target.log
    mkdir -p "$build/corpus/$target"
    # Nothing waits in real time, so ten seconds for one input mean a hang. Leaks are detected only at the end, because
    # Lua frees memory late and would trigger a search for leaks after every input.
    # shellcheck disable=SC2086  # two words, or none
    if ! timeout $((seconds + 120)) $quiet_layout "$program" -max_total_time="$seconds" -seed="$seed" -max_len="$2" -timeout=10 -detect_leaks=0 \
        -rss_limit_mb=2048 -artifact_prefix="$findings/$target-" -print_final_stats=1 -verbosity=1 \
        "$build/corpus/$target" "tests/fuzz/corpus/$target" >"$log" 2>&1 </dev/null; then
        grep -vE '^#[0-9]|^INFO|NEW_FUNC|# Uses:' "$log" | tail -n 60 >&2
        input=$(sed -n 's/.*Test unit written to //p' "$log" | tail -n 1)
        echo "$target: a finding, see above and $log" >&2
        echo "input:  ${input:-none was kept}" >&2
        [ -z "$input" ] || echo "replay: $program $input" >&2
        exit 1
    fi
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    rate=$(sed -n 's/^stat::average_exec_per_sec: *//p' "$log")
    echo "$target: $runs inputs in $seconds s ($rate a second), nothing found"
}

fuzz fuzz_cluster 1024
fuzz fuzz_redirections 128
fuzz fuzz_endpoint 256
fuzz fuzz_replies 1024
fuzz fuzz_calls 96

#!/bin/sh
# sh tests/bench/run.sh [OPTION...] [SCENARIO...]: installs what is missing, builds, measures.
#
#     sh tests/bench/run.sh                       everything: a quarter of an hour on a quiet machine
#     sh tests/bench/run.sh --quick loopback work one repetition of two scenarios, to see that it works
#
# Scenarios: loopback rtt faults threads contention work watchdog. Options: --quick, --no-peers.
# Leaves build/bench/results.json and build/bench/results.svg; pictures/make.sh --results makes the README's of it.
#
# Peers are measured where they are found: redis-plus-plus by CMake (CMAKE_PREFIX_PATH), redis-py from Debian,
# node-redlock from npm where node and npm are installed.
set -eu
unset CDPATH
here=$(cd -- "$(dirname -- "$0")" && pwd)
cd -- "$here/../.."
build=build/bench
log=$build.log
mkdir -p "$build"

sh cmake/install-packages.sh build run bench

echo "build: $build"
{
    cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DREDLOCK_BUILD_BENCHMARKS=ON \
        -DREDLOCK_BUILD_TESTS=OFF -DREDLOCK_BUILD_EXAMPLES=OFF -DREDLOCK_BUILD_TOOL=OFF &&
        cmake --build "$build" --target redlock_bench with_redis_nodes
} >"$log" 2>&1 || {
    cat "$log" >&2
    exit 1
}

if command -v npm >/dev/null; then
    mkdir -p "$build/npm"
    if ! cmp -s "$here/peers/package-lock.json" "$build/npm/installed"; then
        cp "$here/peers/package.json" "$here/peers/package-lock.json" "$build/npm/"
        (cd "$build/npm" && npm ci --no-audit --no-fund) >"$log" 2>&1 &&
            cp "$here/peers/package-lock.json" "$build/npm/installed" ||
            echo "node-redlock could not be installed, see $log" >&2
    fi
    NODE_PATH=$PWD/$build/npm/node_modules
    export NODE_PATH
fi

case $(cut -d. -f1 /proc/loadavg) in
0) ;;
*) echo "measure: the machine is busy; these figures will be noise" >&2 ;;
esac
commit=$(git describe --always --dirty 2>/dev/null) || commit=unknown
echo "measure: commit $commit, $(uptime | sed 's/.*load/load/')"
status=0
"$build/tests/bench/redlock_bench" --json "$build/results.json" --commit "$commit" "$@" || status=$?
[ "$status" -ne 0 ] || python3 -B "$here/pictures/benchmarks.py" "$build/results.json" "$build/results.svg"
exit "$status"

#!/bin/sh
# sh tests/bench/run.sh [OPTION...] [SCENARIO...]: installs missing packages, builds, and measures.
#
#     sh tests/bench/run.sh                       everything: 40 minutes on a quiet machine
#     sh tests/bench/run.sh --quick loopback work one repetition of two scenarios, to see that it works
#
# Scenarios: loopback rtt faults contention work watchdog many waits cluster. Options: --quick, --no-peers.
# Leaves build/bench/results.json and build/bench/results.svg. pictures/make.sh --results draws the README's pictures
# from them.
#
# Other libraries are measured if they are found: redis-plus-plus by CMake (CMAKE_PREFIX_PATH), redis-py from Debian,
# and node-redlock from npm if node and npm are installed.
set -eu
unset CDPATH
here=$(cd -- "$(dirname -- "$0")" && pwd)
cd -- "$here/../.."
build=build/bench
log=$build.log
mkdir -p "$build"

sh cmake/install-packages.sh build tool run bench

echo "build: $build"
sh cmake/counted.sh "$log" cmake --preset release -B "$build" -DREDLOCK_BUILD_BENCHMARKS=ON \
    -DREDLOCK_BUILD_TESTS=OFF -DREDLOCK_BUILD_EXAMPLES=OFF -DREDLOCK_BUILD_TOOL=OFF
sh cmake/counted.sh "$log" cmake --build "$build" --target redlock_bench with_redis_nodes

if command -v npm >/dev/null; then
    NODE_PATH=$(sh tests/interop/node_modules.sh) || echo "node-redlock could not be installed" >&2
    export NODE_PATH
fi

case $(cut -d. -f1 /proc/loadavg) in
0) ;;
*) echo "measure: the machine is busy; these figures will be noise" >&2 ;;
esac
commit=$(git describe --always --dirty 2>/dev/null) || commit=unknown
echo "measure: commit $commit, $(uptime | sed 's/.*load/load/')"
status=0
"$build/tests/bench/redlock_bench" --json "$build/results.json" --commit "$commit" --date "$(date -u +%F)" \
    --machine "$(sh "$here/machine.sh" "$build")" "$@" || status=$?
[ "$status" -ne 0 ] || python3 -B "$here/pictures/benchmarks.py" "$build/results.json" "$build/results.svg"
exit "$status"

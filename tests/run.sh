#!/bin/sh
# sh tests/run.sh [all | PRESET] [CTEST-ARGUMENT...]: installs missing packages, builds, and runs tests.
#
#     sh tests/run.sh                     the quick tests, release build: the decision code, a short simulation, and
#                                         one test of each feature and the examples with real servers
#     sh tests/run.sh all                 all tests except the mutants, release build
#     sh tests/run.sh asan -LE install    the preset asan, without the tests labelled install
#     sh tests/run.sh tsan -L threads     the preset tsan, only the tests labelled threads
#
# CMakePresets.json has the presets. The script fails if a test fails, and if there is no test to run.
set -eu
unset CDPATH
cd -- "$(dirname -- "$0")/.."
quick=
case ${1-} in
'') quick=yes preset=release && export REDLOCK_UNITY_BUILD=ON && set -- -L quick ;;
all) preset=release && shift && set -- -LE mutants "$@" ;;
*) preset=$1 && shift ;;
esac
cores=$(getconf _NPROCESSORS_ONLN)
log=build/$preset.log
mkdir -p build
# Ctrl-C ends the programs below as well, none of which says anything.
trap 'printf "\ninterrupted; what was said until then: %s\n" "$log" >&2; exit 130' INT

case $preset in
clang) sh cmake/install-packages.sh build tool run test lint ;;
asan) sh cmake/install-packages.sh build tool run test fuzz ;;
*) sh cmake/install-packages.sh build tool run test ;;
esac

# For these labels, only the executables are built. Tests with other labels need more.
target=
case "${1:-} ${2:-}" in
'-L quick' | '-L pure' | '-L sim' | '-L threads') target="--target tests_$2" ;;
esac
. cmake/temporary.sh

echo "configure: build/$preset"
cmake --preset "$preset" >"$log" 2>&1 || {
    cat "$log" >&2
    exit 1
}

echo "build: build/$preset, $cores jobs"
# shellcheck disable=SC2086  # two words or none
NINJA_STATUS='[%f/%t] ' sh cmake/counted.sh "$log" cmake --build --preset "$preset" $target --parallel "$cores"
# A warning is not an error here, but it must be visible.
! grep -n 'warning:' "$log" >&2 || echo "build: warnings, see $log"

# Runs three times as many tests as there are cores, because live tests mostly wait.
jobs=$((3 * cores))
log=build/$preset.tests.log
echo "test: build/$preset, $jobs at a time"
# Some kernels randomise memory mappings more than the sanitizers of g++ 12 and clang 14 tolerate.
quiet_layout=
case $preset in
asan | tsan) if setarch -R true 2>/dev/null; then quiet_layout='setarch -R'; fi ;;
esac
export CTEST_LOG="build/$preset/Testing/Temporary/LastTest.log"
rm -f "$CTEST_LOG" # of the last run
# shellcheck disable=SC2086  # two words or none
sh cmake/counted.sh "$log" $quiet_layout ctest --preset "$preset" --no-tests=error \
    --output-on-failure --parallel "$jobs" "$@"
[ -z "$quick" ] || echo "\"sh tests/run.sh all\" adds the other live tests: faults, waiting, failovers, the command, torture"

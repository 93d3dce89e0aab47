#!/bin/sh
# sh tests/mixed/run.sh [COMMIT]: runs the command and a program of an earlier commit against those of this tree, on the
# same servers.
#
# Without COMMIT it takes the version before the names of the minimum hold time changed. It needs the history of the
# repository, and a release build of this tree (sh tests/run.sh). Versions that differ in more than the names of options
# need another column in mixed_versions.py.
set -eu
unset CDPATH
cd -- "$(dirname -- "$0")/../.."
commit=${1:-e3452da}
git cat-file -e "$commit^{commit}" 2>/dev/null || {
    echo "mixed: skipped: the history does not have commit $commit" >&2
    exit 77
}
earlier=build/mixed/$commit
# program BUILD INCLUDE: compiles program.cpp with a version of the library, and prints the name of the result.
program() {
    libraries=$(find "$1" -maxdepth 1 -name 'libredlock*.a')
    # shellcheck disable=SC2086  # several names
    c++ -std=c++20 -O1 -I "$2" -o "$1/program" tests/mixed/program.cpp -Wl,--start-group $libraries -Wl,--end-group \
        -lhiredis -lssl -lcrypto -pthread
    echo "$1/program"
}
if [ ! -x "$earlier/build/src/tool/redlock" ]; then
    rm -rf "$earlier"
    mkdir -p "$earlier"
    git archive "$commit" | tar -x -C "$earlier"
    cmake --preset release -S "$earlier" -B "$earlier/build" -DREDLOCK_BUILD_TESTS=OFF -DREDLOCK_BUILD_EXAMPLES=OFF \
        >"$earlier.log"
    cmake --build "$earlier/build" --target redlock redlock_tool --parallel "$(getconf _NPROCESSORS_ONLN)" \
        >>"$earlier.log" || {
        tail -n 20 "$earlier.log" >&2
        exit 1
    }
fi
. cmake/temporary.sh
earlier_program=$(program "$earlier/build" "$earlier/include")
program=$(program build/release include)
exec build/release/tests/support/with_redis_nodes python3 tests/mixed/mixed_versions.py \
    "$earlier/build/src/tool/redlock" build/release/src/tool/redlock "$earlier_program" "$program"

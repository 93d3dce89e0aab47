#!/bin/sh
# without_openssl.sh SOURCE DIRECTORY GENERATOR COMPILER: configures the library, the command and the tests in DIRECTORY
# as on a machine without OpenSSL, checks that nothing that is compiled then includes a header of OpenSSL, and builds and
# runs a small program of the tests.
set -eu
source=$1 build=$2 generator=$3 compiler=$4
rm -rf "$build"
cmake -G "$generator" -S "$source" -B "$build" "-DCMAKE_CXX_COMPILER=$compiler" -DREDLOCK_TLS=OFF \
    -DREDLOCK_BUILD_TESTS=ON -DCMAKE_DISABLE_FIND_PACKAGE_OpenSSL=ON -DCMAKE_EXPORT_COMPILE_COMMANDS=ON
sed -n 's/^ *"file": "\(.*\)",*$/\1/p' "$build/compile_commands.json" | grep -F "$source/" | sort -u >"$build/sources"
grep -qF "$source/tests/support/" "$build/sources" || {
    echo "FAULT: the list of sources lacks those of the tests"
    exit 1
}
if xargs grep -ln '^#include <openssl/' <"$build/sources"; then
    echo "FAULT: these need OpenSSL"
    exit 1
fi
cmake --build "$build" --target system_calls_test
"$build/tests/pure/system_calls_test" --gtest_brief=1
if readelf -d "$build/tests/pure/system_calls_test" | grep -F libssl; then
    echo "FAULT: a test needs OpenSSL"
    exit 1
fi

#!/bin/sh
# hiredis_config.sh FOLDER DIRECTORY COMPILER: builds, installs and finds redlock in DIRECTORY if only a CMake config
# describes hiredis, the one in FOLDER. This is the case with vcpkg.
set -eu
unset CDPATH
folder=$1 build=$2 compiler=$3
here=$(cd -- "$(dirname -- "$0")" && pwd)
source=$here/../..
version=$(sed -n 's/^#define REDLOCK_VERSION_STRING "\(.*\)"$/\1/p' "$source/include/redlock/version.hpp")

fail() {
    echo "FAULT: $*"
    exit 1
}

configure() {
    cmake -G Ninja -DCMAKE_BUILD_TYPE=Debug -DCMAKE_UNITY_BUILD=ON -DCMAKE_CXX_COMPILER="$compiler" "$@"
}

rm -rf "$build"
for way in -DCMAKE_PREFIX_PATH="$folder" -Dhiredis_DIR="$folder" \
    "-DCMAKE_PREFIX_PATH=$folder -DCMAKE_FIND_PACKAGE_PREFER_CONFIG=ON"; do
    echo "redlock, $way"
    rm -rf "$build/redlock"
    # shellcheck disable=SC2086  # one word or two
    configure $way -S "$source" -B "$build/redlock" -DCMAKE_INSTALL_PREFIX="$build/prefix" -DREDLOCK_BUILD_TESTS=OFF \
        -DREDLOCK_BUILD_EXAMPLES=OFF -DREDLOCK_BUILD_TOOL=OFF | tee "$build.log"
    grep -F "Found hiredis: $folder/hiredisConfig.cmake (found suitable version \"1.9.9\"" "$build.log" >/dev/null ||
        fail "the config was not taken"
done
cmake --build "$build/redlock"
cmake --install "$build/redlock"

# If there are libraries of several builds, only the config knows which one to use.
mkdir -p "$build/prefix/include/hiredis" "$build/prefix/lib"
touch "$build/prefix/include/hiredis/hiredis.h" "$build/prefix/lib/libhiredis.so"

echo "a stranger"
configure -S "$here/find_package" -B "$build/stranger" -DCMAKE_PREFIX_PATH="$build/prefix;$folder" \
    -DREDLOCK_WANTED_VERSION="$version"
grep -Fx "hiredis_DIR:PATH=$folder" "$build/stranger/CMakeCache.txt" ||
    fail "the installed package found another hiredis"
cmake --build "$build/stranger"
"$build/stranger/stranger"

echo "a stranger with another major version of hiredis"
mkdir "$build/other"
cp "$folder/hiredisConfig.cmake" "$build/other"
echo 'set(PACKAGE_VERSION 2.0.0)' >"$build/other/hiredisConfigVersion.cmake"
configure -S "$here/find_package" -B "$build/mismatch" -DCMAKE_PREFIX_PATH="$build/prefix;$build/other" \
    -DREDLOCK_WANTED_VERSION="$version" >"$build.log" 2>&1 && fail "it was accepted"
grep -F "built with hiredis 1.9.9, not with 2.0.0" "$build.log"

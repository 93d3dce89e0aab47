#!/bin/sh
# sh tests/foreign.sh s390x|aarch64: builds the library, the command and the pure tests for another processor, and runs
# these tests with qemu. Warnings are errors. s390x is big endian.
#
# The cross compiler is that of this Debian release. The other libraries are only unpacked, into build/downloads, because
# the machine would need another architecture to install them.
set -eu
unset CDPATH
cd -- "$(dirname -- "$0")/.."
processor=${1:-}
case $processor in
s390x) architecture=s390x ;;
aarch64) architecture=arm64 ;;
*) echo "usage: sh tests/foreign.sh s390x|aarch64" >&2; exit 2 ;;
esac
cores=$(getconf _NPROCESSORS_ONLN)
build=build/$processor
log=$build.log
machine=$processor-linux-gnu
mkdir -p build
sh cmake/install-packages.sh build tool test source cross

# shellcheck disable=SC1091  # of Debian
release=$(. /etc/os-release && echo "$VERSION_CODENAME")
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
cache=build/downloads/$processor-$release
rm -rf "$cache/root" "$cache/apt/archives"
mkdir -p "$cache/apt/lists/partial" "$cache/apt/archives/partial"
cache=$(cd -- "$cache" && pwd)  # apt takes relative paths for its own
root=$cache/root
echo "deb [signed-by=$keyring] http://deb.debian.org/debian $release main" >"$cache/apt/sources.list"
# liblua5.1-0-dev depends on these. The cross compiler has a C library of its own, and nothing here uses the others.
for package in libc6-dev libreadline-dev libtool-bin; do
    printf 'Package: %s\nStatus: install ok installed\nArchitecture: %s\nVersion: 99\n\n' $package $architecture
done >"$cache/apt/status"
apt() {
    apt-get -q -y -o Dir::Etc::SourceList="$cache/apt/sources.list" -o Dir::Etc::SourceParts=/dev/null \
        -o Dir::State::Lists="$cache/apt/lists" -o Dir::State::status="$cache/apt/status" -o Dir::Cache="$cache/apt" \
        -o APT::Architecture=$architecture -o APT::Architectures=$architecture -o APT::Sandbox::User="$(id -un)" \
        "$@" >"$log" 2>&1 </dev/null || {
        cat "$log" >&2
        exit 1
    }
}
echo "libraries: $architecture of Debian $release"
apt update
apt install --download-only --no-install-recommends \
    libgmock-dev libgtest-dev libhiredis-dev liblua5.1-0-dev libssl-dev libstdc++6
for each in "$cache"/apt/archives/*.deb; do
    dpkg-deb --extract "$each" "$root"
done

echo "build: $build, $cores jobs"
export PKG_CONFIG_LIBDIR="$root/usr/lib/$machine/pkgconfig" PKG_CONFIG_SYSROOT_DIR="$root"
sh cmake/counted.sh "$log" cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_UNITY_BUILD=ON \
    -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR="$processor" -DCMAKE_CXX_COMPILER="$machine-g++" \
    -DCMAKE_LIBRARY_ARCHITECTURE="$machine" -DCMAKE_CXX_FLAGS="-isystem $root/usr/include/$machine" \
    -DCMAKE_FIND_ROOT_PATH="$root" -DCMAKE_FIND_ROOT_PATH_MODE_PROGRAM=NEVER \
    "-DCMAKE_CROSSCOMPILING_EMULATOR=qemu-$processor;-L;$root" -DREDLOCK_WARNINGS_AS_ERRORS=ON
sh cmake/counted.sh "$log" cmake --build "$build" --parallel "$cores" --target redlock_tool pure_test engine_test \
    system_calls_test out_of_memory_test without_exceptions tool_pure_tests tls_handshake_test
echo "test: $build"
sh cmake/counted.sh "$log" ctest --test-dir "$build" --no-tests=error --output-on-failure --parallel "$cores" \
    -L pure -LE sim -R '^([a-z_]*|WithoutExceptions)$'

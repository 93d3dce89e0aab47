#!/bin/sh
# sh tests/newer_hiredis.sh: builds hiredis from the source package of a later Debian release in build/downloads, and
# prints its installation prefix. With it the tests run against both generations of hiredis (rule D13):
#
#     CMAKE_PREFIX_PATH=$(sh tests/newer_hiredis.sh) sh tests/run.sh newer-hiredis -L live
#
# It asks the archive for the newest version each time, and builds only a version that it has not built before.
set -eu
unset CDPATH
cd -- "$(dirname -- "$0")/.."
release=trixie
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
cache=build/downloads/hiredis-$release
cores=$(getconf _NPROCESSORS_ONLN)
mkdir -p "$cache/apt/lists/partial" "$cache/source"
cache=$(cd -- "$cache" && pwd)  # apt takes relative paths for its own
cd -- "$cache/source"

say() {
    echo "newer hiredis: $*" >&2
}

# Uses separate package lists, so that those of the machine do not change.
echo "deb-src [signed-by=$keyring] http://deb.debian.org/debian $release main" >"$cache/apt/sources.list"
apt() {
    apt-get -q -o Dir::Etc::SourceList="$cache/apt/sources.list" -o Dir::Etc::SourceParts=/dev/null \
        -o Dir::State::Lists="$cache/apt/lists" -o Dir::Cache="$cache/apt" -o APT::Sandbox::User="$(id -un)" "$@" \
        >"$cache/log" 2>&1 </dev/null || {
        cat "$cache/log" >&2
        exit 1
    }
}
say "apt-get source hiredis, of $release"
apt update
apt source --download-only hiredis
package=$(ls -t hiredis_*.dsc | head -n 1)
version=$(basename "$package" .dsc | sed 's/^hiredis_//')
prefix=$cache/$version

if [ ! -e "$prefix/built" ]; then
    say "building $version"
    rm -rf "$prefix" "$cache/tree"
    {
        dpkg-source --extract "$package" "$cache/tree"
        cmake -S "$cache/tree" -B "$cache/tree/build" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo \
            -DCMAKE_INSTALL_PREFIX="$prefix" -DCMAKE_INSTALL_LIBDIR=lib -DDISABLE_TESTS=ON
        cmake --build "$cache/tree/build" --parallel "$cores"
        cmake --install "$cache/tree/build"
    } >"$cache/log" 2>&1 || {
        cat "$cache/log" >&2
        exit 1
    }
    touch "$prefix/built"
fi
echo "$prefix"

#!/bin/sh
# sh tests/next_debian.sh: compiles the library, its examples and a user's program with each compiler and each Asio of
# Debian 13, and runs the program. docs/installing.md has these combinations in its tables. Warnings are errors.
#
# It makes a bare system in a temporary directory and removes it afterwards, so it needs root and about 2 GB.
set -eu
unset CDPATH
cd -- "$(dirname -- "$0")/.."
release=trixie
[ "$(id -u)" -eq 0 ] || { echo "next_debian.sh: must be run by root, because it uses chroot" >&2; exit 2; }
sh cmake/install-packages.sh chroot
mkdir -p build
log=build/next_debian.log

root=$(mktemp -d)
trap 'rm -rf --one-file-system "$root"' EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM
run() { sh cmake/counted.sh "$log" "$@"; }

echo "next Debian: $release"
run debootstrap --variant=minbase "$release" "$root" http://deb.debian.org/debian
cp /etc/resolv.conf "$root/etc/"
mkdir "$root/redlock"
git ls-files -z | tar --null --files-from=- --create | tar --extract --directory "$root/redlock"
cat >"$root/redlock/steps.sh" <<'STEPS'
set -eu
cd /redlock
sh cmake/install-packages.sh build
apt-get -q -y --no-install-recommends install clang libboost1.83-dev libasio-dev
# The packages of two versions of Boost exclude one another.
(cd /tmp && apt-get -q download libboost1.88-dev && dpkg-deb -x libboost1.88-dev_*.deb /newest)
for compiler in g++ clang++; do
    $compiler --version | head -n 1
    $compiler -std=c++20 -Wall -Werror -Wno-mismatched-new-delete -fsyntax-only -DREDLOCK_ASIO_BOOST \
        -isystem /newest/usr/include -Iinclude tests/install/stranger_asio.cpp
    echo "$compiler BOOST 1.88: passed"
    build=build/$compiler
    cmake -S . -B "$build" -G Ninja -DCMAKE_CXX_COMPILER=$compiler -DCMAKE_UNITY_BUILD=ON -DCMAKE_BUILD_TYPE=Release \
        -DCMAKE_COMPILE_WARNING_AS_ERROR=ON -DREDLOCK_BUILD_TESTS=OFF -DREDLOCK_BUILD_TOOL=OFF
    cmake --build "$build"
    cmake --install "$build" --prefix "$PWD/$build/prefix"
    for asio in BOOST STANDALONE; do
        cmake -S tests/install/find_asio -B "$build/$asio" -G Ninja -DCMAKE_CXX_COMPILER=$compiler -DASIO=$asio \
            -DCMAKE_PREFIX_PATH="$PWD/$build/prefix" -DASIO_DIRECTORY=/usr/include -DREDLOCK_WANTED_VERSION=
        cmake --build "$build/$asio"
        "$build/$asio/stranger"
        echo "$compiler $asio: passed"
    done
done
STEPS
run chroot "$root" env HOME=/root LC_ALL=C DEBIAN_FRONTEND=noninteractive PATH=/usr/sbin:/usr/bin:/sbin:/bin \
    sh /redlock/steps.sh
grep ': passed$' "$log"

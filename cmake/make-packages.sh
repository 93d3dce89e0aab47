#!/bin/sh
# sh cmake/make-packages.sh [DIRECTORY]: installs missing packages, builds, and leaves the Debian packages in DIRECTORY
# (default: build/packages): libredlock0.1, libredlock-dev and redlock, for the Debian release that it runs on.
#
# DEBFULLNAME and DEBEMAIL set the maintainer.
set -eu
unset CDPATH
umask 022 # everybody must be able to read the packed files
cd -- "$(dirname -- "$0")/.."
build=${1:-build/packages}
mkdir -p "$build"
build=$(cd -- "$build" && pwd)
log=$build/log
rm -f "$build"/libredlock*_*.deb "$build"/redlock_*.deb # removes no other packages

logged() {
    "$@" >>"$log" 2>&1 || {
        cat "$log" >&2
        exit 1
    }
}

sh cmake/install-packages.sh build package
: >"$log"

# The hardening flags of Debian. The preset sets the level of optimisation.
CXXFLAGS="$(DEB_BUILD_MAINT_OPTIONS=hardening=+all DEB_CXXFLAGS_MAINT_STRIP='-g -O2' dpkg-buildflags --get CXXFLAGS)"
CXXFLAGS="$CXXFLAGS $(DEB_BUILD_MAINT_OPTIONS=hardening=+all dpkg-buildflags --get CPPFLAGS)"
LDFLAGS="$(DEB_BUILD_MAINT_OPTIONS=hardening=+all dpkg-buildflags --get LDFLAGS)"

echo "configure: $build"
logged cmake --preset packages -B "$build" -DCMAKE_CXX_FLAGS="$CXXFLAGS" -DCMAKE_SHARED_LINKER_FLAGS="$LDFLAGS" \
    -DCMAKE_EXE_LINKER_FLAGS="$LDFLAGS"
echo "build: $build"
NINJA_STATUS='[%f/%t] ' sh cmake/counted.sh "$build/build.log" \
    cmake --build "$build" --parallel "$(getconf _NPROCESSORS_ONLN)"
echo "pack: $build"
logged cpack --config "$build/CPackConfig.cmake"
ls "$build"/libredlock*_*.deb "$build"/redlock_*.deb

#!/bin/sh
# sh examples/demo.sh: installs what is missing, builds, and runs the flash sale (flash_sale/main.cpp).
#
# Exit status 0 only if the sale oversold without the lock and did not with it. May be run again and again;
# leaves nothing behind but build/demo and build/demo.log.
set -eu
unset CDPATH
cd -- "$(dirname -- "$0")/.."
log=build/demo.log
mkdir -p build

logged() {
    "$@" >>"$log" 2>&1 || {
        cat "$log" >&2
        exit 1
    }
}

sh cmake/install-packages.sh build run
: >"$log"
echo "configure: build/demo (release, without tests)"
logged cmake --preset release -B build/demo -DREDLOCK_BUILD_TESTS=OFF -DREDLOCK_BUILD_TOOL=OFF \
    -DREDLOCK_BUILD_EXAMPLES=ON
echo "build: build/demo, a minute the first time"
logged cmake --build build/demo --target flash_sale --parallel "$(getconf _NPROCESSORS_ONLN)"
echo "run: build/demo/examples/flash_sale/flash_sale, about 20 s"
echo

# Not a child of this shell: a signal to either reaches the one who cleans up.
exec build/demo/examples/flash_sale/flash_sale

#!/bin/sh
# sh examples/demo.sh: installs what is missing, builds, and runs the flash sale (flash_sale/main.cpp).
#
# Exit status 0 only if the sale oversold without the lock and did not with it. May be run again and again, also twice
# at once; leaves nothing behind but build/demo and its log, however it is ended.
set -eu
unset CDPATH
cd -- "$(dirname -- "$0")/.."
mkdir -p build

sh cmake/install-packages.sh build run
exec 8>build/demo.lock
flock 8 # one at a time: a program that runs cannot be linked anew
echo "configure: build/demo (release, without tests)"
sh cmake/counted.sh build/demo.log cmake --preset release -B build/demo -DREDLOCK_BUILD_TESTS=OFF \
    -DREDLOCK_BUILD_TOOL=OFF -DREDLOCK_BUILD_EXAMPLES=ON
echo "build: build/demo"
NINJA_STATUS='[%f/%t] ' sh cmake/counted.sh build/demo.log cmake --build build/demo --target flash_sale \
    --parallel "$(getconf _NPROCESSORS_ONLN)"
exec 8>&-
echo "run: build/demo/examples/flash_sale/flash_sale, about 20 s"
echo

. cmake/temporary.sh
# Not a child of this shell: a signal to either reaches the process that cleans up.
exec build/demo/examples/flash_sale/flash_sale

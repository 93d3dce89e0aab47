#!/bin/sh
# sh examples/demo.sh: installs missing packages, builds the flash sale (flash_sale/main.cpp) and runs it.
#
# The exit status is 0 only if the sale oversold without the lock and did not oversell with it. The script can be run
# repeatedly, also twice at the same time. Even if it is interrupted, it leaves only build/demo and the log of that
# build behind.
set -eu
unset CDPATH
cd -- "$(dirname -- "$0")/.."
mkdir -p build

sh cmake/install-packages.sh build run
exec 8>build/demo.lock
flock 8 # one build at a time: a running program cannot be linked again
echo "configure: build/demo (release, without tests)"
# A unity build compiles several sources together, which takes less than half of the time.
sh cmake/counted.sh build/demo.log cmake --preset release -B build/demo -DREDLOCK_BUILD_TESTS=OFF \
    -DREDLOCK_BUILD_TOOL=OFF -DREDLOCK_BUILD_EXAMPLES=ON -DCMAKE_UNITY_BUILD=ON
echo "build: build/demo"
NINJA_STATUS='[%f/%t] ' sh cmake/counted.sh build/demo.log cmake --build build/demo --target flash_sale \
    --parallel "$(getconf _NPROCESSORS_ONLN)"
exec 8>&-
echo "run: build/demo/examples/flash_sale/flash_sale, about 20 s"
echo

. cmake/temporary.sh
# exec replaces this shell, so that a signal to it reaches the program, which then removes its processes and files.
exec build/demo/examples/flash_sale/flash_sale

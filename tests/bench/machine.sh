#!/bin/sh
# sh tests/bench/machine.sh BUILD: prints a description of the machine and the software of the measurements, such as
# AMD EPYC, 2 CPUs, Linux 6.1.0, g++ (Debian 12.2.0-14) 12.2.0, hiredis 0.14.1, Redis server v=7.0.15
compiler=$(sed -n 's/^CMAKE_CXX_COMPILER:[^=]*=//p' "$1/CMakeCache.txt")
echo "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $(getconf _NPROCESSORS_ONLN) CPUs, $(uname -sr)," \
    "$("$compiler" --version | head -n 1), hiredis $(pkg-config --modversion hiredis)," \
    "$(redis-server --version | sed 's/ sha=.*//')"

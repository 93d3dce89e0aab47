#!/bin/sh
# headers.sh INCLUDE PROGRAM WITH_REDIS_NODES tls|plain COMPILER [OPTION]...: compiles a program with redlock/src.hpp and
# the headers in INCLUDE, without CMake and with or without TLS. Then runs the program with real servers.
set -eu
unset CDPATH
include=$1 program=$2 with_redis_nodes=$3 tls=$4 compiler=$5
shift 5
case $tls in
tls) libraries='-lhiredis -lssl -lcrypto' ;;
plain) libraries='-lhiredis' && set -- "$@" -DREDLOCK_WITHOUT_TLS ;;
esac
cd -- "$(dirname -- "$0")"
# shellcheck disable=SC2086  # words
"$compiler" "$@" -std=c++20 -pthread -Wall -Wextra -Werror -Iheaders/own -I"$include" stranger_headers.cpp \
    stranger_library.cpp -o "$program" $libraries
"$with_redis_nodes" "$program" "$tls"

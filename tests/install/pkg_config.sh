#!/bin/sh
# Builds and runs an external project with the flags from pkg-config, without and with --static. Arguments: the
# installed library directory, a directory to build in, the compiler, its flags.
set -eu
libdir=$1 build=$2 compiler=$3 flags=$4
here=$(cd -- "$(dirname -- "$0")" && pwd)
PKG_CONFIG_PATH=$libdir/pkgconfig${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}
export PKG_CONFIG_PATH
for static in '' --static; do
    # shellcheck disable=SC2086  # a word or none
    told=$(pkg-config $static --cflags --libs redlock)
    echo "pkg-config $static --cflags --libs redlock: $told"
    # Checks that no libraries are required except those that the install line of the README installs.
    for word in $told; do
        case $word in
        -lredlock | -lredlock-core | -lhiredis | -lssl | -lcrypto) ;;
        -l*)
            echo "FAULT: $word is asked for"
            exit 1
            ;;
        esac
    done
    # pkg-config escapes blanks for the shell, hence eval.
    eval "set -- $flags $told"
    "$compiler" -std=c++20 "$here/stranger.cpp" -o "$build/stranger_pc" "$@"
    LD_LIBRARY_PATH=$libdir${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} "$build/stranger_pc"
done

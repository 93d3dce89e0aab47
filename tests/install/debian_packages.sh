#!/bin/sh
# debian_packages.sh DIRECTORY COMPILER tool|library: makes the Debian packages in DIRECTORY, with or without the
# command. Checks their control fields and contents, and builds an external project against them. For that the packages
# are unpacked into a directory as dpkg would do.
set -eu
unset CDPATH
build=$1 compiler=$2 extent=$3
here=$(cd -- "$(dirname -- "$0")" && pwd)
source=$here/../..
version=$(sed -n 's/^#define REDLOCK_VERSION_STRING "\(.*\)"$/\1/p' "$source/include/redlock/version.hpp")
soname=libredlock.so.${version%.*}
failed=0

fault() {
    echo "FAULT: $*"
    failed=1
}

# tells PACKAGE FIELD PATTERN: checks that the control field matches the whole (extended) pattern.
tells() {
    field=$(dpkg-deb --field "$(package "$1")" "$2" | tr '\n' '~')
    printf '%s' "$field" | grep -Eqx "$3~" || fault "$1: $2 is '$field', not '$3'"
}

# holds PACKAGE MODE PATH: checks that the package has the path with exactly these permissions, owned by root.
holds() {
    contents "$1" | grep -Ex -e "$2 root/root .* \./$3" >/dev/null || fault "$1: no $3 with $2"
}

lacks() {
    ! contents "$1" | grep -E "$2" || fault "$1: holds what belongs elsewhere"
}

# Prints the contents of a package without the targets of links.
contents() {
    dpkg-deb --contents "$(package "$1")" | sed 's/ -> .*//'
}

package() {
    echo "$build/$1_$version-1_$(dpkg --print-architecture).deb"
}

rm -rf "$build/root" "$build/stranger"
mkdir -p "$build"
for each in another_1_all libredlock0_0.0.1-1_all; do
    echo "$each" >"$build/$each.deb"
done
sh "$source/cmake/make-packages.sh" "$build"
[ -e "$build/another_1_all.deb" ] || fault "make-packages.sh deletes packages of others"
[ ! -e "$build/libredlock0_0.0.1-1_all.deb" ] || fault "make-packages.sh leaves packages of an earlier version"
rm -f "$build/another_1_all.deb"

runtime=libredlock${version%.*}
libdir=usr/lib/$(dpkg-architecture -qDEB_HOST_MULTIARCH)
tells "$runtime" Version "$version-1"
tells "$runtime" Section libs
tells "$runtime" Depends '.*libc6 .*libhiredis.*libssl3.*libstdc\+\+6.*'
tells "$runtime" Description 'distributed locks with Redis - shared library~.*'
holds "$runtime" -rw-r--r-- "$libdir/$soname.${version##*.}"
holds "$runtime" lrwxrwxrwx "$libdir/$soname"
holds "$runtime" lrwxrwxrwx "$libdir/libredlock-core.so.${version%.*}"
holds "$runtime" -rw-r--r-- "usr/share/doc/$runtime/copyright"
holds "$runtime" -rw-r--r-- "usr/share/doc/$runtime/changelog.Debian.gz"
lacks "$runtime" 'include/|\.a$|libredlock\.so( |$)|cmake/|pkgconfig/|/bin/'
dpkg-deb --info "$(package "$runtime")" shlibs | grep -x "libredlock ${version%.*} $runtime (>= $version-1)" ||
    fault "$runtime: its shlibs do not tell who links it what to depend on"
dpkg-deb --info "$(package "$runtime")" triggers | grep -x 'activate-noawait ldconfig' || fault "$runtime: no ldconfig"

tells libredlock-dev Version "$version-1"
tells libredlock-dev Section libdevel
tells libredlock-dev Depends "$runtime \(= $version-1\), libhiredis-dev, libssl-dev"
for header in "$source"/include/redlock/*.hpp; do
    holds libredlock-dev -rw-r--r-- "usr/include/redlock/${header##*/}"
done
holds libredlock-dev drwxr-xr-x usr/include/redlock/
holds libredlock-dev lrwxrwxrwx "$libdir/libredlock.so"
holds libredlock-dev -rw-r--r-- "$libdir/libredlock.a"
holds libredlock-dev lrwxrwxrwx "$libdir/libredlock-core.so"
holds libredlock-dev -rw-r--r-- "$libdir/libredlock-core.a"
holds libredlock-dev -rw-r--r-- "$libdir/pkgconfig/redlock.pc"
holds libredlock-dev -rw-r--r-- "$libdir/cmake/redlock/redlockConfig.cmake"
holds libredlock-dev -rw-r--r-- "$libdir/cmake/redlock/Findhiredis.cmake"
lacks libredlock-dev '\.so\.|/bin/'

if [ "$extent" = tool ]; then
    tells redlock Version "$version-1"
    tells redlock Depends 'libssl3 .*libc6 .*libhiredis.*'
    holds redlock -rwxr-xr-x usr/bin/redlock
    holds redlock -rw-r--r-- usr/share/man/man1/redlock.1.gz
    holds redlock -rw-r--r-- usr/share/bash-completion/completions/redlock
    holds redlock -rw-r--r-- usr/share/zsh/vendor-completions/_redlock
    lacks redlock 'include/|usr/lib/'
fi

for each in "$build"/*.deb; do
    dpkg-deb --extract "$each" "$build/root"
done
LD_LIBRARY_PATH=$build/root/$libdir
export LD_LIBRARY_PATH

echo "what the shared libraries export: what headers declare as exported"
exported=$(cat "$source"/include/redlock/*.hpp "$source"/include/redlock/*/*.hpp "$source"/src/*/*.hpp |
    sed -n '/#/d; s/.*REDLOCK_EXPORT \([^;({]*\).*/\1/p' | sed 's/ : .*//; s/ *$//; s/ final$//; s/.* //' | sort -u | paste -sd '|' -)
for each in "$build/root/$libdir"/libredlock*.so."${version%.*}"; do
    nm --demangle --dynamic --defined-only "$each" | cut -d ' ' -f 3- | sed -E 's/^(typeinfo|vtable|typeinfo name|guard variable|non-virtual thunk) (name )?(for|to) //' |
        grep '^redlock::' | grep -vE "^redlock::([a-z]+::)*($exported)\\b" && fault "${each##*/} exports what is internal"
    nm --demangle --dynamic --defined-only "$each" | grep -q ' T redlock::' || fault "${each##*/} exports nothing"
done

echo "a stranger, by CMake"
cmake -G Ninja -S "$here/find_package" -B "$build/stranger" -DCMAKE_CXX_COMPILER="$compiler" \
    -DCMAKE_PREFIX_PATH="$build/root/usr" -DREDLOCK_WANTED_VERSION="$version"
cmake --build "$build/stranger"
"$build/stranger/stranger"

echo "a stranger, by pkg-config"
sh "$here/pkg_config.sh" "$build/root/$libdir" "$build" "$compiler" ""
readelf --dynamic "$build/stranger_pc" | grep -F "[$soname]" >/dev/null || fault "it was not linked with $soname"

echo "a stranger whose symbols are hidden"
sh "$here/pkg_config.sh" "$build/root/$libdir" "$build" "$compiler" "-O2 -fvisibility=hidden -fvisibility-inlines-hidden"

echo "a stranger, with the static library"
told=$(PKG_CONFIG_PATH=$build/root/$libdir/pkgconfig pkg-config --static --cflags --libs redlock)
# shellcheck disable=SC2046,SC2086  # words
"$compiler" -std=c++20 "$here/stranger.cpp" -o "$build/stranger_static" \
    $(echo "$told" | sed 's/-lredlock-core/-l:libredlock-core.a/; s/-lredlock /-l:libredlock.a /')
! readelf --dynamic "$build/stranger_static" | grep -F "[$soname]" || fault "it was linked with $soname"
"$build/stranger_static"

if [ "$extent" = tool ]; then
    "$build/root/usr/bin/redlock" --version | grep -F "$version" || fault "redlock --version does not say $version"
fi
exit "$failed"

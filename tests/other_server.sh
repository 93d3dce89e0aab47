#!/bin/sh
# sh tests/other_server.sh redis|valkey: unpacks the server of a later Debian release and its libraries into
# build/downloads, and prints a directory. If this directory comes first in PATH, the tests use its redis-server:
#
#     PATH=$(sh tests/other_server.sh valkey):$PATH sh tests/run.sh release -L live
#
# It asks the archive for the newest version each time, and unpacks only a version that it has not unpacked before.
set -eu
unset CDPATH
cd -- "$(dirname -- "$0")/.."
server=$1
release=trixie
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
cache=build/downloads/$server-$release
mkdir -p "$cache/apt/lists/partial" "$cache/apt/archives/partial"
cache=$(cd -- "$cache" && pwd)  # apt takes relative paths for its own

# Uses separate package lists and installs nothing, so that the machine does not change.
echo "deb [signed-by=$keyring] http://deb.debian.org/debian $release main" >"$cache/apt/sources.list"
: >"$cache/apt/status"
apt() {
    apt-get -q -y -o Dir::Etc::SourceList="$cache/apt/sources.list" -o Dir::Etc::SourceParts=/dev/null \
        -o Dir::State::Lists="$cache/apt/lists" -o Dir::State::status="$cache/apt/status" -o Dir::Cache="$cache/apt" \
        -o APT::Sandbox::User="$(id -un)" "$@" >"$cache/log" 2>&1 </dev/null || {
        cat "$cache/log" >&2
        exit 1
    }
}
echo "other server: $server of Debian $release" >&2
apt update
apt install --download-only --no-install-recommends "$server-server"
package=$(ls -t "$cache/apt/archives/$server-server"_*.deb | head -n 1)
root=$cache/$(basename "$package" .deb)

if [ ! -e "$root/bin/redis-server" ]; then
    rm -rf "$root"
    mkdir -p "$root/tree" "$root/bin"
    for each in "$cache"/apt/archives/*.deb; do
        dpkg-deb --extract "$each" "$root/tree"
    done
    loader=$(find "$root/tree/usr/lib" "$root/tree/lib" -name 'ld-linux*.so.*' 2>/dev/null | head -n 1)
    libraries=$(dirname "$loader")
    {
        echo '#!/bin/sh'
        echo "exec '$loader' --library-path '$libraries' '$root/tree/usr/bin/$server-server' \"\$@\""
    } >"$root/new"
    chmod +x "$root/new"
    "$root/new" --version >&2
    mv "$root/new" "$root/bin/redis-server"
fi
echo "$root/bin"

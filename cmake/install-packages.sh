#!/bin/sh
# sh cmake/install-packages.sh GROUP...: installs the missing packages of the groups in cmake/packages.txt. If none is
# missing, it does nothing. It uses sudo only if it must install and is not root.
set -eu
unset CDPATH
here=$(cd -- "$(dirname -- "$0")" && pwd)
list=$here/packages.txt

fail() {
    echo "install-packages: $*" >&2
    exit 1
}

[ $# -gt 0 ] || fail "which groups? $(sed -n 's/^\([a-z]*\):.*/\1/p' "$list" | tr '\n' ' ')"
wanted=
for group; do
    packages=$(sed -n "s/^$group:[[:space:]]*//p" "$list")
    [ -n "$packages" ] || fail "no group '$group' in $list"
    wanted="$wanted $packages"
done

if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
    fail "this is no Debian; please install what corresponds to its packages:$wanted"
fi

# Another package may provide a wanted one. For example, the nodejs of NodeSource provides npm and conflicts with
# Debian's.
provided=$(dpkg-query --show --showformat='${db:Status-Status}, ${Provides}\n' | sed -n 's/^installed,//p' |
    tr ',' '\n' | sed 's/^ *//; s/ *(.*//')
missing=
for package in $wanted; do
    status=$(dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null) || status=
    [ "$status" = installed ] || printf '%s\n' "$provided" | grep -Fqx -e "$package" || missing="$missing $package"
done
if [ -z "$missing" ]; then
    echo "packages: all installed ($*)"
    exit 0
fi
if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || fail "neither root nor sudo; please have these installed:$missing"
    exec sudo sh "$here/install-packages.sh" "$@"
fi

# redis-server would become a service on port 6379, at once and after each boot. A policy-rc.d that exits with 101
# prevents packages from starting services. The script creates one only if there is none, and removes it again.
# However the script ends, it disables the service that it has installed.
policy=/usr/sbin/policy-rc.d
work=$(mktemp -d)
ours=
installs_redis=
log=$work/log
clean_up() {
    [ -z "$installs_redis" ] || disable_redis
    [ -z "$ours" ] || rm -f "$policy"
    rm -rf "$work"
}
disable_redis() {
    # The first command disables the service for each init system. The second one also removes the alias redis.service.
    # It does nothing unless it believes that a script of the package has called it.
    update-rc.d redis-server disable >>"$log" 2>&1 || true
    DPKG_MAINTSCRIPT_PACKAGE=redis-server deb-systemd-helper disable redis-server.service >>"$log" 2>&1 || true
}
trap clean_up EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM
case " $missing " in
*" redis-server "*)
    installs_redis=yes
    if [ ! -e "$policy" ] && [ ! -L "$policy" ]; then
        ours=yes
        printf '#!/bin/sh\nexit 101\n' >"$policy"
        chmod 755 "$policy"
    fi
    ;;
esac

export DEBIAN_FRONTEND=noninteractive LC_ALL=C
apt='apt-get -q -o DPkg::Lock::Timeout=300 --no-install-recommends'
echo "packages: apt-get update"
$apt update >"$log" 2>&1 </dev/null ||
    echo "packages: apt-get update failed; going on with the lists there are" >&2
echo "packages: apt-get install$missing"
# shellcheck disable=SC2086  # each word is a package
$apt install --assume-no $missing 2>&1 </dev/null |
    sed -n 's/^Need to get \(.*\) of archives\.$/packages: \1 to download/p
            s/^After this operation, \(.*\) of additional disk space will be used\.$/packages: \1 on disk/p'
# shellcheck disable=SC2086
sh "$here/counted.sh" "$log" $apt install --yes $missing || fail "apt-get could not install:$missing"

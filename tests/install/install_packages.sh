#!/bin/sh
# install_packages.sh DIRECTORY: runs cmake/install-packages.sh, in a copy in DIRECTORY, with programs in place of those
# that change the system. The script must leave no service behind that starts at the next boot.
set -eu
unset CDPATH
here=$(cd -- "$(dirname -- "$0")" && pwd)
source=$here/../..
rm -rf "$1"
mkdir -p "$1/cmake" "$1/bin"
work=$(cd -- "$1" && pwd)
failed=0

fault() {
    echo "FAULT: $*"
    failed=1
}

cp "$source/cmake/counted.sh" "$source/cmake/packages.txt" "$work/cmake"
sed "s|^policy=.*|policy=$work/policy-rc.d|" "$source/cmake/install-packages.sh" >"$work/cmake/install-packages.sh"
grep -q "^policy=$work/policy-rc.d$" "$work/cmake/install-packages.sh" || fault "the policy of the system would be changed"

# program NAME: writes a program from standard input. It finds the directory of this test in $work.
program() {
    { echo '#!/bin/sh' && echo "work=$work" && cat; } >"$work/bin/$1"
    chmod 755 "$work/bin/$1"
}

program id <<'END'
echo 0
END
program dpkg-query <<'END'
[ ! -e "$work/installed" ] || echo installed
END
# After the packages it calls the policy, as the script of a package does before it starts a service. It succeeds only if
# a file says so.
program apt-get <<'END'
case " $* " in
*" --yes "*)
    touch "$work/installed" "$work/enabled"
    "$work/policy-rc.d" redis-server start && touch "$work/started"
    [ -e "$work/succeeds" ]
    ;;
esac
END
program update-rc.d <<'END'
echo "$*" >>"$work/calls"
END
program deb-systemd-helper <<'END'
[ -n "${DPKG_MAINTSCRIPT_PACKAGE-}" ] || exit 1 # as the real one, if no script of a package has called it
[ "$*" != "disable redis-server.service" ] || rm -f "$work/enabled"
END

# install: runs the copy, and sets `status`.
install() {
    status=0
    PATH=$work/bin:$PATH sh "$work/cmake/install-packages.sh" run >"$work/output" 2>&1 || status=$?
}

# disabled WHEN: checks that a service that was installed is neither running nor enabled.
disabled() {
    [ -e "$work/installed" ] || fault "$1: nothing was installed"
    [ ! -e "$work/started" ] || fault "$1: redis-server was started"
    [ ! -e "$work/enabled" ] || fault "$1: redis-server starts at the next boot"
    grep -qsx 'redis-server disable' "$work/calls" || fault "$1: other init systems start redis-server"
    [ ! -e "$work/policy-rc.d" ] || fault "$1: services cannot be started any more"
}

touch "$work/succeeds"
install
[ "$status" -eq 0 ] || fault "it failed with $status: $(cat "$work/output")"
disabled "after an installation"

rm -f "$work/calls"
touch "$work/enabled"
install
[ "$status" -eq 0 ] || fault "with all packages it failed with $status"
[ ! -e "$work/calls" ] && [ -e "$work/enabled" ] || fault "a redis-server that was there before was disabled"

rm -f "$work/installed" "$work/enabled" "$work/succeeds"
install
[ "$status" -eq 1 ] || fault "after a failure of apt-get the status is $status"
disabled "after a failure of apt-get"

# A policy of the administrator stays.
rm -f "$work/installed" "$work/enabled"
touch "$work/succeeds"
printf '#!/bin/sh\nexit 101\n' >"$work/policy-rc.d"
chmod 755 "$work/policy-rc.d"
install
[ -e "$work/policy-rc.d" ] || fault "the policy that was there before is gone"
rm -f "$work/policy-rc.d"
disabled "with a policy"

exit "$failed"

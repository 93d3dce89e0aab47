# shellcheck shell=sh
# To be sourced: from here on TMPDIR is a directory of this script's own. It is removed when this script and all that it
# started have ended, however they ended: SIGKILL leaves no time to clean up, so another process waits for that.
TMPDIR=$(mktemp -d "${TMPDIR:-/tmp}/redlock-XXXXXX")
chmod 711 "$TMPDIR" # a test that gives up root's rights goes on finding its files
export TMPDIR
mkfifo "$TMPDIR/open_while_running"
(
    trap '' HUP INT QUIT TERM
    exec >/dev/null 2>&1
    cat "$TMPDIR/open_while_running" # ends when nobody has it open for writing any more
    rm -rf "$TMPDIR"
) &
exec 9>"$TMPDIR/open_while_running"

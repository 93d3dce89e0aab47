# shellcheck shell=sh
# To be sourced. Sets TMPDIR to a directory for this script alone. The directory is removed when this script and
# everything that it has started have ended for any reason. Because SIGKILL leaves no time to clean up, another process
# waits for the end.
TMPDIR=$(mktemp -d "${TMPDIR:-/tmp}/redlock-XXXXXX")
chmod 711 "$TMPDIR" # lets a test that gives up root's rights find its files
export TMPDIR
mkfifo "$TMPDIR/open_while_running"
(
    trap '' HUP INT QUIT TERM
    exec >/dev/null 2>&1
    cat "$TMPDIR/open_while_running" # ends when no process has it open for writing any more
    rm -rf "$TMPDIR"
) &
exec 9>"$TMPDIR/open_while_running"

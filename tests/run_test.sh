#!/bin/sh
# run_test.sh: checks what tests/run.sh says if it is interrupted. Its programs are replaced by others.
set -u
unset CDPATH
root=$(cd -- "$(dirname -- "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/cmake" "$work/tests" "$work/bin"
cp "$root/tests/run.sh" "$work/tests"
cp "$root/cmake/counted.sh" "$root/cmake/temporary.sh" "$work/cmake"
echo : >"$work/cmake/install-packages.sh"
cat >"$work/bin/cmake" <<'END'
#!/bin/sh
echo '[1/1] Building'
END
cat >"$work/bin/ctest" <<END
#!/bin/sh
touch "$work/begun"
sleep 60
END
chmod +x "$work/bin/cmake" "$work/bin/ctest"
# As at a terminal, the script gets a process group of its own. A shell without a terminal starts programs in the
# background with SIGINT ignored.
PATH=$work/bin:$PATH setsid env --default-signal=INT sh "$work/tests/run.sh" >"$work/said" 2>&1 &
script=$!
until [ -e "$work/begun" ]; do sleep 0.1; done
kill -INT "-$script"
wait "$script"
status=$?
[ $status -eq 130 ] && grep -q '^interrupted; .* build/release.tests.log$' "$work/said" && exit 0
echo "FAULT: exit status $status, and this was said:"
cat "$work/said"
exit 1

#!/bin/sh
# sh tests/bench/pictures/make.sh: draws the pictures of the README and of docs/ from the figures beside them:
# timeline.svg from timeline.json, many.svg from many.json, and the others from benchmarks.json.
#
#     sh tests/bench/pictures/make.sh                  draws from the existing figures: a moment
#     sh tests/bench/pictures/make.sh --check          changes nothing; fails if the pictures differ from the figures
#     sh tests/bench/pictures/make.sh --results FILE   replaces benchmarks.json by FILE first: the
#                                                      build/bench/results.json of a complete tests/bench/run.sh
#     sh tests/bench/pictures/make.sh --many FILE      replaces many.json in the same way: the results of
#                                                      tests/bench/run.sh many
set -eu
unset CDPATH
here=$(cd -- "$(dirname -- "$0")" && pwd)
cd -- "$here/../../.."

draw() {
    python3 -B "$here/timeline.py" "$here/timeline.json" "$1/timeline.svg"
    python3 -B "$here/benchmarks.py" "$here/benchmarks.json" "$1/benchmarks.svg"
    python3 -B "$here/waits.py" "$here/benchmarks.json" "$1/waits.svg"
    python3 -B "$here/many.py" "$here/many.json" "$1/many.svg"
}

check() {
    made=$(mktemp -d)
    trap 'rm -rf "$made"' EXIT
    draw "$made"
    for picture in timeline benchmarks waits many; do
        python3 -c 'import sys, xml.etree.ElementTree as xml; xml.parse(sys.argv[1])' "$here/$picture.svg"
        cmp "$made/$picture.svg" "$here/$picture.svg"
    done
}

case $#${1-} in
0) ;;
1--check)
    check
    exit
    ;;
2--results) cp -- "$2" "$here/benchmarks.json" ;;
2--many) cp -- "$2" "$here/many.json" ;;
*)
    echo "usage: make.sh [--check | --results FILE | --many FILE]" >&2
    exit 2
    ;;
esac
draw "$here"

#!/bin/sh
# reference_filter.sh FILE: the file as doxygen is to read it, line by line the same. The essay at the head of a header
# becomes the description of that file, as it was typed from its second paragraph on. Links of documents to what the
# reference does not contain become text, and pictures their description.
case $1 in
*.hpp)
    awk '
        past { print; next }
        /^#pragma once/ { print (typed ? "\\endverbatim " : "") "\\file */"; past = 1; next }
        { sub(/^\/\/ ?/, "") }
        NR == 1 { print "/*! " $0; next }
        !typed && /^$/ { print "\\verbatim"; typed = 1; next }
        { print }
    ' "$1"
    ;;
*) sed -E 's/!?\[([^]]*)\]\((#|(\.\.\/)?(tests|examples)\/)[^)]*\)/\1/g; s/(\.md)#[^)]*\)/\1)/g' "$1" ;;
esac

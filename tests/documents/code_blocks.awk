# Combines the C++ in documents into one translation unit: the ```cpp blocks of *.md, and the indented examples in the
# leading comments of headers. Each block becomes a function, or a namespace if it defines main(). #line directives make
# the compiler name the document and its line.

function begin(line) {
    open = 1
    first = line
    body = ""
    includes = ""
    defines_main = 0
    is_code = 0
}

function add(line, text) {
    if (text ~ /^ *#include/) {
        includes = includes "#line " line " \"" FILENAME "\"\n" text "\n"
        text = ""
    }
    if (text ~ /^int main\(/) defines_main = 1
    if (text ~ /^ *\.\.\.$/) text = ""  # an omission
    plain = text
    sub(/ *\/\/.*/, "", plain)
    if (plain ~ /[;{}] *$/) is_code = 1
    body = body text "\n"
}

function end() {
    if (!open) return
    open = 0
    if (!is_code) return
    ++blocks
    if (FILENAME ~ /\.hpp$/ && FILENAME !~ /redlock\/redlock\.hpp$/) {
        header = FILENAME
        sub(/.*include\//, "", header)
        includes = includes "#include <" header ">\n"
    }
    all_includes = all_includes includes
    scope = defines_main ? "namespace" : "[[maybe_unused]] static void"
    all = all "namespace documents {\n" scope " block_" blocks (defines_main ? "" : "()") " {\n" \
        "#line " first " \"" FILENAME "\"\n" body "}\n}\n"
}

FNR == 1 {
    fenced = 0
    comment = 1
}

FILENAME ~ /\.md$/ {
    if (!fenced && $0 ~ /^ *```cpp$/) {
        fenced = 1
        begin(FNR + 1)
    } else if (fenced && $0 ~ /^ *```$/) {
        fenced = 0
        is_code = 1
        end()
    } else if (fenced) {
        add(FNR, $0)
    }
    next
}

# In a header, blank lines inside an indented example belong to the example.
comment && !/^\/\// {
    end()
    comment = 0
}
comment && /^\/\/     / {
    if (!open && $0 !~ /^\/\/     [^ ]/) next
    if (!open) begin(FNR)
    add(FNR, substr($0, 8))
    next
}
comment && open {
    if ($0 == "//") add(FNR, "")
    else end()
}

END {
    printf "%s", all_includes
    print "#include \"prelude.hpp\""
    printf "%s", all
    print blocks + 0 >"/dev/stderr"
}

# cmake -DSOURCE=<tree> -DVERSION=<version> [-DPYTHON=<python3>] -P recipes.cmake: checks that the recipes for package
# managers have this version and can be parsed. The recipes cannot be executed here.
cmake_minimum_required(VERSION 3.23)
set(vcpkg "${SOURCE}/cmake/vcpkg/redlock")
set(conan "${SOURCE}/cmake/conan")

function(expect what is)
    if(NOT is STREQUAL VERSION)
        message(SEND_ERROR "${what} is of version '${is}', the headers of ${VERSION}")
    endif()
endfunction()

# Sets `result` to the lines of a file that match the pattern, each reduced to the group of the pattern.
function(read_lines file pattern result)
    file(STRINGS "${file}" lines REGEX "${pattern}")
    list(TRANSFORM lines REPLACE "${pattern}" "\\1")
    set(${result} "${lines}" PARENT_SCOPE)
endfunction()

file(READ "${vcpkg}/vcpkg.json" manifest)
string(JSON version GET "${manifest}" version)
expect("${vcpkg}/vcpkg.json" "${version}")
string(JSON name GET "${manifest}" name)
if(NOT name STREQUAL "redlock")
    message(SEND_ERROR "${vcpkg}/vcpkg.json is about '${name}'")
endif()

read_lines("${conan}/config.yml" "^  \"(.*)\":$" version)
expect("${conan}/config.yml" "${version}")
read_lines("${conan}/all/conandata.yml" "^  \"(.*)\":$" version)
expect("${conan}/all/conandata.yml" "${version}")
read_lines("${conan}/all/conandata.yml" "^    url: \".*/v(.*)[.]tar[.]gz\"$" version)
expect("the source in ${conan}/all/conandata.yml" "${version}")
file(STRINGS "${SOURCE}/CHANGELOG.md" heading REGEX "^## " LIMIT_COUNT 1)
string(REGEX REPLACE "^## ([^,]*),.*$" "\\1" version "${heading}")
expect("the newest part of CHANGELOG.md" "${version}")

# Each option that a recipe sets must exist.
file(READ "${SOURCE}/CMakeLists.txt" project)
foreach(recipe IN ITEMS "${vcpkg}/portfile.cmake" "${conan}/all/conanfile.py")
    file(READ "${recipe}" text)
    string(REGEX MATCHALL "REDLOCK_[A-Z_]+" options "${text}")
    foreach(option IN LISTS options)
        if(NOT project MATCHES "(option|set)\\(${option} ")
            message(SEND_ERROR "${recipe} sets ${option}, which CMakeLists.txt does not know")
        endif()
    endforeach()
endforeach()

if(PYTHON)
    foreach(recipe IN ITEMS "${conan}/all/conanfile.py" "${conan}/all/test_package/conanfile.py")
        execute_process(
            COMMAND "${PYTHON}" -c "import ast, sys; ast.parse(open(sys.argv[1]).read(), sys.argv[1])" "${recipe}"
            RESULT_VARIABLE status
        )
        if(status)
            message(SEND_ERROR "${recipe} is no Python")
        endif()
    endforeach()
endif()

# The environment of the tests: no test uses the home directory, the configuration or the environment of the person who
# runs it. ctest reads this file before it looks for tests, so that all of them inherit what it leaves; programs of
# GoogleTest cases, which people also start by hand, do the same for themselves: see support/environment.cpp.
#
# Of the variables those are kept whose names match: what finds programs and temporary files, what sanitizers and
# GoogleTest are told, and what npm needs to reach its registry.
set(redlock_kept_variables
    "^(PATH|TMPDIR|TERM|CI|LD_LIBRARY_PATH|LD_PRELOAD|(A|L|T|UB)SAN_OPTIONS|GTEST_.*|REDLOCK_INTEROP|"
    "NODE_EXTRA_CA_CERTS|(http|https|no|HTTP|HTTPS|NO)_(proxy|PROXY))$"
)
string(CONCAT redlock_kept_variables ${redlock_kept_variables})
if(NOT redlock_test_home)  # while CMake configures, which asks for the names only
    return()
endif()

execute_process(COMMAND env -0 COMMAND tr "\\n\\0" " \\n" COMMAND cut -d= -f1 OUTPUT_VARIABLE names)
string(REGEX MATCHALL "[^\n]+" names "${names}")
foreach(name IN LISTS names)
    if(NOT name MATCHES "${redlock_kept_variables}")
        unset(ENV{${name}})
    endif()
endforeach()
set(ENV{HOME} "${redlock_test_home}")

# Temporary files are in a directory that is removed when ctest has ended: a test that is killed leaves its own behind.
execute_process(
    COMMAND sh "${CMAKE_CURRENT_LIST_DIR}/scratch_directory.sh"
    OUTPUT_VARIABLE scratch
    OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY
)
set(ENV{TMPDIR} "${scratch}")

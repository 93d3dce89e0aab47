# The compile options for our own targets, which users need not accept. The target is private and never installed. In a
# subproject it exists as well, but has no options.
add_library(redlock_developer INTERFACE)
if(PROJECT_IS_TOP_LEVEL)
    target_compile_options(
        redlock_developer
        INTERFACE -Wall
                  -Wextra
                  -Wpedantic
                  -Wconversion
                  -Wsign-conversion
                  -Wshadow
                  -Wnon-virtual-dtor
                  -Woverloaded-virtual
                  # g++ 12 wrongly reports an overlapping memcpy in `"literal" + std::string{}` (GCC bug 105651).
                  $<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-restrict>
                  $<$<BOOL:${REDLOCK_WARNINGS_AS_ERRORS}>:-Werror>
    )
endif()

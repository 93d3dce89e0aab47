# The target `reference` creates a browsable reference of the headers and documents in build/<preset>/reference/html. A
# comment that doxygen cannot parse is an error.
find_package(Doxygen QUIET)
if(NOT DOXYGEN_FOUND)
    add_custom_target(
        reference
        COMMAND ${CMAKE_COMMAND} -E echo "The reference is made by doxygen: sh cmake/install-packages.sh docs"
        COMMAND ${CMAKE_COMMAND} -E false
    )
    return()
endif()

set(DOXYGEN_OUTPUT_DIRECTORY reference)
set(DOXYGEN_GENERATE_LATEX NO)
set(DOXYGEN_HAVE_DOT NO)
set(DOXYGEN_QUIET YES)
set(DOXYGEN_WARN_AS_ERROR FAIL_ON_WARNINGS)
set(DOXYGEN_STRIP_FROM_PATH "${PROJECT_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}/include")
set(DOXYGEN_STRIP_FROM_INC_PATH "${PROJECT_SOURCE_DIR}/include")
set(DOXYGEN_USE_MDFILE_AS_MAINPAGE "${PROJECT_SOURCE_DIR}/README.md")
set(DOXYGEN_EXTRACT_ALL YES)
set(DOXYGEN_EXCLUDE_SYMBOLS "redlock::detail" "redlock::detail::*")
set(DOXYGEN_JAVADOC_AUTOBRIEF YES)
set(DOXYGEN_BUILTIN_STL_SUPPORT YES)
set(DOXYGEN_MACRO_EXPANSION YES)
set(DOXYGEN_EXPAND_ONLY_PREDEF YES)
set(DOXYGEN_PREDEFINED "REDLOCK_EXPORT=")
set(DOXYGEN_SORT_MEMBER_DOCS NO)  # keeps the order of the header
set(DOXYGEN_INPUT_FILTER "${PROJECT_SOURCE_DIR}/cmake/reference_filter.sh")
doxygen_add_docs(reference README.md CHANGELOG.md docs include/redlock)

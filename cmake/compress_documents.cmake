# cpack runs this before it packs. Debian requires compressed manual pages and changelogs without a timestamp.
file(GLOB_RECURSE documents "${CPACK_TEMPORARY_DIRECTORY}/*.1" "${CPACK_TEMPORARY_DIRECTORY}/changelog*")
list(FILTER documents INCLUDE REGEX "/share/(doc|man)/")
foreach(document IN LISTS documents)
    execute_process(COMMAND gzip -9n "${document}" COMMAND_ERROR_IS_FATAL ANY)
endforeach()

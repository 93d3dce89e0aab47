# What stands beside the command: its manual and its completions. They can be read without it.
set(documents "${PROJECT_SOURCE_DIR}/src/tool")

function(redlock_document_test name program)
    find_program(${program}_program ${program})
    mark_as_advanced(${program}_program)
    if(NOT ${program}_program)
        message(STATUS "tests: no Tool.${name}, for there is no ${program}")
        return()
    endif()
    add_test(NAME Tool.${name} COMMAND ${ARGN})
    set_tests_properties(Tool.${name} PROPERTIES LABELS documents TIMEOUT ${redlock_time_limit} SKIP_RETURN_CODE 77)
endfunction()

set(completion_test sh "${CMAKE_CURRENT_LIST_DIR}/completion.sh")
redlock_document_test(BashCompletion bash ${completion_test} bash "${documents}/completion/redlock.bash")
redlock_document_test(ZshCompletion zsh ${completion_test} zsh "${documents}/completion/_redlock")
# mandoc also misses the pages of others where they, or its list of them, are not there; that is not about ours.
redlock_document_test(
    Manual mandoc sh -c "! mandoc -Tlint \"$1\" | grep -v ' outdated mandoc.db \\| referenced manual not found: '" sh "${documents}/man/redlock.1"
)
redlock_document_test(
    ManualForGroff man sh -c "! man --warnings -l \"$1\" 2>&1 >/dev/null | grep ." sh "${documents}/man/redlock.1"
)
if(TARGET redlock_tool)
    redlock_document_test(
        Documented zsh sh "${CMAKE_CURRENT_LIST_DIR}/documented.sh" "$<TARGET_FILE:redlock_tool>"
    )
    set(manual_examples
        python3 "${CMAKE_CURRENT_LIST_DIR}/manual_examples.py" "$<TARGET_FILE:redlock_tool>"
        "$<TARGET_FILE:with_redis_nodes>" "${documents}/man/redlock.1"
    )
    redlock_document_test(ManualExamples mandoc ${manual_examples} mandoc -Tutf8)
    redlock_document_test(ManualExamplesForGroff man ${manual_examples} man -l)
endif()

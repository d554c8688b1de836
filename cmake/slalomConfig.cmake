# find_package(slalom): the targets slalom::slalom (the command) and slalom::check (the library of <slalom/check.h>), and two
# functions.
#
#   slalom_check_target(queue_test)
#       Builds the test as slalom::check wants it: its memory accesses are seen, and the library is linked.
#
#   slalom_add_test(NAME explored COMMAND program arguments... [SCHEDULES 1000] [OPTIONS --strategy pct ...])
#       Adds a test that runs the program under slalom run. It fails where an interleaving breaks the program. A COMMAND
#       that names a target stands for its executable. Results are also in ${CMAKE_CURRENT_BINARY_DIR}/explored.xml (JUnit).
include(${CMAKE_CURRENT_LIST_DIR}/slalomTargets.cmake)

function(slalom_check_target target)
  target_compile_options(${target} PRIVATE -g -fsanitize=thread)
  target_link_libraries(${target} PRIVATE slalom::check)
endfunction()

function(slalom_add_test)
  cmake_parse_arguments(TEST "" "NAME;SCHEDULES" "COMMAND;OPTIONS" ${ARGN})
  if(NOT TEST_NAME OR NOT TEST_COMMAND)
    message(FATAL_ERROR "slalom_add_test needs NAME and COMMAND")
  endif()
  if(TEST_SCHEDULES)
    list(APPEND TEST_OPTIONS --schedules ${TEST_SCHEDULES})
  endif()
  list(POP_FRONT TEST_COMMAND program)
  if(TARGET ${program})
    set(program $<TARGET_FILE:${program}>)
  endif()
  add_test(NAME ${TEST_NAME} COMMAND slalom::slalom run --out ${CMAKE_CURRENT_BINARY_DIR}/slalom-findings
    --junit ${CMAKE_CURRENT_BINARY_DIR}/${TEST_NAME}.xml ${TEST_OPTIONS} -- ${program} ${TEST_COMMAND})
endfunction()

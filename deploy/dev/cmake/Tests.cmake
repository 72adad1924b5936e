# datacom_add_test(NAME name COMMAND words... [LABELS fast] [WORKING_DIRECTORY folder] [ENVIRONMENT A=1 B=2])
#
# Every test of the build. Its time limit belongs to hangs: an hour, four for those labelled soak, times DATACOM_TEST_PATIENCE, which the
# tests read from their environment, too (tests/testing/patience.h). A program of GoogleTest or unittest that runs no test fails, because a
# wrong filter selects nothing. A test in Python that is skipped ends with 77; ctest also shows it as skipped when unittest ends with the line
# "OK (skipped=N)". tests/allowed_skips.txt names the tests that may skip. TEST_TMPDIR, which GoogleTest reads, is each test's own folder.
include_guard(GLOBAL)

set(DATACOM_TEST_PATIENCE 1 CACHE STRING "Factor of all time limits of tests, a whole number")

function(datacom_add_test)
  cmake_parse_arguments(A "" "NAME;WORKING_DIRECTORY" "COMMAND;LABELS;ENVIRONMENT" ${ARGN})
  if(NOT A_LABELS)
    set(A_LABELS fast)
  endif()
  if(NOT A_WORKING_DIRECTORY)
    set(A_WORKING_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}")
  endif()
  set(hours 1)
  if("soak" IN_LIST A_LABELS)
    set(hours 4)
  endif()
  math(EXPR seconds "3600 * ${hours} * ${DATACOM_TEST_PATIENCE}")
  set(temporary "${CMAKE_BINARY_DIR}/tests/temporary/${A_NAME}")
  file(MAKE_DIRECTORY "${temporary}")
  add_test(NAME ${A_NAME} COMMAND ${A_COMMAND} WORKING_DIRECTORY "${A_WORKING_DIRECTORY}")
  set_tests_properties(${A_NAME} PROPERTIES LABELS "${A_LABELS}" TIMEOUT ${seconds}
    SKIP_RETURN_CODE 77 SKIP_REGULAR_EXPRESSION "OK \\(skipped=" FAIL_REGULAR_EXPRESSION "Running 0 tests from;Ran 0 tests in"
    ENVIRONMENT "DATACOM_TEST_PATIENCE=${DATACOM_TEST_PATIENCE};TEST_TMPDIR=${temporary};${A_ENVIRONMENT};${DATACOM_TEST_ENVIRONMENT}")
endfunction()
# SPDX-License-Identifier: Apache-2.0

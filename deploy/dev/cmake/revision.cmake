cmake_minimum_required(VERSION 3.25)
# Writes OUTPUT, a header that defines DATACOM_REVISION as the git revision of the tree in SOURCE ("unknown" without git, as in a
# source archive). DATACOM_REVISION in the environment takes precedence: images are built without .git. The file is not touched
# when the revision is unchanged, so that nothing is rebuilt. Run when configuring, and by ./datacom before each build:
#   cmake -DSOURCE=... -DOUTPUT=... -P revision.cmake
set(revision "$ENV{DATACOM_REVISION}")
find_program(GIT_EXECUTABLE git)
if(revision STREQUAL "" AND GIT_EXECUTABLE)
  execute_process(COMMAND "${CMAKE_COMMAND}" -E env GIT_OPTIONAL_LOCKS=0 "${GIT_EXECUTABLE}" describe --always --dirty --abbrev=12
    WORKING_DIRECTORY "${SOURCE}" OUTPUT_VARIABLE revision OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
if(revision STREQUAL "")
  set(revision "unknown")
endif()
file(CONFIGURE OUTPUT "${OUTPUT}" CONTENT "#define DATACOM_REVISION \"@revision@\"\n" @ONLY)
# SPDX-License-Identifier: Apache-2.0

# MuJoCo as the imported target mujoco::mujoco. DATACOM_MUJOCO chooses it:
#   empty     build/mujoco, where ./datacom puts MuJoCo 4 (deploy/dev/fetch_mujoco); the system's package when there is no such folder
#   system    the system's package (Debian's libmujoco-dev has MuJoCo 2.2.2)
#   a folder  with include/mujoco/mujoco.h and lib/libmujoco.so
# The preset mujoco2 uses the system's package. Debian's CMake package is not used: it needs libraries that Debian does not declare. Sets
# DATACOM_MUJOCO_VERSION to the version of mujoco::mujoco, for example 4.0.0.
include_guard(GLOBAL)
set(DATACOM_MUJOCO "" CACHE STRING "MuJoCo: empty (build/mujoco, else the system's), system, or a folder with include/ and lib/")

# Adds the target with the MuJoCo below `folder`, or the system's for "system"; sets ${version} to its version, empty when there is none.
function(datacom_mujoco_target target folder version)
  set(${version} "" PARENT_SCOPE)
  set(where PATHS "${folder}" NO_DEFAULT_PATH)
  if(folder STREQUAL "system")
    set(where)
  endif()
  find_path(include mujoco/mujoco.h ${where} PATH_SUFFIXES include NO_CACHE)
  find_library(library mujoco ${where} PATH_SUFFIXES lib NO_CACHE)
  if(NOT include OR NOT library)
    return()
  endif()
  file(STRINGS "${include}/mujoco/mujoco.h" line REGEX "define mjVERSION_HEADER")
  string(REGEX MATCH "[0-9]+" number "${line}")
  if(number LESS 1000)  # 222 is 2.2.2, 4000000 is 4.0.0
    string(REGEX REPLACE "^(.)(.)(.)$" "\\1.\\2.\\3" number "${number}")
  else()
    math(EXPR major "${number} / 1000000")
    math(EXPR minor "${number} / 1000 % 1000")
    math(EXPR patch "${number} % 1000")
    set(number "${major}.${minor}.${patch}")
  endif()
  file(REAL_PATH "${library}" library)
  add_library(${target} SHARED IMPORTED GLOBAL)
  set_target_properties(${target} PROPERTIES IMPORTED_LOCATION "${library}" INTERFACE_INCLUDE_DIRECTORIES "${include}")
  set(${version} "${number}" PARENT_SCOPE)
endfunction()

set(folder "${DATACOM_MUJOCO}")
if(folder STREQUAL "")
  set(folder "${CMAKE_SOURCE_DIR}/build/mujoco")
  if(SKBUILD)  # pip calls CMake without ./datacom
    execute_process(COMMAND "${CMAKE_SOURCE_DIR}/deploy/dev/fetch_mujoco" "${folder}")
  endif()
  if(NOT EXISTS "${folder}/version")
    set(folder "system")
  endif()
endif()
datacom_mujoco_target(mujoco::mujoco "${folder}" DATACOM_MUJOCO_VERSION)
if(NOT DATACOM_MUJOCO_VERSION)
  message(FATAL_ERROR "no MuJoCo in ${folder}: ./datacom setup fetches it; DATACOM_MUJOCO=system uses Debian's libmujoco-dev")
endif()
if(DATACOM_MUJOCO_VERSION MATCHES "^3")
  message(FATAL_ERROR "MuJoCo ${DATACOM_MUJOCO_VERSION} in ${folder}: supported are 2.2 and 4")
endif()
set(DATACOM_MUJOCO_FOLDER "${folder}")
message(STATUS "MuJoCo ${DATACOM_MUJOCO_VERSION} (${folder})")
# SPDX-License-Identifier: Apache-2.0

# Compile flags, dependencies and helpers that add targets.
#
#   datacom_library(NAME rpc SRCS a.cc DEPS datacom::base gRPC::grpc++)            -> target datacom_rpc, alias datacom::rpc
#   datacom_binary(NAME datacom-replay SRCS main.cc DEPS ...)                      -> bin/datacom-replay
#   datacom_test(NAME ring_test SRCS ring_test.cc DEPS ... [LABELS fast] [SHARDS 2]) -> ctest ring_test (ring_test_1 and ring_test_2, each
#                                                                                      with a half of the tests), label fast by default.
#                                                                                      Sources after ALONE share names with others
#   datacom_embed(FILE.cc NAMESPACE datacom::x PARTS kPage=a.html) -> a source that defines the text of this folder's a.html as kPage;
#                                                                     its reader declares it: extern const char kPage[];
#
# RPC marks libraries of which most sources use gRPC.
# Warnings apply only to this project's targets. Sources are listed, except in folders of plug-ins (tests/structure_test.py).
include_guard(GLOBAL)

option(DATACOM_TESTS "Build tests and benchmarks, too" OFF)
option(DATACOM_WERROR "Treat warnings as errors" OFF)
option(DATACOM_LEARNER "Build the learner" ON)
include(CMakeDependentOption)
cmake_dependent_option(DATACOM_TORCH "Build the learner's GPU library and the tests that compare it with the CPU (needs LibTorch)" ON
                       "DATACOM_TESTS OR DATACOM_LIBTORCH" OFF)
set(DATACOM_SANITIZE "" CACHE STRING "Sanitizers for all targets, e.g. address,undefined or thread")
option(DATACOM_FUZZ "Build the targets of tests/fuzz for libFuzzer (clang, with DATACOM_SANITIZE=fuzzer-no-link,...)" OFF)
option(DATACOM_COVERAGE "Instrument for gcov" OFF)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
set(CMAKE_INSTALL_RPATH "$ORIGIN/../lib")
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -g1 -DNDEBUG")

# A compiler cache serves clones in any folder: paths below the source folder are cached as relative ones. Precompiled headers need the
# sloppiness.
find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CMAKE_COMMAND}" -E env "CCACHE_BASEDIR=${CMAKE_SOURCE_DIR}" CCACHE_NOHASHDIR=1
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_ctime,include_file_mtime "${CCACHE_PROGRAM}")
endif()

include(Packages)
include(Mujoco)
include(Plugins)
include(Tests)
if(DATACOM_TESTS)
  enable_testing()
endif()

add_library(datacom_flags INTERFACE)
# One instruction set for all targets: Eigen's alignment breaks when targets use different vector widths. -pthread defines a macro, which
# must be the same wherever a precompiled header is used.
set(DATACOM_INSTRUCTIONS -march=x86-64-v3 -ffp-contract=off -pthread)
target_compile_options(datacom_flags INTERFACE ${DATACOM_INSTRUCTIONS})
if(DATACOM_SANITIZE)
  # -O1 -g1: reports have line numbers, and compiling takes half the time.
  target_compile_options(datacom_flags INTERFACE -fsanitize=${DATACOM_SANITIZE} -fno-omit-frame-pointer -O1 -g1)
  target_link_options(datacom_flags INTERFACE -fsanitize=${DATACOM_SANITIZE})
  # Protobuf's maps change their layout when __SANITIZE_THREAD__ is defined, and the installed library was built without it.
  target_compile_options(datacom_flags INTERFACE -U__SANITIZE_THREAD__)
  target_compile_definitions(datacom_flags INTERFACE DATACOM_SANITIZED)
  # A test that preloads a failing disk loads the sanitizer's runtime second.
  set(DATACOM_TEST_ENVIRONMENT "ASAN_OPTIONS=verify_asan_link_order=0")
endif()
# The linker leaves out functions that a program does not use.
target_compile_options(datacom_flags INTERFACE -ffunction-sections -fdata-sections)
target_link_options(datacom_flags INTERFACE LINKER:--gc-sections)
if(DATACOM_FUZZ)
  target_compile_options(datacom_flags INTERFACE -fno-sanitize-recover=all)  # undefined behaviour ends the process
endif()
if(DATACOM_COVERAGE)
  target_compile_options(datacom_flags INTERFACE --coverage)
  target_link_options(datacom_flags INTERFACE --coverage)
endif()
set(DATACOM_TEST_OPTIONS $<$<CONFIG:Release>:-O1>)  # a fifth less to compile than -O2
add_library(datacom_warnings INTERFACE)
target_compile_options(datacom_warnings INTERFACE -Wall -Wextra -Wno-unused-parameter
  $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety>
  $<$<BOOL:${DATACOM_WERROR}>:-Werror>)

# Headers that most sources include, compiled once. The preset dev compiles without, so that each source names what it uses.
function(datacom_precompiled name)
  file(CONFIGURE OUTPUT "${CMAKE_BINARY_DIR}/generated/${name}.cc" CONTENT "// Only the precompiled header is used.\n")
  add_library(${name} OBJECT "${CMAKE_BINARY_DIR}/generated/${name}.cc")
  target_precompile_headers(${name} PRIVATE ${ARGN} <algorithm> <cstdint> <functional> <map> <memory> <string> <utility> <vector>
    <absl/status/statusor.h> <absl/strings/str_cat.h> <google/protobuf/message.h>)
  target_compile_options(${name} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)
  set_target_properties(${name} PROPERTIES CXX_STANDARD 20)
  target_link_libraries(${name} PRIVATE datacom_flags datacom_warnings protobuf::libprotobuf absl::statusor absl::strings)
endfunction()
datacom_precompiled(datacom_headers)
datacom_precompiled(datacom_rpc_headers <grpcpp/grpcpp.h>)
target_link_libraries(datacom_rpc_headers PRIVATE gRPC::grpc++)
if(DATACOM_TESTS)
  datacom_precompiled(datacom_test_headers <gmock/gmock.h> <gtest/gtest.h>)
  datacom_precompiled(datacom_rpc_test_headers <gmock/gmock.h> <grpcpp/grpcpp.h> <gtest/gtest.h>)
  foreach(name datacom_test_headers datacom_rpc_test_headers)
    target_link_libraries(${name} PRIVATE GTest::gmock gRPC::grpc++)
    target_compile_options(${name} PRIVATE ${DATACOM_TEST_OPTIONS})
  endforeach()
endif()

# _datacom_setup(target cxx [HEADERS target]): sources with options of their own set SKIP_PRECOMPILE_HEADERS.
function(_datacom_setup target cxx)
  cmake_parse_arguments(A "" "HEADERS" "" ${ARGN})
  target_compile_features(${target} PUBLIC cxx_std_17)
  set_target_properties(${target} PROPERTIES CXX_STANDARD ${cxx})
  target_include_directories(${target} PUBLIC "${CMAKE_SOURCE_DIR}")
  target_link_libraries(${target} PUBLIC datacom_flags PRIVATE datacom_warnings)
  if(A_HEADERS AND cxx EQUAL 20)
    target_compile_options(${target} PRIVATE -fPIC $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)  # as the precompiled header
    target_precompile_headers(${target} REUSE_FROM ${A_HEADERS})
  endif()
endfunction()

function(datacom_library)
  cmake_parse_arguments(A "RPC" "NAME" "SRCS;DEPS;PRIVATE_DEPS" ${ARGN})
  set(target datacom_${A_NAME})
  set(headers datacom_headers)
  if(A_RPC)
    set(headers datacom_rpc_headers)
  endif()
  if(A_SRCS)
    add_library(${target} STATIC ${A_SRCS})
    _datacom_setup(${target} 20 HEADERS ${headers})
    target_link_libraries(${target} PUBLIC ${A_DEPS} PRIVATE ${A_PRIVATE_DEPS})
  else()
    add_library(${target} INTERFACE)
    target_include_directories(${target} INTERFACE "${CMAKE_SOURCE_DIR}")
    target_link_libraries(${target} INTERFACE datacom_flags ${A_DEPS})
  endif()
  add_library(datacom::${A_NAME} ALIAS ${target})
endfunction()

function(datacom_embed out)
  cmake_parse_arguments(A "" "NAMESPACE" "PARTS" ${ARGN})
  set(script "${CMAKE_SOURCE_DIR}/deploy/dev/cmake/embed.cmake")
  list(TRANSFORM A_PARTS REPLACE "^.*=" "${CMAKE_CURRENT_SOURCE_DIR}/" OUTPUT_VARIABLE files)
  add_custom_command(OUTPUT "${out}" DEPENDS "${script}" ${files} VERBATIM
    COMMAND "${CMAKE_COMMAND}" "-DFOLDER=${CMAKE_CURRENT_SOURCE_DIR}" "-DOUT=${out}" "-DNAMESPACE=${A_NAMESPACE}"
            "-DPARTS=${A_PARTS}" -P "${script}")
endfunction()

# datacom_one_source(target name a.cc b.cc ...): compiles these sources of a target as one, because each would generate the same code of a
# library that consists of headers. Their anonymous namespaces become one. Not in the preset dev.
function(datacom_one_source target name)
  if(NOT CMAKE_DISABLE_PRECOMPILE_HEADERS)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
    set_source_files_properties(${ARGN} PROPERTIES UNITY_GROUP ${name})
  endif()
endfunction()

function(datacom_binary)
  cmake_parse_arguments(A "" "NAME" "SRCS;DEPS" ${ARGN})
  add_executable(${A_NAME} ${A_SRCS})
  _datacom_setup(${A_NAME} 20 HEADERS datacom_headers)
  target_link_libraries(${A_NAME} PRIVATE ${A_DEPS})
  datacom_show_symbols(${A_NAME})
endfunction()

function(datacom_test)
  cmake_parse_arguments(A "RPC" "NAME;CXX;SHARDS" "SRCS;DEPS;LABELS;ARGS;ALONE" ${ARGN})
  if(NOT A_CXX)
    set(A_CXX 20)
  endif()
  add_executable(${A_NAME} ${A_SRCS})
  set(headers datacom_test_headers)
  if(A_RPC)
    set(headers datacom_rpc_test_headers)
  elseif("datacom_libtorch" IN_LIST A_DEPS)  # it defines macros
    set(headers)
    target_precompile_headers(${A_NAME} PRIVATE <torch/torch.h>)
    target_compile_options(${A_NAME} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)
  endif()
  _datacom_setup(${A_NAME} ${A_CXX} HEADERS ${headers})
  if(NOT CMAKE_DISABLE_PRECOMPILE_HEADERS)  # three sources as one: half of the time of a source goes into the headers of GoogleTest
    set_target_properties(${A_NAME} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE BATCH UNITY_BUILD_BATCH_SIZE 3)
    set_source_files_properties(${A_ALONE} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  endif()
  target_compile_options(${A_NAME} PRIVATE ${DATACOM_TEST_OPTIONS})
  target_link_libraries(${A_NAME} PRIVATE ${A_DEPS} GTest::gmock_main)
  set_target_properties(${A_NAME} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/tests")
  if(NOT A_SHARDS)
    set(A_SHARDS 1)
  endif()
  foreach(shard RANGE 1 ${A_SHARDS})
    set(name ${A_NAME})
    if(A_SHARDS GREATER 1)
      string(APPEND name _${shard})
    endif()
    math(EXPR index "${shard} - 1")
    datacom_add_test(NAME ${name} COMMAND ${A_NAME} ${A_ARGS} WORKING_DIRECTORY "${CMAKE_SOURCE_DIR}" LABELS ${A_LABELS}
      ENVIRONMENT GTEST_TOTAL_SHARDS=${A_SHARDS} GTEST_SHARD_INDEX=${index})
  endforeach()
endfunction()
# SPDX-License-Identifier: Apache-2.0

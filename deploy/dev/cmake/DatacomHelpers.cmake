# Compile flags, dependencies and three helpers that add targets.
#
#   datacom_library(NAME rpc SRCS a.cc DEPS datacom::base gRPC::grpc++ [CXX 17])   -> target datacom_rpc, alias datacom::rpc
#   datacom_binary(NAME datacom-replay SRCS main.cc DEPS ...)                      -> bin/datacom-replay
#   datacom_test(NAME ring_test SRCS ring_test.cc DEPS ... [LABELS fast])          -> ctest ring_test, label fast by default
#
# Warnings apply only to this project's targets. Sources are listed, never globbed.
include_guard(GLOBAL)

option(DATACOM_TESTS "Build tests and benchmarks" ON)
option(DATACOM_WERROR "Treat warnings as errors" OFF)
option(DATACOM_LEARNER "Build the learner (needs LibTorch)" ON)
set(DATACOM_SANITIZE "" CACHE STRING "Sanitizers for all targets, e.g. address,undefined or thread")
option(DATACOM_COVERAGE "Instrument for gcov" OFF)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -g1 -DNDEBUG")

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CCACHE_PROGRAM}")
endif()

find_package(Threads REQUIRED)
find_package(Protobuf REQUIRED)
find_package(gRPC CONFIG REQUIRED)
find_package(absl CONFIG REQUIRED)
find_package(Eigen3 CONFIG REQUIRED)
find_package(prometheus-cpp CONFIG REQUIRED)
find_package(spdlog CONFIG REQUIRED)
find_package(CLI11 CONFIG REQUIRED)
find_package(nlohmann_json CONFIG REQUIRED)
find_package(ZLIB REQUIRED)
find_package(mujoco CONFIG REQUIRED)
if(DATACOM_TESTS)
  enable_testing()
  find_package(GTest CONFIG REQUIRED)
  find_package(benchmark CONFIG REQUIRED)
endif()

add_library(datacom_flags INTERFACE)
# One instruction set for all targets: Eigen's alignment breaks when targets use different vector widths.
target_compile_options(datacom_flags INTERFACE -march=x86-64-v3 -ffp-contract=off)
if(DATACOM_SANITIZE)
  # -O1 -g1: reports have line numbers, and compiling takes half the time.
  target_compile_options(datacom_flags INTERFACE -fsanitize=${DATACOM_SANITIZE} -fno-omit-frame-pointer -O1 -g1)
  target_link_options(datacom_flags INTERFACE -fsanitize=${DATACOM_SANITIZE})
  # Protobuf's maps change their layout when __SANITIZE_THREAD__ is defined, and the installed library was built without it.
  target_compile_options(datacom_flags INTERFACE -U__SANITIZE_THREAD__)
  target_compile_definitions(datacom_flags INTERFACE DATACOM_SANITIZED)
  # Leaks inside libraries are suppressed. A test that preloads a failing disk loads the sanitizer's runtime second.
  set(DATACOM_TEST_ENVIRONMENT "LSAN_OPTIONS=suppressions=${CMAKE_SOURCE_DIR}/deploy/dev/leaks.supp:print_suppressions=0"
      "ASAN_OPTIONS=verify_asan_link_order=0")
endif()
if(DATACOM_COVERAGE)
  target_compile_options(datacom_flags INTERFACE --coverage)
  target_link_options(datacom_flags INTERFACE --coverage)
endif()
add_library(datacom_warnings INTERFACE)
target_compile_options(datacom_warnings INTERFACE -Wall -Wextra -Wno-unused-parameter
  $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety>
  $<$<BOOL:${DATACOM_WERROR}>:-Werror>)

function(_datacom_setup target cxx)
  target_compile_features(${target} PUBLIC cxx_std_17)
  set_target_properties(${target} PROPERTIES CXX_STANDARD ${cxx})
  target_include_directories(${target} PUBLIC "${CMAKE_SOURCE_DIR}")
  target_link_libraries(${target} PUBLIC datacom_flags PRIVATE datacom_warnings)
endfunction()

function(datacom_library)
  cmake_parse_arguments(A "" "NAME;CXX" "SRCS;DEPS;PRIVATE_DEPS" ${ARGN})
  if(NOT A_CXX)
    set(A_CXX 20)
  endif()
  set(target datacom_${A_NAME})
  if(A_SRCS)
    add_library(${target} STATIC ${A_SRCS})
    _datacom_setup(${target} ${A_CXX})
    target_link_libraries(${target} PUBLIC ${A_DEPS} PRIVATE ${A_PRIVATE_DEPS})
  else()
    add_library(${target} INTERFACE)
    target_include_directories(${target} INTERFACE "${CMAKE_SOURCE_DIR}")
    target_link_libraries(${target} INTERFACE datacom_flags ${A_DEPS})
  endif()
  add_library(datacom::${A_NAME} ALIAS ${target})
endfunction()

function(datacom_binary)
  cmake_parse_arguments(A "" "NAME;CXX" "SRCS;DEPS" ${ARGN})
  if(NOT A_CXX)
    set(A_CXX 20)
  endif()
  add_executable(${A_NAME} ${A_SRCS})
  _datacom_setup(${A_NAME} ${A_CXX})
  target_link_libraries(${A_NAME} PRIVATE ${A_DEPS})
endfunction()

function(datacom_test)
  cmake_parse_arguments(A "" "NAME;CXX;TIMEOUT" "SRCS;DEPS;LABELS;ARGS" ${ARGN})
  if(NOT A_CXX)
    set(A_CXX 20)
  endif()
  if(NOT A_LABELS)
    set(A_LABELS fast)
  endif()
  if(NOT A_TIMEOUT)
    set(A_TIMEOUT 300)
  endif()
  add_executable(${A_NAME} ${A_SRCS})
  _datacom_setup(${A_NAME} ${A_CXX})
  target_link_libraries(${A_NAME} PRIVATE ${A_DEPS} GTest::gmock_main)
  set_target_properties(${A_NAME} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/tests")
  add_test(NAME ${A_NAME} COMMAND ${A_NAME} ${A_ARGS} WORKING_DIRECTORY "${CMAKE_SOURCE_DIR}")
  set_tests_properties(${A_NAME} PROPERTIES LABELS "${A_LABELS}" TIMEOUT ${A_TIMEOUT}
    ENVIRONMENT "${DATACOM_TEST_ENVIRONMENT}")
endfunction()

# Target datacom_torch: bin/libdatacom_torch.so, the backend that needs LibTorch. Programs load it when a kernel of that backend is asked
# for; tests link it, so that it is found. Target datacom_libtorch: LibTorch itself.
set(DATACOM_LIBTORCH "" CACHE PATH "Folder of the LibTorch to build against; empty: the one that CMake finds")
if(DATACOM_LIBTORCH)  # only here: PyPI's LibTorch also has headers of another protobuf, which the project must not find
  list(PREPEND CMAKE_PREFIX_PATH "${DATACOM_LIBTORCH}")
endif()
find_package(Torch REQUIRED)
add_library(datacom_libtorch INTERFACE)
target_link_libraries(datacom_libtorch INTERFACE ${TORCH_LIBRARIES})
# PyPI's LibTorch has headers of another protobuf. Tests of the core include both, so the project's come first.
foreach(folder ${TORCH_INCLUDE_DIRS})
  if(EXISTS "${folder}/google/protobuf" AND NOT folder STREQUAL Protobuf_INCLUDE_DIR)
    file(MAKE_DIRECTORY "${CMAKE_BINARY_DIR}/protobuf_first")
    file(CREATE_LINK "${Protobuf_INCLUDE_DIR}/google" "${CMAKE_BINARY_DIR}/protobuf_first/google" SYMBOLIC)
    target_include_directories(datacom_libtorch SYSTEM INTERFACE "${CMAKE_BINARY_DIR}/protobuf_first")
  endif()
endforeach()
target_include_directories(datacom_libtorch SYSTEM INTERFACE ${TORCH_INCLUDE_DIRS})

# Clang 14 refuses the headers of LibTorch 1.13 as C++20.
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  set(DATACOM_TORCH_CXX 17 CACHE INTERNAL "C++ of sources that include LibTorch")
else()
  set(DATACOM_TORCH_CXX 20 CACHE INTERNAL "C++ of sources that include LibTorch")
endif()
add_library(datacom_torch_objects OBJECT ${DATACOM_TORCH_SOURCES})
set_target_properties(datacom_torch_objects PROPERTIES CXX_STANDARD ${DATACOM_TORCH_CXX} POSITION_INDEPENDENT_CODE ON)
target_include_directories(datacom_torch_objects PUBLIC "${CMAKE_CURRENT_LIST_DIR}/..")
target_compile_definitions(datacom_torch_objects PRIVATE "DATACOM_TORCH_VERSION=\"${Torch_VERSION}\"" $<$<TARGET_EXISTS:torch_cuda>:DATACOM_CUDA_GRAPHS>)
target_link_libraries(datacom_torch_objects PUBLIC datacom_libtorch)
target_compile_options(datacom_torch_objects PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)
target_precompile_headers(datacom_torch_objects PRIVATE <ATen/ATen.h>)

# A libdatacom_torch.so in `folder`: the backend, and the implementations of further kernel groups in the sources that follow. A program finds the
# library that it links.
set(DATACOM_TORCH_MAP "${CMAKE_CURRENT_LIST_DIR}/nn/torch/datacom_torch.map" CACHE INTERNAL "symbols that libdatacom_torch.so shows")
function(datacom_torch_library target folder)
  add_library(${target} SHARED $<TARGET_OBJECTS:datacom_torch_objects> ${ARGN})
  set_target_properties(${target} PROPERTIES CXX_STANDARD ${DATACOM_TORCH_CXX} OUTPUT_NAME datacom_torch LIBRARY_OUTPUT_DIRECTORY "${folder}"
    LINK_DEPENDS "${DATACOM_TORCH_MAP}" INSTALL_RPATH "$ORIGIN/../../torch/lib:$ORIGIN/../../nvidia/cu13/lib")  # as pip lays them out
  target_include_directories(${target} PRIVATE $<TARGET_PROPERTY:datacom_torch_objects,INTERFACE_INCLUDE_DIRECTORIES>)
  target_link_libraries(${target} PRIVATE datacom_libtorch)
  target_link_options(${target} PRIVATE "LINKER:--version-script=${DATACOM_TORCH_MAP}" INTERFACE LINKER:--no-as-needed)
endfunction()

datacom_torch_library(datacom_torch "${CMAKE_BINARY_DIR}/bin")
# SPDX-License-Identifier: Apache-2.0

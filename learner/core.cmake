# datacom::learner_core: networks, kernels and algorithms on the CPU, and the code that loads datacom_torch. It is linked as objects, so
# that the linker keeps the files that register algorithms (algorithms/register_algorithm.h) and implementations of kernel groups (nn/kernel_impls.h).
include("${CMAKE_CURRENT_LIST_DIR}/core_sources.cmake")

add_library(datacom_learner_core_objects OBJECT ${DATACOM_CORE_SOURCES} ${DATACOM_CPU_SOURCES})
_datacom_setup(datacom_learner_core_objects 20 HEADERS datacom_headers)
target_link_libraries(datacom_learner_core_objects PUBLIC datacom::statistics datacom::config datacom::base datacom::safety)
datacom_library(NAME learner_core
  DEPS $<TARGET_OBJECTS:datacom_learner_core_objects> datacom::statistics datacom::config datacom::base datacom::safety Threads::Threads ${CMAKE_DL_LIBS})

if(DATACOM_TORCH)
  set(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL TRUE)  # tests link LibTorch too
  include("${CMAKE_CURRENT_LIST_DIR}/torch.cmake")
  unset(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL)
  target_link_libraries(datacom_torch_objects PRIVATE datacom_flags datacom_warnings)
  target_link_libraries(datacom_torch PRIVATE datacom_flags)
endif()
# SPDX-License-Identifier: Apache-2.0

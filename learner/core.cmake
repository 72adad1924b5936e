# datacom::learner_core: networks, kernels and algorithms on the CPU, and the code that loads datacom_torch. It is linked as objects, so
# that the linker keeps the files that register algorithms (algorithms/register_algorithm.h) and forms of kernel groups (nn/forms.h).
include("${CMAKE_CURRENT_LIST_DIR}/core_sources.cmake")

find_path(OPENBLAS_INCLUDE_DIR cblas.h PATH_SUFFIXES openblas-pthread openblas x86_64-linux-gnu/openblas-pthread)
find_library(OPENBLAS_LIBRARY openblas PATH_SUFFIXES openblas-pthread)
if(NOT OPENBLAS_LIBRARY OR NOT OPENBLAS_INCLUDE_DIR)
  message(FATAL_ERROR "OpenBLAS is not installed (Debian: libopenblas-pthread-dev)")
endif()
# libxsmm's kernels for small products, a static library. It refers to the BLAS's sgemm_.
find_path(LIBXSMM_INCLUDE_DIR libxsmm.h PATH_SUFFIXES libxsmm)
find_library(LIBXSMM_LIBRARY libxsmm.a)
if(NOT LIBXSMM_LIBRARY OR NOT LIBXSMM_INCLUDE_DIR)
  message(FATAL_ERROR "libxsmm is not installed (Debian: libxsmm-dev)")
endif()

add_library(datacom_learner_core_objects OBJECT ${DATACOM_CORE_SOURCES} ${DATACOM_CPU_SOURCES} ${DATACOM_PRODUCT_SOURCES})
_datacom_setup(datacom_learner_core_objects 20)
target_include_directories(datacom_learner_core_objects PUBLIC "${DATACOM_GENERATED}")
target_include_directories(datacom_learner_core_objects SYSTEM PRIVATE ${OPENBLAS_INCLUDE_DIR} ${LIBXSMM_INCLUDE_DIR})
target_link_libraries(datacom_learner_core_objects PUBLIC datacom::base datacom::safety)
datacom_library(NAME learner_core
  DEPS $<TARGET_OBJECTS:datacom_learner_core_objects> datacom::base datacom::safety ${LIBXSMM_LIBRARY} ${OPENBLAS_LIBRARY} Threads::Threads ${CMAKE_DL_LIBS})
target_include_directories(datacom_learner_core INTERFACE "${DATACOM_GENERATED}")

if(DATACOM_TORCH)
  set(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL TRUE)  # tests link LibTorch too
  include("${CMAKE_CURRENT_LIST_DIR}/torch.cmake")
  unset(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL)
  target_link_libraries(datacom_torch_objects PRIVATE datacom_flags datacom_warnings)
  target_link_libraries(datacom_torch PRIVATE datacom_flags)
endif()

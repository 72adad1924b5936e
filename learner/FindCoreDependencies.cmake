# Targets datacom_torch and datacom_blas for the learner core. OPENBLAS_LIBRARY and LIBXSMM_LIBRARY are false where there is none and
# DATACOM_ANY_BLAS allows slower products on the CPU instead: OpenBLAS's alone, or LibTorch's.
set(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL TRUE)  # tests link LibTorch too
find_package(Torch REQUIRED)
unset(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL)
add_library(datacom_torch INTERFACE)
target_link_libraries(datacom_torch INTERFACE ${TORCH_LIBRARIES})
target_include_directories(datacom_torch SYSTEM INTERFACE ${TORCH_INCLUDE_DIRS})
if(TARGET torch_cuda)
  target_compile_definitions(datacom_torch INTERFACE DATACOM_CUDA_GRAPHS)
endif()

find_path(OPENBLAS_INCLUDE_DIR cblas.h PATH_SUFFIXES openblas-pthread openblas x86_64-linux-gnu/openblas-pthread)
find_library(OPENBLAS_LIBRARY openblas PATH_SUFFIXES openblas-pthread)
add_library(datacom_blas INTERFACE)
if(OPENBLAS_LIBRARY AND OPENBLAS_INCLUDE_DIR)
  target_link_libraries(datacom_blas INTERFACE ${OPENBLAS_LIBRARY})
  target_include_directories(datacom_blas SYSTEM INTERFACE ${OPENBLAS_INCLUDE_DIR})
elseif(NOT DATACOM_ANY_BLAS)
  message(FATAL_ERROR "OpenBLAS is not installed (Debian: libopenblas-pthread-dev)")
endif()

# libxsmm's kernels for small products, a static library. It names the BLAS's sgemm_, so it is used only beside OpenBLAS.
find_path(LIBXSMM_INCLUDE_DIR libxsmm.h PATH_SUFFIXES libxsmm)
find_library(LIBXSMM_LIBRARY libxsmm.a)
if(LIBXSMM_LIBRARY AND LIBXSMM_INCLUDE_DIR AND OPENBLAS_LIBRARY)
  find_package(Threads REQUIRED)
  target_link_libraries(datacom_blas INTERFACE ${LIBXSMM_LIBRARY} ${OPENBLAS_LIBRARY} Threads::Threads ${CMAKE_DL_LIBS})
  target_include_directories(datacom_blas SYSTEM INTERFACE ${LIBXSMM_INCLUDE_DIR})
elseif(DATACOM_ANY_BLAS)
  set(LIBXSMM_LIBRARY FALSE)
else()
  message(FATAL_ERROR "libxsmm is not installed (Debian: libxsmm-dev)")
endif()

# Targets datacom_torch and datacom_blas for the learner core.
find_package(Torch REQUIRED)
add_library(datacom_torch INTERFACE)
target_link_libraries(datacom_torch INTERFACE ${TORCH_LIBRARIES})
target_include_directories(datacom_torch SYSTEM INTERFACE ${TORCH_INCLUDE_DIRS})

find_path(OPENBLAS_INCLUDE_DIR cblas.h PATH_SUFFIXES openblas-pthread openblas x86_64-linux-gnu/openblas-pthread REQUIRED)
find_library(OPENBLAS_LIBRARY openblas PATH_SUFFIXES openblas-pthread REQUIRED)
add_library(datacom_blas INTERFACE)
target_link_libraries(datacom_blas INTERFACE ${OPENBLAS_LIBRARY})
target_include_directories(datacom_blas SYSTEM INTERFACE ${OPENBLAS_INCLUDE_DIR})

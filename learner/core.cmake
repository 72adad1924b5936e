# datacom::learner_core: networks, kernels and algorithms; LibTorch, libxsmm, OpenBLAS, the safe map and nothing else.
include("${CMAKE_CURRENT_LIST_DIR}/FindCoreDependencies.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/core_sources.cmake")
datacom_library(NAME learner_core CXX 17 SRCS ${DATACOM_CORE_SOURCES} DEPS datacom::safety PRIVATE_DEPS datacom_torch datacom_blas)

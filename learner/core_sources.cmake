# The learner core's sources, shared by the project's build and learner/standalone (which needs LibTorch and a BLAS alone).
set(DATACOM_CORE_SOURCES
  ${CMAKE_CURRENT_LIST_DIR}/algorithms/algorithm.cc)

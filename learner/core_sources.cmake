# The learner core's sources, shared by the project's build and learner/standalone (which needs LibTorch and a BLAS alone).
set(DATACOM_CORE_SOURCES
  ${CMAKE_CURRENT_LIST_DIR}/nn/mlp.cc
  ${CMAKE_CURRENT_LIST_DIR}/nn/kernels.cc
  ${CMAKE_CURRENT_LIST_DIR}/nn/fused_dense.cc
  ${CMAKE_CURRENT_LIST_DIR}/nn/fused_rows.cc
  ${CMAKE_CURRENT_LIST_DIR}/nn/fused_quantiles.cc
  ${CMAKE_CURRENT_LIST_DIR}/nn/fused_joined_map.cc
  ${CMAKE_CURRENT_LIST_DIR}/nn/tensor_kernels.cc
  ${CMAKE_CURRENT_LIST_DIR}/nn/tensor_rows.cc
  ${CMAKE_CURRENT_LIST_DIR}/nn/tensor_joined_map.cc
  ${CMAKE_CURRENT_LIST_DIR}/algorithms/algorithm.cc
  ${CMAKE_CURRENT_LIST_DIR}/algorithms/population.cc
  ${CMAKE_CURRENT_LIST_DIR}/algorithms/critic_ensemble.cc
  ${CMAKE_CURRENT_LIST_DIR}/algorithms/soft_actor_critic.cc
  ${CMAKE_CURRENT_LIST_DIR}/algorithms/feasibility.cc
  ${CMAKE_CURRENT_LIST_DIR}/algorithms/gaussian_feasibility.cc
  ${CMAKE_CURRENT_LIST_DIR}/algorithms/quantile_feasibility.cc
  ${CMAKE_CURRENT_LIST_DIR}/algorithms/delta.cc
  ${CMAKE_CURRENT_LIST_DIR}/algorithms/sac.cc
  ${CMAKE_CURRENT_LIST_DIR}/algorithms/analytic_atacom.cc
  ${CMAKE_CURRENT_LIST_DIR}/algorithms/lag_sac.cc
  ${CMAKE_CURRENT_LIST_DIR}/algorithms/wcsac.cc
  ${CMAKE_CURRENT_LIST_DIR}/algorithms/cbf_sac.cc
  ${CMAKE_CURRENT_LIST_DIR}/algorithms/safe_layer_td3.cc
  ${CMAKE_CURRENT_LIST_DIR}/algorithms/datacom.cc
  ${CMAKE_CURRENT_LIST_DIR}/algorithms/iqn_datacom.cc)
if(OPENBLAS_LIBRARY)
  list(APPEND DATACOM_CORE_SOURCES ${CMAKE_CURRENT_LIST_DIR}/nn/gemm_blas.cc)
else()
  list(APPEND DATACOM_CORE_SOURCES ${CMAKE_CURRENT_LIST_DIR}/nn/gemm_torch.cc)
endif()
# Loops between two matrix products: let the compiler vectorise and fuse multiply-adds there; no reordering of sums.
set_source_files_properties(${CMAKE_CURRENT_LIST_DIR}/nn/fused_dense.cc ${CMAKE_CURRENT_LIST_DIR}/nn/fused_rows.cc
  ${CMAKE_CURRENT_LIST_DIR}/nn/fused_quantiles.cc
  PROPERTIES COMPILE_OPTIONS "-O3;-ffp-contract=fast;-fno-math-errno;-fno-trapping-math")

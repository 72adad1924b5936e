# The learner core's sources, shared by the project's build and learner/standalone (which needs LibTorch alone).
set(DATACOM_CORE_SOURCES
  ${CMAKE_CURRENT_LIST_DIR}/nn/mlp.cc
  ${CMAKE_CURRENT_LIST_DIR}/nn/kernels.cc
  ${CMAKE_CURRENT_LIST_DIR}/nn/instruction_set.cc
  ${CMAKE_CURRENT_LIST_DIR}/nn/gemm.cc
  ${CMAKE_CURRENT_LIST_DIR}/nn/loops_avx2.cc
  ${CMAKE_CURRENT_LIST_DIR}/nn/loops_avx512.cc
  ${CMAKE_CURRENT_LIST_DIR}/nn/fused_dense.cc
  ${CMAKE_CURRENT_LIST_DIR}/nn/fused_rows.cc
  ${CMAKE_CURRENT_LIST_DIR}/nn/fused_quantiles.cc
  ${CMAKE_CURRENT_LIST_DIR}/nn/fused_joined_map.cc
  ${CMAKE_CURRENT_LIST_DIR}/nn/fused_watch.cc
  ${CMAKE_CURRENT_LIST_DIR}/nn/tensor_kernels.cc
  ${CMAKE_CURRENT_LIST_DIR}/nn/tensor_rows.cc
  ${CMAKE_CURRENT_LIST_DIR}/nn/tensor_joined_map.cc
  ${CMAKE_CURRENT_LIST_DIR}/nn/tensor_watch.cc
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
if(LIBXSMM_LIBRARY)
  set_source_files_properties(${CMAKE_CURRENT_LIST_DIR}/nn/gemm.cc PROPERTIES COMPILE_DEFINITIONS DATACOM_LIBXSMM)
endif()
# Loops between two matrix products: the compiler vectorises, but does not reorder sums. Those that are built twice have the same bits
# for both instruction sets: there it does not fuse multiply-adds by itself.
set(loop_options "-O3;-fno-math-errno;-fno-trapping-math")
set_source_files_properties(${CMAKE_CURRENT_LIST_DIR}/nn/fused_rows.cc ${CMAKE_CURRENT_LIST_DIR}/nn/fused_quantiles.cc
  ${CMAKE_CURRENT_LIST_DIR}/nn/fused_watch.cc
  PROPERTIES COMPILE_OPTIONS "${loop_options};-ffp-contract=fast")
set_source_files_properties(${CMAKE_CURRENT_LIST_DIR}/nn/loops_avx2.cc PROPERTIES COMPILE_OPTIONS "${loop_options};-ffp-contract=off")
# GCC 12 warns of its own header's undefined registers.
set_source_files_properties(${CMAKE_CURRENT_LIST_DIR}/nn/loops_avx512.cc
  PROPERTIES COMPILE_OPTIONS
  "${loop_options};-ffp-contract=off;-mavx512f;-mavx512cd;-mavx512bw;-mavx512dq;-mavx512vl;-mprefer-vector-width=512;$<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>")

# The sources of the learner core and of its two backends.
include("${CMAKE_CURRENT_LIST_DIR}/core_kernel_group.cmake")

# A kernel group X has algorithms/X_kernels.h, X_cpu.cc and X_torch.cc.
set(DATACOM_KERNEL_GROUPS sac critic gaussian quantile safe_map joined_map cost barrier safe_layer on_policy surrogate
    natural_gradient dynamics)

set(here "${CMAKE_CURRENT_LIST_DIR}")
set(DATACOM_CORE_SOURCES
  ${here}/nn/parameter_layout.cc
  ${here}/nn/kernels.cc
  ${here}/nn/torch_library.cc
  ${here}/algorithms/algorithm.cc
  ${here}/algorithms/population.cc
  ${here}/algorithms/slices.cc
  ${here}/algorithms/critic_ensemble.cc
  ${here}/algorithms/soft_actor_critic.cc
  ${here}/algorithms/feasibility.cc
  ${here}/algorithms/gaussian_feasibility.cc
  ${here}/algorithms/quantile_feasibility.cc
  ${here}/algorithms/delta.cc
  ${here}/algorithms/sac.cc
  ${here}/algorithms/analytic_atacom.cc
  ${here}/algorithms/lag_sac.cc
  ${here}/algorithms/wcsac.cc
  ${here}/algorithms/cbf_sac.cc
  ${here}/algorithms/safe_layer_td3.cc
  ${here}/algorithms/cost_multiplier.cc
  ${here}/algorithms/minibatch_order.cc
  ${here}/algorithms/on_policy.cc
  ${here}/algorithms/ppo_lag.cc
  ${here}/algorithms/rcpo.cc
  ${here}/algorithms/row_memory.cc
  ${here}/algorithms/safe_loop.cc
  ${here}/algorithms/datacom.cc
  ${here}/algorithms/iqn_datacom.cc)
set(DATACOM_CPU_SOURCES
  ${here}/nn/cpu/gemm.cc
  ${here}/nn/cpu/instruction_set.cc
  ${here}/nn/cpu/loops_avx2.cc
  ${here}/nn/cpu/loops_avx512.cc
  ${here}/nn/cpu/optimisers.cc
  ${here}/nn/cpu/perceptrons.cc)
set(DATACOM_TORCH_SOURCES
  ${here}/nn/parameter_layout.cc
  ${here}/nn/torch/optimisers.cc
  ${here}/nn/torch/torch_kernels.cc)

foreach(group ${DATACOM_KERNEL_GROUPS})
  datacom_add_kernel_group(${here}/algorithms ${group})
endforeach()
# The actor's code, built with the actor's options, so that it has the same bits.
set_source_files_properties(${here}/algorithms/joined_map_cpu.cc PROPERTIES COMPILE_OPTIONS "")
set_source_files_properties(${here}/nn/cpu/gemm.cc ${here}/nn/cpu/optimisers.cc PROPERTIES COMPILE_OPTIONS "${DATACOM_LOOP_OPTIONS};-ffp-contract=fast")
# The two builds of the same loops have the same bits: the compiler does not fuse multiply-adds by itself.
set_source_files_properties(${here}/nn/cpu/loops_avx2.cc PROPERTIES COMPILE_OPTIONS "${DATACOM_LOOP_OPTIONS};-ffp-contract=off")
# GCC 12 warns about undefined registers in its own header.
set_source_files_properties(${here}/nn/cpu/loops_avx512.cc
  PROPERTIES COMPILE_OPTIONS
  "${DATACOM_LOOP_OPTIONS};-ffp-contract=off;-mavx512f;-mavx512cd;-mavx512bw;-mavx512dq;-mavx512vl;-mprefer-vector-width=512;$<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>")

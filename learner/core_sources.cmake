# The sources of the learner core and of its two backends. Those in algorithms/ follow from the names of the files: kernel group X has
# X_kernels.h, X_cpu.cc and X_torch.cc; all other sources there are algorithms and their parts.
set(here "${CMAKE_CURRENT_LIST_DIR}")
file(GLOB DATACOM_CORE_SOURCES "${here}/algorithms/*.cc")
file(GLOB DATACOM_CPU_SOURCES "${here}/algorithms/*_cpu.cc")
file(GLOB DATACOM_TORCH_SOURCES "${here}/algorithms/*_torch.cc")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${here}/algorithms")  # a new file changes the folder
list(REMOVE_ITEM DATACOM_CORE_SOURCES ${DATACOM_CPU_SOURCES} ${DATACOM_TORCH_SOURCES})

# Loops between two matrix products: the compiler vectorises, but does not reorder sums.
set(DATACOM_LOOP_OPTIONS -O3 -fno-math-errno -fno-trapping-math)
# The options of a CPU implementation of a kernel group.
set(DATACOM_KERNEL_OPTIONS ${DATACOM_LOOP_OPTIONS} -ffp-contract=fast)
set_source_files_properties(${DATACOM_CPU_SOURCES} PROPERTIES COMPILE_OPTIONS "${DATACOM_KERNEL_OPTIONS}" SKIP_PRECOMPILE_HEADERS ON)
# The actor's code, built with the actor's options, so that it has the same bits.
set_source_files_properties(${here}/algorithms/joined_map_cpu.cc PROPERTIES COMPILE_OPTIONS "" SKIP_PRECOMPILE_HEADERS OFF)

list(APPEND DATACOM_CORE_SOURCES
  ${here}/nn/parameter_layout.cc
  ${here}/nn/kernels.cc
  ${here}/nn/torch_library.cc)
list(APPEND DATACOM_CPU_SOURCES
  ${here}/nn/cpu/cpu_kernels.cc
  ${here}/nn/cpu/gemm.cc
  ${here}/nn/cpu/instruction_set.cc
  ${here}/nn/cpu/loops_avx2.cc
  ${here}/nn/cpu/loops_avx512.cc)
list(APPEND DATACOM_TORCH_SOURCES
  ${here}/nn/parameter_layout.cc
  ${here}/nn/torch/torch_kernels.cc)
set_source_files_properties(${here}/nn/cpu/cpu_kernels.cc ${here}/nn/cpu/gemm.cc
  PROPERTIES COMPILE_OPTIONS "${DATACOM_KERNEL_OPTIONS}" SKIP_PRECOMPILE_HEADERS ON)
# The two builds of the same loops have the same bits: the compiler does not fuse multiply-adds by itself.
set_source_files_properties(${here}/nn/cpu/loops_avx2.cc
  PROPERTIES COMPILE_OPTIONS "${DATACOM_LOOP_OPTIONS};-ffp-contract=off" SKIP_PRECOMPILE_HEADERS ON)
# GCC 12 warns about undefined registers in its own header.
set_source_files_properties(${here}/nn/cpu/loops_avx512.cc
  PROPERTIES COMPILE_OPTIONS
  "${DATACOM_LOOP_OPTIONS};-ffp-contract=off;-mavx512f;-mavx512cd;-mavx512bw;-mavx512dq;-mavx512vl;-mprefer-vector-width=512;$<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>"
  SKIP_PRECOMPILE_HEADERS ON)
# SPDX-License-Identifier: Apache-2.0

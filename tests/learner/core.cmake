# Tests of the learner core.
datacom_test(NAME core_threads_test SRCS algorithms/threads_test.cc nn/named_stream_test.cc nn/torch_errors_test.cc DEPS datacom::learner_core)
datacom_test(NAME core_delta_test SRCS algorithms/delta_test.cc DEPS datacom::learner_core)
datacom_test(NAME core_multiplier_test SRCS algorithms/multiplier_test.cc DEPS datacom::learner_core)
datacom_test(NAME core_products_test SRCS nn/cpu/gemm_test.cc DEPS datacom::learner_core)
datacom_add_test(NAME core_products_avx2_test COMMAND core_products_test ENVIRONMENT DATACOM_ISA=avx2)
if(NOT DATACOM_SANITIZE)  # a sanitizer's own memory counts, too
  datacom_test(NAME core_memory_test SRCS algorithms/soak_test.cc DEPS datacom::learner_core
               ARGS --gtest_filter=CoreMemory.*)
  datacom_add_test(NAME core_soak_test COMMAND core_memory_test --gtest_filter=CoreSoak.* LABELS soak)
endif()

# Sources of several programs, compiled once.
function(core_objects name)
  add_library(${name} OBJECT ${ARGN})
  _datacom_setup(${name} 20 HEADERS datacom_test_headers)
  target_compile_options(${name} PRIVATE ${DATACOM_TEST_OPTIONS})
  target_link_libraries(${name} PRIVATE datacom::learner_core datacom::acting nlohmann_json::nlohmann_json GTest::gmock)
endfunction()

core_objects(core_hyper_objects algorithms/hyper_test.cc)
datacom_test(NAME core_hyper_test SRCS $<TARGET_OBJECTS:core_hyper_objects> DEPS datacom::learner_core)

# Tests that need the GPU library.
if(DATACOM_TORCH)
  core_objects(core_golden_objects algorithms/golden.cc algorithms/golden_losses.cc algorithms/golden_on_policy.cc
               algorithms/golden_systems.cc)
  datacom_test(NAME core_golden_test SRCS algorithms/golden_test.cc $<TARGET_OBJECTS:core_golden_objects>
               DEPS datacom::learner_core datacom_torch nlohmann_json::nlohmann_json)
  datacom_test(NAME core_algorithms_test SRCS algorithms/algorithms_test.cc algorithms/imitation_test.cc
               algorithms/on_policy_test.cc algorithms/safe_loop_test.cc algorithms/missing_kernels_test.cc DEPS datacom::learner_core datacom_torch)
  datacom_test(NAME core_kernels_test SRCS algorithms/kernels_test.cc algorithms/map_kernels_test.cc algorithms/on_policy_kernels_test.cc
               nn/step_kernels_test.cc
               ALONE algorithms/map_kernels_test.cc algorithms/on_policy_kernels_test.cc
               DEPS datacom::learner_core datacom_torch datacom::safety)
  datacom_test(NAME core_torch_test CXX ${DATACOM_TORCH_CXX} SHARDS 2
               SRCS algorithms/update_test.cc nn/autograd_test.cc nn/torch/capture_test.cc nn/torch/staging_test.cc
                    $<TARGET_OBJECTS:core_golden_objects>
               DEPS datacom::learner_core nlohmann_json::nlohmann_json datacom_torch datacom_libtorch)
  # The tests over every algorithm: once with the registered ones, once with the algorithm "toy".
  core_objects(core_every_algorithm algorithms/contract_test.cc algorithms/freeze_test.cc algorithms/recorded_statistics_test.cc)
  datacom_test(NAME core_contract_test SHARDS 2 SRCS $<TARGET_OBJECTS:core_every_algorithm> DEPS datacom::learner_core datacom::acting datacom_torch)

  # The algorithm "toy", its kernel group toy (toy_kernels.h, toy_cpu.cc, toy_torch.cc) and a libdatacom_torch.so that has this group.
  set_source_files_properties(toy/toy_cpu.cc PROPERTIES SKIP_PRECOMPILE_HEADERS ON
    COMPILE_OPTIONS "-O3;-fno-math-errno;-fno-trapping-math;-ffp-contract=fast")
  datacom_torch_library(datacom_torch_with_toy "${CMAKE_BINARY_DIR}/tests/toy" toy/toy_torch.cc)
  target_link_libraries(datacom_torch_with_toy PRIVATE datacom_flags datacom_warnings)
  datacom_test(NAME core_toy_test
               SRCS toy/toy_test.cc toy/toy_algorithm.cc toy/toy_cpu.cc toy/toy_rule.cc $<TARGET_OBJECTS:core_every_algorithm>
                    $<TARGET_OBJECTS:core_hyper_objects>
               DEPS datacom::learner_core datacom::acting datacom::task_models datacom_torch_with_toy
               ARGS --gtest_filter=*Toy*:*/toy)
endif()
# SPDX-License-Identifier: Apache-2.0

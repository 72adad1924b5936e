# What plug-ins from outside the tree (common/base/plugins.h) may use.
#
# Public are the headers of this list, what they include of the project, and the messages (proto/). A plug-in that
# includes no other header compiles and loads until one of them changes: their content is part of its stamp
# (common/base/plugin_stamp.h). Before 1.0 any of them may change with any release, which the changelog then says; a plug-in is
# then compiled again, and may have to be edited. Text formats (experiments, tasks, policies) and the C interface of
# libdatacom_policy have versions of their own and outlive that. No other header is installed.
include_guard(GLOBAL)

set(DATACOM_PUBLIC_HEADERS
  # Tasks: model and simulator. mujoco.h is for simulators in MuJoCo.
  common/base/random.h common/base/status.h
  common/safety/control_affine.h common/safety/known_constraints.h
  common/tasks/mujoco.h common/tasks/nearest_row.h common/tasks/register_task.h common/tasks/task.h
  # Acting rules.
  common/acting/acting_rule.h common/acting/gaussian_policy.h common/acting/register_rule.h common/acting/rule_parts.h
  common/acting/snapshot_form.h
  common/nn/mlp.h common/nn/named_array.h common/nn/snapshot.h common/transitions/row_schema.h
  # Algorithms, that of SAC as a base.
  common/base/team.h common/config/algorithms.h common/metrics/statistics.h
  learner/algorithms/algorithm.h learner/algorithms/block_update.h
  learner/algorithms/critic_ensemble.h learner/algorithms/critic_kernels.h learner/algorithms/observation_kernels.h
  learner/algorithms/observation_normaliser.h learner/algorithms/population.h learner/algorithms/register_algorithm.h
  learner/algorithms/sac.h learner/algorithms/sac_kernels.h learner/algorithms/soft_actor_critic.h
  learner/nn/activation.h learner/nn/kernels.h learner/nn/parameter_layout.h learner/nn/view.h
  # The stamp itself.
  common/base/plugin_stamp.h)
set(DATACOM_PUBLIC_MESSAGES rule task_options algorithm evaluation statistic member_epoch)

# datacom_show_symbols(target): plug-ins that the target loads find its symbols of datacom.
set(DATACOM_PLUGIN_SYMBOLS "${CMAKE_CURRENT_LIST_DIR}/plugin_symbols.txt")
function(datacom_show_symbols target)
  target_link_options(${target} PRIVATE "LINKER:--dynamic-list=${DATACOM_PLUGIN_SYMBOLS}")
  set_target_properties(${target} PROPERTIES LINK_DEPENDS "${DATACOM_PLUGIN_SYMBOLS}")
endfunction()

# datacom_api_header(target): generated/datacom_api.h for the target's sources, with the version, a digest of the public
# headers and the simulator.
function(datacom_api_header target)
  set(files "${DATACOM_PUBLIC_HEADERS}")
  foreach(name ${DATACOM_PUBLIC_MESSAGES})
    list(APPEND files "proto/datacom/v1/${name}.proto")
  endforeach()
  list(TRANSFORM files PREPEND "${CMAKE_SOURCE_DIR}/")
  list(JOIN files "|" joined)
  set(out "${CMAKE_BINARY_DIR}/generated/datacom_api.h")
  add_custom_command(OUTPUT "${out}" DEPENDS ${files} "${CMAKE_SOURCE_DIR}/deploy/dev/cmake/api.cmake" VERBATIM
    COMMAND "${CMAKE_COMMAND}" "-DFILES=${joined}" "-DVERSION=${CMAKE_PROJECT_VERSION}" "-DMUJOCO=${DATACOM_MUJOCO_VERSION}" "-DOUTPUT=${out}"
            -P "${CMAKE_SOURCE_DIR}/deploy/dev/cmake/api.cmake")
  add_custom_target(${target}_api DEPENDS "${out}")
  add_dependencies(generated ${target}_api)
  target_sources(${target} PRIVATE "${out}")
  target_include_directories(${target} PRIVATE "${CMAKE_BINARY_DIR}/generated")
endfunction()
# SPDX-License-Identifier: Apache-2.0

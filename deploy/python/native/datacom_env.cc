// The C interface of Environments: turns every Status and exception into an error code and a message.
#include "deploy/python/native/datacom_env.h"

#include <cstdio>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "common/base/version.h"
#include "deploy/python/native/environments.h"

struct datacom_env {
  std::unique_ptr<datacom::python::Environments> environments;
  std::vector<const char*> cost_names, init_names;
  datacom_env_info info;
};

namespace {

using datacom::python::Environments;

int CodeOf(const absl::Status& status) {
  if (status.ok()) return DATACOM_ENV_OK;
  if (absl::IsFailedPrecondition(status)) return DATACOM_ENV_FINISHED;
  return absl::IsInvalidArgument(status) || absl::IsNotFound(status) ? DATACOM_ENV_BAD_ARGUMENT : DATACOM_ENV_FAILED;
}

// Runs a function that returns a Status.
template <class Call>
int Run(const Call& call, char* message, size_t message_bytes) {
  try {
    const absl::Status status = call();
    if (!status.ok()) std::snprintf(message, message_bytes, "%s", std::string(status.message()).c_str());
    return CodeOf(status);
  } catch (const std::exception& error) {
    std::snprintf(message, message_bytes, "%s", error.what());
    return DATACOM_ENV_FAILED;
  }
}

std::vector<const char*> Pointers(const std::vector<std::string>& names) {
  std::vector<const char*> pointers;
  for (const std::string& name : names) pointers.push_back(name.c_str());
  return pointers;
}

void Describe(datacom_env* env) {
  const datacom::TaskModel& model = env->environments->model();
  const datacom::TaskSpec& spec = model.spec;
  const datacom::ControlAffineDims dims = model.dynamics->dims();
  env->cost_names = Pointers(spec.cost_names);
  env->init_names = Pointers(spec.init_keys);
  datacom_env_info& info = env->info;
  info.task = spec.name.c_str();
  info.observation_dim = spec.obs_dim;
  info.action_dim = spec.action_dim;
  info.horizon = spec.horizon;
  info.control_period = spec.control_dt;
  info.action_low = spec.action_low.data();
  info.action_high = spec.action_high.data();
  info.costs = static_cast<int>(env->cost_names.size());
  info.cost_names = env->cost_names.data();
  info.inits = static_cast<int>(env->init_names.size());
  info.init_names = env->init_names.data();
  info.q_dim = dims.q;
  info.x_dim = dims.x;
}

absl::StatusOr<std::unique_ptr<datacom_env>> Make(const Environments::Settings& settings) {
  std::string message;
  if (!datacom::CheckProcessor(&message)) return absl::UnimplementedError(message);
  auto made = std::make_unique<datacom_env>();
  absl::StatusOr<std::unique_ptr<Environments>> environments = Environments::Make(settings);
  if (!environments.ok()) return environments.status();
  made->environments = *std::move(environments);
  Describe(made.get());
  return made;
}

}  // namespace

int datacom_env_make(const char* task, const char* options, int environments, int threads, int autoreset,
                     datacom_env** env, char* message, size_t message_bytes) {
  *env = nullptr;
  return Run(
      [&] {
        absl::StatusOr<std::unique_ptr<datacom_env>> made = Make({task, options, environments, threads, autoreset});
        if (made.ok()) *env = made->release();
        return made.status();
      },
      message, message_bytes);
}

void datacom_env_free(datacom_env* env) { delete env; }

const datacom_env_info* datacom_env_describe(const datacom_env* env) { return &env->info; }

int datacom_env_reset(datacom_env* env, const datacom_env_start* start, const datacom_env_result* result, char* message,
                      size_t message_bytes) {
  return Run([&] { return env->environments->Reset(*start, *result); }, message, message_bytes);
}

int datacom_env_step(datacom_env* env, const float* action, const datacom_env_result* result, char* message,
                     size_t message_bytes) {
  return Run([&] { return env->environments->Step(action, *result); }, message, message_bytes);
}

int datacom_env_draw(datacom_env* env, int environment, const char* camera, int width, int height, uint8_t* rgb,
                     char* message, size_t message_bytes) {
  return Run(
      [&] {
        return env->environments->Draw(environment, {camera, width, height}, rgb);
      },
      message, message_bytes);
}

void datacom_env_dynamics(const datacom_env* env, int count, const float* observation, double* q, double* x,
                          double* x_dot, double* f, double* G) {
  const datacom_env_info& info = env->info;
  const datacom::ControlAffine& dynamics = *env->environments->model().dynamics;
  std::vector<double> wide(info.observation_dim);
  for (int i = 0; i < count; ++i) {
    const float* const row = observation + static_cast<int64_t>(i) * info.observation_dim;
    wide.assign(row, row + info.observation_dim);
    dynamics.Evaluate(wide.data(), {q, x, x_dot, f, G});
    q += info.q_dim, f += info.q_dim, x += info.x_dim, x_dot += info.x_dim;
    G += static_cast<int64_t>(info.q_dim) * info.action_dim;
  }
}
// SPDX-License-Identifier: Apache-2.0

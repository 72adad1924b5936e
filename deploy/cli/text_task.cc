#include "deploy/cli/text_task.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/config/algorithms.h"
#include "common/tasks/task.h"
#include "datacom/v1/experiment.pb.h"
#include "datacom/v1/task.pb.h"
#include "deploy/cli/verbs.h"

extern char** environ;  // NOLINT: declared by POSIX

namespace datacom::cli {
namespace {

constexpr char kSuffix[] = ".textproto";

// Runs a program and returns what it prints on stdout; `code` is its exit code.
absl::StatusOr<std::string> Output(std::vector<std::string> argv, int* code) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return ErrnoStatus(errno, "pipe");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  std::vector<char*> raw;
  for (std::string& argument : argv) raw.push_back(argument.data());
  raw.push_back(nullptr);
  pid_t child = 0;
  const int error = ::posix_spawn(&child, raw[0], &actions, nullptr, raw.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  std::string output;
  std::array<char, 1 << 16> block;
  ssize_t count = 0;
  while (error == 0 && ((count = ::read(ends[0], block.data(), block.size())) > 0 || (count < 0 && errno == EINTR))) {
    if (count > 0) output.append(block.data(), static_cast<size_t>(count));
  }
  ::close(ends[0]);
  if (error != 0) return CannotRun(argv[0], error);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  *code = WIFEXITED(status) ? WEXITSTATUS(status) : kExitFailure;
  return output;
}

}  // namespace

absl::Status LoadTextTask(const std::string& experiment_file, v1::Experiment* experiment) {
  const std::string& file = experiment->task();
  if (std::filesystem::path(file).extension() != kSuffix) return absl::OkStatus();
  int code = 0;
  ASSIGN_OR_RETURN(const std::string output, Output({BinFolder() + "/datacom-tools", "load-task", file, "--folder",
                                                     std::filesystem::path(experiment_file).parent_path().string()},
                                                    &code));
  if (code == kExitUsage) return absl::InvalidArgumentError(output);
  v1::TextTask task;
  if (code != kExitOk || !task.ParseFromString(output)) {
    return absl::InternalError(
        absl::StrCat(file, ": datacom-tools could not load it: ", code == kExitOk ? "" : output));
  }
  experiment->set_task(task.definition().name());
  *experiment->mutable_task_options()->MutableExtension(v1::text_task) = std::move(task);
  return absl::OkStatus();
}

absl::StatusOr<v1::Experiment> ExperimentOf(const std::string& task, const std::string& algorithm) {
  v1::Experiment experiment;
  experiment.set_task(task);
  experiment.set_algorithm(algorithm);
  RETURN_IF_ERROR(LoadTextTask("", &experiment));
  const absl::StatusOr<TaskModel> model = MakeTaskModel(experiment.task(), experiment.task_options());
  if (!model.ok()) return absl::InvalidArgumentError(model.status().message());
  experiment.set_name(absl::StrCat(experiment.task(), "-", algorithm));
  const AlgorithmInfo* const info = FindAlgorithm(algorithm);
  const auto reads = [info](const char* name) {
    return info != nullptr && ReadsSetting(*info, *v1::Hyper::descriptor()->FindFieldByName(name));
  };
  if (reads("target_entropy")) experiment.mutable_hyper()->set_target_entropy(-model->spec.action_dim);
  if (reads("delta_mode")) experiment.mutable_hyper()->set_delta_mode("controlled");
  return experiment;
}

}  // namespace datacom::cli
// SPDX-License-Identifier: Apache-2.0

#include "deploy/tools/play/commands.h"

#include <iostream>

#include "common/acting/acting_rule.h"
#include "common/acting/policy_file.h"
#include "common/base/output_file.h"
#include "common/base/status.h"
#include "common/base/version.h"
#include "common/config/task_files.h"
#include "common/records/ledger.h"
#include "common/tasks/python/identity.h"
#include "common/tasks/python/python_task.h"
#include "common/tasks/task.h"
#include "datacom/v1/experiment.pb.h"
#include "deploy/tools/onnx/export_onnx.h"
#include "deploy/tools/policies/run_policies.h"

namespace datacom::tools {
namespace {

// A policy file needs no environment: only one that the command names is asked whether it is still the run's.
absl::Status CheckIfNamed(const v1::PythonTask& run) {
  if (!python::CheckNamed(run.environment()).ok()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const v1::PythonTask now, python::AskEnvironment(run.environment(), run.q() + run.x() > 0));
  return python::CheckSame(run, now);
}

}  // namespace

absl::Status RunExportCommand(const ExportCommand& given, std::ostream* out) {
  ExportCommand command = given;
  ASSIGN_OR_RETURN(command.run_dir, RunFolderOf(given.run_dir));
  if (command.format != "violations") {
    RETURN_IF_ERROR(CheckOutputFile("--out", command.file));
    if (IsStandardOutput(command.file)) out = &std::cerr;
  }
  if (command.format == "stored") {
    RETURN_IF_ERROR(StorePolicies(command.run_dir, command.member, command.epoch.value_or(""), command.file));
    *out << command.file << ": " << command.epoch.value_or("last and best") << " policies of "
         << (command.member ? absl::StrCat("member ", *command.member) : "all members") << ", in half precision\n";
    return absl::OkStatus();
  }
  if (command.format == "violations") {
    ASSIGN_OR_RETURN(const size_t kept, CopyLargestViolations(command.run_dir, command.largest, command.file));
    *out << command.file << ": " << kept << " violations, the largest of their episodes, and the steps before them\n";
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const v1::Experiment experiment, ReadRunExperiment(command.run_dir, {}));
  ASSIGN_OR_RETURN(const std::vector<MemberPolicy> policies,
                   ReadPolicies(command.run_dir, command.epoch.value_or("last")));
  ASSIGN_OR_RETURN(const MemberPolicy* const chosen, FindMember(policies, command.member));
  const Snapshot& snapshot = chosen->snapshot;
  RETURN_IF_ERROR(snapshot.CheckFinite());
  ASSIGN_OR_RETURN(const TaskModel model, MakeTaskModel(experiment.task(), experiment.task_options()));
  RETURN_IF_ERROR(MakeActingRule(snapshot, model, /*max_batch=*/1).status());
  Policy policy;
  policy.about.set_experiment(experiment.name());
  policy.about.set_algorithm(experiment.algorithm());
  *policy.about.mutable_task_options() = experiment.task_options();
  DropTaskFiles(policy.about.mutable_task_options());
  policy.about.set_epoch(chosen->epoch);
  policy.about.set_build(BuildName());
  policy.snapshot = snapshot;
  if (command.format == "onnx") {
    RETURN_IF_ERROR(onnx::WriteOnnx(policy, model, command.input, command.pairs, command.file, out));
  } else {
    RETURN_IF_ERROR(CheckIfNamed(experiment.task_options().GetExtension(v1::python_task)));
    RETURN_IF_ERROR(WritePolicyFile(command.file, policy));
  }
  *out << command.file << ": " << experiment.name() << ", member " << snapshot.member << " (seed "
       << snapshot.member_seed << "), epoch " << chosen->epoch << ", update " << snapshot.version.update
       << ", acting rule " << snapshot.acting_rule << '\n';
  return absl::OkStatus();
}

}  // namespace datacom::tools
// SPDX-License-Identifier: Apache-2.0

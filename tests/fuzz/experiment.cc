// The text of an experiment and overrides (common/config/experiment.h): refused without a change, or the same after it
// was printed and parsed. What is resolved and valid has sizes that can be computed.
//
// Input: the text (Input::Text), a list of seeds (Input::Text), overrides, one per line.
#include "common/config/experiment.h"

#include <cmath>
#include <set>

#include "absl/strings/str_split.h"
#include "common/config/algorithms.h"
#include "common/config/rules.h"
#include "common/tasks/task.h"
#include "common/transitions/update_schedule.h"
#include "tests/fuzz/fuzz_target.h"

namespace datacom::fuzz {
namespace {

std::string Bytes(const v1::Experiment& experiment) { return experiment.SerializePartialAsString(); }

void CheckPrinted(const v1::Experiment& experiment) {
  const auto again = ParseExperiment(PrintExperiment(experiment), "printed");
  MustAccept(again.status());
  MUST(PrintExperiment(*again) == PrintExperiment(experiment));  // not the bytes, because -nan is printed as nan
}

void CheckValid(const v1::Experiment& resolved) {
  const ReplayLayout layout = ReplayLayoutOf(resolved, 80);
  MUST(layout.kept_rows() > 0 && layout.kept_rows() <= resolved.run().env_steps());
  MUST(layout.Bytes(static_cast<uint64_t>(resolved.members_size())) > layout.kept_rows() * 80);
  const UpdateSchedule schedule{resolved.run().env_steps(), resolved.replay().min_size(),
                                resolved.schedule().updates_per_step()};
  const uint64_t last = schedule.LastUpdate();
  MUST(schedule.RowsSeen(last) <= resolved.run().env_steps() && schedule.RowsSeen(1) > resolved.replay().min_size());
  if (last > 0) MUST(schedule.RowsSeen(last) >= schedule.RowsSeen(last - 1));
  for (int member = 0; member < resolved.members_size(); ++member)
    MustAccept(CheckRules(MemberHyper(resolved, member)));
  MUST(FindAlgorithm(resolved.algorithm()) != nullptr);
}

void CheckSeeds(const std::string& text, v1::Experiment experiment) {
  const auto seeds = ParseSeeds(text);
  if (!seeds.ok()) return MustRefuse(seeds.status());
  MUST(!seeds->empty() && std::set<uint64_t>(seeds->begin(), seeds->end()).size() == seeds->size());
  const absl::Status set = SetSeeds(*seeds, &experiment);
  if (!set.ok()) return MustRefuse(set);
  MUST(experiment.members_size() == static_cast<int>(seeds->size()));
}

}  // namespace

static void Run(absl::string_view bytes) {
  Input input(bytes);
  const std::string text(input.Text()), seeds(input.Text());
  auto experiment = ParseExperiment(text, "text");
  if (!experiment.ok()) return MustRefuse(experiment.status());
  CheckPrinted(*experiment);
  CheckSeeds(seeds, *experiment);
  const std::vector<std::string> overrides = absl::StrSplit(std::string(input.Rest()), '\n');
  for (const std::string& line : overrides) {
    const std::string before = Bytes(*experiment);
    const absl::Status changed = ApplyOverride(line, &*experiment);
    if (changed.ok()) continue;
    MustRefuse(changed);
    MUST(Bytes(*experiment) == before);
  }
  CheckPrinted(*experiment);
  const v1::Experiment resolved = ResolveExperiment(*experiment);
  MUST(Bytes(ResolveExperiment(resolved)) == Bytes(resolved));
  CheckPrinted(resolved);
  const absl::Status valid = ValidateExperiment(resolved, TaskNames(), AlgorithmNames());
  if (valid.ok()) {
    CheckValid(resolved);
  } else {
    MustRefuse(valid);
  }
}

static std::vector<Seed> Seeds() {
  const std::string small = "name: \"n\" task: \"cartpole\" algorithm: \"datacom\" run { env_steps: 20000 }";
  return {
      {"small", Text(small) + Text("0-4") + "hyper.delta_warmup=3000\nnetwork.actor_hidden=[64,64]"},
      {"members", Text(small + " members { seed: 1 } members { seed: 2 hyper { actor_lr: 1e-3 } }") + Text("0,2,5-7") +
                      "members[1].hyper.actor_lr=1e-4\nrun.lockstep=true\nmembers[7].seed=3\nhyper=1"},
      {"numbers", Text(small + " schedule { updates_per_step: 0.1 tolerance_steps: 4 } replay { capacity: 5000 }") +
                      Text("1") + "schedule.updates_per_step=10\nrun.env_steps=1e9\nrun.steps_per_epoch=1e6"},
      {"wrong", Text(small) + Text("4-0") + "hyper.actor_lr=nan\nname=\"\nrun.env_steps=-1\nreplay.capacity=1e30"}};
}

static const Target kTarget("experiment", Run, Seeds);

}  // namespace datacom::fuzz
// SPDX-License-Identifier: Apache-2.0

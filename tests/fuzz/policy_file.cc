// A policy file (common/acting/policy_file.h) with any content: refused, or the same after it was written again. If its
// task and its acting rule accept the snapshot, the policy acts once, as on a robot.
//
// Input: a byte for the form, then its bytes.
#include "common/acting/policy_file.h"
#include "common/acting/acting_rule.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/snapshot_inputs.h"
#include "tests/testing/snapshots.h"

namespace datacom::fuzz {
namespace {

// The file; its payload; the payload without its snapshot (Input::Text), then the snapshot's manifest and data.
enum Form { kFile, kPayload, kSealed, kForms };

std::string Path() { return Folder() + "/policy"; }

Policy SoundPolicy() {
  Policy policy;
  policy.about.set_experiment("cartpole/datacom");
  policy.about.set_algorithm("datacom");
  policy.about.mutable_task_options();
  policy.about.set_epoch(12);
  policy.about.set_build("1.0 (abc)");
  policy.snapshot = SmallSnapshot();
  return policy;
}

const std::string& SoundFile() {
  static const std::string file = [] {
    MustAccept(WritePolicyFile(Path(), SoundPolicy()));
    return ReadBytes(Path());
  }();
  return file;
}

std::string FileOf(Input* input) {
  const uint8_t form = input->Byte() % kForms;
  if (form == kFile) return std::string(input->Rest());
  if (form == kPayload) return FrameLike(SoundFile(), input->Rest());
  v1::PolicyFile file;
  const absl::string_view bytes = input->Text();
  if (!file.ParsePartialFromArray(bytes.data(), static_cast<int>(bytes.size()))) return "";
  file.set_snapshot(SealedSnapshot(input));
  return FrameLike(SoundFile(), file.SerializePartialAsString());
}

void Act(const Policy& policy) {
  const auto model = MakeTaskModel(policy.snapshot.task, policy.about.task_options());
  if (!model.ok()) return MustRefuse(model.status());
  const auto rule = MakeActingRule(policy.snapshot, *model, /*max_batch=*/1);
  if (!rule.ok()) return MustRefuse(rule.status());
  MustAccept((*rule)->Load(policy.snapshot));
  const std::vector<float> observation(static_cast<size_t>(model->spec.obs_dim), 0.25f), previous_cost(1);
  const std::vector<float> noise(static_cast<size_t>((*rule)->noise_dim()));
  std::vector<float> action(static_cast<size_t>(model->spec.action_dim));
  double constraint = 0, cvar = 0, intervention = 0;
  ActingDiagnostics diagnostics;
  diagnostics.constraint = &constraint;
  diagnostics.cvar = &cvar;
  diagnostics.intervention = &intervention;
  (*rule)->Act(1, {observation.data(), noise.data(), previous_cost.data()}, action.data(), diagnostics);
}

}  // namespace

static void Run(absl::string_view bytes) {
  SoundFile();
  Input input(bytes);
  WriteBytes(Path(), FileOf(&input));
  const auto policy = ReadPolicyFile(Path());
  if (!policy.ok()) return MustRefuse(policy.status());
  CheckSnapshot(policy->snapshot);
  MUST(policy->about.snapshot().empty());
  MustAccept(WritePolicyFile(Path(), *policy));
  const auto again = ReadPolicyFile(Path());
  MustAccept(again.status());
  MUST(SerializeSorted(again->about) == SerializeSorted(policy->about));
  MUST(EncodeSnapshot(again->snapshot) == EncodeSnapshot(policy->snapshot));
  Act(*policy);
}

static std::vector<Seed> Seeds() {
  const auto form = [](Form which, const std::string& rest) { return std::string(1, static_cast<char>(which)) + rest; };
  const std::string about = SoundPolicy().about.SerializeAsString();
  std::vector<Seed> seeds = {{"file", form(kFile, SoundFile())},
                             {"payload", form(kPayload, SoundFile().substr(24))},
                             {"sealed", form(kSealed, Text(about) + OpenSnapshot(SmallSnapshot()))}};
  for (const std::string& rule : ActingRuleNames()) {
    Snapshot snapshot = testing::SnapshotForRule(rule, 5, 1, 4, {2}, 3);
    snapshot.task = "cartpole";
    seeds.push_back({rule, form(kSealed, Text(about) + OpenSnapshot(snapshot))});
  }
  return seeds;
}

static const Target kTarget("policy_file", Run, Seeds);

}  // namespace datacom::fuzz
// SPDX-License-Identifier: Apache-2.0

// A policy file (common/acting/policy_file.h) with any content: refused, or the same after it was written again.
//
// Input: a byte for the form, then its bytes.
#include "common/acting/policy_file.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/snapshot_inputs.h"

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

}  // namespace

void Run(absl::string_view bytes) {
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
}

std::vector<Seed> Seeds() {
  const auto form = [](Form which, const std::string& rest) { return std::string(1, static_cast<char>(which)) + rest; };
  const std::string about = SoundPolicy().about.SerializeAsString();
  return {{"file", form(kFile, SoundFile())},
          {"payload", form(kPayload, SoundFile().substr(24))},
          {"sealed", form(kSealed, Text(about) + OpenSnapshot(SmallSnapshot()))}};
}

}  // namespace datacom::fuzz

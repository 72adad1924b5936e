#include "common/records/ledger_format.h"

#include "absl/strings/str_cat.h"
#include "common/base/files.h"
#include "common/records/ledger.h"

namespace datacom {
namespace ledger {

std::string StepsPath(uint32_t member) { return absl::StrCat("ledger/member_", member, ".steps"); }

std::string StepHeader(uint32_t member, uint32_t action_dim) {
  std::string header(kStepMagic, kStepMagicBytes);
  Put(action_dim, &header);
  Put(member, &header);
  return header;
}

std::vector<std::string> ViolationColumns(uint32_t action_dim) {
  std::vector<std::string> columns = {"id",          "member",  "seed",  "actor",     "session",
                                      "environment", "episode", "step",  "env_steps", "policy_version",
                                      "delta",       "cvar",    "slack", "cost"};
  for (const char* name : {"raw_action", "executed_action"}) {
    for (uint32_t i = 0; i < action_dim; ++i) columns.push_back(absl::StrCat(name, i));
  }
  return columns;
}

}  // namespace ledger

uint32_t StepCheck(const float* observation, const float* next_observation, int obs_dim, float reward, bool absorbing) {
  std::string bytes;
  bytes.reserve((2 * obs_dim + 1) * sizeof(float) + 1);
  ledger::PutFloats(observation, obs_dim, &bytes);
  ledger::PutFloats(next_observation, obs_dim, &bytes);
  ledger::Put(reward, &bytes);
  bytes.push_back(absorbing ? 1 : 0);
  return Crc32(bytes);
}

uint64_t LedgerStepBytes(uint64_t transitions, uint32_t action_dim) {
  return ledger::kStepHeaderBytes + transitions * ledger::StepBytes(action_dim);
}

}  // namespace datacom

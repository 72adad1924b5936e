#include "common/records/ledger_format.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/bytes.h"
#include "common/base/checksum.h"
#include "common/base/framed_file.h"
#include "common/base/status.h"
#include "common/records/csv.h"
#include "common/records/ledger.h"

namespace datacom {
namespace ledger {
namespace {

constexpr FileFormat kFormat = {"step file", "DCSTEPS\n", 2,
                                "; use the build named in build.txt, or start a new run folder"};

std::string PlainName(std::string name) {
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == ',' || c == '"' || c < ' '; }, '_');
  return name;
}

}  // namespace

std::string StepsPath(uint32_t member) { return absl::StrCat("ledger/member_", member, ".steps"); }

std::string StepHeader(uint32_t member, uint32_t action_dim) {
  std::string identity;
  PutValue(action_dim, &identity);
  PutValue(member, &identity);
  return Frame(kFormat, identity);
}

absl::Status CheckStepHeader(const std::string& path, absl::string_view content, uint32_t member, uint32_t action_dim) {
  RETURN_IF_ERROR(Unframe(kFormat, path, content).status());
  if (content.substr(0, kStepHeaderBytes) == StepHeader(member, action_dim)) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat("step file ", path, ": not of member ", member, " with ", action_dim, " action values"));
}

uint32_t RecordChecksum(uint64_t number, absl::string_view bytes) {
  return Crc32c(bytes, Crc32c(absl::string_view(reinterpret_cast<const char*>(&number), sizeof number)));
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

std::vector<std::string> ViolationCells(const LedgerViolation& v) {
  std::vector<std::string> cells = {Cell(v.id),        Cell(v.member),        Cell(v.seed),    PlainName(v.actor),
                                    Cell(v.session),   Cell(v.environment),   Cell(v.episode), Cell(v.step),
                                    Cell(v.env_steps), Cell(v.policy_version)};
  if (v.judgement.has_value()) {
    for (const float value : {v.judgement->delta, v.judgement->cvar, v.judgement->slack}) cells.push_back(Cell(value));
  } else {
    cells.insert(cells.end(), 3, "");
  }
  cells.push_back(Cell(v.cost));
  for (const std::vector<float>* action : {&v.raw_action, &v.executed_action}) {
    for (const float value : *action) cells.push_back(Cell(value));
  }
  return cells;
}

}  // namespace ledger

uint32_t StepCheck(const float* observation, const float* next_observation, int obs_dim, float reward, bool absorbing) {
  const auto bytes = [](const auto* values, size_t count) {
    return absl::string_view(reinterpret_cast<const char*>(values), count * sizeof *values);
  };
  const char last = absorbing ? 1 : 0;
  uint32_t crc = Crc32c(bytes(observation, obs_dim));
  crc = Crc32c(bytes(next_observation, obs_dim), crc);
  return Crc32c(bytes(&last, 1), Crc32c(bytes(&reward, 1), crc));
}

uint64_t LedgerStepBytes(uint64_t transitions, uint32_t action_dim) {
  return ledger::kStepHeaderBytes + transitions * ledger::StepBytes(action_dim);
}

}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0

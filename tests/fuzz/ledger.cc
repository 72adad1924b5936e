// A ledger (common/records/ledger.h) with any content: each violation and each episode is refused, or the same after it
// was written again.
//
// Input: a byte of flags, the violations (Input::Text), the file of steps. With kHeader the violations follow a sound
// header of two actions; with kSeal the steps follow one, and the checksums of all records are computed again.
#include <cmath>
#include <filesystem>

#include "common/base/bytes.h"
#include "common/records/ledger.h"
#include "tests/fuzz/fuzz_target.h"

namespace datacom::fuzz {
namespace {

enum Flags { kHeader = 1, kSeal = 2 };
constexpr uint32_t kActions = 2;

LedgerViolation SoundViolation() {
  LedgerViolation v;
  v.id = 1;
  v.seed = 3;
  v.actor = "actor-0";
  v.session = 1;
  v.step = 1;
  v.env_steps = 2;
  v.policy_version = 40;
  v.judgement = LedgerJudgement{0.5f, 0.25f, -0.25f};
  v.cost = 0.125f;
  v.raw_action = {1, -1};
  v.executed_action = {0.5f, -0.5f};
  return v;
}

std::string Original() { return Folder() + "/run"; }
std::string Copy() { return Folder() + "/copy"; }
std::string Violations(const std::string& run) { return run + "/" + ledger::kViolationsPath; }
std::string Steps(const std::string& run) { return run + "/" + ledger::StepsPath(0); }

// A ledger with these steps, one after the other, and this violation.
void Write(const std::string& run, const std::vector<LedgerStep>& steps, const LedgerViolation& violation) {
  const auto action_dim = static_cast<uint32_t>(violation.executed_action.size());
  auto writer = LedgerWriter::Open({run, 1, action_dim, "run"}, {});
  MustAccept(writer.status());
  for (const LedgerStep& step : steps) MustAccept((*writer)->AppendStep(0, step));
  MustAccept((*writer)->AppendViolation(violation));
  MustAccept((*writer)->Flush(/*sync=*/false));
}

std::pair<std::string, std::string> SoundFiles() {
  const LedgerViolation violation = SoundViolation();
  LedgerStep first{1, 0, 0, 0, -0.5f, 77, {1, 2}}, second{1, 0, 0, 1, 0.125f, 78, {0.5f, -0.5f}};
  Write(Original(), {first, second}, violation);
  return {ReadBytes(Violations(Original())), ReadBytes(Steps(Original()))};
}

const std::pair<std::string, std::string>& Sound() {
  static const std::pair<std::string, std::string> files = SoundFiles();
  return files;
}

std::string Header() { return Sound().first.substr(0, Sound().first.find('\n') + 1); }

std::string SealedSteps(absl::string_view records) {
  std::string steps = ledger::StepHeader(MakeOwner("run", 0), kActions);
  for (uint64_t number = 0; !records.empty(); ++number) {
    std::string record(records.substr(0, ledger::StepBytes(kActions) - sizeof(uint32_t)));
    records.remove_prefix(record.size());
    record.resize(ledger::StepBytes(kActions) - sizeof(uint32_t));
    PutValue(ledger::RecordChecksum(number, record), &record);
    steps += record;
  }
  return steps;
}

bool Finite(const LedgerViolation& v) {
  bool finite = std::isfinite(v.cost);
  if (v.judgement) finite &= std::isfinite(v.judgement->delta + v.judgement->cvar + v.judgement->slack);
  for (const float value : v.raw_action) finite &= std::isfinite(value);
  for (const float value : v.executed_action) finite &= std::isfinite(value);
  return finite;
}

bool Plain(const std::string& actor) {
  return std::all_of(actor.begin(), actor.end(), [](char c) { return c >= ' ' && c != '"'; });
}

auto Values(const LedgerViolation& v) {
  const LedgerJudgement judgement = v.judgement.value_or(LedgerJudgement{});
  return std::tuple(v.member, v.seed, v.actor, v.session, v.environment, v.episode, v.step, v.env_steps,
                    v.policy_version, v.judgement.has_value(), judgement.delta, judgement.cvar, judgement.slack, v.cost,
                    v.raw_action, v.executed_action);
}

std::string Bytes(const LedgerStep& step) {
  std::string bytes;
  for (const uint32_t value : {step.session, step.environment, step.episode, step.step, step.check})
    PutValue(value, &bytes);
  PutValue(step.cost, &bytes);
  ledger::PutFloats(step.execution.data(), step.execution.size(), &bytes);
  return bytes;
}

void CheckEpisode(LedgerViolation violation) {
  const auto steps = ReadEpisode(Original(), violation);
  if (!steps.ok()) return MustRefuse(steps.status());
  MUST(violation.step < steps->size() && (*steps)[violation.step].cost == violation.cost);
  for (size_t i = 0; i < steps->size(); ++i) MUST((*steps)[i].step == i && (*steps)[i].session == violation.session);
  violation.env_steps = violation.step + 1;  // the copy has only this episode
  Write(Copy(), *steps, violation);
  const auto again = ReadEpisode(Copy(), violation);
  MustAccept(again.status());
  MUST(again->size() == steps->size());
  for (size_t i = 0; i < steps->size(); ++i) MUST(Bytes((*again)[i]) == Bytes((*steps)[i]));
}

}  // namespace

static void Run(absl::string_view bytes) {
  Sound();
  Input input(bytes);
  const uint8_t flags = input.Byte();
  const absl::string_view violations = input.Text(), steps = input.Rest();
  WriteBytes(Violations(Original()), (flags & kHeader ? Header() : "") + std::string(violations));
  WriteBytes(Steps(Original()), flags & kSeal ? SealedSteps(steps) : std::string(steps));
  for (uint64_t id = 0; id < 4; ++id) {
    const auto violation = ReadViolation(Original(), id);
    if (!violation.ok()) {
      MustRefuse(violation.status());
      continue;
    }
    MUST(violation->id == id && id > 0 && violation->raw_action.size() == violation->executed_action.size());
    if (Finite(*violation) && Plain(violation->actor)) {
      Write(Copy(), {}, *violation);
      const auto again = ReadViolation(Copy(), 1);
      MustAccept(again.status());
      MUST(Values(*again) == Values(*violation));
    }
    if (violation->member == 0) CheckEpisode(*violation);
  }
}

static std::vector<Seed> Seeds() {
  const auto& [violations, steps] = Sound();
  const std::string row = violations.substr(Header().size());
  std::string open;
  for (size_t at = ledger::kStepHeaderBytes; at < steps.size(); at += ledger::StepBytes(kActions))
    open += steps.substr(at, ledger::StepBytes(kActions) - sizeof(uint32_t));
  std::string second = row, empty = row;
  second[0] = '2';
  empty.replace(empty.find("0.5,0.25,-0.25"), 14, ",,");
  return {{"files", std::string(1, '\0') + Text(violations) + steps},
          {"sealed", std::string(1, kHeader | kSeal) + Text(row + second) + open},
          {"no_judgement", std::string(1, kHeader | kSeal) + Text(empty) + open + open}};
}

static const Target kTarget("ledger", Run, Seeds);

}  // namespace datacom::fuzz
// SPDX-License-Identifier: Apache-2.0

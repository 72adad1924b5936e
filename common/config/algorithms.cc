#include "common/config/algorithms.h"

#include <algorithm>
#include <cstdio>

#include "common/base/status.h"
#include "datacom/v1/algorithm.pb.h"
#include "datacom/v1/experiment.pb.h"
#include "google/protobuf/text_format.h"

namespace datacom {
namespace {

using Users = google::protobuf::RepeatedPtrField<std::string>;

AlgorithmInfo InfoOf(const v1::AlgorithmInfo& facts) {
  AlgorithmInfo info;
  info.name = facts.name(), info.title = facts.title(), info.colour = facts.colour();
  info.summary = facts.summary(), info.acting_rule = facts.acting_rule(), info.extends = facts.extends();
  info.new_rows = facts.new_rows(), info.on_policy = facts.on_policy();
  info.needs_dynamics = facts.needs_dynamics(), info.test_only = facts.test_only();
  info.discounted_budget = facts.discounted_budget();
  info.defaults = facts.defaults();
  info.quantiles = static_cast<int>(facts.quantiles());
  return info;
}

const AlgorithmInfo* FindIn(const std::vector<AlgorithmInfo>& infos, const std::string& name) {
  const auto found =
      std::find_if(infos.begin(), infos.end(), [&](const AlgorithmInfo& info) { return info.name == name; });
  return found == infos.end() ? nullptr : &*found;
}

bool CoversIn(const std::vector<AlgorithmInfo>& infos, const Users& users, const AlgorithmInfo& algorithm) {
  if (users.empty()) return true;
  const AlgorithmInfo* user = &algorithm;
  while (user != nullptr) {
    if (std::find(users.begin(), users.end(), user->name) != users.end()) return true;
    user = user->extends.empty() ? nullptr : FindIn(infos, user->extends);
  }
  return false;
}

const Users& UsersOf(const google::protobuf::FieldDescriptor* setting) {
  return setting->options().GetExtension(v1::rule).used_by();
}

std::vector<AlgorithmInfo>& FromPlugins() {
  static auto* const infos = new std::vector<AlgorithmInfo>;
  return *infos;
}

std::vector<AlgorithmInfo> FromSchema() {
  std::vector<AlgorithmInfo> infos;
  const google::protobuf::EnumDescriptor* const values = v1::Algorithm_descriptor();
  for (int i = 0; i < values->value_count(); ++i) {
    infos.push_back(InfoOf(values->value(i)->options().GetExtension(v1::algorithm)));
  }
  return infos;
}

std::vector<AlgorithmInfo>* ReadAll() {
  auto* const infos = new std::vector<AlgorithmInfo>(FromSchema());
  infos->insert(infos->end(), FromPlugins().begin(), FromPlugins().end());
  const google::protobuf::Descriptor* const hyper = v1::Hyper::descriptor();
  const google::protobuf::Descriptor* const experiment = v1::Experiment::descriptor();
  const auto reads = [&](const AlgorithmInfo& info, const google::protobuf::FieldDescriptor* setting) {
    return CoversIn(*infos, UsersOf(setting), info);
  };
  for (AlgorithmInfo& info : *infos) {
    info.learns_delta = reads(info, hyper->FindFieldByNumber(v1::Hyper::kDeltaLrFieldNumber));
    info.has_budget = reads(info, hyper->FindFieldByNumber(v1::Hyper::kCostBudgetFieldNumber));
    info.plans = reads(info, experiment->FindFieldByNumber(v1::Experiment::kPlanningFieldNumber));
  }
  return infos;
}

const std::vector<AlgorithmInfo>& All() {
  static const std::vector<AlgorithmInfo>* const infos = ReadAll();
  return *infos;
}

std::vector<AlgorithmInfo>* Shipped() {
  auto* const infos = new std::vector<AlgorithmInfo>(All());
  infos->erase(std::remove_if(infos->begin(), infos->end(), [](const AlgorithmInfo& info) { return info.test_only; }),
               infos->end());
  return infos;
}

}  // namespace

RegisterAlgorithmFacts::RegisterAlgorithmFacts(const std::string& text) {
  v1::AlgorithmInfo facts;
  if (google::protobuf::TextFormat::ParseFromString(text, &facts) && FindIn(FromSchema(), facts.name()) == nullptr &&
      FindIn(FromPlugins(), facts.name()) == nullptr) {
    FromPlugins().push_back(InfoOf(facts));
    return;
  }
  std::fprintf(stderr, "wrong or repeated facts of an algorithm: %s\n", text.c_str());
  std::_Exit(kExitUsage);
}

const std::vector<AlgorithmInfo>& Algorithms() {
  static const std::vector<AlgorithmInfo>* const infos = Shipped();
  return *infos;
}

std::vector<std::string> AlgorithmNames() {
  std::vector<std::string> names;
  for (const AlgorithmInfo& algorithm : Algorithms()) names.push_back(algorithm.name);
  return names;
}

const AlgorithmInfo* FindAlgorithm(const std::string& name) { return FindIn(All(), name); }

bool Covers(const Users& users, const AlgorithmInfo& algorithm) { return CoversIn(All(), users, algorithm); }

bool ReadsSetting(const AlgorithmInfo& algorithm, const google::protobuf::FieldDescriptor& setting) {
  return Covers(UsersOf(&setting), algorithm);
}

std::vector<std::string> ReadersOf(const google::protobuf::FieldDescriptor& setting) {
  std::vector<std::string> readers;
  for (const AlgorithmInfo& algorithm : Algorithms()) {
    if (ReadsSetting(algorithm, setting)) readers.push_back(algorithm.name);
  }
  return readers;
}

bool MayBeUnread(const google::protobuf::FieldDescriptor& setting) {
  const v1::Rule& rule = setting.options().GetExtension(v1::rule);
  return rule.noted() && rule.read_if().empty();
}

std::vector<std::string> HyperParametersOf(const AlgorithmInfo& algorithm) {
  const google::protobuf::Descriptor* const hyper = v1::Hyper::descriptor();
  std::vector<std::string> names;
  for (int i = 0; i < hyper->field_count(); ++i) {
    if (ReadsSetting(algorithm, *hyper->field(i))) names.push_back(hyper->field(i)->name());
  }
  return names;
}

DeltaMode DeltaModeOf(const v1::Hyper& hyper) {
  if (hyper.delta_mode() == "peak") return DeltaMode::kPeak;
  return hyper.delta_mode() == "fixed" ? DeltaMode::kFixed : DeltaMode::kLearned;
}

bool ReadsEpisodes(const v1::Hyper& hyper) {
  return DeltaModeOf(hyper) != DeltaMode::kFixed || hyper.multiplier_mode() != "none";
}

}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0

#include "common/config/algorithms.h"

#include <algorithm>

#include "datacom/v1/algorithm.pb.h"

namespace datacom {
namespace {

AlgorithmInfo InfoOf(const v1::AlgorithmInfo& facts) {
  AlgorithmInfo info;
  info.name = facts.name(), info.title = facts.title(), info.colour = facts.colour();
  info.summary = facts.summary(), info.acting_rule = facts.acting_rule(), info.extends = facts.extends();
  info.learns_delta = facts.learns_delta(), info.pretrains = facts.pretrains(), info.has_budget = facts.has_budget();
  info.new_rows = facts.new_rows(), info.on_policy = facts.on_policy(), info.plans = facts.plans();
  info.needs_dynamics = facts.needs_dynamics(), info.test_only = facts.test_only();
  info.quantiles = static_cast<int>(facts.quantiles());
  return info;
}

std::vector<AlgorithmInfo>* ReadSchema() {
  auto* const infos = new std::vector<AlgorithmInfo>;
  const google::protobuf::EnumDescriptor* const values = v1::Algorithm_descriptor();
  for (int i = 0; i < values->value_count(); ++i) {
    infos->push_back(InfoOf(values->value(i)->options().GetExtension(v1::algorithm)));
  }
  return infos;
}

const std::vector<AlgorithmInfo>& All() {
  static const std::vector<AlgorithmInfo>* const infos = ReadSchema();
  return *infos;
}

std::vector<AlgorithmInfo>* Shipped() {
  auto* const infos = new std::vector<AlgorithmInfo>(All());
  infos->erase(std::remove_if(infos->begin(), infos->end(), [](const AlgorithmInfo& info) { return info.test_only; }),
               infos->end());
  return infos;
}

}  // namespace

const std::vector<AlgorithmInfo>& Algorithms() {
  static const std::vector<AlgorithmInfo>* const infos = Shipped();
  return *infos;
}

std::vector<std::string> AlgorithmNames() {
  std::vector<std::string> names;
  for (const AlgorithmInfo& algorithm : Algorithms()) names.push_back(algorithm.name);
  return names;
}

const AlgorithmInfo* FindAlgorithm(const std::string& name) {
  const auto found =
      std::find_if(All().begin(), All().end(), [&](const AlgorithmInfo& info) { return info.name == name; });
  return found == All().end() ? nullptr : &*found;
}

bool ReadsSetting(const AlgorithmInfo& algorithm, const google::protobuf::FieldDescriptor& setting) {
  const auto& users = setting.options().GetExtension(v1::rule).used_by();
  if (users.empty()) return true;
  for (const AlgorithmInfo* user = &algorithm; user != nullptr; user = FindAlgorithm(user->extends)) {
    if (std::find(users.begin(), users.end(), user->name) != users.end()) return true;
  }
  return false;
}

std::vector<std::string> HyperParametersOf(const AlgorithmInfo& algorithm) {
  const google::protobuf::Descriptor* const hyper = v1::Hyper::descriptor();
  std::vector<std::string> names;
  for (int i = 0; i < hyper->field_count(); ++i) {
    if (ReadsSetting(algorithm, *hyper->field(i))) names.push_back(hyper->field(i)->name());
  }
  return names;
}

}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0

// Every algorithm reads exactly the hyper-parameters that the schema says (Rule.used_by): another value of those
// changes its state or its snapshot after some updates, another value of the others changes no bit. Some are read only
// in some modes of delta or of the multiplier.
#include <string>
#include <utility>
#include <vector>

#include "common/config/algorithms.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/learner/algorithms/testing.h"

namespace datacom::learner {
namespace {

using google::protobuf::FieldDescriptor;

class AlgorithmSchema : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(All, AlgorithmSchema, ::testing::ValuesIn(RegisteredAlgorithms()),
                         [](const auto& info) { return info.param; });

// What a member has become after two updates and an episode.
std::pair<State, std::map<std::string, double, std::less<>>> Outcome(const AlgorithmConfig& config) {
  const auto algorithm = MakeAlgorithm(config);
  ApplyEpisodes(algorithm.get(), config, 1);
  for (int u = 0; u < 2; ++u) algorithm->Update(RandomBatch(config, u));
  return {algorithm->Save(), algorithm->GetActingParameters()[0].scalars};
}

bool Allows(const v1::Rule& rule, double value) {
  return !(rule.has_min() && value < rule.min()) && !(rule.has_max() && value > rule.max()) &&
         !(rule.has_above() && value <= rule.above()) && !(rule.has_below() && value >= rule.below());
}

// Configurations that differ from `config` only in this hyper-parameter.
std::vector<AlgorithmConfig> Changed(const AlgorithmConfig& config, const FieldDescriptor* field) {
  std::vector<AlgorithmConfig> changed;
  const google::protobuf::Reflection* const reflection = v1::Hyper::GetReflection();
  const auto add = [&](const auto& set) {
    changed.push_back(config);
    set(&changed.back().members[0].hyper);
  };
  if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
    const auto& values = field->options().GetExtension(v1::rule).one_of();
    add([&](v1::Hyper* hyper) { reflection->SetString(hyper, field, *values.rbegin()); });
  } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE) {
    for (const double value : {1e-6, 0.3, 0.7, 3.0, 1000.0}) {
      if (!Allows(field->options().GetExtension(v1::rule), value)) continue;
      add([&](v1::Hyper* hyper) { reflection->SetDouble(hyper, field, value); });
    }
  } else {
    ADD_FAILURE() << "this test has no other value of " << field->full_name();
  }
  return changed;
}

TEST_P(AlgorithmSchema, NamesExactlyTheHyperParametersThatAreRead) {
  AlgorithmConfig config = SmallConfig(GetParam(), 1);
  // Some rows are safe and above -margin, some relax the filter: every term of CBF-SAC's loss counts.
  v1::Hyper& hyper = config.members[0].hyper;
  hyper.set_barrier_margin(5), hyper.set_barrier_decay(0), hyper.set_relaxation_penalty(1e-3);
  hyper.set_cost_budget(1);  // the episode costs more
  for (int i = 0; i < v1::Hyper::descriptor()->field_count(); ++i) {
    const FieldDescriptor* const field = v1::Hyper::descriptor()->field(i);
    if (field->name() == "delta_warmup") continue;  // read by the learner process, which withholds episodes
    const auto& conditions = field->options().GetExtension(v1::rule).read_if();  // "delta_mode=peak"
    std::vector<AlgorithmConfig> readers(conditions.empty() ? 1 : 0, config);
    for (const std::string& condition : conditions) {
      const size_t equals = condition.find('=');
      const auto* const mode = v1::Hyper::descriptor()->FindFieldByName(condition.substr(0, equals));
      AlgorithmConfig& reading = readers.emplace_back(config);
      v1::Hyper::GetReflection()->SetString(&reading.members[0].hyper, mode, condition.substr(equals + 1));
    }
    for (const AlgorithmConfig& reading : readers) {
      const auto before = Outcome(reading);
      bool differs = false;
      for (const AlgorithmConfig& changed : Changed(reading, field)) differs = differs || Outcome(changed) != before;
      EXPECT_EQ(differs, ReadsSetting(InfoOf(GetParam()), *field)) << field->name();
    }
    if (conditions.empty()) continue;
    AlgorithmConfig other = config;  // of a member for which no condition holds
    for (const std::string& condition : conditions) {
      const auto* const mode = v1::Hyper::descriptor()->FindFieldByName(condition.substr(0, condition.find('=')));
      for (const std::string& value : mode->options().GetExtension(v1::rule).one_of()) {
        if (value == condition.substr(condition.find('=') + 1)) continue;
        v1::Hyper::GetReflection()->SetString(&other.members[0].hyper, mode, value);
        break;
      }
    }
    const auto outcome = Outcome(other);
    for (const AlgorithmConfig& changed : Changed(other, field))
      EXPECT_TRUE(Outcome(changed) == outcome) << field->name();
  }
}

TEST_P(AlgorithmSchema, NamesExactlyTheAlgorithmsWithANetOfConstraintHidden) {
  const AlgorithmConfig config = SmallConfig(GetParam(), 1);
  AlgorithmConfig changed = config;
  SetHidden({8, 16}, changed.network.mutable_constraint_hidden());
  const FieldDescriptor* const field = v1::Network::descriptor()->FindFieldByName("constraint_hidden");
  EXPECT_EQ(Outcome(changed) != Outcome(config), ReadsSetting(InfoOf(GetParam()), *field));
}

}  // namespace
}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0

// Access to single arrays of an algorithm. Names are for example "actor.mean.0.weight", "critic.0.1.bias",
// "target_critic.1.2.weight", "log_alpha", "delta_raw" (delta.h), "multiplier" (multiplier.h), "multiplier_raw".
// Weights are [in, out], row-major. The prefix "grad." gives a gradient of the last Update; with fused kernels only the
// last member has one. Throws std::invalid_argument naming an array that does not exist.
#ifndef DATACOM_TESTS_LEARNER_ALGORITHMS_ARRAYS_H_
#define DATACOM_TESTS_LEARNER_ALGORITHMS_ARRAYS_H_

#include <stdexcept>
#include <string>
#include <vector>

#include "learner/algorithms/algorithm.h"
#include "learner/algorithms/datacom.h"
#include "learner/algorithms/delta.h"
#include "learner/algorithms/multiplier.h"
#include "learner/algorithms/on_policy.h"
#include "learner/algorithms/population.h"
#include "learner/algorithms/slices.h"

namespace datacom::learner {

class ArrayAccess {
 public:
  // w, or P of mode peak.
  template <class AnyDelta>
  static auto& RawOfDelta(AnyDelta& delta, int member) {
    auto& own = delta.members_[member];
    return own.mode == DeltaMode::kPeak ? own.peak.risk : own.raw.value;
  }
  // As if the 50 silent episodes had passed and every episode had cost max(budget, cost_unit).
  static void SetIntegral(Multiplier* multiplier, int member, double integral) {
    multiplier->states_[member] = {1, multiplier->settings_[member].scale, 50, integral};
  }

  static std::vector<float> Get(const Algorithm& algorithm, int member, const std::string& name) {
    if (const auto* const slices = dynamic_cast<const Slices*>(&algorithm)) {
      const Slices::Slice& slice = SliceOf(*slices, member);
      return Get(*slice.algorithm, member - slice.first, name);
    }
    if (const auto* const datacom = dynamic_cast<const Datacom*>(&algorithm)) {
      if (name == "delta_raw") return {static_cast<float>(RawOfDelta(datacom->delta_, member))};
      if (name == "grad.delta_raw") return {static_cast<float>(datacom->delta_.gradient(member))};
      if (name == "multiplier" && datacom->priced_) return {static_cast<float>(datacom->multiplier_.value(member))};
    }
    if (const auto* const on_policy = dynamic_cast<const OnPolicy*>(&algorithm);
        on_policy != nullptr && name == "multiplier") {
      return {static_cast<float>(on_policy->multiplier_.value(member))};
    }
    const auto& population = dynamic_cast<const Population&>(algorithm);
    const FloatView array = Find(population, member, name);
    std::vector<float> values(array.cols);
    population.kernels_->Download(array, values.data());
    return values;
  }

  static void Set(Algorithm* algorithm, int member, const std::string& name, const std::vector<float>& values) {
    if (const auto* const slices = dynamic_cast<const Slices*>(algorithm)) {
      const Slices::Slice& slice = SliceOf(*slices, member);
      return Set(slice.algorithm.get(), member - slice.first, name, values);
    }
    auto* const datacom = dynamic_cast<Datacom*>(algorithm);
    const bool multiplier = datacom != nullptr && datacom->priced_ && name == "multiplier";
    if (multiplier || (datacom != nullptr && name == "delta_raw")) {
      CheckSize(name, values, 1);
      if (multiplier) SetIntegral(&datacom->multiplier_, member, values[0]);
      if (!multiplier) RawOfDelta(datacom->delta_, member) = values[0];
      return datacom->UploadThresholds();
    }
    if (auto* const on_policy = dynamic_cast<OnPolicy*>(algorithm); on_policy != nullptr && name == "multiplier") {
      CheckSize(name, values, 1);
      return on_policy->multiplier_.set_value(member, values[0]);
    }
    const auto& population = dynamic_cast<const Population&>(*algorithm);
    const FloatView array = Find(population, member, name);
    CheckSize(name, values, array.cols);
    population.kernels_->Upload(values.data(), array);
  }

 private:
  static const Slices::Slice& SliceOf(const Slices& slices, int member) {
    for (const Slices::Slice& slice : slices.slices_) {
      if (member < slice.first + slice.count) return slice;
    }
    throw std::invalid_argument("there is no member " + std::to_string(member));
  }

  static void CheckSize(const std::string& name, const std::vector<float>& values, int size) {
    if (static_cast<int>(values.size()) == size) return;
    throw std::invalid_argument("array '" + name + "' has " + std::to_string(size) + " values, not " +
                                std::to_string(values.size()));
  }

  static FloatView Find(const Population& population, int member, const std::string& name) {
    std::string base = name;
    FloatView all = population.parameters_;
    if (base.rfind("grad.", 0) == 0) {
      base = base.substr(5);
      all = population.gradients_;
      member -= population.members_ - population.block_;
      if (member < 0) throw std::invalid_argument("'" + name + "': only the gradients of the last member are kept");
    } else if (base.rfind("target_", 0) == 0) {
      base = base.substr(7);
      all = population.targets_;
    }
    for (const ParameterArray& array : population.layout_.arrays()) {
      if (array.name != base) continue;
      if (array.offset + array.size() > all.cols) break;
      return all.Members(member, 1).Cols(static_cast<int>(array.offset), static_cast<int>(array.size()));
    }
    throw std::invalid_argument("algorithm '" + population.config_.algorithm + "' has no array '" + name + "'");
  }
};

inline std::vector<float> GetArray(const Algorithm& algorithm, int member, const std::string& name) {
  return ArrayAccess::Get(algorithm, member, name);
}
inline void SetArray(Algorithm* algorithm, int member, const std::string& name, const std::vector<float>& values) {
  ArrayAccess::Set(algorithm, member, name, values);
}

}  // namespace datacom::learner

#endif  // DATACOM_TESTS_LEARNER_ALGORITHMS_ARRAYS_H_
// SPDX-License-Identifier: Apache-2.0

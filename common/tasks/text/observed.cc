#include "common/tasks/text/observed.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/tasks/text/mujoco_names.h"
#include "common/tasks/text/mujoco_signals.h"

namespace datacom::text {
namespace {

// Fields of a measured signal that an entry made of known numbers does not have.
absl::Status CheckDerived(const v1::Signal& signal, const std::string& field) {
  if (signal.has_number() && signal.has_value()) return Wrong(field, "has number and value; exactly one is needed");
  RETURN_IF_ERROR(
      RefuseFields(signal, {"joint", "site", "body", "geom", "sensor", "actuator", "quantity", "relative_to", "axes"},
                   field, "does not go with number or value"));
  if (signal.has_value() && !signal.has_name()) return Wrong(field + ".name", "is needed");
  if (signal.has_number() && signal.has_name()) {
    return Wrong(field + ".name", "does not go with number, whose numbers have names");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Observed> Observed::Make(const v1::TaskDefinition& definition, const std::vector<int>& begins,
                                        const std::vector<std::string>& names, double* values) {
  Observed made;
  for (int i = 0; i < definition.observation_size(); ++i) {
    const v1::Signal& signal = definition.observation(i);
    const std::string field = absl::StrCat("observation[", i, "]");
    std::vector<std::string> own(names.begin() + begins[i], names.begin() + begins[i + 1]);
    Entry entry;
    for (int number = begins[i]; number < begins[i + 1]; ++number) entry.numbers.push_back(values + number);
    if (IsDerived(signal)) RETURN_IF_ERROR(CheckDerived(signal, field));
    if (signal.has_number()) {
      for (size_t number = 0; number < names.size(); ++number) {
        if (!MatchesGlob(signal.number(), names[number])) continue;
        own.push_back(names[number]);
        entry.numbers.push_back(values + number);
      }
      if (own.empty()) return Wrong(field + ".number", absl::StrCat("no number matches \"", signal.number(), "\""));
    }
    if (signal.has_value()) {
      absl::StatusOr<Expression> value = Expression::Compile(signal.value(), names, values);
      if (!value.ok()) return Annotate(value.status(), field + ".value");
      entry.value = *std::move(value);
      own = {signal.name()};
    }
    const double infinity = std::numeric_limits<double>::infinity();
    entry.low = signal.has_clip() ? signal.clip().low() : -infinity;
    entry.high = signal.has_clip() ? signal.clip().high() : infinity;
    if (!(entry.low < entry.high)) return Wrong(field + ".clip.high", "is not above low");
    entry.scale = signal.scale();
    entry.past.resize(own.size() * (signal.history() - 1));
    for (uint32_t age = 0; age < signal.history(); ++age) {
      for (const std::string& name : own) made.names_.push_back(age == 0 ? name : absl::StrCat(name, ".", age));
    }
    made.entries_.push_back(std::move(entry));
  }
  std::set<std::string> seen;
  for (const std::string& name : made.names_) {
    if (!seen.insert(name).second) {
      return Wrong("observation", absl::StrCat("the name ", name, " is used twice; set `name` of one entry"));
    }
  }
  return made;
}

void Observed::Write(bool start, double* out) {
  for (Entry& entry : entries_) {
    const size_t count = entry.value.has_value() ? 1 : entry.numbers.size();
    for (size_t i = 0; i < count; ++i) {
      const double number = entry.value.has_value() ? entry.value->Value() : *entry.numbers[i];
      // Written as comparisons so that a NaN stays one.
      out[i] = entry.scale * (number < entry.low ? entry.low : number > entry.high ? entry.high : number);
    }
    std::vector<double>& past = entry.past;
    for (size_t i = 0; start && i < past.size(); ++i) past[i] = out[i % count];
    std::copy(past.begin(), past.end(), out + count);
    if (!past.empty()) {
      std::copy_backward(past.begin(), past.end() - static_cast<std::ptrdiff_t>(count), past.end());
      std::copy_n(out, count, past.begin());
    }
    out += count + past.size();
  }
}

}  // namespace datacom::text
// SPDX-License-Identifier: Apache-2.0

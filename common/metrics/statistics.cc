#include "common/metrics/statistics.h"

#include <algorithm>
#include <iterator>
#include <limits>

#include "common/config/algorithms.h"

namespace datacom {

using google::protobuf::FieldDescriptor;

EpochStatistic::EpochStatistic(const FieldDescriptor* field)
    : field_(field),
      about_(&field->options().GetExtension(v1::statistic)),
      name_(about_->has_name() ? about_->name() : field->name()),
      tag_(about_->has_tag() ? about_->tag() : "learner/" + name_) {}

bool EpochStatistic::is_count() const { return field_->cpp_type() != FieldDescriptor::CPPTYPE_DOUBLE; }

bool EpochStatistic::from_updates() const {
  const v1::Statistic::Fold fold = about_->fold();
  return !is_count() && (fold == v1::Statistic::MEAN || fold == v1::Statistic::MIN || fold == v1::Statistic::LAST);
}

bool EpochStatistic::used_by(const std::string& algorithm) const {
  const AlgorithmInfo* const info = FindAlgorithm(algorithm);
  return about_->used_by().empty() || (info != nullptr && Covers(about_->used_by(), *info));
}

double EpochStatistic::Get(const v1::MemberEpoch& epoch) const {
  const google::protobuf::Reflection& reflection = *epoch.GetReflection();
  switch (field_->cpp_type()) {
    case FieldDescriptor::CPPTYPE_UINT32:
      return reflection.GetUInt32(epoch, field_);
    case FieldDescriptor::CPPTYPE_UINT64:
      return static_cast<double>(reflection.GetUInt64(epoch, field_));
    default:
      return reflection.GetDouble(epoch, field_);
  }
}

void EpochStatistic::Set(double value, v1::MemberEpoch* epoch) const {
  epoch->GetReflection()->SetDouble(epoch, field_, value);
}

const std::vector<EpochStatistic>& Statistics() {
  static const auto* const kStatistics = [] {
    auto* const statistics = new std::vector<EpochStatistic>;
    const google::protobuf::Descriptor& epoch = *v1::MemberEpoch::descriptor();
    for (int i = 0; i < epoch.field_count(); ++i) {
      if (epoch.field(i)->options().HasExtension(v1::statistic)) statistics->emplace_back(epoch.field(i));
    }
    return statistics;
  }();
  return *kStatistics;
}

std::vector<EpochStatistic> StatisticsOf(const std::string& algorithm) {
  std::vector<EpochStatistic> own;
  std::copy_if(Statistics().begin(), Statistics().end(), std::back_inserter(own),
               [&algorithm](const EpochStatistic& statistic) { return statistic.used_by(algorithm); });
  return own;
}

const v1::MemberEpoch& NoUpdates() {
  static const auto* const kEpoch = [] {
    auto* const epoch = new v1::MemberEpoch;
    for (const EpochStatistic& statistic : Statistics()) {
      if (statistic.from_updates()) statistic.Set(std::numeric_limits<double>::quiet_NaN(), epoch);
    }
    return epoch;
  }();
  return *kEpoch;
}

}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0

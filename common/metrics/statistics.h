// The table of statistics: the numbers that the learner records for a member and an epoch. A statistic is a field of
// v1::MemberEpoch with the option (statistic) (proto/datacom/v1/member_epoch.proto, statistic.proto). This file turns
// the descriptors into a list, once; records, gauges and the report iterate over it.
//
// Immutable after the first call; thread-safe. Reading and writing a value use reflection, so they belong to epochs and
// refreshes, not to updates.
#ifndef DATACOM_COMMON_METRICS_STATISTICS_H_
#define DATACOM_COMMON_METRICS_STATISTICS_H_

#include <string>
#include <vector>

#include "datacom/v1/member_epoch.pb.h"
#include "datacom/v1/statistic.pb.h"

namespace datacom {

class EpochStatistic {
 public:
  // `field` has the option (statistic).
  explicit EpochStatistic(const google::protobuf::FieldDescriptor* field);

  int number() const { return field_->number(); }                  // number of the field
  const std::string& name() const { return name_; }                // column of progress.csv
  const std::string& tag() const { return tag_; }                  // of TensorBoard
  std::string gauge() const { return "datacom_member_" + name_; }  // exists if about().has_help()
  const v1::Statistic& about() const { return *about_; }
  bool is_count() const;  // a whole number
  // True if the algorithm computes it in its updates (learner/algorithms/algorithm.h, Stats).
  bool from_updates() const;
  // True if the records of the algorithm's runs have it (v1::Statistic::used_by).
  bool used_by(const std::string& algorithm) const;
  double Get(const v1::MemberEpoch& epoch) const;
  void Set(double value, v1::MemberEpoch* epoch) const;  // is_count() is false

 private:
  const google::protobuf::FieldDescriptor* field_;
  const v1::Statistic* about_;
  std::string name_, tag_;
};

const std::vector<EpochStatistic>& Statistics();  // in the order of the columns of progress.csv
// Those that the records of an algorithm's runs have.
std::vector<EpochStatistic> StatisticsOf(const std::string& algorithm);
// An epoch without an update: NaN in every statistic that an algorithm computes.
const v1::MemberEpoch& NoUpdates();

}  // namespace datacom

#endif  // DATACOM_COMMON_METRICS_STATISTICS_H_
// SPDX-License-Identifier: Apache-2.0

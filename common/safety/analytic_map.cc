#include "common/safety/analytic_map.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace datacom {
namespace {

std::vector<int> AllRows(int count) {
  std::vector<int> rows(count);
  std::iota(rows.begin(), rows.end(), 0);
  return rows;
}

}  // namespace

AnalyticMap::AnalyticMap(const std::shared_ptr<const KnownConstraints>& constraints, std::vector<double> gains,
                         const ControlAffineDims& dims)
    : rows_(constraints, AllRows(constraints->count()), dims, KnownRowsForm{std::move(gains), /*published=*/true}),
      map_(SafeMapDims{rows_.count(), dims.action, dims.q, dims.x, rows_.equalities()}),
      records_(rows_.count() * JoinedRowSize(dims.action)),
      c_(rows_.count()),
      drift_(rows_.count()),
      J_G_(rows_.count() * dims.action) {}

void AnalyticMap::Set(const KnownRowsInput& at, const SafeMapGains& gains) {
  const int n = map_.dims().action;
  rows_.Evaluate(at, records_.data());
  const double* record = records_.data();
  for (int i = 0; i < rows_.count(); ++i, record += JoinedRowSize(n)) {
    c_[i] = record[0];
    drift_[i] = record[1];
    std::copy_n(record + 2, n, J_G_.data() + i * n);
  }
  map_.Set(SafeMapReduced{c_.data(), J_G_.data(), drift_.data()}, gains);
}

}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0

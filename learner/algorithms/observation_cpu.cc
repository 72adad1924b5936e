#include <algorithm>
#include <cmath>

#include "learner/algorithms/observation_kernels.h"
#include "learner/nn/cpu/cpu_impl.h"

namespace datacom::learner {
namespace {

class ObservationCpu : public CpuImpl<ObservationKernels> {
 public:
  void Normalise(const FloatView& raw, const FloatView& mean, const FloatView& deviation, double limit,
                 const FloatView& out) override {
    const float bound = static_cast<float>(limit);
    for (int m = 0; m < raw.members; ++m) {
      const float *centre = mean.row(m, 0), *width = deviation.row(m, 0);
      for (int r = 0; r < raw.rows; ++r) {
        const float* from = raw.row(m, r);
        float* to = out.row(m, r);
        for (int i = 0; i < raw.cols; ++i) {
          to[i] = Clamp((from[i] - centre[i]) / width[i], -bound, bound) + 0 * from[i];
        }
      }
    }
  }

  void AddObservations(const FloatView& raw, const DoubleView& active, const LeastDeviation& bounds,
                       const ObservationStatistics& statistics, const FloatView& mean,
                       const FloatView& deviation) override {
    for (int m = 0; m < raw.members; ++m) {
      if (active.at(m) == 0) continue;
      const double before = statistics.count.at(m), count = before + raw.rows;
      statistics.count.at(m) = count;
      for (int i = 0; i < raw.cols; ++i) {
        double sum = 0, squares = 0;
        for (int r = 0; r < raw.rows; ++r) sum += raw.at(m, r, i);
        const double centre = sum / raw.rows, apart = centre - statistics.mean.at(m, 0, i);
        for (int r = 0; r < raw.rows; ++r) {
          const double apart_from_centre = raw.at(m, r, i) - centre;
          squares += apart_from_centre * apart_from_centre;
        }
        double &all = statistics.squares.at(m, 0, i), &middle = statistics.mean.at(m, 0, i);
        all += squares + apart * apart * before * raw.rows / count;
        middle += apart * raw.rows / count;
        double& reach = statistics.reach.at(m, 0, i);
        for (int r = 0; r < raw.rows; ++r) reach = std::max(reach, std::abs(raw.at(m, r, i) - middle));
        if (count < 2) continue;
        mean.at(m, 0, i) = static_cast<float>(middle);
        deviation.at(m, 0, i) =
            static_cast<float>(std::max({std::sqrt(all / (count - 1)), bounds.least, reach / bounds.reach}));
      }
    }
  }
};

const CpuImpls::Register<ObservationKernels, ObservationCpu> kRegistered;

}  // namespace
}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0

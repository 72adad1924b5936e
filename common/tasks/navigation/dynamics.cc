#include "common/tasks/navigation/dynamics.h"

#include <algorithm>
#include <cmath>

namespace datacom::navigation {

void Dynamics::Evaluate(const double* obs, const ControlAffineOut& out) const {
  const double heading = std::atan2(obs[5], obs[4]);
  if (out.q != nullptr) {
    out.q[0] = obs[2];
    out.q[1] = obs[3];
    out.q[2] = heading;
  }
  if (out.x != nullptr) {
    out.x[0] = obs[9];
    out.x[1] = obs[10];
    out.x[2] = std::atan2(obs[12], obs[11]);
    out.x[3] = obs[18];
    out.x[4] = obs[19];
  }
  if (out.x_dot != nullptr) {
    out.x_dot[0] = obs[13];
    out.x_dot[1] = obs[14];
    out.x_dot[2] = obs[15];
    out.x_dot[3] = obs[20];
    out.x_dot[4] = obs[21];
  }
  if (out.f != nullptr) std::fill(out.f, out.f + 3, 0.0);
  if (out.G != nullptr) {
    const double rows[6] = {std::cos(heading), 0, std::sin(heading), 0, 0, 1};
    std::copy(rows, rows + 6, out.G);
  }
}

}  // namespace datacom::navigation

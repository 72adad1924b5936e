// The range of a task's actions.
#ifndef DATACOM_LEARNER_ALGORITHMS_ACTION_BOX_H_
#define DATACOM_LEARNER_ALGORITHMS_ACTION_BOX_H_

#include "learner/nn/view.h"

namespace datacom::learner {

struct ActionBox {
  FloatView half, centre;  // [1, 1, action]
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_ALGORITHMS_ACTION_BOX_H_
// SPDX-License-Identifier: Apache-2.0

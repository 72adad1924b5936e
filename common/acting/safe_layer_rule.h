// The projection of acting rule safe_layer (safe_layer_rule.cc). Pure function.
#ifndef DATACOM_COMMON_ACTING_SAFE_LAYER_RULE_H_
#define DATACOM_COMMON_ACTING_SAFE_LAYER_RULE_H_

namespace datacom::safe_layer {

// Moves `action` along `slope` until the predicted cost, cost + <slope, action>, is `threshold`, if it is not below
// that already. slope, action, projected: [n]; projected may be action.
void Project(int n, const double* slope, double cost, double threshold, const double* action, double* projected);

}  // namespace datacom::safe_layer

#endif  // DATACOM_COMMON_ACTING_SAFE_LAYER_RULE_H_
// SPDX-License-Identifier: Apache-2.0

// An assignment (proto/datacom/v1/replay.proto) in words, for logs and `datacom status`. Thread-safe.
#ifndef DATACOM_COMMON_RPC_ASSIGNMENT_H_
#define DATACOM_COMMON_RPC_ASSIGNMENT_H_

#include <string>

#include "datacom/v1/replay.pb.h"

namespace datacom {

// The members with lanes, as "0-3,7", and "none" without one; with ", leaving: 4-5" for those that leave.
std::string DescribeMembers(const v1::Assignment& assignment);

}  // namespace datacom

#endif  // DATACOM_COMMON_RPC_ASSIGNMENT_H_
// SPDX-License-Identifier: Apache-2.0

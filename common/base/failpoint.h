// DATACOM_FAILPOINT("name") marks a place where a test can kill the process. It compiles to nothing unless
// DATACOM_FAILPOINTS names a header that gives it a meaning; only the second set of programs in tests/chaos has one.
#ifndef DATACOM_COMMON_BASE_FAILPOINT_H_
#define DATACOM_COMMON_BASE_FAILPOINT_H_

#ifdef DATACOM_FAILPOINTS
#include DATACOM_FAILPOINTS
#else
#define DATACOM_FAILPOINT(name) static_cast<void>(0)
#endif

#endif  // DATACOM_COMMON_BASE_FAILPOINT_H_
// SPDX-License-Identifier: Apache-2.0

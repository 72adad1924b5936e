// Where tests run the tensor kernels: on the CPU, or on DATACOM_TEST_DEVICE (cuda).
#ifndef DATACOM_TESTS_LEARNER_TEST_DEVICE_H_
#define DATACOM_TESTS_LEARNER_TEST_DEVICE_H_

#include <cstdlib>
#include <string>

namespace datacom::learner {

inline std::string TestDevice(const std::string& kernels) {
  const char* const device = std::getenv("DATACOM_TEST_DEVICE");
  return kernels == "tensor" && device != nullptr ? device : "cpu";
}

}  // namespace datacom::learner

#endif  // DATACOM_TESTS_LEARNER_TEST_DEVICE_H_
// SPDX-License-Identifier: Apache-2.0

// How long a test waits for what must happen: so long that only a hang is longer, also on a slow machine with much
// other work. DATACOM_TEST_PATIENCE, a factor, scales it; ctest sets it to the CMake variable of the same name.
#ifndef DATACOM_TESTS_TESTING_PATIENCE_H_
#define DATACOM_TESTS_TESTING_PATIENCE_H_

#include <chrono>
#include <cstdlib>

namespace datacom::testing {

inline const std::chrono::milliseconds kPatience = [] {
  const char* const factor = std::getenv("DATACOM_TEST_PATIENCE");
  const std::chrono::duration<double, std::ratio<60>> limit(10 * (factor != nullptr ? std::atof(factor) : 1));
  return std::chrono::duration_cast<std::chrono::milliseconds>(limit);
}();

// Calls `step` until `done` or until patience ends; returns done().
template <typename Done, typename Step>
bool WaitUntil(const Done& done, const Step& step) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!done() && std::chrono::steady_clock::now() < end) step();
  return done();
}

}  // namespace datacom::testing

#endif  // DATACOM_TESTS_TESTING_PATIENCE_H_
// SPDX-License-Identifier: Apache-2.0

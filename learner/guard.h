// Where exceptions of the algorithm (and LibTorch) become a Status. Thread-safe.
#ifndef DATACOM_LEARNER_GUARD_H_
#define DATACOM_LEARNER_GUARD_H_

#include <exception>
#include <stdexcept>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace datacom::learner {

// INVALID_ARGUMENT for std::invalid_argument (configuration, state), INTERNAL for everything else thrown; `what` in
// front.
template <typename Body>
absl::Status Guard(const char* what, Body body) {
  try {
    body();
    return absl::OkStatus();
  } catch (const std::invalid_argument& error) {
    return absl::InvalidArgumentError(absl::StrCat(what, ": ", error.what()));
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat(what, ": ", error.what()));
  } catch (...) {
    return absl::InternalError(absl::StrCat(what, ": an exception that is no std::exception"));
  }
}

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_GUARD_H_

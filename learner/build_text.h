// What computed a run: the text of build.txt. A pure function of build and machine, but for the date. Thread-safe.
#ifndef DATACOM_LEARNER_BUILD_TEXT_H_
#define DATACOM_LEARNER_BUILD_TEXT_H_

#include <string>

namespace datacom::learner {

// One line each: versions of this build and of its libraries, the arithmetic on this processor, the machine, the day of
// this start (UTC).
std::string BuildText();

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_BUILD_TEXT_H_

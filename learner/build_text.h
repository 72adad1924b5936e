// What computed a run: the text of build.txt. A pure function of build, machine and argument, but for the date.
// Thread-safe.
#ifndef DATACOM_LEARNER_BUILD_TEXT_H_
#define DATACOM_LEARNER_BUILD_TEXT_H_

#include <string>

namespace datacom::learner {

// One line each: versions of this build and of its libraries, the simulators, the arithmetic on this processor, the
// machine, the day of this start (UTC). `before` is the text of the start that a resume continues, empty for a new run:
// the line of the simulators keeps the earlier ones, oldest first, because the run's rows come from all of them.
std::string BuildText(const std::string& before);

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_BUILD_TEXT_H_

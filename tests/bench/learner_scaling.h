// How updates scale over threads (observation 16, action 3, q 6, batch 64 + 6, nets 2 x 128).
#ifndef DATACOM_TESTS_BENCH_LEARNER_SCALING_H_
#define DATACOM_TESTS_BENCH_LEARNER_SCALING_H_

#include <string>
#include <vector>

#include "tests/bench/learner_setup.h"

namespace datacom::learner {

// "1,2,4". One thread is always among the counts, first. Throws std::invalid_argument.
std::vector<int> ThreadCounts(const std::string& text);

struct ScalingCase {
  std::string algorithm;
  int members = 0;
};
// Each case on each number of threads, in alternation, for `seconds` each. Prints a table on standard error: time and
// processor time of a member's update, speedup over one thread, efficiency per thread, the share of the time in which
// threads have nothing to do, how long a cache line travels between two processors, what a round costs without work,
// and the efficiency that these figures project for 64 threads. Results: value: member updates per second; floor: those
// of one thread; ratio: the speedup.
std::vector<Result> MeasureScaling(const std::vector<int>& threads, const std::vector<ScalingCase>& cases,
                                   double seconds);

}  // namespace datacom::learner

#endif  // DATACOM_TESTS_BENCH_LEARNER_SCALING_H_
// SPDX-License-Identifier: Apache-2.0

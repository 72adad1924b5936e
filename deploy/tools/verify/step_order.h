// Checks that the transitions of a member follow each other in each environment of a session: a step follows the step
// before it in its episode, or begins a later episode with step 0. So no transition occurs twice. Sums up the costs of
// each open episode. Not thread-safe.
#ifndef DATACOM_DEPLOY_TOOLS_VERIFY_STEP_ORDER_H_
#define DATACOM_DEPLOY_TOOLS_VERIFY_STEP_ORDER_H_

#include <algorithm>
#include <bit>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "replay/episodes.h"

namespace datacom::verify {

struct Transition {
  uint32_t session = 0, environment = 0, episode = 0, step = 0;
  float cost = 0;

  // Costs are equal when their bits are, as a cost that is not a number has to equal itself.
  friend bool operator==(const Transition& a, const Transition& b) {
    return a.session == b.session && a.environment == b.environment && a.episode == b.episode && a.step == b.step &&
           std::bit_cast<uint32_t>(a.cost) == std::bit_cast<uint32_t>(b.cost);
  }
};

inline std::string Name(const Transition& at) {
  return absl::StrCat("session ", at.session, ", environment ", at.environment, ", episode ", at.episode, ", step ",
                      at.step);
}

class StepOrder {
 public:
  struct Environment {
    bool known = false;
    bool whole = false;  // its episode has been seen from step 0
    uint32_t episode = 0, step = 0;
    double sum_cost = 0, max_violation = 0;
    uint32_t violating_steps = 0;
  };

  // `from_start`: the first transition to come is the member's first one.
  explicit StepOrder(bool from_start) : from_start_(from_start) {}

  // Some transitions are unknown: any may come next.
  void Skip() {
    from_start_ = false;
    last_ = nullptr;
    environments_.clear();
  }

  // Adds the next transition. Returns the state of its environment. `wrong` receives what is wrong with its place, if
  // anything.
  const Environment& Add(const Transition& next, std::string* wrong) {
    Environment& environment = EnvironmentOf(next, wrong);
    const bool continues =
        environment.known && next.episode == environment.episode && next.step == environment.step + 1;
    const bool begins = next.step == 0 && (!environment.known || next.episode > environment.episode);
    if (!continues && !begins && (environment.known || from_start_)) {
      *wrong = environment.known
                   ? absl::StrCat(Name(next), " follows episode ", environment.episode, ", step ", environment.step)
                   : absl::StrCat(Name(next), " is the first of its environment");
    }
    if (!continues) environment = Environment{true, begins, next.episode, next.step, 0, 0, 0};
    environment.step = next.step;
    const double cost = std::max(0.0, static_cast<double>(next.cost));
    environment.sum_cost += cost;
    environment.max_violation = std::max(environment.max_violation, cost);
    if (cost > 0) ++environment.violating_steps;
    return environment;
  }

 private:
  Environment& EnvironmentOf(const Transition& next, std::string* wrong) {
    if (next.environment >= replay::kMaxEnvironments) {
      *wrong = absl::StrCat(Name(next), ": there are at most ", replay::kMaxEnvironments, " environments");
      return nowhere_ = Environment{};
    }
    if (last_ == nullptr || last_session_ != next.session) {
      last_ = &environments_[next.session];
      last_session_ = next.session;
    }
    if (next.environment >= last_->size()) last_->resize(next.environment + 1);
    return (*last_)[next.environment];
  }

  bool from_start_;
  std::unordered_map<uint32_t, std::vector<Environment>> environments_;  // key: session
  std::vector<Environment>* last_ = nullptr;  // environments_[last_session_]; null before the first transition
  uint32_t last_session_ = 0;
  Environment nowhere_;
};

}  // namespace datacom::verify

#endif  // DATACOM_DEPLOY_TOOLS_VERIFY_STEP_ORDER_H_
// SPDX-License-Identifier: Apache-2.0

#include "learner/member_watch.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"

namespace datacom::learner {
namespace {

constexpr double kHot = 0.1, kHeated = 30;  // temperature, and growth of it
constexpr uint64_t kLockedRows = 10000;

}  // namespace

void CriticWatch::Add(double loss) {
  if (std::isnan(loss)) return;
  losses_.push_back(loss);
  if (losses_.size() > kFirst + kEpochs + 1) losses_.erase(losses_.begin());
}

double CriticWatch::before() const { return *std::min_element(losses_.end() - 1 - kEpochs, losses_.end() - 1); }

bool Abandons(const v1::MemberTotals& totals) {
  return 10 * totals.abandoned() > totals.episodes() + totals.abandoned();
}

MemberWatch::MemberWatch(const v1::MemberTotals& totals, bool on_policy)
    : on_policy_(on_policy),
      critic_({totals.critic_losses().begin(), totals.critic_losses().end()}),
      smallest_alpha_(totals.smallest_alpha()),
      locked_rows_(totals.locked_rows()) {
  runaway_ = critic_.runaway();
  locked_ = locked_rows_ >= kLockedRows;
}

void MemberWatch::Save(v1::MemberTotals* totals) const {
  totals->mutable_critic_losses()->Assign(critic_.losses().begin(), critic_.losses().end());
  totals->set_smallest_alpha(smallest_alpha_);
  totals->set_locked_rows(locked_rows_);
}

std::string MemberWatch::EndEpoch(const v1::MemberEpoch& stats, uint64_t rows, bool cut_short) {
  std::string news;
  CriticWatch critic = critic_;
  if (!on_policy_) critic.Add(stats.critic_loss());
  const double alpha = stats.alpha();
  const bool heated = smallest_alpha_ > 0 && alpha > kHot && alpha > kHeated * smallest_alpha_;
  if (critic.runaway() && !runaway_) {
    news = absl::StrFormat("the critic runs away: its loss is %.4g, the smallest of the %d epochs before was %.4g",
                           critic.now(), CriticWatch::kEpochs, critic.before());
  } else if (heated && !runaway_) {
    news = absl::StrFormat("the critic runs away: alpha is %.4g, it was %.4g", alpha, smallest_alpha_);
  }
  runaway_ = critic.runaway() || heated;
  const uint64_t locked_rows = stats.infeasible_share() > 0.5 ? locked_rows_ + rows : 0;
  if (locked_rows >= kLockedRows && !locked_) {
    absl::StrAppendFormat(&news, "%sthe shield is locked: the learned constraint is above 0 in %.0f %% of the states",
                          news.empty() ? "" : "; ", 100 * stats.infeasible_share());
  }
  locked_ = locked_rows >= kLockedRows;
  if (cut_short) return news;
  critic_ = std::move(critic);
  locked_rows_ = locked_rows;
  if (alpha > 0 && (smallest_alpha_ == 0 || alpha < smallest_alpha_)) smallest_alpha_ = alpha;
  return news;
}

}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0

// What `train` and `sweep` say, and whether a run still moves. Not thread-safe.
#ifndef DATACOM_DEPLOY_CLI_DISPLAY_H_
#define DATACOM_DEPLOY_CLI_DISPLAY_H_

#include <optional>
#include <string>

#include "common/base/clock.h"
#include "common/base/rate_meter.h"
#include "common/base/stall.h"
#include "deploy/cli/answers.h"
#include "deploy/cli/cluster.h"
#include "deploy/cli/progress.h"
#include "deploy/cli/supervise.h"
#include "deploy/cli/train_plan.h"

namespace datacom::cli {

// Says sentences, and shows the state of a run: a live table on a terminal, otherwise a line every 10 seconds, or as
// often as $DATACOM_PROGRESS_SECONDS says; with --json as objects; nothing when quiet.
class Display {
 public:
  Display(std::string title, const TrainOptions& options, bool learns_delta);

  // A fact for programs: {"NAME": TEXT}. For people `sentence`.
  void Tell(const std::string& name, const std::string& text, const std::string& sentence);
  void Say(const std::string& sentence);
  // What a complete run leaves, or a failed one; also when quiet.
  void Conclude(const std::string& name, const std::string& text, const std::string& sentence);
  void Update(const Cluster& cluster, const Answers& answers);

 private:
  const Clock& clock_ = Clock::Real();
  const std::string title_;
  const bool quiet_, json_, terminal_, learns_delta_;
  const double period_;  // seconds between two lines or tables
  const Clock::Time start_ = clock_.Now();
  Clock::Time drawn_ = start_;
  RateMeter updates_;
  std::optional<v1::LearnerInfo> last_learner_;
  LiveBlock block_;
};

// Asks replay and learner whether the run moves, and tells the cluster when it gets further. Owns the thread that asks.
class ProgressWatch {
 public:
  ProgressWatch(double stall_minutes, const Security& security);

  // False when nothing has changed for the stated time.
  bool Continues(Cluster* cluster);
  const Answers& newest() const { return newest_; }
  // Why nothing moves, as far as the services know.
  std::string Reason() const;

 private:
  const double stall_minutes_;
  Poller poller_;
  Answers newest_;
  RunProgress progress_;
  StallTimer timer_;
};

}  // namespace datacom::cli

#endif  // DATACOM_DEPLOY_CLI_DISPLAY_H_
// SPDX-License-Identifier: Apache-2.0

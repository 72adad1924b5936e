#include "deploy/cli/display.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/standard_output.h"
#include "common/records/message_json.h"
#include "nlohmann/json.hpp"

namespace datacom::cli {
namespace {

constexpr double kLineSeconds = 10, kTableSeconds = 0.5, kRateWindowSeconds = 15;
constexpr int kMaxMembers = 16;

double LinePeriod() {
  const char* const text = std::getenv("DATACOM_PROGRESS_SECONDS");
  double seconds = 0;
  return text != nullptr && absl::SimpleAtod(text, &seconds) && seconds > 0 ? seconds : kLineSeconds;
}

void Write(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

}  // namespace

Display::Display(std::string title, const TrainOptions& options, bool learns_delta)
    : title_(std::move(title)),
      quiet_(options.quiet),
      json_(options.json),
      terminal_(!json_ && IsLiveTerminal()),
      learns_delta_(learns_delta),
      period_(terminal_ ? kTableSeconds : LinePeriod()),
      updates_(&clock_, kRateWindowSeconds) {}

void Display::Tell(const std::string& name, const std::string& text, const std::string& sentence) {
  if (!json_) return Say(sentence);
  Write(JsonText({{name, text}}) + "\n");
}

void Display::Say(const std::string& sentence) {
  if (quiet_) return;
  if (json_) return Tell("message", sentence, "");
  const std::string shown = ForTerminal(sentence) + "\n";
  Write(terminal_ ? block_.PrintAbove(WrapLines(shown, TerminalWidth(0))) : shown);
}

void Display::Conclude(const std::string& name, const std::string& text, const std::string& sentence) {
  if (json_) return Tell(name, text, "");
  Write(sentence + "\n");
}

void Display::Update(const Cluster& cluster, const Answers& answers) {
  if (quiet_) return;
  if (answers.learner) last_learner_ = answers.learner;
  ProgressView view = MakeProgress(answers.replay, last_learner_);
  if (answers.learner) updates_.Add(view.learner.update() + view.learner.pretrain_update());
  const Clock::Time now = clock_.Now();
  if (Seconds(now - drawn_) < period_) return;
  drawn_ = now;
  if (!answers.learner && last_learner_)
    view.learner.set_phase("learner not answering");  // it restarts, or has just finished
  view.title = title_;
  view.elapsed_seconds = Seconds(now - start_);
  view.actors = cluster.actors_running();
  view.restarts = cluster.restarts();
  view.learns_delta = learns_delta_;
  view.learner.set_updates_per_second(updates_.rate());
  if (json_) return Write(JsonText(ProgressJson(view)) + "\n");
  Write(terminal_ ? block_.Redraw(RenderTable(view, TerminalWidth(100), kMaxMembers)) : RenderLine(view) + "\n");
}

ProgressWatch::ProgressWatch(double stall_minutes, const Security& security)
    : stall_minutes_(stall_minutes), poller_(security), timer_(&Clock::Real(), Minutes(stall_minutes)) {}

bool ProgressWatch::Continues(Cluster* cluster) {
  poller_.SetAddresses(cluster->replay_address(), cluster->learner_address());
  newest_ = poller_.newest();
  if (cluster->learner_address().empty()) return true;  // the cluster has a deadline for it
  const uint64_t before = progress_.advances();
  progress_.Observe(newest_.replay, newest_.learner);
  if (progress_.advances() != before) cluster->OnProgress();
  return !timer_.Stalled(progress_.changes());
}

std::string ProgressWatch::Reason() const {
  const auto& [replay, learner] = newest_;
  std::string reason =
      absl::StrCat("no row, update or evaluation for ", stall_minutes_,
                   " minutes; learner: ", learner ? learner->phase() : "no answer", learner ? ", " : "",
                   learner ? learner->waiting_for() : "", "; replay: ", replay ? "" : "no answer");
  if (replay) absl::StrAppend(&reason, replay->waits_size() > 0 ? absl::StrJoin(replay->waits(), "; ") : "no wait");
  return reason;
}

}  // namespace datacom::cli
// SPDX-License-Identifier: Apache-2.0

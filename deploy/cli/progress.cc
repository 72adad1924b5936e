#include "deploy/cli/progress.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/standard_output.h"
#include "common/records/message_json.h"
#include "common/records/updates_made.h"

namespace datacom::cli {
namespace {

// Terminal columns of a text. Every character must be one column wide.
int Columns(const std::string& text) {
  return std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; });
}

std::string Clip(const std::string& text, int width) {
  if (width == 0 || Columns(text) <= width) return text;
  std::string clipped;
  int columns = 0;
  for (const char c : text) {
    if ((static_cast<unsigned char>(c) & 0xc0) != 0x80 && ++columns > width) break;
    clipped.push_back(c);
  }
  return clipped;
}

std::string Bar(double fraction, int width) {
  const int full = static_cast<int>(std::floor(fraction * width));
  std::string bar;
  for (int i = 0; i < width; ++i) bar += i < full ? "█" : "░";
  return bar;
}

uint64_t SlowestSteps(const ProgressView& view) {
  if (view.learner.members().empty()) return 0;
  return std::min_element(view.learner.members().begin(), view.learner.members().end(),
                          [](const auto& a, const auto& b) { return a.env_steps() < b.env_steps(); })
      ->env_steps();
}

// Whether replay or learner has said how long the run is.
bool KnowsGoal(const ProgressView& view) { return view.goal_steps > 0 || view.learner.target_update() > 0; }

// An update of an on-policy algorithm takes the rows of a whole epoch: their rate is below one a second, and waiting
// for rows is the rule.
bool UpdatesAreEpochs(const ProgressView& view) {
  return view.learner.target_update() > 0 && view.learner.target_update() * 100 < view.goal_steps;
}

std::string UpdateRate(const ProgressView& view) {
  if (!UpdatesAreEpochs(view)) return absl::StrFormat("%.0f updates/s", view.learner.updates_per_second());
  return absl::StrCat("update ", FormatCount(view.learner.update()), " of ", FormatCount(view.learner.target_update()));
}

bool IsForRows(const std::string& wait) { return absl::StartsWith(wait, "learner waits for rows"); }

// Between two updates of a run that moves, the learner waits for rows.
bool IsNormalWork(const ProgressView& view, const std::string& wait) {
  const bool moves = UpdatesAreEpochs(view) || view.learner.updates_per_second() > 0 || view.steps_per_second > 0;
  return moves && (view.learner.update() > 0 || !view.learner_known) && IsForRows(wait);
}

// Empty if nothing waits that should not.
std::string Waiting(const ProgressView& view) {
  return IsNormalWork(view, view.learner.waiting_for()) ? "" : view.learner.waiting_for();
}

// What the learner does. Between two updates of a run that moves it learns.
std::string Phase(const ProgressView& view) {
  const std::string& phase = view.learner.phase();
  return phase == "waiting" && Waiting(view).empty() ? "learning" : phase;
}

std::string Eta(const ProgressView& view) {
  const std::optional<double> eta = EtaSeconds(view);
  return eta ? FormatDuration(*eta) : "--:--";
}

double Mean(const ProgressView& view, double (v1::MemberProgress::*field)() const) {
  double sum = 0;
  for (const v1::MemberProgress& member : view.learner.members()) sum += (member.*field)();
  return view.learner.members().empty() ? 0 : sum / view.learner.members().size();
}

// A column of the members' table, as wide as its widest cell may be.
struct MemberColumn {
  const char* heading;
  int width;
  bool of_delta;    // "-" for algorithms without a threshold
  bool of_learner;  // "-" until the learner has answered
  std::string (*cell)(const v1::MemberProgress& member);
};

std::string Decimals(double value, int decimals) {
  return std::isnan(value) ? "-" : absl::StrFormat("%.*f", decimals, value);
}

// The most important ones come first.
constexpr MemberColumn kMemberColumns[] = {
    {"member", 6, false, false, [](const v1::MemberProgress& m) { return absl::StrCat(m.member()); }},
    {"state", 9, false, true, [](const v1::MemberProgress& m) { return m.status(); }},
    {"steps", 11, false, false, [](const v1::MemberProgress& m) { return FormatCount(m.env_steps()); }},
    {"eval J", 9, false, true, [](const v1::MemberProgress& m) { return Decimals(m.eval_discounted_return(), 3); }},
    {"eval cost", 9, false, true, [](const v1::MemberProgress& m) { return Decimals(m.eval_sum_cost(), 2); }},
    {"cost", 9, false, true, [](const v1::MemberProgress& m) { return Decimals(m.train_sum_cost(), 2); }},
    {"return", 9, false, true, [](const v1::MemberProgress& m) { return Decimals(m.train_return(), 2); }},
    {"violation", 9, false, true, [](const v1::MemberProgress& m) { return Decimals(m.train_max_violation(), 3); }},
    {"violating", 9, false, true, [](const v1::MemberProgress& m) { return Decimals(m.train_violating_steps(), 0); }},
    {"delta", 9, true, true, [](const v1::MemberProgress& m) { return Decimals(m.delta(), 4); }},
    {"epoch", 6, false, true, [](const v1::MemberProgress& m) { return absl::StrCat(m.epoch()); }},
    {"alpha", 8, false, true, [](const v1::MemberProgress& m) { return Decimals(m.alpha(), 4); }},
    {"seed", 6, false, true, [](const v1::MemberProgress& m) { return absl::StrCat(m.seed()); }},
    {"delta steps", 11, true, true, [](const v1::MemberProgress& m) { return FormatCount(m.delta_steps()); }},
};

// The heading, or a member's cells, of the columns that fit; nothing for what does not.
std::string MemberLine(const ProgressView& view, const v1::MemberProgress* member, int width) {
  std::string line;
  for (const MemberColumn& column : kMemberColumns) {
    const int end = Columns(line) + (line.empty() ? 0 : 1) + column.width;
    if (width > 0 && end > width) break;
    std::string cell = column.heading;
    if (member != nullptr) {
      const bool unknown = (column.of_delta && !view.learns_delta) || (column.of_learner && !view.learner_known);
      cell = unknown ? "-" : column.cell(*member);
    }
    absl::StrAppendFormat(&line, "%s%*s", line.empty() ? "" : " ", column.width, cell);
  }
  return line + "\n";
}

// ", pre-training update 1,200 of 5,000" during pre-training, else empty.
std::string Pretraining(const ProgressView& view, const std::string& separator) {
  if (view.learner.pretrain_update() >= view.learner.pretrain_target()) return "";
  return absl::StrCat(separator, "pre-training update ", FormatCount(view.learner.pretrain_update()), " of ",
                      FormatCount(view.learner.pretrain_target()));
}

}  // namespace

ProgressView MakeProgress(const std::optional<v1::ReplayInfo>& replay, const std::optional<v1::LearnerInfo>& learner) {
  ProgressView view;
  view.learner_known = learner.has_value();
  view.learner.set_phase("starting");
  if (learner) view.learner = *learner;
  if (!replay) return view;
  view.steps_per_second = replay->rows_per_second();
  if (view.learner.waiting_for().empty() && replay->waits_size() > 0) view.learner.set_waiting_for(replay->waits(0));
  auto& members = *view.learner.mutable_members();
  for (const v1::MemberInfo& from : replay->members()) {
    const auto known = std::find_if(members.begin(), members.end(), [&from](const v1::MemberProgress& member) {
      return member.member() == from.member();
    });
    v1::MemberProgress* const member = known == members.end() ? members.Add() : &*known;
    member->set_member(from.member());
    member->set_env_steps(std::max<uint64_t>(member->env_steps(), from.inserted()));
    member->set_episodes(std::max<uint64_t>(member->episodes(), from.episodes()));
    view.goal_steps = std::max<uint64_t>(view.goal_steps, from.env_steps());
  }
  return view;
}

double FractionDone(const ProgressView& view) {
  double fraction = 1;
  if (view.goal_steps > 0) fraction = std::min(fraction, static_cast<double>(SlowestSteps(view)) / view.goal_steps);
  if (view.learner.target_update() > 0)
    fraction = std::min(fraction, static_cast<double>(view.learner.update()) / view.learner.target_update());
  return KnowsGoal(view) ? fraction : 0;
}

std::optional<double> EtaSeconds(const ProgressView& view) {
  double seconds = -1;
  const uint64_t slowest = SlowestSteps(view);
  // Rows that have all come say nothing of the updates that are left.
  const bool rows_count = view.goal_steps > slowest || view.learner.update() >= view.learner.target_update();
  if (view.steps_per_second > 0 && view.goal_steps > 0 && rows_count) {
    const double left = view.goal_steps > slowest ? static_cast<double>(view.goal_steps - slowest) : 0;
    seconds = left * view.learner.members().size() / view.steps_per_second;
  }
  const v1::LearnerInfo& learner = view.learner;
  if (learner.updates_per_second() > 0 && learner.target_update() >= learner.update()) {
    const uint64_t left =
        learner.target_update() - learner.update() + learner.pretrain_target() - learner.pretrain_update();
    seconds = std::max(seconds, static_cast<double>(left) / learner.updates_per_second());
  }
  if (seconds < 0) return std::nullopt;
  return seconds;
}

std::string FormatDuration(double seconds) {
  const int64_t all = std::llround(std::max(0.0, seconds));
  const int64_t hours = all / 3600;
  return hours > 0 ? absl::StrFormat("%d:%02d:%02d", hours, all / 60 % 60, all % 60)
                   : absl::StrFormat("%02d:%02d", all / 60, all % 60);
}

std::string FormatCount(uint64_t value) {
  std::string text;
  const std::string digits = absl::StrCat(value);
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text.push_back(',');
    text.push_back(digits[i]);
  }
  return text;
}

std::string RepeatedWork(uint64_t repeated, uint64_t done, uint32_t incarnation) {
  if (incarnation < 2) return "";
  return absl::StrFormat("work repeated: %s update%s (%.1f %%) in %s restart%s of the learner\n", FormatCount(repeated),
                         repeated == 1 ? "" : "s", 100 * RepeatedShare(repeated, done), FormatCount(incarnation - 1),
                         incarnation == 2 ? "" : "s");
}

std::string RenderTable(const ProgressView& view, int width, int max_members, bool wrap) {
  const auto fit = [&](const std::string& line) {
    return wrap ? WrapLines(line + "\n", width) : Clip(line, width) + "\n";
  };
  const v1::LearnerInfo& learner = view.learner;
  std::string text = fit(view.title);
  const double fraction = FractionDone(view);
  const std::string share = KnowsGoal(view) ? absl::StrFormat(" %5.1f %%", 100 * fraction) : "";
  const std::string facts =
      absl::StrFormat("%s  elapsed %s  ETA %s", share, FormatDuration(view.elapsed_seconds), Eta(view));
  const int room = width == 0 ? 40 : std::clamp(width - Columns(facts), 8, 40);
  text += fit(Bar(fraction, room) + facts);
  std::string rates = absl::StrCat(Phase(view), ": ");
  if (KnowsGoal(view)) {
    absl::StrAppendFormat(&rates, "%.0f steps/s, %s, ", view.steps_per_second, UpdateRate(view));
  }
  if (learner.target_update() > 0 && !(KnowsGoal(view) && UpdatesAreEpochs(view))) {
    absl::StrAppend(&rates, "update ", FormatCount(learner.update()), " of ", FormatCount(learner.target_update()),
                    ", ");
  }
  absl::StrAppend(&rates, view.actors, view.actors == 1 ? " actor" : " actors");
  rates += Pretraining(view, ", ");
  if (learner.repeated_updates() > 0)
    absl::StrAppend(&rates, ", ", FormatCount(learner.repeated_updates()), " repeated");
  if (learner.pending_evaluations() > 0)
    absl::StrAppend(&rates, ", ", learner.pending_evaluations(), " evaluations pending");
  if (view.restarts > 0) absl::StrAppend(&rates, ", ", view.restarts, " restarts");
  text += fit(rates);
  if (const std::string waiting = Waiting(view); !waiting.empty()) text += fit("waiting: " + waiting);
  if (learner.members().empty()) return ForTerminal(text);
  text += MemberLine(view, nullptr, width);
  const int shown = std::min(learner.members_size(), max_members);
  for (int i = 0; i < shown; ++i) text += MemberLine(view, &learner.members(i), width);
  if (shown < learner.members_size()) {
    const int hidden = learner.members_size() - shown;
    text += fit(absl::StrCat("and ", hidden, hidden == 1 ? " more member" : " more members"));
  }
  return ForTerminal(text);  // a service at the address in a stranger's folder may say anything
}

nlohmann::json ProgressJson(const ProgressView& view) {
  const std::optional<double> eta = EtaSeconds(view);
  const v1::LearnerInfo& learner = view.learner;
  nlohmann::json json = {{"state", Phase(view)},
                         {"waiting", Waiting(view)},
                         {"done", FractionDone(view)},
                         {"env_steps", SlowestSteps(view)},
                         {"goal_steps", view.goal_steps},
                         {"update", learner.update()},
                         {"target_update", learner.target_update()},
                         {"pretrain_update", learner.pretrain_update()},
                         {"pretrain_target", learner.pretrain_target()},
                         {"repeated_updates", learner.repeated_updates()},
                         {"steps_per_second", view.steps_per_second},
                         {"updates_per_second", learner.updates_per_second()},
                         {"elapsed_seconds", view.elapsed_seconds},
                         {"eta_seconds", eta ? nlohmann::json(*eta) : nlohmann::json(nullptr)},
                         {"actors", view.actors},
                         {"restarts", view.restarts},
                         {"pending_evaluations", learner.pending_evaluations()},
                         {"members", nlohmann::json::array()}};
  for (const v1::MemberProgress& member : learner.members()) {
    nlohmann::json one = MessageJson(member);
    if (!view.learner_known) one = {{"member", one["member"]}, {"env_steps", one["env_steps"]}};
    json["members"].push_back(std::move(one));
  }
  return json;
}

std::string RenderLine(const ProgressView& view) {
  std::string line = FormatDuration(view.elapsed_seconds);
  if (KnowsGoal(view)) {
    absl::StrAppendFormat(&line, "  %5.1f %%  %s steps/member  %.0f steps/s  %s  ETA %s", 100 * FractionDone(view),
                          FormatCount(SlowestSteps(view)), view.steps_per_second, UpdateRate(view), Eta(view));
  }
  if (view.learner_known) {
    absl::StrAppendFormat(
        &line, "  return %.2f  violation %.3f  cost %.2f  violating steps %.0f",
        Mean(view, &v1::MemberProgress::train_return), Mean(view, &v1::MemberProgress::train_max_violation),
        Mean(view, &v1::MemberProgress::train_sum_cost), Mean(view, &v1::MemberProgress::train_violating_steps));
  }
  if (view.learner_known && view.learns_delta)
    absl::StrAppendFormat(&line, "  delta %.4f", Mean(view, &v1::MemberProgress::delta));
  const std::string phase = Phase(view), pretraining = Pretraining(view, "  "), waiting = Waiting(view);
  // What follows names these two.
  const bool named = phase == "waiting" || (phase == "pre-training" && !pretraining.empty());
  if (!named) absl::StrAppend(&line, "  ", phase);
  line += pretraining;
  for (const char* trouble : {"diverged", "runaway", "abandoned", "locked"}) {
    const int members =
        std::count_if(view.learner.members().begin(), view.learner.members().end(),
                      [trouble](const v1::MemberProgress& member) { return member.status() == trouble; });
    if (members > 0) absl::StrAppend(&line, "  ", members, " ", trouble);
  }
  if (!waiting.empty()) absl::StrAppend(&line, "  waiting: ", waiting);
  return line;
}

std::vector<std::string> OtherWaits(const ProgressView& view, const v1::ReplayInfo& replay) {
  std::vector<std::string> waits;
  const std::string& told = view.learner.waiting_for();
  for (const std::string& wait : replay.waits()) {
    // The learner may have heard a second ago of the same rows.
    const bool same = wait == told || (IsForRows(wait) && IsForRows(told));
    if (!same && !IsNormalWork(view, wait)) waits.push_back(wait);
  }
  return waits;
}

std::string LiveBlock::Redraw(const std::string& block) {
  std::string out;
  if (lines_ > 0) absl::StrAppend(&out, "\x1b[", lines_, "A");
  out += "\x1b[J" + block;
  lines_ = std::count(block.begin(), block.end(), '\n');
  return out;
}

std::string LiveBlock::PrintAbove(const std::string& text) { return Redraw("") + text; }

}  // namespace datacom::cli
// SPDX-License-Identifier: Apache-2.0

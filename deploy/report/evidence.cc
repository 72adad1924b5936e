#include "deploy/report/evidence.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/files.h"
#include "common/base/status.h"
#include "common/base/version.h"
#include "common/records/csv.h"
#include "deploy/report/colours.h"
#include "deploy/report/groups.h"
#include "deploy/report/statistics.h"
#include "deploy/report/template.h"

namespace datacom::report {
namespace {

namespace fs = std::filesystem;

constexpr size_t kLastEpochs = 5;  // evaluated epochs of which tables and points show the mean

// A row of entries.csv, with the runs that exist of it.
struct Entry {
  std::string verb, name, seeds, title;
  uint64_t steps = 0;
  std::vector<Run> runs;
  bool complete = false;  // every population has records of all its steps
  bool sweep() const { return verb == "sweep"; }
  std::string task() const { return name.substr(0, name.find('/')); }
};

std::string Escaped(absl::string_view text) {
  return absl::StrReplaceAll(text, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}});
}

absl::StatusOr<std::vector<Entry>> ReadEntries(const std::string& results) {
  const std::string path = (fs::path(results) / "entries.csv").string();
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  std::vector<Entry> entries;
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    if (absl::StartsWith(line, "verb,")) continue;
    const std::vector<std::string> cells = absl::StrSplit(line, absl::MaxSplits(',', 4));  // a title may have commas
    Entry entry;
    if (cells.size() != 5 || !absl::SimpleAtoi(cells[3], &entry.steps) || !absl::StrContains(cells[1], '/')) {
      return absl::InvalidArgumentError(absl::StrCat(path, ": \"", line, "\" is not verb,name,seeds,steps,title"));
    }
    entry.verb = cells[0], entry.name = cells[1], entry.seeds = cells[2];
    absl::string_view title = absl::StripAsciiWhitespace(cells[4]);
    if (absl::ConsumePrefix(&title, "\"")) absl::ConsumeSuffix(&title, "\"");
    entry.title = std::string(title);
    entries.push_back(std::move(entry));
  }
  return entries;
}

double Last(const RunMember& member, const std::string& column) {
  return member.run->progress.Number(member.rows.back(), column);
}

bool HaveAllSteps(const std::vector<Run>& runs, uint64_t steps) {
  const std::vector<Group> groups = GroupRuns(runs);
  return std::all_of(groups.begin(), groups.end(), [&](const Group& group) {
    return std::all_of(group.members.begin(), group.members.end(), [&](const RunMember& member) {
      return Last(member, "env_steps") >= static_cast<double>(steps);
    });
  });
}

// The runs of an entry that have records; none if the folder does not exist.
absl::Status ReadRunsOf(const std::string& results, Entry* entry) {
  const std::string folder = (fs::path(results) / entry->name).string();
  if (!fs::exists(folder)) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::vector<std::string> folders, RunFolders(folder));
  entry->complete = true;
  for (const std::string& run : folders) {
    const std::string progress = run + "/progress.csv";
    if (!FileExists(progress) && !FileExists(progress + ".gz")) {
      entry->complete = false;
      continue;
    }
    ASSIGN_OR_RETURN(std::vector<Run> read, ReadRuns({run}));
    entry->complete &= HaveAllSteps(read, entry->steps);
    entry->runs.push_back(std::move(read[0]));
  }
  return absl::OkStatus();
}

// Mean of a column over a member's last evaluated epochs, without cells that have no number; NaN without any.
double AtEnd(const RunMember& member, const std::string& column) {
  const Csv& progress = member.run->progress;
  double sum = 0;
  size_t count = 0;
  for (auto row = member.rows.rbegin(); row != member.rows.rend() && count < kLastEpochs; ++row) {
    const double value = progress.Number(*row, column);
    if (!(progress.Number(*row, "eval_episodes") > 0) || !std::isfinite(value)) continue;
    sum += value;
    ++count;
  }
  return count > 0 ? sum / static_cast<double>(count) : std::numeric_limits<double>::quiet_NaN();
}

// Sum of a column, a mean over an epoch's training episodes, over all training episodes.
double InTraining(const RunMember& member, const std::string& column) {
  const Csv& progress = member.run->progress;
  double sum = 0;
  for (const size_t row : member.rows) {
    const double episodes = progress.Number(row, "train_episodes");
    if (episodes > 0) sum += episodes * progress.Number(row, column);
  }
  return sum;
}

template <typename Value>
Interval Over(const Group& group, Value value) {
  std::vector<double> values;
  for (const RunMember& member : group.members) values.push_back(value(member));
  return MeanInterval(values);
}

// "1,234,567".
std::string WithCommas(double value) {
  const std::string digits = absl::StrFormat("%.0f", std::abs(value));
  std::string text = value < -0.5 ? "-" : "";
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text.push_back(',');
    text.push_back(digits[i]);
  }
  return text;
}

std::string Number(double value) {
  if (std::abs(value) >= 100) return WithCommas(value);
  return std::abs(value) >= 1 ? absl::StrFormat("%.2f", value) : absl::StrFormat("%.3g", value);
}

std::string Cell(const Interval& interval) {
  if (interval.count == 0) return "<td>-</td>";
  const std::string half =
      interval.count > 1 ? absl::StrCat(" <span class=\"half\">&plusmn; ", Number(interval.half), "</span>") : "";
  return absl::StrCat("<td>", Number(interval.mean), half, "</td>");
}

std::string RevisionOf(const Run& run) {
  for (const absl::string_view line : absl::StrSplit(run.build, '\n')) {
    if (absl::StartsWith(line, "revision ")) return std::string(line.substr(9));
  }
  return "not recorded";
}

std::string SeedsOf(const Group& group) {
  const auto diverged = std::count_if(group.members.begin(), group.members.end(), [](const RunMember& member) {
    return member.run->progress.Text(member.rows.back(), "status") == "diverged";
  });
  return absl::StrCat(group.members.size(), diverged > 0 ? absl::StrCat(" (", diverged, " diverged)") : "");
}

std::string Table(const std::string& first, const std::vector<Group>& groups,
                  const std::vector<std::string>& commands) {
  std::string html = absl::StrCat(
                  "<div class=\"wide\"><table><tr><th>", first,
                  "</th><th>steps</th><th>seeds</th><th>discounted return J</th><th>cost of an episode</th><th>largest "
                  "violation</th>"
                  "<th>success</th><th>cost in training, a seed</th><th>hours</th></tr>\n"),
              repeats;
  for (size_t i = 0; i < groups.size(); ++i) {
    const Group& group = groups[i];
    double steps = std::numeric_limits<double>::infinity(), seconds = 0;
    for (const RunMember& member : group.members) {
      steps = std::min(steps, Last(member, "env_steps"));
      seconds = std::max(seconds, Last(member, "wall_seconds"));
    }
    absl::StrAppend(&html, "<tr><td>", Escaped(group.title), "</td><td>", WithCommas(steps), "</td><td>",
                    SeedsOf(group), "</td>");
    for (const char* column : {"eval_discounted_return", "eval_sum_cost", "eval_max_violation", "eval_success_rate"}) {
      html += Cell(Over(group, [&](const RunMember& member) { return AtEnd(member, column); }));
    }
    html += Cell(Over(group, [](const RunMember& member) { return InTraining(member, "train_sum_cost"); }));
    absl::StrAppend(&html, "<td>", absl::StrFormat("%.1f", seconds / 3600), "</td></tr>\n");
    const std::string repeat = absl::StrCat("<li><code>", Escaped(commands[i]), "</code>, revision ",
                                            Escaped(RevisionOf(group.run())), "</li>\n");
    if (!absl::StrContains(repeats, repeat)) repeats += repeat;
  }
  return absl::StrCat(html, "</table></div>\n<ul class=\"soft small\">\n", repeats, "</ul>\n");
}

// The four quantities of the paper's figures; without a success rate where no method has ever one.
std::vector<PanelOf> PanelsFor(const std::vector<Group>& groups) {
  std::vector<PanelOf> panels = {
      {"eval_discounted_return", "Discounted return J", false},
      {"eval_sum_cost", "Cost of an episode (0 is at the lower edge)", true, INFINITY, true},
      {"eval_max_violation", "Largest violation of an episode (0 is at the lower edge)", true, INFINITY, true}};
  const bool succeeds = std::any_of(groups.begin(), groups.end(), [](const Group& group) {
    return std::any_of(group.members.begin(), group.members.end(),
                       [](const RunMember& member) { return AtEnd(member, "eval_success_rate") > 0; });
  });
  if (succeeds) panels.push_back({"eval_success_rate", "Share of episodes with success", true, 1});
  return panels;
}

std::string Points(const std::vector<Group>& groups) {
  const std::vector<Look> looks = LooksOf(groups);
  std::vector<GroupPoint> points;
  std::set<double> budgets;  // of D-ATACOM; a line only if there is one
  for (size_t i = 0; i < groups.size(); ++i) {
    GroupPoint point{groups[i].title, looks[i].colour, {}, {}};
    point.x = Over(groups[i], [](const RunMember& member) { return AtEnd(member, "eval_sum_cost"); });
    point.y = Over(groups[i], [](const RunMember& member) { return AtEnd(member, "eval_discounted_return"); });
    if (point.x.count > 0 && point.y.count > 0) points.push_back(point);
    if (groups[i].run().algorithm == "datacom") budgets.insert(groups[i].run().members[0].cost_budget);
  }
  if (points.empty()) return "";
  const double budget = budgets.size() == 1 ? *budgets.begin() : std::numeric_limits<double>::quiet_NaN();
  return RenderPoints(points, "cost of an evaluation episode at the end", "discounted return J at the end", budget);
}

class Page {
 public:
  Page(std::string results, const EvidenceOptions& options) : results_(std::move(results)), options_(options) {}

  absl::Status Add(const std::string& task, const std::vector<Entry>& entries) {
    absl::StrAppend(&body_, "<h2 id=\"", Escaped(task), "\">", Escaped(task), "</h2>\n");
    std::vector<Group> groups;
    std::vector<std::string> commands;
    for (const Entry& entry : entries) {
      if (entry.sweep() || entry.runs.empty()) continue;
      for (Group& group : GroupRuns(entry.runs)) {
        group.title = entry.title;
        groups.push_back(std::move(group));
        commands.push_back("deploy/dev/reproduce " + entry.name);
      }
    }
    if (groups.empty()) {
      body_ += "<p>No method has been trained yet.</p>\n";
    } else {
      const std::string curves = RenderPanels(groups, PanelsFor(groups), options_.centre);
      if (!options_.figures.empty()) {
        RETURN_IF_ERROR(WriteFileAtomically(absl::StrCat(options_.figures, "/", task, ".svg"), curves));
      }
      absl::StrAppend(
          &body_, "<figure><figcaption>Evaluations over the training</figcaption>", curves, "</figure>\n",
          Table("method", groups, commands),
          "<figure><figcaption>Return against cost, at the end (a cost of 0 is at the left edge)</figcaption>",
          Points(groups), "</figure>\n");
      RETURN_IF_ERROR(AddPictures(entries));
    }
    for (const Entry& entry : entries) {
      if (entry.sweep() && !entry.runs.empty()) AddSweep(entry);
    }
    return absl::OkStatus();
  }

  void AddMissing(const std::vector<Entry>& entries) {
    body_ += "<h2 id=\"missing\">Not trained yet, or not to the end</h2>\n<ul>\n";
    size_t missing = 0;
    for (const Entry& entry : entries) {
      if (entry.complete) continue;
      ++missing;
      absl::StrAppend(&body_, "<li>", Escaped(entry.title), " (<code>", Escaped(entry.name), "</code>): seeds ",
                      entry.seeds, ", ", entry.steps, " steps</li>\n");
    }
    body_ += missing == 0 ? "<li>Nothing: every entry has records.</li></ul>\n" : "</ul>\n";
  }

  std::string Whole(const std::vector<std::string>& tasks) const {
    std::string links;
    for (const std::string& task : tasks) {
      absl::StrAppend(&links, "<a href=\"#", Escaped(task), "\">", Escaped(task), "</a> &middot; ");
    }
    const bool mean = options_.centre == Centre::kMean;
    return absl::StrCat(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
        "content=\"width=device-width, initial-scale=1\">\n<title>Results</title>\n<style>\n",
        kStyle, "</style>\n</head>\n<body>\n<header>\n<h1>Results</h1>\n<p id=\"subtitle\">Every entry of ",
        Escaped(results_), "/entries.csv. Lines are the ", mean ? "mean" : "interquartile mean",
        " over the seeds, bands its 95 % interval (", mean ? "Student's t" : "bootstrap",
        "). Tables and points have the mean of the last five evaluated epochs of each seed, &plusmn; the half width of "
        "its "
        "95 % interval over the seeds. Hours are of all seeds together, and upper bounds where other work ran beside "
        "them.</p>\n<p>",
        links, "<a href=\"#missing\">not trained yet</a></p>\n</header>\n<main>\n", body_,
        "</main>\n<footer><p>datacom ", Version(), " (", Revision(), ")</p></footer>\n</body>\n</html>\n");
  }

 private:
  void AddSweep(const Entry& entry) {
    const std::vector<Group> groups = GroupRuns(entry.runs);
    const std::vector<std::string> commands(groups.size(), "deploy/dev/reproduce " + entry.name);
    absl::StrAppend(&body_, "<h3>", Escaped(entry.title), "</h3>\n<figure>",
                    RenderPanels(groups, PanelsFor(groups), options_.centre), "</figure>\n",
                    Table("setting", groups, commands));
  }

  // Pictures of every entry: films and map of its policies, and its largest violations.
  absl::Status AddPictures(const std::vector<Entry>& entries) {
    for (const Entry& entry : entries) {
      if (entry.sweep() || entry.runs.empty()) continue;
      RETURN_IF_ERROR(AddPolicies(entry));
      RETURN_IF_ERROR(AddViolations(entry));
    }
    return absl::OkStatus();
  }

  // An episode of the best and of the worst seed by J at the end, and what the best has learned of the constraint.
  absl::Status AddPolicies(const Entry& entry) {
    const std::vector<Group> groups = GroupRuns(entry.runs);
    const auto gain = [](const RunMember& member) {
      const double J = AtEnd(member, "eval_discounted_return");
      return std::isnan(J) ? -std::numeric_limits<double>::infinity() : J;
    };
    const auto less = [&](const RunMember& a, const RunMember& b) { return gain(a) < gain(b); };
    const auto [worst, best] = std::minmax_element(groups[0].members.begin(), groups[0].members.end(), less);
    for (const auto& [member, which] : {std::pair(best, "best"), std::pair(worst, "worst")}) {
      RETURN_IF_ERROR(AddPicture(
          options_.film, entry, static_cast<uint64_t>(member->member),
          absl::StrCat(which, " seed (member ", member->member, "): frames of an episode of its last policy")));
      if (best == worst) break;
    }
    if (!absl::StrContains(groups[0].run().algorithm, "datacom")) return absl::OkStatus();
    return AddPicture(options_.map, entry, static_cast<uint64_t>(best->member),
                      absl::StrCat("best seed (member ", best->member, "): its learned constraint at the end"));
  }

  // The largest violations of training, if the entry has kept them.
  absl::Status AddViolations(const Entry& entry) {
    const std::string path = entry.runs[0].folder + "/ledger/violations.csv";
    if (options_.violation == nullptr || !FileExists(path)) return absl::OkStatus();
    ASSIGN_OR_RETURN(const Csv violations, Csv::Read(path));
    absl::StrAppend(&body_, "<details><summary>", Escaped(entry.title), ": the ", violations.rows(),
                    " largest violations of its training</summary>\n");
    for (size_t row = 0; row < violations.rows(); ++row) {
      const auto text = [&](const char* column) { return violations.Text(row, column); };
      RETURN_IF_ERROR(
          AddPicture(options_.violation, entry, row + 1,
                     absl::StrCat("cost ", text("cost"), " in step ", text("env_steps"), " of seed ", text("seed"),
                                  " (datacom replay-violation results:", entry.name, " ", row + 1, ")")));
    }
    body_ += "</details>\n";
    return absl::OkStatus();
  }

  // A figure with the picture. What cannot be drawn is said in its place: on another processor a violation may differ
  // from its record in the last bits.
  absl::Status AddPicture(const PictureMaker& make, const Entry& entry, uint64_t number, const std::string& caption) {
    if (make == nullptr) return absl::OkStatus();
    const std::string png =
        (fs::temp_directory_path() / absl::StrCat("datacom-evidence-", ::getpid(), ".png")).string();
    const absl::Status made = make(entry.runs[0].folder, number, png);
    if (absl::IsNotFound(made)) return absl::OkStatus();
    absl::StrAppend(&body_, "<figure><figcaption>", Escaped(entry.title), ", ", Escaped(caption), "</figcaption>");
    if (made.ok()) {
      ASSIGN_OR_RETURN(const std::string picture, ReadFile(png));
      fs::remove(png);
      absl::StrAppend(&body_, "<img alt=\"", Escaped(caption),
                      "\" style=\"max-width:100%\" src=\"data:image/png;base64,", absl::Base64Escape(picture), "\">");
    } else {
      absl::StrAppend(&body_, "<p class=\"soft\">No picture: ", Escaped(made.message()), "</p>");
    }
    body_ += "</figure>\n";
    return absl::OkStatus();
  }

  const std::string results_;
  const EvidenceOptions& options_;
  std::string body_;
};

}  // namespace

absl::Status WriteEvidence(const std::string& results, const std::string& path, const EvidenceOptions& options) {
  absl::StatusOr<std::vector<Entry>> entries = ReadEntries(results);
  if (!entries.ok()) return Annotate(entries.status(), "--results");
  std::vector<std::string> tasks;
  std::map<std::string, std::vector<Entry>> by_task;
  bool any = false;
  for (Entry& entry : *entries) {
    RETURN_IF_ERROR(ReadRunsOf(results, &entry));
    any |= !entry.runs.empty();
    if (!by_task.contains(entry.task())) tasks.push_back(entry.task());
    by_task[entry.task()].push_back(entry);
  }
  if (!any)
    return absl::NotFoundError(absl::StrCat("--results ", results, ": no entry of its entries.csv has records"));
  if (!options.figures.empty()) RETURN_IF_ERROR(MakeFolders(options.figures));
  Page page(results, options);
  for (const std::string& task : tasks) RETURN_IF_ERROR(page.Add(task, by_task[task]));
  page.AddMissing(*entries);
  return WriteFileAtomically(path, page.Whole(tasks));
}

}  // namespace datacom::report
// SPDX-License-Identifier: Apache-2.0

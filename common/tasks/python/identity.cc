#include "common/tasks/python/identity.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "common/base/log.h"

namespace datacom::python {
namespace {

constexpr double kTolerance = 1e-6;

std::string Digits(double number) { return absl::StrFormat("%.9g", number); }

template <typename List>
std::string Joined(const List& list) {
  return list.empty() ? "none" : absl::StrJoin(list, ", ");
}

// A version without what does not count: "python 3.11" of "python 3.11.2".
std::string Counting(const std::string& version) {
  if (!absl::StartsWith(version, "python ")) return version;
  return version.substr(0, version.rfind('.'));
}

// Lines "numpy 2.1.0" by their first word.
std::map<std::string, std::string> Versions(const v1::PythonIdentity& identity) {
  std::map<std::string, std::string> versions;
  for (const std::string& version : identity.version()) {
    const std::string counting = Counting(version);
    const size_t space = std::min(counting.find(' '), counting.size());
    versions[counting.substr(0, space)] = counting.substr(std::min(space + 1, counting.size()));
  }
  return versions;
}

std::map<std::string, std::string> Files(const v1::PythonIdentity& identity) {
  std::map<std::string, std::string> files;
  for (const v1::PythonFile& file : identity.file()) files[file.name()] = file.sha256();
  return files;
}

// Whether they are two names in one folder of one file, as python and python3 of a virtual environment.
bool SameInterpreter(const std::filesystem::path& run, const std::filesystem::path& now) {
  std::error_code error;
  return std::filesystem::equivalent(run.parent_path(), now.parent_path(), error) &&
         std::filesystem::equivalent(run, now, error);
}

class Comparison {
 public:
  void Text(absl::string_view what, absl::string_view run, absl::string_view now) {
    if (run != now) found_.push_back(absl::StrCat(what, " ", run, " -> ", now));
  }
  void Size(absl::string_view what, uint32_t run, uint32_t now) { Text(what, absl::StrCat(run), absl::StrCat(now)); }

  // The first number that differs.
  void Seen(absl::string_view what, const google::protobuf::RepeatedField<double>& run,
            const google::protobuf::RepeatedField<double>& now) {
    if (run.size() != now.size()) {
      found_.push_back(absl::StrCat("the first look has ", run.size(), " -> ", now.size(), " numbers of ", what));
      return;
    }
    for (int i = 0; i < run.size(); ++i) {
      if (std::abs(run[i] - now[i]) <= kTolerance * std::max({1.0, std::abs(run[i]), std::abs(now[i])})) continue;
      found_.push_back(absl::StrCat(what, " after the same seed and actions ", Digits(run[i]), " -> ", Digits(now[i])));
      return;
    }
  }

  // Entries by name: "file base_env.py changed".
  void Files(const std::map<std::string, std::string>& run, const std::map<std::string, std::string>& now) {
    for (const auto& [name, sha256] : run) {
      const auto other = now.find(name);
      if (other == now.end()) {
        found_.push_back(absl::StrCat("file ", name, " not used any more"));
      } else if (other->second != sha256) {
        found_.push_back(absl::StrCat("file ", name, " changed"));
      }
    }
    // Earlier versions did not record the packages below the library of an interpreter.
    const auto of_packages = [](const auto& file) { return absl::StartsWith(file.first, "site-packages/"); };
    const bool recorded = std::any_of(run.begin(), run.end(), of_packages);
    for (const auto& file : now) {
      if (run.count(file.first) == 0 && (recorded || !of_packages(file))) {
        found_.push_back(absl::StrCat("file ", file.first, " new"));
      }
    }
  }

  void Versions(const std::map<std::string, std::string>& run, std::map<std::string, std::string> now) {
    for (const auto& [name, version] : run) {
      Text(name, version, now.emplace(name, "none").first->second);
      now.erase(name);
    }
    for (const auto& [name, version] : now) Text(name, "none", version);
  }

  std::vector<std::string> found() && { return std::move(found_); }

 private:
  std::vector<std::string> found_;
};

// Sizes on which rows and policies depend: no user can accept others.
std::vector<std::string> SizeDifferences(const v1::PythonTask& run, const v1::PythonTask& now) {
  Comparison compare;
  compare.Size("numbers of an observation", run.observation(), now.observation());
  compare.Size("numbers of an action", static_cast<uint32_t>(run.action_low_size()),
               static_cast<uint32_t>(now.action_low_size()));
  // An info may have them in any order, as from a set of Python; the run's rows keep theirs.
  const auto sorted = [](const auto& names) { return std::set<std::string>(names.begin(), names.end()); };
  compare.Text("named costs", Joined(sorted(run.cost())), Joined(sorted(now.cost())));
  compare.Size("numbers of q", run.q(), now.q());
  compare.Size("numbers of x", run.x(), now.x());
  return std::move(compare).found();
}

}  // namespace

std::vector<std::string> Differences(const v1::PythonTask& run, const v1::PythonTask& now) {
  std::vector<std::string> found = SizeDifferences(run, now);
  Comparison compare;
  const v1::PythonIdentity &before = run.identity(), &after = now.identity();
  const auto given = [](bool is, double value) { return is ? Digits(value) : std::string("none"); };
  compare.Text("time limit", given(run.has_horizon(), run.horizon()), given(now.has_horizon(), now.horizon()));
  compare.Text("control period", given(run.has_control_dt(), run.control_dt()),
               given(now.has_control_dt(), now.control_dt()));
  compare.Text("lower bounds of actions", Joined(run.action_low()), Joined(now.action_low()));
  compare.Text("upper bounds of actions", Joined(run.action_high()), Joined(now.action_high()));
  compare.Text("names of observations", Joined(run.observation_name()), Joined(now.observation_name()));
  compare.Text("names of actions", Joined(run.action_name()), Joined(now.action_name()));
  if (run.has_identity()) {
    compare.Text("observation space", before.observation_space(), after.observation_space());
    compare.Text("action space", before.action_space(), after.action_space());
    compare.Text("repeatable", run.repeatable() ? "yes" : "no", now.repeatable() ? "yes" : "no");
    if (run.repeatable() && now.repeatable()) {
      compare.Seen("the observation", before.observation(), after.observation());
      compare.Seen("the reward", before.reward(), after.reward());
      compare.Seen("the cost", before.cost(), after.cost());
    }
    compare.Files(Files(before), Files(after));
    if (!SameInterpreter(before.interpreter(), after.interpreter())) {
      compare.Text("interpreter", before.interpreter(), after.interpreter());
    }
    compare.Versions(Versions(before), Versions(after));
  }
  for (std::string& one : std::move(compare).found()) found.push_back(std::move(one));
  return found;
}

absl::Status CheckSame(const v1::PythonTask& run, const v1::PythonTask& now) {
  const std::vector<std::string> differences = Differences(run, now);
  if (differences.empty()) return absl::OkStatus();
  const std::string text = absl::StrCat("the environment ", run.environment(),
                                        " is not the one of the run: ", absl::StrJoin(differences, ", "));
  if (!SizeDifferences(run, now).empty()) {
    return absl::InvalidArgumentError(absl::StrCat(text, "; the run's rows and policies do not fit: begin a new run"));
  }
  if (std::getenv(kAcceptEnvironment) == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat(text, "; to step it all the same, with the time limit, period, bounds and names of the run, add ",
                     "--accept-environment"));
  }
  spdlog::warn("{}; accepted", text);
  return absl::OkStatus();
}

std::vector<std::string> DescribeFacts(const v1::TaskOptions& options) {
  std::vector<std::string> lines;
  for (const std::string& fact : options.GetExtension(v1::python_task).fact()) {
    std::string line = "  " + fact;
    if (options.has_horizon() && absl::StartsWith(fact, "time limit:")) {
      absl::StrAppend(&line, "; task_options.horizon sets ", options.horizon(), " steps");
    }
    if (options.has_control_dt() && absl::StartsWith(fact, "control period:")) {
      absl::StrAppend(&line, "; task_options.control_dt sets ", options.control_dt(), " s");
    }
    lines.push_back(std::move(line));
  }
  if (!lines.empty()) lines.insert(lines.begin(), "what the environment states, and where:");
  return lines;
}

std::string CodeLine(const v1::PythonTask& task) {
  if (!task.has_identity()) return "";
  std::vector<std::string> parts = {task.environment()};
  for (const v1::PythonFile& file : task.identity().file()) {
    parts.push_back(absl::StrCat(file.name(), " ", file.sha256()));
  }
  parts.push_back(task.identity().interpreter());
  parts.insert(parts.end(), task.identity().version().begin(), task.identity().version().end());
  return absl::StrCat("environment ", absl::StrJoin(parts, ", "));
}

}  // namespace datacom::python
// SPDX-License-Identifier: Apache-2.0

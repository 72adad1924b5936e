#include "deploy/cli/sweep.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/files.h"
#include "common/base/status.h"
#include "common/config/algorithms.h"
#include "common/config/experiment.h"
#include "common/config/rules.h"
#include "common/config/task_files.h"
#include "common/tasks/task.h"
#include "deploy/cli/load_task.h"

namespace datacom::cli {
namespace {

constexpr int kMostMembers = 65536;
constexpr char kHyper[] = "hyper.";

std::string Path(const std::string& assignment) {
  return std::string(absl::StripAsciiWhitespace(assignment.substr(0, assignment.find('='))));
}

bool AssignsHyper(const std::string& assignment) { return absl::StartsWith(Path(assignment), kHyper); }

// Keeps letters, digits, "_", "-" and "."; writes "-" for every other character.
std::string FileName(const std::string& text) {
  std::string name;
  for (const char c : text) name.push_back(absl::ascii_isalnum(c) || c == '_' || c == '.' ? c : '-');
  return name;
}

std::string Place(const v1::Axis& axis, const v1::Point& point) {
  return absl::StrCat("axis \"", axis.name(), "\", point \"", point.label(), "\"");
}

// Refuses the paths that a sweep may not assign.
absl::Status CheckPath(const std::string& path) {
  if (path == "seed") return WrongField(path, "a sweep cannot set it; name seeds in `seeds`");
  if (path == "name" || path == "description")
    return WrongField(path, "a sweep cannot set it; each experiment has its own");
  if (absl::StartsWith(path, "members")) {
    return WrongField(path, "a sweep cannot set it; it makes its members from axes and seeds");
  }
  return absl::OkStatus();
}

// Remembers which part of the sweep assigns each path, and refuses a second one: their order would decide.
class Assignments {
 public:
  absl::Status Add(const std::string& assignment, const std::string& who) {
    const std::string path = Path(assignment);
    RETURN_IF_ERROR(CheckPath(path));
    const auto [it, fresh] = by_.emplace(path, who);
    if (fresh || it->second == who) return absl::OkStatus();
    return WrongField(path, absl::StrCat("is also assigned by ", it->second, "; assign it in one place"));
  }

 private:
  std::map<std::string, std::string> by_;
};

absl::Status CheckPoint(const v1::Axis& axis, const v1::Point& point, Assignments* assignments) {
  std::set<std::string> paths;
  for (const std::string& assignment : point.set()) {
    RETURN_IF_ERROR(assignments->Add(assignment, absl::StrCat("axis \"", axis.name(), "\"")));
    if (!paths.insert(Path(assignment)).second)
      return WrongField(Path(assignment), "is assigned twice; assign it once");
    v1::Experiment scratch;
    RETURN_IF_ERROR(ApplyOverride(assignment, &scratch));
  }
  return absl::OkStatus();
}

absl::Status CheckSweep(const v1::Sweep& sweep) {
  RETURN_IF_ERROR(CheckRules(sweep));
  if (sweep.experiments().empty()) return WrongField("experiments", "is empty; name at least one");
  Assignments assignments;
  for (const std::string& assignment : sweep.set()) RETURN_IF_ERROR(assignments.Add(assignment, "set"));
  std::set<std::string> axes;
  for (const v1::Axis& axis : sweep.axes()) {
    const std::string place = absl::StrCat("axis \"", axis.name(), "\"");
    if (!axes.insert(axis.name()).second) return WrongField(place, "another axis has this name; rename one");
    if (axis.points().empty()) return WrongField(place, "has no points; add at least one");
    std::set<std::string> labels;
    for (const v1::Point& point : axis.points()) {
      if (!labels.insert(point.label()).second) {
        return WrongField(Place(axis, point), "another point has this label; rename one");
      }
      RETURN_IF_ERROR(Annotate(CheckPoint(axis, point, &assignments), Place(axis, point)));
    }
  }
  return absl::OkStatus();
}

// One point on each of some axes: (axis, point), in the order of the axes.
using Choice = std::vector<std::pair<int, int>>;

// All choices of one point per given axis; the first axis varies slowest.
std::vector<Choice> Product(const v1::Sweep& sweep, const std::vector<int>& axes) {
  std::vector<Choice> all = {{}};
  for (const int axis : axes) {
    std::vector<Choice> longer;
    for (const Choice& choice : all) {
      for (int point = 0; point < sweep.axes(axis).points_size(); ++point) {
        longer.push_back(choice);
        longer.back().emplace_back(axis, point);
      }
    }
    all = std::move(longer);
  }
  return all;
}

// Refuses a sweep before anything is made of its axes, whose sizes multiply.
absl::Status CheckSize(const v1::Sweep& sweep, size_t experiments, size_t seeds) {
  auto members = static_cast<double>(experiments) * static_cast<double>(seeds);
  std::vector<std::string> sizes = {absl::StrCat(seeds, " seeds")};
  if (experiments > 1) sizes.push_back(absl::StrCat(experiments, " experiments"));
  for (const v1::Axis& axis : sweep.axes()) {
    members *= axis.points_size();
    sizes.push_back(absl::StrCat(axis.points_size(), " points of \"", axis.name(), "\""));
  }
  if (members <= kMostMembers) return absl::OkStatus();
  return WrongField("axes", absl::StrCat("their points make ", members, " members (", absl::StrJoin(sizes, " x "),
                                         "); at most ", kMostMembers, " are planned"));
}

class Expansion {
 public:
  explicit Expansion(const SweepInput& input)
      : sweep_(input.sweep), experiments_(input.experiments), network_(input.network) {
    layout_.actors = input.actors;
    layout_.environments = input.environments;
  }

  absl::StatusOr<std::vector<SweepRun>> Run() {
    RETURN_IF_ERROR(CheckTitle("name", sweep_.name()));
    RETURN_IF_ERROR(CheckSweep(sweep_));
    absl::StatusOr<std::vector<uint64_t>> seeds = ParseSeeds(sweep_.seeds());
    if (!seeds.ok()) return Annotate(seeds.status(), "seeds");
    seeds_ = *std::move(seeds);
    RETURN_IF_ERROR(CheckSize(sweep_, experiments_.size(), seeds_.size()));
    for (int axis = 0; axis < sweep_.axes_size(); ++axis) {
      (SplitsPopulation(sweep_.axes(axis)) ? splitting_ : inside_).push_back(axis);
    }
    for (const v1::Experiment& experiment : experiments_) {
      v1::Experiment base = experiment;
      const auto has_more = [](const v1::Member& member) { return member.has_hyper() || member.has_label(); };
      if (std::any_of(base.members().begin(), base.members().end(), has_more)) {
        return WrongField(base.name(),
                          "has members with more than a seed; remove them, a sweep makes members from axes and seeds");
      }
      base.clear_members();  // `config` writes a seed; the sweep has its own
      for (const std::string& assignment : sweep_.set()) {
        RETURN_IF_ERROR(Annotate(Assign(assignment, &base), "set"));
      }
      for (const Choice& choice : Product(sweep_, splitting_)) RETURN_IF_ERROR(AddPopulation(base, choice));
    }
    return std::move(populations_);
  }

 private:
  static bool SplitsPopulation(const v1::Axis& axis) {
    for (const v1::Point& point : axis.points()) {
      if (!std::all_of(point.set().begin(), point.set().end(), AssignsHyper)) return true;
    }
    return false;
  }

  const v1::Point& PointOf(const std::pair<int, int>& at) const { return sweep_.axes(at.first).points(at.second); }

  // "accepted risk 0.1, lr 1e-3", in the order of the axes; `otherwise` when there are none.
  std::string Label(Choice choice, const std::string& otherwise) const {
    std::sort(choice.begin(), choice.end());
    return choice.empty() ? otherwise : absl::StrJoin(choice, ", ", [this](std::string* out, const auto& at) {
      absl::StrAppend(out, sweep_.axes(at.first).name(), " ", PointOf(at).label());
    });
  }

  // Leaves out a setting that the experiment's algorithm does not read but another experiment's algorithm reads, so
  // that one axis can have the settings of several methods.
  absl::Status Assign(const std::string& assignment, v1::Experiment* experiment) const {
    v1::Experiment changed = *experiment;
    RETURN_IF_ERROR(ApplyOverride(assignment, &changed));
    const auto reads = [&](v1::Experiment other) {
      return ApplyOverride(assignment, &other).ok() && CheckSettingsAreRead(other).ok();
    };
    if (reads(*experiment) || std::none_of(experiments_.begin(), experiments_.end(), reads)) *experiment = changed;
    return absl::OkStatus();
  }

  absl::Status Apply(const Choice& choice, v1::Experiment* experiment) const {
    for (const auto& at : choice) {
      for (const std::string& assignment : PointOf(at).set()) {
        RETURN_IF_ERROR(Annotate(Assign(assignment, experiment), Place(sweep_.axes(at.first), PointOf(at))));
      }
    }
    return absl::OkStatus();
  }

  v1::Experiment Resolve(v1::Experiment experiment) const {
    if (network_) UseNetworkSchedule(&experiment);
    return ResolveExperiment(std::move(experiment));
  }

  // Checks the experiment of a single member. The message names the points that it was made from.
  absl::Status CheckMember(const v1::Experiment& base, const Choice& choice) const {
    v1::Experiment single = base;
    RETURN_IF_ERROR(Apply(choice, &single));
    const absl::Status status = ValidateExperiment(Resolve(single), TaskNames(), AlgorithmNames());
    std::vector<std::string> places = {absl::StrCat("experiment ", base.name())};
    for (const auto& at : choice) places.push_back(Place(sweep_.axes(at.first), PointOf(at)));
    return Annotate(status, absl::StrJoin(places, "; "));
  }

  absl::Status AddPopulation(const v1::Experiment& base, const Choice& outside) {
    v1::Experiment experiment = base;
    RETURN_IF_ERROR(Apply(outside, &experiment));
    for (const Choice& choice : Product(sweep_, inside_)) {
      Choice whole = outside;
      whole.insert(whole.end(), choice.begin(), choice.end());
      RETURN_IF_ERROR(CheckMember(base, whole));
      v1::Experiment own;
      own.set_algorithm(base.algorithm());
      RETURN_IF_ERROR(Apply(choice, &own));
      for (const uint64_t seed : seeds_) {
        v1::Member* member = experiment.add_members();
        member->set_seed(seed);
        if (own.has_hyper()) *member->mutable_hyper() = own.hyper();
        member->set_label(Label(whole, base.name()));
      }
    }
    // Points outside `hyper` may assign hyper-parameters too; these apply to the whole population.
    std::string name = FileName(base.name());
    for (const auto& at : outside) {
      absl::StrAppend(&name, "_", FileName(sweep_.axes(at.first).name()), "-", FileName(PointOf(at).label()));
    }
    LeaveOutModel(&experiment);
    NamePlugins(&experiment);
    return Annotate(AddParts(name, Resolve(experiment)), name);
  }

  // Splits a population into the fewest parts that fit the limits.
  absl::Status AddParts(const std::string& name, const v1::Experiment& whole) {
    RETURN_IF_ERROR(ValidateExperiment(whole, TaskNames(), AlgorithmNames()));
    const int members = whole.members_size();
    int fits = std::min<int>(members, sweep_.limits().max_members());
    for (; fits > 1; --fits) {
      if (PlanPart(name, whole, 0, fits).ok()) break;
    }
    const int parts = (members + fits - 1) / fits;
    for (int part = 0, first = 0; part < parts; ++part) {
      const int count = members / parts + (part < members % parts ? 1 : 0);
      const std::string own = parts == 1 ? name : absl::StrCat(name, "_part-", part + 1);
      ASSIGN_OR_RETURN(SweepRun population, PlanPart(own, whole, first, count));
      if (!names_.insert(own).second) {
        return absl::InvalidArgumentError("another population would have the same folder; use labels that differ more");
      }
      populations_.push_back(std::move(population));
      first += count;
    }
    return absl::OkStatus();
  }

  absl::StatusOr<SweepRun> PlanPart(const std::string& name, const v1::Experiment& whole, int first, int count) const {
    SweepRun part{name, whole, {}};
    auto* members = part.experiment.mutable_members();
    members->DeleteSubrange(first + count, members->size() - first - count);
    members->DeleteSubrange(0, first);
    ASSIGN_OR_RETURN(const Layout layout, PlanLayout(layout_, part.experiment));
    ASSIGN_OR_RETURN(part.needs, EstimateNeeds(part.experiment, layout));
    RETURN_IF_ERROR(CheckLimit("memory", part.needs.memory_bytes, sweep_.limits().memory_gb()));
    RETURN_IF_ERROR(CheckLimit("disk", part.needs.disk_bytes(), sweep_.limits().disk_gb()));
    return part;
  }

  static absl::Status CheckLimit(const std::string& what, uint64_t bytes, double limit_gb) {
    if (static_cast<double>(bytes) <= limit_gb * 1e9) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrFormat(
        "limits.%s_gb: %g is too low: a single member needs %s; set it to at least %.1f in the sweep file", what,
        limit_gb, FormatBytes(bytes), std::ceil(static_cast<double>(bytes) / 1e8) / 10));
  }

  const v1::Sweep& sweep_;
  const std::vector<v1::Experiment>& experiments_;
  const bool network_;
  TrainOptions layout_;  // numbers of actors and environments
  std::vector<uint64_t> seeds_;
  std::vector<int> splitting_, inside_;  // axes
  std::set<std::string> names_;
  std::vector<SweepRun> populations_;
};

}  // namespace

std::string SweepFolder() { return (std::filesystem::path(ExperimentFolder()).parent_path() / "sweeps").string(); }

absl::StatusOr<SweepInput> LoadSweep(const std::string& name_or_path) {
  SweepInput input;
  ASSIGN_OR_RETURN(input.file, FindTextproto("sweep", name_or_path, SweepFolder()));
  absl::StatusOr<std::string> text = ReadFile(input.file);
  if (!text.ok()) return absl::InvalidArgumentError(text.status().message());
  RETURN_IF_ERROR(ParseTextproto(*text, input.file, &input.sweep));
  for (const std::string& name : input.sweep.experiments()) {
    absl::StatusOr<v1::Experiment> experiment = LoadExperiment(name, ExperimentFolder());
    if (!experiment.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(input.file, ": experiments: ", experiment.status().message()));
    }
    ASSIGN_OR_RETURN(const std::string file, FindTextproto("experiment", name, ExperimentFolder()));
    RETURN_IF_ERROR(LoadTask(file, &*experiment));
    RETURN_IF_ERROR(CheckTaskFiles(std::filesystem::path(file).parent_path().string(), experiment->task_options()));
    input.experiments.push_back(*std::move(experiment));
  }
  return input;
}

absl::StatusOr<std::vector<SweepRun>> ExpandSweep(const SweepInput& input) {
  absl::StatusOr<std::vector<SweepRun>> populations = Expansion(input).Run();
  if (!populations.ok()) return Annotate(populations.status(), input.file);
  return populations;
}

}  // namespace datacom::cli
// SPDX-License-Identifier: Apache-2.0

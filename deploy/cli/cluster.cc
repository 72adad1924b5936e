#include "deploy/cli/cluster.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/files.h"
#include "common/base/status.h"
#include "deploy/cli/run_folder.h"

namespace datacom::cli {
namespace {

const char* Binary(Role role) {
  return role == Role::kReplay ? "datacom-replay" : role == Role::kLearner ? "datacom-learner" : "datacom-actor";
}

}  // namespace

Cluster::Cluster(const Options& options) : options_(options), policy_(&clock_) {
  const auto add = [this](const std::string& name, Role role) {
    Child& child = children_.emplace_back();
    child.name = name;
    child.role = role;
  };
  add("replay", Role::kReplay);
  add("learner", Role::kLearner);
  for (int i = 0; i < options_.actors; ++i) add(absl::StrCat("actor-", i), Role::kActor);
  add("evaluator-0", Role::kEvaluator);
}

absl::Status Cluster::CheckBinaries(const std::string& bin) {
  for (const Role role : {Role::kReplay, Role::kLearner, Role::kActor}) {
    const std::string path = absl::StrCat(bin, "/", Binary(role));
    if (::access(path.c_str(), X_OK) != 0) {
      return ErrnoStatus(errno, absl::StrCat("role binary ", path, " (build it, or set DATACOM_BIN to its folder)"));
    }
  }
  return absl::OkStatus();
}

std::string Cluster::replay_address() const { return children_[0].address; }
std::string Cluster::learner_address() const { return children_[1].address; }

int Cluster::actors_running() const {
  return std::count_if(children_.begin(), children_.end(),
                       [](const Child& child) { return child.role == Role::kActor && child.process.running(); });
}

std::vector<std::string> Cluster::TakeEvents() { return std::exchange(events_, {}); }

std::string Cluster::LogFile(const Child& child) const {
  return absl::StrCat(options_.run_dir, "/logs/", child.name, ".log");
}

std::vector<std::string> Cluster::Arguments(const Child& child) const {
  const std::string experiment = ExperimentFile(options_.run_dir), any_port = options_.host + ":0";
  std::vector<std::string> argv = {absl::StrCat(options_.bin, "/", Binary(child.role))};
  auto add = [&argv](std::initializer_list<std::string> more) { argv.insert(argv.end(), more); };
  switch (child.role) {
    case Role::kReplay:
      add({"--experiment", experiment, "--dir", options_.run_dir + "/replay"});
      if (options_.checkpoint_start != 0) add({"--checkpoint-start", absl::StrCat(options_.checkpoint_start)});
      break;
    case Role::kLearner:
      add({"--experiment", experiment, "--run-dir", options_.run_dir, "--replay", replay_address()});
      break;
    case Role::kActor:
      add({"run", "--replay", replay_address(), "--learner", learner_address(), "--name", child.name, "--envs",
           absl::StrCat(options_.environments)});
      break;
    case Role::kEvaluator:
      add({"evaluate", "--learner", learner_address(), "--name", child.name});
      break;
  }
  add({"--run-id", options_.run_id, "--listen", child.address.empty() ? any_port : child.address, "--address-file",
       AddressFile(options_.run_dir, child.name, "address"), "--metrics-listen",
       child.metrics.empty() ? any_port : child.metrics, "--metrics-address-file",
       AddressFile(options_.run_dir, child.name, "metrics"), "--die-with-parent", "--stall-minutes",
       absl::StrCat(options_.stall_minutes)});
  if (!options_.tls.empty()) add({"--tls", options_.tls});
  return argv;
}

bool Cluster::CanStart(const Child& child) const {
  if (child.phase != Child::Phase::kPending || clock_.Now() < child.start_at) return false;
  if (child.role == Role::kReplay) return true;
  if (replay_address().empty()) return false;
  return child.role == Role::kLearner || !learner_address().empty();
}

absl::Status Cluster::StartProcess(Child* child) {
  if (child->address.empty()) {
    ::unlink(AddressFile(options_.run_dir, child->name, "address").c_str());
    ::unlink(AddressFile(options_.run_dir, child->name, "metrics").c_str());
  }
  RETURN_IF_ERROR(child->process.Start(Arguments(*child), LogFile(*child)));
  child->phase = Child::Phase::kRunning;
  child->started_at = clock_.Now();
  return absl::OkStatus();
}

Cluster::State Cluster::Fail(const Child& child, const std::string& reason, int exit_code) {
  failure_exit_code_ = exit_code;
  failure_ = absl::InternalError(absl::StrCat(reason, ". ", LastLines(LogFile(child))));
  return State::kFailed;
}

Cluster::State Cluster::OnExit(Child* child, int exit_code) {
  const RestartPolicy::Decision decision = policy_.OnExit(child->name, child->role, exit_code);
  switch (decision.action) {
    case RestartPolicy::Action::kComplete:
      child->phase = Child::Phase::kResting;
      return State::kComplete;
    case RestartPolicy::Action::kRest:
      child->phase = Child::Phase::kResting;
      return State::kRunning;
    case RestartPolicy::Action::kGiveUp:
      return Fail(*child, decision.reason, decision.exit_code);
    case RestartPolicy::Action::kRestart:
      break;
  }
  child->phase = Child::Phase::kPending;
  child->start_at = decision.at;
  events_.push_back(absl::StrCat(child->name, " ended (", decision.reason, "); restarting"));
  if (child->role == Role::kReplay || child->role == Role::kLearner) {
    // The restarted service resumes from its durable state and may have new work for processes that had finished.
    for (Child& other : children_) {
      if (other.phase == Child::Phase::kResting) other.phase = Child::Phase::kPending;
    }
  }
  return State::kRunning;
}

Cluster::State Cluster::Tick() {
  // Services last: an actor that finished before a service died must be resting when that death wakes it.
  for (auto child = children_.rbegin(); child != children_.rend(); ++child) {
    if (const std::optional<int> code = child->process.Poll()) {
      const State state = OnExit(&*child, *code);
      if (state != State::kRunning) return state;
    }
  }
  for (Child& child : children_) {
    if (CanStart(child)) {
      if (absl::Status status = StartProcess(&child); !status.ok()) {
        failure_ = status;
        failure_exit_code_ = kExitFailure;
        return State::kFailed;
      }
    }
    if (child.phase != Child::Phase::kRunning) continue;
    if (child.address.empty()) child.address = ReadAddress(options_.run_dir, child.name, "address");
    if (child.metrics.empty()) child.metrics = ReadAddress(options_.run_dir, child.name, "metrics");
    if (child.address.empty() && clock_.Now() - child.started_at > options_.address_deadline) {
      const auto seconds = options_.address_deadline.count();
      return Fail(child, absl::StrCat(child.name, " did not report its address within ", seconds, " s"), kExitFailure);
    }
  }
  WriteTargets();
  return State::kRunning;
}

void Cluster::WriteTargets() {
  const char* const scheme = options_.tls.empty() ? "" : ", \"__scheme__\": \"https\"";
  std::vector<std::string> entries;
  for (const Child& child : children_) {
    if (child.metrics.empty()) continue;
    const std::string role = child.name.substr(0, child.name.find('-'));
    entries.push_back(absl::StrCat("  {\"targets\": [\"", child.metrics, "\"], \"labels\": {\"role\": \"", role,
                                   "\", \"process\": \"", child.name, "\"", scheme, "}}"));
  }
  const std::string content = absl::StrCat("[\n", absl::StrJoin(entries, ",\n"), "\n]\n");
  if (content == targets_) return;
  if (WriteFileAtomically(options_.run_dir + "/targets.json", content).ok()) targets_ = content;
}

void Cluster::StopGroup(const std::vector<Role>& roles, std::chrono::milliseconds grace) {
  std::vector<Child*> group;
  for (Child& child : children_) {
    if (std::find(roles.begin(), roles.end(), child.role) == roles.end()) continue;
    group.push_back(&child);
    child.process.Signal(SIGTERM);
  }
  const auto deadline = std::chrono::steady_clock::now() + grace;
  auto running = [&group] {
    bool any = false;
    for (Child* child : group) {
      child->process.Poll();
      any |= child->process.running();
    }
    return any;
  };
  while (running()) {
    if (std::chrono::steady_clock::now() > deadline) {
      for (Child* child : group) {
        if (child->process.running()) events_.push_back(absl::StrCat(child->name, " did not stop in time; killed"));
        child->process.Signal(SIGKILL);
      }
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

void Cluster::Drain(std::chrono::milliseconds grace) {
  StopGroup({Role::kActor, Role::kEvaluator}, grace);
  StopGroup({Role::kLearner}, grace);
  StopGroup({Role::kReplay}, grace);
  for (Child& child : children_) child.metrics.clear();
  WriteTargets();
}

}  // namespace datacom::cli
// SPDX-License-Identifier: Apache-2.0

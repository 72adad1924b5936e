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

constexpr char kAnyPort[] = "127.0.0.1:0";
constexpr int kTailLines = 8;

const char* Binary(Role role) {
  switch (role) {
    case Role::kReplay:
      return "datacom-replay";
    case Role::kLearner:
      return "datacom-learner";
    case Role::kActor:
    case Role::kEvaluator:
      return "datacom-actor";
  }
  return "";
}

}  // namespace

Cluster::Cluster(const Options& options) : options_(options), policy_(options.clock) {
  auto add = [this](const std::string& name, Role role) {
    auto member = std::make_unique<Member>();
    member->name = name;
    member->role = role;
    members_.push_back(std::move(member));
  };
  add("replay", Role::kReplay);
  add("learner", Role::kLearner);
  for (int i = 0; i < options_.actors; ++i) add(absl::StrCat("actor-", i), Role::kActor);
  add("evaluator-0", Role::kEvaluator);
}

absl::Status Cluster::CheckBinaries(const std::string& bin) {
  for (const Role role : {Role::kReplay, Role::kLearner, Role::kActor}) {
    const std::string path = absl::StrCat(bin, "/", Binary(role));
    if (::access(path.c_str(), X_OK) != 0) return ErrnoStatus(errno, absl::StrCat("role binary ", path));
  }
  return absl::OkStatus();
}

const Cluster::Member* Cluster::Find(Role role) const {
  for (const auto& member : members_) {
    if (member->role == role) return member.get();
  }
  return nullptr;
}

std::string Cluster::replay_address() const { return Find(Role::kReplay)->address; }
std::string Cluster::learner_address() const { return Find(Role::kLearner)->address; }

int Cluster::actors_running() const {
  return std::count_if(members_.begin(), members_.end(),
                       [](const auto& member) { return member->role == Role::kActor && member->process.running(); });
}

std::vector<std::string> Cluster::TakeEvents() { return std::exchange(events_, {}); }

std::string Cluster::LogFile(const Member& member) const {
  return absl::StrCat(options_.run_dir, "/logs/", member.name, ".log");
}

std::vector<std::string> Cluster::Arguments(const Member& member) const {
  const std::string experiment = ExperimentFile(options_.run_dir);
  std::vector<std::string> argv = {absl::StrCat(options_.bin, "/", Binary(member.role))};
  auto add = [&argv](std::initializer_list<std::string> more) { argv.insert(argv.end(), more); };
  switch (member.role) {
    case Role::kReplay:
      add({"--experiment", experiment, "--dir", options_.run_dir + "/replay"});
      break;
    case Role::kLearner:
      add({"--experiment", experiment, "--run-dir", options_.run_dir, "--replay", replay_address()});
      break;
    case Role::kActor:
      add({"run", "--replay", replay_address(), "--learner", learner_address(), "--name", member.name, "--envs",
           absl::StrCat(options_.environments)});
      break;
    case Role::kEvaluator:
      add({"evaluate", "--learner", learner_address(), "--name", member.name});
      break;
  }
  add({"--run-id", options_.run_id, "--listen", member.address.empty() ? kAnyPort : member.address, "--address-file",
       AddressFile(options_.run_dir, member.name, "address"), "--metrics-listen",
       member.metrics.empty() ? kAnyPort : member.metrics, "--metrics-address-file",
       AddressFile(options_.run_dir, member.name, "metrics"), "--die-with-parent"});
  if (!options_.tls.empty()) add({"--tls", options_.tls});
  return argv;
}

bool Cluster::CanStart(const Member& member) const {
  if (member.phase != Member::Phase::kPending || options_.clock->Now() < member.start_at) return false;
  if (member.role == Role::kReplay) return true;
  if (replay_address().empty()) return false;
  return member.role == Role::kLearner || !learner_address().empty();
}

absl::Status Cluster::StartProcess(Member* member) {
  if (member->address.empty()) {
    ::unlink(AddressFile(options_.run_dir, member->name, "address").c_str());
    ::unlink(AddressFile(options_.run_dir, member->name, "metrics").c_str());
  }
  RETURN_IF_ERROR(member->process.Start(Arguments(*member), LogFile(*member)));
  member->phase = Member::Phase::kRunning;
  member->started_at = options_.clock->Now();
  return absl::OkStatus();
}

void Cluster::ReadAddresses(Member* member) {
  if (member->address.empty()) member->address = ReadAddress(options_.run_dir, member->name, "address");
  if (member->metrics.empty()) member->metrics = ReadAddress(options_.run_dir, member->name, "metrics");
}

Cluster::State Cluster::Fail(const Member& member, const std::string& reason, int exit_code) {
  failure_exit_code_ = exit_code;
  failure_ = absl::InternalError(
      absl::StrCat(reason, ". Its last lines (", LogFile(member), "):\n", TailOfFile(LogFile(member), kTailLines)));
  return State::kFailed;
}

Cluster::State Cluster::OnExit(Member* member, int exit_code) {
  const RestartPolicy::Decision decision = policy_.OnExit(member->name, member->role, exit_code);
  switch (decision.action) {
    case RestartPolicy::Action::kComplete:
      member->phase = Member::Phase::kResting;
      return State::kComplete;
    case RestartPolicy::Action::kRest:
      member->phase = Member::Phase::kResting;
      return State::kRunning;
    case RestartPolicy::Action::kGiveUp:
      return Fail(*member, decision.reason, decision.exit_code);
    case RestartPolicy::Action::kRestart:
      break;
  }
  member->phase = Member::Phase::kPending;
  member->start_at = decision.at;
  events_.push_back(absl::StrCat(member->name, " ended (", decision.reason, "); restarting"));
  if (member->role == Role::kReplay || member->role == Role::kLearner) {
    // A service that goes on from its durable state may have work again for those that had finished theirs.
    for (const auto& other : members_) {
      if (other->phase == Member::Phase::kResting) other->phase = Member::Phase::kPending;
    }
  }
  return State::kRunning;
}

Cluster::State Cluster::Tick() {
  // Services last: who finished before a service died must already rest when the service's death wakes it.
  for (auto member = members_.rbegin(); member != members_.rend(); ++member) {
    if (const std::optional<int> code = (*member)->process.Poll()) {
      const State state = OnExit(member->get(), *code);
      if (state != State::kRunning) return state;
    }
  }
  for (const auto& member : members_) {
    if (CanStart(*member)) {
      if (absl::Status status = StartProcess(member.get()); !status.ok()) {
        failure_ = status;
        failure_exit_code_ = kExitFailure;
        return State::kFailed;
      }
    }
    if (member->phase == Member::Phase::kRunning) ReadAddresses(member.get());
    if (member->phase == Member::Phase::kRunning && member->address.empty() &&
        options_.clock->Now() - member->started_at > options_.address_deadline) {
      return Fail(
          *member,
          absl::StrCat(member->name, " did not report its address within ", options_.address_deadline.count(), " s"),
          kExitFailure);
    }
  }
  WriteTargets();
  return State::kRunning;
}

void Cluster::WriteTargets() {
  std::vector<std::string> entries;
  for (const auto& member : members_) {
    if (member->metrics.empty()) continue;
    entries.push_back(absl::StrCat("  {\"targets\": [\"", member->metrics, "\"], \"labels\": {\"role\": \"",
                                   RoleName(member->role), "\", \"process\": \"", member->name, "\"}}"));
  }
  const std::string content = absl::StrCat("[\n", absl::StrJoin(entries, ",\n"), "\n]\n");
  if (content == targets_) return;
  if (WriteFileAtomically(options_.run_dir + "/targets.json", content).ok()) targets_ = content;
}

void Cluster::StopGroup(const std::vector<Role>& roles, std::chrono::milliseconds grace) {
  std::vector<Member*> group;
  for (const auto& member : members_) {
    if (std::find(roles.begin(), roles.end(), member->role) == roles.end()) continue;
    group.push_back(member.get());
    member->process.Signal(SIGTERM);
  }
  const auto deadline = std::chrono::steady_clock::now() + grace;
  auto running = [&group] {
    bool any = false;
    for (Member* member : group) {
      member->process.Poll();
      any |= member->process.running();
    }
    return any;
  };
  while (running()) {
    if (std::chrono::steady_clock::now() > deadline) {
      for (Member* member : group) {
        if (member->process.running()) events_.push_back(absl::StrCat(member->name, " did not stop in time; killed"));
        member->process.Signal(SIGKILL);
      }
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

void Cluster::Drain(std::chrono::milliseconds grace) {
  StopGroup({Role::kActor, Role::kEvaluator}, grace);
  StopGroup({Role::kLearner}, grace);
  StopGroup({Role::kReplay}, grace);
}

}  // namespace datacom::cli

#include "common/tasks/python/python_task.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <map>
#include <thread>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/spawn.h"
#include "common/base/status.h"
#include "common/base/stop.h"
#include "common/config/textproto.h"
#include "common/tasks/python/identity.h"
#include "common/tasks/python/python_model.h"

namespace datacom::python {

extern const char kHostSource[];  // host.py, compiled in

namespace {

enum Head { kOperation, kSeed, kReward, kCost, kTerminated, kTruncated, kSuccess };  // numbers of a slot (host.py)
constexpr size_t kLongestAnswer = size_t{1} << 18;
constexpr int kSocket = 3, kMemory = 4, kFirstFree = 10;  // file descriptors of the child
constexpr std::chrono::milliseconds kPatience{5000}, kPoll{10}, kLook{1000}, kGrace{10000};
constexpr int kStopLooks = 5;  // so often a wait looks again after a stop was requested

// Waits for a child that should end by itself, and kills it when it does not, and all that it has started.
void Reap(pid_t pid) {
  const auto deadline = Clock::Real().Now() + kGrace;
  siginfo_t ended = {};
  while (::waitid(P_PID, static_cast<id_t>(pid), &ended, WEXITED | WNOWAIT | WNOHANG) == 0 && ended.si_pid == 0) {
    if (Clock::Real().Now() > deadline) ::kill(pid, SIGKILL);
    std::this_thread::sleep_for(kPoll);
  }
  ::kill(-pid, SIGKILL);  // its group, whose number is not free before it has been reaped
  ::waitpid(pid, nullptr, 0);
}

// A copy of a file descriptor, above those that the child gets; -1 for -1. Closes itself.
struct Copy {
  explicit Copy(int of) : file(of < 0 ? -1 : ::fcntl(of, F_DUPFD_CLOEXEC, kFirstFree)) {}
  ~Copy() {
    if (file >= 0) ::close(file);
  }
  const int file;
};

// Starts the interpreter as the leader of a process group, with these open files only: its socket, its memory if there
// is one, and the standard ones. Its output goes to the standard error.
absl::StatusOr<pid_t> StartHost(const std::vector<std::string>& words, int socket, int memory) {
  Spawn spawn;
  posix_spawn_file_actions_addopen(&spawn.files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&spawn.files, STDERR_FILENO, STDOUT_FILENO);
  const Copy own_socket(socket), own_memory(memory);
  posix_spawn_file_actions_adddup2(&spawn.files, own_socket.file, kSocket);
  if (memory >= 0) posix_spawn_file_actions_adddup2(&spawn.files, own_memory.file, kMemory);
  posix_spawn_file_actions_addclosefrom_np(&spawn.files, memory >= 0 ? kMemory + 1 : kMemory);
  sigset_t none, restored;
  ::sigemptyset(&none);
  ::sigemptyset(&restored);
  for (const int number : {SIGINT, SIGTERM, SIGPIPE}) ::sigaddset(&restored, number);
  posix_spawnattr_setsigmask(&spawn.attributes, &none);
  posix_spawnattr_setsigdefault(&spawn.attributes, &restored);
  posix_spawnattr_setflags(&spawn.attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  pid_t pid = 0;
  const int error = spawn.Start(words, &pid);
  if (error == 0) return pid;
  return absl::InvalidArgumentError(
      absl::StrCat("DATACOM_PYTHON=", words[0], ": ", ErrnoStatus(error, "start it").message()));
}

}  // namespace

absl::StatusOr<std::unique_ptr<PythonHost::Child>> PythonHost::Child::Start(std::vector<std::string> arguments,
                                                                            int memory) {
  RETURN_IF_ERROR(CheckNamed(arguments[0]));
  const char* const interpreter = std::getenv("DATACOM_PYTHON");
  if (interpreter == nullptr || *interpreter == '\0') {
    return absl::InvalidArgumentError(absl::StrCat("the task is the Python environment ", arguments[0],
                                                   "; set DATACOM_PYTHON to the interpreter that may run it"));
  }
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return ErrnoStatus(errno, "socketpair");
  std::unique_ptr<Child> child(new Child);
  child->socket_ = ends[0];
  child->answer_.resize(kLongestAnswer);
  arguments.insert(arguments.begin() + 1, absl::StrCat(kSocket));
  arguments.insert(arguments.begin(), {interpreter, "-c", kHostSource});
  const absl::StatusOr<pid_t> pid = StartHost(arguments, ends[1], memory);
  ::close(ends[1]);
  RETURN_IF_ERROR(pid.status());
  child->pid_ = *pid;
  return child;
}

PythonHost::Child::~Child() {
  if (socket_ >= 0) ::close(socket_);
  if (pid_ > 0) Reap(pid_);
}

absl::Status PythonHost::Child::Gone() const {
  siginfo_t ended = {};
  // Leaves the child to be reaped. It has closed its socket, so it ends soon.
  ::waitid(P_PID, static_cast<id_t>(pid_), &ended, WEXITED | WNOWAIT);
  const std::string how = ended.si_code == CLD_EXITED ? absl::StrCat("with exit code ", ended.si_status)
                                                      : absl::StrCat("by signal ", ended.si_status);
  return absl::InternalError(absl::StrCat("the Python process ended ", how));
}

absl::Status PythonHost::Child::Send(const void* message, size_t bytes) {
  while (::send(socket_, message, bytes, MSG_NOSIGNAL) < 0) {
    if (errno != EINTR) return Gone();
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> PythonHost::Child::Receive(const std::string& what) {
  const Clock::Time start = Clock::Real().Now();
  pollfd ready = {socket_, POLLIN, 0};
  int after_stop = 0;
  for (auto logged = start; ::poll(&ready, 1, static_cast<int>(kLook.count())) <= 0;) {
    siginfo_t ended = {};  // what it has started may hold its socket
    ::waitid(P_PID, static_cast<id_t>(pid_), &ended, WEXITED | WNOWAIT | WNOHANG);
    if (ended.si_pid != 0) return Gone();
    if (Stop::Process().requested() && ++after_stop > kStopLooks) {
      return absl::CancelledError(absl::StrCat("stopping was requested, and ", what, " does not answer"));
    }
    const Clock::Time now = Clock::Real().Now();
    if (now - logged < kPatience) continue;
    logged = now;
    spdlog::info("waiting seconds={:.0f} for=environment detail=\"{}, process {}\"", Seconds(now - start), what, pid_);
  }
  const ssize_t bytes = ::recv(socket_, answer_.data(), answer_.size(), 0);
  if (bytes <= 0) return Gone();
  std::string text(answer_.data() + 1, static_cast<size_t>(bytes - 1));
  if (answer_[0] == 'k') return text;
  return answer_[0] == 'r' ? absl::InvalidArgumentError(text) : absl::InternalError(text);
}

absl::StatusOr<v1::PythonTask> AskEnvironment(const std::string& environment, bool with_model) {
  ASSIGN_OR_RETURN(const std::unique_ptr<PythonHost::Child> child,
                   PythonHost::Child::Start({environment, with_model ? "1" : "0"}, -1));
  return child->ReceiveFacts(environment);
}

absl::StatusOr<v1::PythonTask> PythonHost::Child::ReceiveFacts(const std::string& environment) {
  ASSIGN_OR_RETURN(const std::string text,
                   Annotate(Receive(absl::StrCat("the facts of ", environment)), "Python environment"));
  v1::PythonTask task;
  RETURN_IF_ERROR(ParseTextproto(text, environment, &task));
  return task;
}

PythonHost::PythonHost(const v1::PythonTask& task, int slots)
    : environment_(task.environment()), action_(task.action_low_size()), slots_(slots) {}

absl::StatusOr<std::shared_ptr<PythonHost>> PythonHost::Shared(const v1::PythonTask& task) {
  static Mutex mutex;
  static auto* const hosts = new std::map<std::string, std::shared_ptr<PythonHost>>();
  const MutexLock lock(&mutex);
  std::shared_ptr<PythonHost>& known = (*hosts)[task.SerializeAsString()];
  if (known != nullptr && known->status().ok()) return known;
  const int observation = PythonDynamics(task).dims().obs;
  std::shared_ptr<PythonHost> host(new PythonHost(task, MostEnvironments(task)));
  RETURN_IF_ERROR(host->Start(task, observation));
  known = std::move(host);
  return known;
}

absl::Status PythonHost::Start(const v1::PythonTask& task, int observation) {
  stride_ = kSlotHead + action_ + observation;
  const int memory = ::memfd_create("datacom-environments", MFD_CLOEXEC);
  if (memory < 0) return ErrnoStatus(errno, "memfd_create");
  const size_t bytes = sizeof(double) * stride_ * slots_;
  absl::Status status;
  if (::ftruncate(memory, static_cast<off_t>(bytes)) != 0) status = ErrnoStatus(errno, "ftruncate");
  void* const mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
  if (mapped == MAP_FAILED) {
    status.Update(ErrnoStatus(errno, "mmap"));
  } else {
    memory_ = static_cast<double*>(mapped);
  }
  std::vector<std::string> arguments = {environment_, task.q() + task.x() > 0 ? "1" : "0"};
  for (const int number : {kMemory, slots_, static_cast<int>(task.observation()), action_, static_cast<int>(task.q()),
                           static_cast<int>(task.x())})
    arguments.push_back(absl::StrCat(number));
  arguments.insert(arguments.end(), task.cost().begin(), task.cost().end());
  const MutexLock lock(&mutex_);
  if (status.ok()) {
    absl::StatusOr<std::unique_ptr<Child>> child = Child::Start(std::move(arguments), memory);
    status = child.status();
    if (child.ok()) {
      const absl::StatusOr<v1::PythonTask> now = (*child)->ReceiveFacts(environment_);
      status = now.ok() ? CheckSame(task, *now) : now.status();
    }
    if (status.ok()) {
      child_ = *std::move(child);
      spdlog::info("started environment={} interpreter={} process={}", environment_, std::getenv("DATACOM_PYTHON"),
                   child_->pid());
    }
  }
  ::close(memory);
  waiting_.reserve(slots_);
  return status;
}

PythonHost::~PythonHost() {
  {
    const MutexLock lock(&mutex_);
    child_.reset();
  }
  if (memory_ != nullptr) ::munmap(memory_, sizeof(double) * stride_ * slots_);
}

absl::StatusOr<uint32_t> PythonHost::Open() {
  uint32_t slot = 0;
  {
    const MutexLock lock(&mutex_);
    if (!free_.empty()) {
      slot = free_.back();
      free_.pop_back();
      return slot;
    }
    if (made_ == slots_) {
      return absl::ResourceExhaustedError(absl::StrCat(environment_, ": a process steps at most ", slots_,
                                                       " of these environments; use more --actors with fewer --envs"));
    }
    slot = static_cast<uint32_t>(made_++);
  }
  Begin(slot, kMake);
  RETURN_IF_ERROR(Finish(slot));
  return slot;
}

void PythonHost::GiveBack(uint32_t slot) {
  const MutexLock lock(&mutex_);
  free_.push_back(slot);
}

absl::Status PythonHost::status() {
  const MutexLock lock(&mutex_);
  return status_;
}

void PythonHost::Begin(uint32_t index, Operation operation) {
  slot(index)[kOperation] = operation;
  const MutexLock lock(&mutex_);
  waiting_.push_back(index);
}

absl::Status PythonHost::Finish(uint32_t slot) {
  const MutexLock lock(&mutex_);
  if (status_.ok() && std::find(waiting_.begin(), waiting_.end(), slot) != waiting_.end()) status_ = Exchange();
  return status_;
}

absl::Status PythonHost::Exchange() {
  absl::Status status = child_->Send(waiting_.data(), waiting_.size() * sizeof(uint32_t));
  if (status.ok()) status = child_->Receive(environment_).status();
  waiting_.clear();
  return status.ok() ? status : Annotate(status, "Python environment");  // allocates nothing when all is well
}

namespace {

// A word for files and labels: "my_env" for my_env:make, "my_env-fast" for my_env:fast.
std::string NameOf(absl::string_view environment) {
  const size_t colon = environment.find(':');
  const absl::string_view module = environment.substr(0, colon);
  const absl::string_view callable = colon == absl::string_view::npos ? "" : environment.substr(colon + 1);
  std::string name(module);
  const std::vector<std::string> registered = TaskNames();
  const bool taken = std::find(registered.begin(), registered.end(), name) != registered.end();
  if (callable != "make" || taken) absl::StrAppend(&name, "-", callable);
  for (char& c : name) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) && c != '-') c = '_';
  }
  return name;
}

}  // namespace

absl::Status LoadTaskOf(std::string* task, v1::TaskOptions* options) {
  absl::string_view environment = *task;
  if (!absl::ConsumePrefix(&environment, kPythonTask)) return absl::OkStatus();
  const std::string without_model = options->GetExtension(v1::python_task).without_model();
  ASSIGN_OR_RETURN(v1::PythonTask facts, AskEnvironment(std::string(environment), without_model.empty()));
  facts.set_name(NameOf(environment));
  if (!without_model.empty()) facts.set_without_model(without_model);
  *task = facts.name();
  *options->MutableExtension(v1::python_task) = std::move(facts);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Task>> MakeTask(const v1::TaskOptions& options) {
  const v1::PythonTask& task = options.GetExtension(v1::python_task);
  ASSIGN_OR_RETURN(TaskModel model, MakeModel(options));
  ASSIGN_OR_RETURN(std::shared_ptr<PythonHost> host, PythonHost::Shared(task));
  ASSIGN_OR_RETURN(const uint32_t slot, host->Open());
  return std::make_unique<PythonTask>(std::move(model.spec), task, std::move(host), slot);
}

PythonTask::PythonTask(TaskSpec spec, const v1::PythonTask& task, std::shared_ptr<PythonHost> host, uint32_t slot)
    : spec_(std::move(spec)),
      host_(std::move(host)),
      slot_(slot),
      numbers_(host_->slot(slot)),
      q_(static_cast<int>(task.q())),
      drift_at_(static_cast<int>(task.observation() + task.q() + 2 * task.x())) {
  for (int i = 0; i < spec_.action_dim; ++i) {
    low_.push_back(task.action_low(i));
    high_.push_back(task.action_high(i));
    half_.push_back((task.action_high(i) - task.action_low(i)) / 2);
    middle_.push_back((task.action_high(i) + task.action_low(i)) / 2);
    rescales_ = rescales_ || half_[i] != 1 || middle_[i] != 0;
  }
}

absl::Status PythonTask::ResetTo(const std::map<std::string, double>& init, RandomStream* stream, double* observation) {
  RETURN_IF_ERROR(CheckStartValues(spec_, init));
  numbers_[kSeed] = stream->NextUint32() >> 1;  // as a signed number of 32 bits, which every environment takes
  prepared_ = false;
  host_->Begin(slot_, PythonHost::kReset);
  Finish(observation);
  return absl::OkStatus();
}

void PythonTask::Prepare(const double* action) {
  prepared_ = true;
  finite_ = std::all_of(action, action + spec_.action_dim, [](double value) { return std::isfinite(value); });
  if (!finite_) return;
  double* const to = numbers_ + kSlotHead;
  for (int i = 0; i < spec_.action_dim; ++i) to[i] = std::clamp(middle_[i] + half_[i] * action[i], low_[i], high_[i]);
  host_->Begin(slot_, PythonHost::kStep);
}

StepResult PythonTask::Step(const double* action, double* observation) {
  if (!prepared_) Prepare(action);
  prepared_ = false;
  if (finite_) Finish(observation);
  StepResult result;
  result.reward = numbers_[kReward];
  result.cost = cost_;
  result.absorbing = numbers_[kTerminated] != 0;
  result.truncated = numbers_[kTruncated] != 0;
  result.valid = finite_ && status_.ok();
  return result;
}

void PythonTask::Finish(double* observation) {
  if (status_.ok()) status_ = host_->Finish(slot_);
  std::copy_n(numbers_ + host_->observation_at(), spec_.obs_dim, observation);
  if (rescales_) RescaleModel(observation);
  cost_ = numbers_[kCost];
  success_ = numbers_[kSuccess] != 0;
}

// q_dot = f + G (middle + half u)
void PythonTask::RescaleModel(double* observation) const {
  double* const f = observation + drift_at_;
  double* G = f + q_;
  const int n = spec_.action_dim;
  for (int i = 0; i < q_; ++i, G += n) {
    for (int j = 0; j < n; ++j) {
      if (middle_[j] != 0) f[i] += G[j] * middle_[j];  // 0 times a G that is not finite would be called a wrong f
      G[j] *= half_[j];
    }
  }
}

}  // namespace datacom::python
// SPDX-License-Identifier: Apache-2.0

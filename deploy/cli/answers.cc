#include "deploy/cli/answers.h"

#include <map>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/files.h"
#include "common/base/status.h"
#include "common/records/checkpoint.h"
#include "common/rpc/channel.h"
#include "common/rpc/learner_client.h"
#include "common/rpc/replay_client.h"
#include "deploy/cli/run_folder.h"

namespace datacom::cli {
namespace {

absl::Status CheckRunId(const std::string& run_dir, const std::string& process, const std::string& answered) {
  const std::string own = ReadRunId(run_dir).value_or("");
  if (own.empty() || answered == own) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(run_dir, " is run ", own, ", but the ", process, " at its address ",
                                                    ReadAddress(run_dir, process, "address"), " belongs to run ",
                                                    answered, "; this run does not listen there any more"));
}

// What is wrong with the --tls that a run is asked with which does not answer; OK if that is not known. What `train`
// tells Prometheus names the scheme, its lock says whether it trains now.
absl::Status CheckTls(const std::string& run_dir, bool given) {
  const std::string targets = ReadFile(run_dir + "/targets.json").value_or("");
  const bool used = absl::StrContains(targets, "\"https\"");
  if (!absl::StrContains(targets, "\"role\"") || (!used && !given)) return absl::OkStatus();
  if (!absl::IsFailedPrecondition(FolderLock::TakeFile(run_dir + "/cluster/train.lock").status())) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(run_dir, !used   ? " trains without TLS: leave out --tls"
                            : given ? " trains with TLS: its processes do not answer with the files of this --tls"
                                    : " trains with TLS: its processes answer only with --tls FOLDER, the one that "
                                      "`datacom train` was given"));
}

// Asks over the channels that `channel_to` makes.
template <typename ChannelTo>
Answers AskOver(const ChannelTo& channel_to, const std::string& replay, const std::string& learner,
                std::chrono::milliseconds deadline) {
  Answers answers;
  if (!replay.empty()) {
    if (auto info = GetReplayInfo(channel_to(replay), deadline); info.ok()) answers.replay = *std::move(info);
  }
  if (!learner.empty()) {
    if (auto info = GetLearnerInfo(channel_to(learner), deadline); info.ok()) answers.learner = *std::move(info);
  }
  return answers;
}

constexpr std::chrono::milliseconds kPeriod{500};
constexpr std::chrono::milliseconds kDeadline{2000};

}  // namespace

Answers Ask(const std::string& replay, const std::string& learner, const Security& security) {
  return AskOver([&](const std::string& address) { return MakeChannel(address, security); }, replay, learner,
                 kAnswerDeadline);
}

absl::StatusOr<Answers> AskRun(const std::string& run_dir, const Security& security) {
  Answers answers =
      Ask(ReadAddress(run_dir, "replay", "address"), ReadAddress(run_dir, "learner", "address"), security);
  if (answers.replay) RETURN_IF_ERROR(CheckRunId(run_dir, "replay", answers.replay->run_id()));
  if (answers.learner) RETURN_IF_ERROR(CheckRunId(run_dir, "learner", answers.learner->run_id()));
  if (!answers.replay && !answers.learner) RETURN_IF_ERROR(CheckTls(run_dir, security.enabled()));
  return answers;
}

Poller::Poller(const Security& security) : security_(security), thread_([this] { Run(); }) {}

Poller::~Poller() {
  {
    MutexLock lock(&mutex_);
    stop_ = true;
    changed_.NotifyAll();
  }
  thread_.join();
}

void Poller::SetAddresses(const std::string& replay, const std::string& learner) {
  MutexLock lock(&mutex_);
  replay_address_ = replay;
  learner_address_ = learner;
}

Answers Poller::newest() const {
  MutexLock lock(&mutex_);
  return newest_;
}

void Poller::Run() {
  std::map<std::string, std::shared_ptr<grpc::Channel>> channels;
  const auto channel_to = [&](const std::string& address) {
    std::shared_ptr<grpc::Channel>& channel = channels[address];
    if (channel == nullptr) channel = MakeChannel(address, security_);
    return channel;
  };
  while (true) {
    std::string replay_address, learner_address;
    {
      MutexLock lock(&mutex_);
      if (stop_) return;
      replay_address = replay_address_;
      learner_address = learner_address_;
    }
    Answers answers = AskOver(channel_to, replay_address, learner_address, kDeadline);
    MutexLock lock(&mutex_);
    newest_ = std::move(answers);
    if (stop_) return;
    changed_.WaitFor(&mutex_, kPeriod);
  }
}

}  // namespace datacom::cli
// SPDX-License-Identifier: Apache-2.0

#include "deploy/cli/answers.h"

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/rpc/channel.h"
#include "common/rpc/learner_client.h"
#include "common/rpc/replay_client.h"
#include "deploy/cli/run_folder.h"

namespace datacom::cli {
namespace {

absl::Status CheckRunId(const std::string& run_dir, const std::string& process, const std::string& answered) {
  const std::string own = ReadRunId(run_dir);
  if (own.empty() || answered == own) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(run_dir, " is run ", own, ", but the ", process, " at its address ",
                                                    ReadAddress(run_dir, process, "address"), " belongs to run ",
                                                    answered, "; this run does not listen there any more"));
}

}  // namespace

Answers Ask(const std::string& replay, const std::string& learner, const Security& security) {
  Answers answers;
  if (!replay.empty()) {
    if (auto info = GetReplayInfo(MakeChannel(replay, security), kAnswerDeadline); info.ok())
      answers.replay = *std::move(info);
  }
  if (!learner.empty()) {
    if (auto info = GetLearnerInfo(MakeChannel(learner, security), kAnswerDeadline); info.ok())
      answers.learner = *std::move(info);
  }
  return answers;
}

absl::StatusOr<Answers> AskRun(const std::string& run_dir, const Security& security) {
  Answers answers =
      Ask(ReadAddress(run_dir, "replay", "address"), ReadAddress(run_dir, "learner", "address"), security);
  if (answers.replay) RETURN_IF_ERROR(CheckRunId(run_dir, "replay", answers.replay->run_id()));
  if (answers.learner) RETURN_IF_ERROR(CheckRunId(run_dir, "learner", answers.learner->run_id()));
  return answers;
}

namespace {

constexpr std::chrono::milliseconds kPeriod{500};
constexpr std::chrono::milliseconds kDeadline{2000};

}  // namespace

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

std::optional<v1::ReplayInfo> Poller::replay() const {
  MutexLock lock(&mutex_);
  return replay_;
}

std::optional<v1::LearnerInfo> Poller::learner() const {
  MutexLock lock(&mutex_);
  return learner_;
}

std::shared_ptr<grpc::Channel> Poller::ChannelTo(const std::string& address) {
  std::shared_ptr<grpc::Channel>& channel = channels_[address];
  if (channel == nullptr) channel = MakeChannel(address, security_);
  return channel;
}

void Poller::Run() {
  while (true) {
    std::string replay_address, learner_address;
    {
      MutexLock lock(&mutex_);
      if (stop_) return;
      replay_address = replay_address_;
      learner_address = learner_address_;
    }
    std::optional<v1::ReplayInfo> replay;
    std::optional<v1::LearnerInfo> learner;
    if (!replay_address.empty()) {
      if (auto info = GetReplayInfo(ChannelTo(replay_address), kDeadline); info.ok()) replay = *std::move(info);
    }
    if (!learner_address.empty()) {
      if (auto info = GetLearnerInfo(ChannelTo(learner_address), kDeadline); info.ok()) learner = *std::move(info);
    }
    MutexLock lock(&mutex_);
    replay_ = std::move(replay);
    learner_ = std::move(learner);
    if (stop_) return;
    changed_.WaitFor(&mutex_, kPeriod);
  }
}

}  // namespace datacom::cli
// SPDX-License-Identifier: Apache-2.0

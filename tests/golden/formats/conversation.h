// A recorded conversation: the messages of an actor, a learner, an evaluator and `datacom status` with the services of
// a replay and a learner, in their order. File: for every message the name of its call, "request" or "reply", and its
// bytes, each with its length (u64) in front.
//
// Peers hosts both services in this process. Not thread-safe; its calls wait for the services' replies.
#ifndef DATACOM_TESTS_GOLDEN_FORMATS_CONVERSATION_H_
#define DATACOM_TESTS_GOLDEN_FORMATS_CONVERSATION_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/metrics/metrics.h"
#include "common/rpc/channel.h"
#include "learner/learner_service.h"
#include "learner/served_state.h"
#include "replay/replay_service.h"
#include "tests/testing/manual_clock.h"

namespace datacom::golden {

struct Message {
  // Register, Insert, Draw, ReadRange, ReplayInfo, Subscribe, Lease, ReadTaskFile, Fetch, Report, LearnerInfo; Info of
  // the two services has the name of its reply.
  std::string call;
  bool reply = false;
  std::string bytes;  // serialized, map fields in the order of their keys
};

std::string Encode(const std::vector<Message>& messages);
absl::StatusOr<std::vector<Message>> Decode(absl::string_view content);
// The requests of this build's peers, with empty replies where the services answer.
std::vector<Message> Script();

// One call of a client; a call without a stream can be sent again after its reply. Send returns false for bytes that
// are not a request which this build knows in all its fields.
class Call {
 public:
  virtual ~Call() = default;
  virtual bool Send(const std::string& bytes) = 0;
  virtual absl::StatusOr<std::string> Read() = 0;  // the next reply, or how the call ended
};

class Peers {
 public:
  explicit Peers(const std::string& folder);  // an empty one, for the files of replay and learner
  ~Peers();

  // Sends the requests and returns all messages, with the services' answers in place of the recorded ones. Left
  // out, because they are not a part of the protocol: the experiment of RegisterReply and LeaseReply, the build of
  // ReplayInfo and LearnerInfo, and Rejection.message.
  absl::StatusOr<std::vector<Message>> Replay(const std::vector<Message>& messages);
  // The context of a new call.
  absl::StatusOr<std::string> FirstReply(const std::string& call, const std::string& request);

 private:
  std::unique_ptr<Call> Open(const std::string& call);

  ManualClock clock_;
  const std::unique_ptr<Metrics> metrics_ = Metrics::Start({"replay", "run", "", "", ""}).value();
  std::unique_ptr<replay::Store> store_;
  std::unique_ptr<replay::ReplayService> replay_;
  std::unique_ptr<learner::ServedState> served_;
  std::unique_ptr<learner::LearnerService> learner_;
  std::unique_ptr<Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
};

}  // namespace datacom::golden

#endif  // DATACOM_TESTS_GOLDEN_FORMATS_CONVERSATION_H_
// SPDX-License-Identifier: Apache-2.0

// The recorded conversation: this build understands the requests of the build that recorded it and gives the same
// replies. A protocol that changes fails here until kProtocolVersion grows and a new golden folder is added.
#include "tests/golden/formats/conversation.h"

#include "absl/strings/str_cat.h"
#include "common/base/files.h"
#include "common/base/version.h"
#include "gmock/gmock.h"
#include "tests/golden/formats/format_files.h"
#include "tests/testing/is_ok.h"
#include "tests/testing/temporary_folder.h"

namespace datacom::golden {
namespace {

using ::datacom::testing::IsOk;
using ::datacom::testing::TemporaryFolder;
using ::testing::HasSubstr;

std::vector<Message> Recorded(const std::string& folder) {
  const auto content = ReadFile(folder + "/conversation");
  EXPECT_THAT(content, IsOk());
  const auto messages = Decode(content.value_or(""));
  EXPECT_THAT(messages, IsOk());
  return messages.value_or(std::vector<Message>());
}

std::string Newest() { return absl::StrCat(kGoldenFolder, "/", kNewest); }

// The same request of a peer that speaks another protocol. REQUIRES the first request of its call.
template <typename Request>
std::string WithProtocol(const std::string& bytes, uint32_t protocol) {
  Request request;
  EXPECT_TRUE(request.ParseFromString(bytes));
  if constexpr (std::is_same_v<Request, v1::InsertRequest>) {
    request.mutable_open()->mutable_hello()->set_protocol(protocol);
  } else {
    request.mutable_hello()->set_protocol(protocol);
  }
  return request.SerializeAsString();
}

std::string WithProtocol(const Message& message, uint32_t protocol) {
  if (message.call == "Register") return WithProtocol<v1::RegisterRequest>(message.bytes, protocol);
  if (message.call == "Insert") return WithProtocol<v1::InsertRequest>(message.bytes, protocol);
  if (message.call == "Draw") return WithProtocol<v1::DrawRequest>(message.bytes, protocol);
  if (message.call == "ReadRange") return WithProtocol<v1::ReadRangeRequest>(message.bytes, protocol);
  if (message.call == "Lease") return WithProtocol<v1::LeaseRequest>(message.bytes, protocol);
  if (message.call == "Fetch") return WithProtocol<v1::FetchRequest>(message.bytes, protocol);
  if (message.call == "ReadTaskFile") return WithProtocol<v1::TaskFileRequest>(message.bytes, protocol);
  if (message.call == "Report") return WithProtocol<v1::ReportRequest>(message.bytes, protocol);
  if (message.call == "LearnerInfo") return WithProtocol<v1::LearnerInfoRequest>(message.bytes, protocol);
  return WithProtocol<v1::SubscribeRequest>(message.bytes, protocol);
}

// The first request of every call.
std::map<std::string, Message> Openings(const std::vector<Message>& messages) {
  std::map<std::string, Message> openings;
  for (const Message& message : messages) {
    if (!message.reply) openings.insert({message.call, message});
  }
  return openings;
}

TEST(Conversation, TheServicesGiveTheRecordedReplies) {
  const std::vector<Message> recorded = Recorded(Newest());
  ASSERT_EQ(recorded.size(), 32u);
  const TemporaryFolder folder;
  Peers peers(folder.path());
  const auto answered = peers.Replay(recorded);
  ASSERT_THAT(answered, IsOk());
  for (size_t i = 0; i < recorded.size(); ++i) {
    EXPECT_TRUE((*answered)[i].bytes == recorded[i].bytes)
        << "message " << i << ", a reply to " << recorded[i].call
        << ": its bytes changed. Let kProtocolVersion grow and add a golden folder.";
  }
}

TEST(Conversation, ThisBuildsPeersSendTheRecordedRequests) {
  const std::vector<Message> recorded = Recorded(Newest()), script = Script();
  ASSERT_EQ(recorded.size(), script.size());
  for (size_t i = 0; i < recorded.size(); ++i) {
    EXPECT_EQ(recorded[i].call, script[i].call);
    ASSERT_EQ(recorded[i].reply, script[i].reply);
    if (script[i].reply) continue;
    EXPECT_TRUE(recorded[i].bytes == script[i].bytes)
        << "message " << i << ", a request of " << recorded[i].call
        << ": its bytes changed. Let kProtocolVersion grow and add a golden folder.";
  }
}

TEST(Conversation, TheRecordedMessagesHaveTheirValues) {
  const std::vector<Message> recorded = Recorded(Newest());
  ASSERT_EQ(recorded.size(), 32u);
  v1::RegisterRequest request;
  ASSERT_TRUE(request.ParseFromString(recorded[0].bytes));
  EXPECT_EQ(request.hello().protocol(), 4u);
  EXPECT_EQ(request.hello().run_id(), "run");
  EXPECT_EQ(request.actor(), "actor-0");
  v1::SnapshotChunk chunk;
  ASSERT_TRUE(chunk.ParseFromString(recorded[3].bytes));
  EXPECT_EQ(chunk.manifest().version().update(), 4u);
  EXPECT_EQ(chunk.manifest().scalars().at("delta"), 0.75);
  EXPECT_TRUE(chunk.last());
  v1::InsertReply refused;
  ASSERT_TRUE(refused.ParseFromString(recorded[9].bytes));
  EXPECT_EQ(refused.rejections(0).code(), static_cast<int>(absl::StatusCode::kOutOfRange));
  v1::InsertReply taken;
  ASSERT_TRUE(taken.ParseFromString(recorded[11].bytes));
  EXPECT_EQ(taken.committed(0).next_sequence(), 14u);
  EXPECT_EQ(taken.credit(0).limit(), 22u);
  v1::DrawReply draw;
  ASSERT_TRUE(draw.ParseFromString(recorded[15].bytes));
  EXPECT_EQ(draw.update(), 2u);
  EXPECT_EQ(draw.batches(0).rows_seen(), 12u);
  EXPECT_EQ(draw.batches(0).lanes(), 1u);
  v1::RowRange range;
  ASSERT_TRUE(range.ParseFromString(recorded[17].bytes));
  EXPECT_EQ(range.row_count(), 3u);
  EXPECT_EQ(range.actors().at(1), "actor-0");
}

TEST(Conversation, TheRecordedMessagesOfAnEvaluatorHaveTheirValues) {
  const std::vector<Message> recorded = Recorded(Newest());
  ASSERT_EQ(recorded.size(), 32u);
  v1::LeaseReply item;
  ASSERT_TRUE(item.ParseFromString(recorded[19].bytes));
  EXPECT_EQ(item.lease(), 4294967297u);  // the first lease of the learner's first start
  EXPECT_EQ(item.epoch(), 3u);
  EXPECT_EQ(item.episodes(), 2u);
  EXPECT_EQ(item.lease_seconds(), 60);
  v1::SnapshotChunk chunk;
  ASSERT_TRUE(chunk.ParseFromString(recorded[21].bytes));
  EXPECT_EQ(chunk.manifest().version().update(), 40u);
  EXPECT_TRUE(chunk.last());
  v1::LearnerInfo info;
  ASSERT_TRUE(info.ParseFromString(recorded[23].bytes));
  EXPECT_EQ(info.pending_evaluations(), 1u);
  EXPECT_EQ(info.phase(), "connecting");
  v1::ReportRequest report;
  ASSERT_TRUE(report.ParseFromString(recorded[24].bytes));
  EXPECT_EQ(report.episodes(1).discounted_return(), -2);
  v1::ReportReply accepted;
  ASSERT_TRUE(accepted.ParseFromString(recorded[25].bytes));
  EXPECT_TRUE(accepted.accepted());
  v1::LeaseReply last;
  ASSERT_TRUE(last.ParseFromString(recorded[27].bytes));
  EXPECT_EQ(last.lease(), 0u);
  EXPECT_TRUE(last.finished());
  v1::ReplayInfo replay;
  ASSERT_TRUE(replay.ParseFromString(recorded[29].bytes));
  v1::TaskFileChunk file;
  ASSERT_TRUE(file.ParseFromString(recorded[31].bytes));
  EXPECT_EQ(file.data(), "compressed");
  EXPECT_EQ(replay.completed_update(), 1u);
  EXPECT_TRUE(replay.learner_connected());
  EXPECT_EQ(replay.members(0).inserted(), 14u);
  EXPECT_EQ(replay.members(0).rejected_rows(), 1u);
  EXPECT_EQ(replay.sessions(0).actor(), "actor-0");
}

TEST(Conversation, APeerOfAnotherProtocolIsRefusedNamingBothNumbers) {
  const TemporaryFolder folder;
  Peers peers(folder.path());
  for (const auto& [call, opening] : Openings(Recorded(Newest()))) {
    if (call == "ReplayInfo") continue;  // answers every protocol
    for (const uint32_t protocol : {kProtocolVersion - 1, kProtocolVersion + 1}) {
      const absl::Status status = peers.FirstReply(call, WithProtocol(opening, protocol)).status();
      EXPECT_TRUE(absl::IsFailedPrecondition(status)) << call << ": " << status;
      EXPECT_THAT(std::string(status.message()), HasSubstr(absl::StrCat("speaks protocol ", protocol))) << call;
      EXPECT_THAT(std::string(status.message()), HasSubstr(absl::StrCat("speaks ", kProtocolVersion))) << call;
    }
  }
}

}  // namespace
}  // namespace datacom::golden
// SPDX-License-Identifier: Apache-2.0

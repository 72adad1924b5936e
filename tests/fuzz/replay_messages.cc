// Messages of actors and of a learner, handed to a replay as its service does (replay/streams.cc):
// every message is answered, and the replay holds exactly the rows that it accepted, also
// after a restart.
//
// Input: a byte, odd for replay.sync; then actions, each a byte of its kind and its arguments (Act). Bytes that are not
// a message of the kind are ignored, as gRPC ignores them.
#include <filesystem>

#include "replay/row_order.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/replay_inputs.h"
#include "tests/testing/manual_clock.h"

namespace datacom::fuzz {
namespace {

using ::datacom::replay::testing::MakeChunk;
using ::datacom::replay::testing::SimpleRows;

enum Kind { kRegister, kInsert, kRows, kDraw, kUpdates, kTime, kReconnect, kRestart, kRange, kHear, kRelease, kKinds };
constexpr int kMostActions = 64;
constexpr int kMostRestarts = 2;  // later ones are ignored: a restart takes as long as dozens of other actions

class Peers {
 public:
  explicit Peers(bool sync) : sync_(sync) {
    std::filesystem::remove_all(Folder() + "/replay");
    Open();
  }

  void Act(Input* input) {
    switch (input->Byte() % kKinds) {
      case kRegister: {
        const uint8_t name = input->Byte(), incarnation = input->Byte();
        return Register(std::string(name % 5, 'a'), incarnation, input->Short());
      }
      case kInsert:
        return HandleInsert(input->Text());
      case kRows: {
        const uint8_t member = input->Byte(), rows = input->Byte();
        const auto shift = static_cast<int8_t>(input->Byte());
        return HandleChunk(MakeChunk(member % 4, next_[member % kMembers] + static_cast<uint64_t>(int64_t{shift}),
                                     SimpleRows(input->Byte(), rows % 40, 1 + input->Byte() % 16)));
      }
      case kDraw: {
        v1::DrawRequest request;
        const absl::string_view bytes = input->Text();
        if (!request.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return;
        return HandleDraw(request);
      }
      case kUpdates: {
        v1::DrawRequest request;
        request.set_completed_update(input->Short());
        request.set_draw_update(input->Short());
        return HandleDraw(request);
      }
      case kTime:
        clock_.Advance(std::chrono::seconds(input->Byte()));
        Answered(store_->Tick());
        return Hear();
      case kReconnect:
        store_->Disconnect(session_, stream_);
        return Connect(input->Byte() % 8, incarnation_);
      case kRestart:
        if (++restarts_ <= kMostRestarts) Restart();
        return;
      case kRange: {
        v1::RowRange range;
        const uint8_t member = input->Byte();
        const uint64_t from = input->Short();
        return Answered(store_->ReadRange(member, from, from + input->Short(), &range));
      }
      case kHear:
        return Hear();
      case kRelease: {
        const uint8_t bits = input->Byte();
        v1::Release release;
        release.set_assignment(assignment_ - bits / 64);
        for (uint32_t member = 0; member < 3; ++member) {
          if (bits >> member & 1) release.add_members(member);
        }
        return HandleRelease(release);
      }
    }
  }

  void Restart() {
    MustAccept(store_->Commit());
    Check();
    const std::string content = Content(store_.get(), true);
    store_ = nullptr;
    Open();
    MUST(Content(store_.get(), true) == content);
    stream_ = 0;
  }

 private:
  static void Answered(const absl::Status& status) {
    if (!status.ok()) MustRefuse(status);
  }

  void Open() {
    auto store = OpenStore(Folder() + "/replay", &clock_, sync_);
    MustAccept(store.status());
    store_ = *std::move(store);
    greeted_ = false;
  }

  void Register(const std::string& actor, uint64_t incarnation, uint32_t environments) {
    const auto reply = store_->Register(actor, incarnation, environments);
    Answered(reply.status());
    if (reply.ok()) Connect(reply->session(), incarnation);
  }

  void Connect(uint32_t session, uint64_t incarnation) {
    const auto stream = store_->Connect(session, incarnation);
    Answered(stream.status());
    if (!stream.ok()) return;
    session_ = session;
    stream_ = *stream;
    incarnation_ = incarnation;
    progress_ = replay::InsertProgress{};
    next_.clear();
    Hear();
  }

  void Hear() {
    if (stream_ == 0) return;
    MustAccept(store_->Commit());
    v1::InsertReply reply;
    const auto changed = store_->Progress(session_, stream_, &progress_, &reply);
    Answered(changed.status());
    if (reply.has_assignment()) assignment_ = reply.assignment().number();
    for (const v1::Committed& committed : reply.committed()) next_[committed.member()] = committed.next_sequence();
    for (const v1::Credit& credit : reply.credit()) MUST(credit.limit() >= next_[credit.member()]);
  }

  void HandleInsert(absl::string_view bytes) {
    v1::InsertRequest request;
    if (!request.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return;
    if (request.has_open() && stream_ == 0) return Connect(request.open().session(), request.open().incarnation());
    if (request.has_release()) return HandleRelease(request.release());
    if (!request.has_open() && stream_ != 0) HandleChunk(request.chunk());
  }

  void HandleRelease(const v1::Release& release) {
    if (stream_ == 0) return;
    Answered(store_->Release(session_, stream_, release));
    Hear();
  }

  void HandleChunk(const v1::Chunk& chunk) {
    if (stream_ == 0) return;
    v1::InsertReply reply;
    const absl::Status status = store_->Insert(session_, stream_, chunk, &reply);
    Answered(status);
    for (const v1::Rejection& rejection : reply.rejections())
      MUST(rejection.code() != 0 && !rejection.message().empty());
    if (status.ok() && reply.rejections().empty()) Remember(chunk);
    if (!sync_ || chunk.row_count() % 2 == 0) Hear();  // with sync the rows of other chunks wait for a commit
  }

  // The rows of an accepted chunk that are new.
  void Remember(const v1::Chunk& chunk) {
    const uint64_t count = chunk.row_count();
    MUST(chunk.member() < kMembers && chunk.columns().size() == count * Schema().wire_row_bytes());
    const uint64_t next = next_[chunk.member()];
    MUST(chunk.first_sequence() <= next);
    const uint64_t known = next - chunk.first_sequence();
    if (known >= count) return;
    next_[chunk.member()] += count - known;
    Accepted& accepted = accepted_[chunk.member()];
    accepted.rows += count - known;
    size_t begin = 0;
    for (size_t column = 0; column < accepted.columns.size(); ++column) {
      const size_t bytes = Schema().wire()[column].bytes();
      accepted.columns[column].append(chunk.columns(), begin + known * bytes, (count - known) * bytes);
      begin += count * bytes;
    }
  }

  void HandleDraw(const v1::DrawRequest& request) {
    if (!greeted_) learner_ = request.incarnation();
    greeted_ = true;
    const absl::Status announced = store_->Announce(request.completed_update(), learner_);
    Answered(announced);
    if (!announced.ok()) return;
    if (request.draw_update() == 0) return;
    v1::DrawReply first, second;
    const absl::Status drawn = store_->Draw(request.draw_update(), &first);
    Answered(drawn);
    if (absl::IsUnavailable(drawn)) MUST(!store_->DescribeMissingRows(request.draw_update()).empty());
    if (!drawn.ok()) return;
    MustAccept(store_->Draw(request.draw_update(), &second));
    MUST(first.SerializeAsString() == second.SerializeAsString());
    for (const v1::MemberBatch& batch : first.batches()) MUST(batch.main().size() == 8 * Schema().learning_row_bytes());
  }

  // The newest rows that the replay holds are the newest ones that it accepted. REQUIRES that nothing is staged.
  void Check() {
    v1::ReplayInfo info;
    store_->Info(&info);
    for (uint32_t member = 0; member < kMembers; ++member) {
      const Accepted& accepted = accepted_[member];
      MUST(info.members(static_cast<int>(member)).inserted() == accepted.rows);
      const uint64_t first = accepted.rows - std::min(accepted.rows, KeptRows());
      v1::RowRange range;
      MustAccept(store_->ReadRange(member, first, accepted.rows, &range));
      std::string expected;
      for (size_t column = 0; column < accepted.columns.size(); ++column)
        expected.append(accepted.columns[column], first * Schema().wire()[column].bytes());
      MUST(range.columns().substr(0, expected.size()) == expected);
    }
  }

  struct Accepted {
    uint64_t rows = 0;
    std::vector<std::string> columns{Schema().wire().size()};  // cells of all rows, by wire column
  };

  const bool sync_;
  ManualClock clock_;
  std::unique_ptr<replay::Store> store_;
  uint32_t session_ = 0, learner_ = 0;
  uint64_t stream_ = 0, incarnation_ = 0, assignment_ = 0;
  int restarts_ = 0;
  bool greeted_ = false;
  replay::InsertProgress progress_;
  std::map<uint32_t, uint64_t> next_;  // sequence of the session's next row, by member
  Accepted accepted_[kMembers];
};

std::string Action(Kind kind, const std::string& arguments) {
  return std::string(1, static_cast<char>(kind)) + arguments;
}

}  // namespace

static void Run(absl::string_view bytes) {
  Input input(bytes);
  Peers peers(input.Byte() % 2 == 1);
  for (int i = 0; i < kMostActions && !input.empty(); ++i) peers.Act(&input);
  peers.Restart();
}

static std::vector<Seed> Seeds() {
  const std::string join = Action(kRegister, std::string("\x01\x01", 2) + Short(2));
  const auto rows = [](int member, int count, int shift) {
    return Action(kRows,
                  std::string{static_cast<char>(member), static_cast<char>(count), static_cast<char>(shift), 3, 4});
  };
  const auto updates = [](uint16_t completed, uint16_t draw) {
    return Action(kUpdates, Short(completed) + Short(draw));
  };
  v1::InsertRequest open, chunk;
  open.mutable_open()->set_session(1);
  open.mutable_open()->set_incarnation(1);
  *chunk.mutable_chunk() = MakeChunk(0, 0, SimpleRows(0, 4));
  v1::DrawRequest draw;
  draw.set_incarnation(1);
  draw.set_draw_update(1);
  std::string learning = join;
  for (uint16_t round = 0; round < 12; ++round) {
    learning += rows(0, 4, 0) + rows(1, 4, 0);
    if (round > 3) learning += updates(static_cast<uint16_t>(4 * round - 14), static_cast<uint16_t>(4 * round - 13));
  }
  const std::string plain(1, '\0'), sync(1, '\1');
  const std::string range = Action(kRange, std::string(1, '\0') + Short(3) + Short(20));
  return {{"learning", plain + learning + range},
          {"learning_sync", sync + learning + range},
          {"messages", plain + join + Action(kReconnect, "\x01") + Action(kInsert, Text(open.SerializeAsString())) +
                           Action(kInsert, Text(chunk.SerializeAsString())) +
                           Action(kDraw, Text(draw.SerializeAsString()))},
          {"gap_and_repeat",
           plain + join + rows(0, 5, 0) + rows(0, 5, 2) + rows(0, 5, -3) + rows(3, 1, 0) + rows(0, 39, 0)},
          {"release", sync + join + rows(0, 5, 0) + Action(kRegister, std::string("\x02\x02", 2) + Short(2)) +
                          rows(1, 4, 0) + Action(kReconnect, "\x01") + Action(kRelease, "\x03") + Action(kHear, "") +
                          rows(0, 5, 0)},
          {"leases", plain + join + rows(0, 8, 0) + Action(kReconnect, "\x01") + Action(kTime, "\x28") +
                         Action(kTime, "\x28") + Action(kRegister, std::string("\x02\x02", 2) + Short(1)) +
                         rows(0, 8, 0) + Action(kRestart, "")}};
}

static const Target kTarget("replay_messages", Run, Seeds);

}  // namespace datacom::fuzz
// SPDX-License-Identifier: Apache-2.0

// Requests of evaluators (learner/evaluations.h): every item is leased and reported at most once, and epochs leave in
// order.
//
// Input: actions, each a byte of its kind and its arguments.
#include "learner/evaluations.h"

#include <cmath>

#include "tests/fuzz/fuzz_target.h"
#include "tests/testing/manual_clock.h"

namespace datacom::fuzz {
namespace {

using learner::Evaluations;

enum Kind { kAdd, kLease, kLeaseBytes, kReport, kReportBytes, kTime, kPop, kFinish, kKinds };
constexpr int kMostActions = 128;
constexpr uint32_t kEpisodes = 2;

class Learner {
 public:
  void Act(Input* input) {
    switch (input->Byte() % kKinds) {
      case kAdd:
        return Add(input->Byte() % 4);
      case kLease:
        return Lease(std::string(1, static_cast<char>('a' + input->Byte() % 3)));
      case kLeaseBytes: {
        v1::LeaseRequest request;
        const absl::string_view bytes = input->Text();
        if (request.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) Lease(request.evaluator());
        return;
      }
      case kReport: {
        v1::ReportRequest request = leased_;
        for (uint8_t i = input->Byte() % 4; i > 0; --i) request.add_episodes()->set_return_(input->Byte());
        return Report(request);
      }
      case kReportBytes: {
        v1::ReportRequest request;
        const absl::string_view bytes = input->Text();
        if (request.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) Report(request);
        return;
      }
      case kTime:
        clock_.Advance(std::chrono::seconds(input->Byte()));
        return;
      case kPop:
        return Pop();
      case kFinish:
        return evaluations_.Finish();
    }
  }

  // Reports all items and pops all epochs.
  void Empty() {
    clock_.Advance(std::chrono::seconds(1000));
    while (evaluations_.pending_items() > 0) {
      Lease("last");
      MUST(leased_.lease() != 0);
      v1::ReportRequest request = leased_;
      for (uint32_t i = 0; i < kEpisodes; ++i) request.add_episodes();
      const uint32_t before = evaluations_.pending_items();
      Report(request);
      MUST(evaluations_.pending_items() == before - 1);
    }
    while (popped_ < added_) Pop();
    MUST(evaluations_.Pending().empty());
    evaluations_.Finish();
    MUST(evaluations_.Lease("last").finished());
  }

 private:
  static Evaluations::Options Options(const Clock* clock) {
    Evaluations::Options options;
    options.clock = clock;
    options.episodes = kEpisodes;
    return options;
  }

  void Add(uint32_t members) {
    v1::EpochRecord record;
    record.set_epoch(added_++);
    for (uint32_t i = 0; i < members; ++i) record.add_members();
    evaluations_.Add(record);
  }

  void Lease(const std::string& evaluator) {
    const v1::LeaseReply reply = evaluations_.Lease(evaluator);
    MUST(reply.lease() == 0 || (evaluations_.pending_items() > 0 && reply.epoch() < added_));
    MUST(!reply.finished() || evaluations_.pending_items() == 0);
    leased_.Clear();
    leased_.set_lease(reply.lease());
    leased_.set_member(reply.member());
    leased_.set_epoch(reply.epoch());
  }

  void Report(const v1::ReportRequest& request) {
    const uint32_t before = evaluations_.pending_items();
    const auto accepted = evaluations_.Report(request);
    const uint32_t after = evaluations_.pending_items();
    if (!accepted.ok()) MustRefuse(accepted.status());
    MUST(after == before || (accepted.ok() && *accepted && after == before - 1));
  }

  void Pop() {
    const auto record = evaluations_.PopCompleted();
    if (!record.has_value()) return;
    MUST(record->epoch() == popped_++);
    for (const v1::MemberEpoch& member : record->members()) {
      MUST(member.evaluated() && member.evaluation_size() == static_cast<int>(kEpisodes));
      for (const v1::EvaluationEpisode& episode : member.evaluation()) MUST(std::isfinite(episode.return_()));
    }
  }

  ManualClock clock_;
  Evaluations evaluations_{Options(&clock_)};
  v1::ReportRequest leased_;
  uint32_t added_ = 0, popped_ = 0;
};

}  // namespace

static void Run(absl::string_view bytes) {
  Input input(bytes);
  Learner learner;
  for (int i = 0; i < kMostActions && !input.empty(); ++i) learner.Act(&input);
  learner.Empty();
}

static std::vector<Seed> Seeds() {
  const auto act = [](Kind kind, const std::string& arguments) {
    return std::string(1, static_cast<char>(kind)) + arguments;
  };
  v1::LeaseRequest lease;
  lease.set_evaluator("b");
  v1::ReportRequest report;
  report.set_lease(uint64_t{1} << 32 | 1);
  report.add_episodes()->set_return_(3);
  report.add_episodes()->set_success(true);
  const std::string begin = act(kAdd, "\x02") + act(kAdd, "\x01"), asks = act(kLease, std::string(1, '\0'));
  return {
      {"reports", begin + asks + act(kReport, "\x02\x01\x02") + asks + act(kReport, "\x02\x01\x02") + act(kPop, "")},
      {"bytes", begin + act(kLeaseBytes, Text(lease.SerializeAsString())) +
                    act(kReportBytes, Text(report.SerializeAsString())) + act(kFinish, "")},
      {"late", begin + asks + act(kTime, "\x50") + act(kLease, "\x01") + act(kReport, "\x02\x01\x02") + act(kPop, "")}};
}

static const Target kTarget("evaluations", Run, Seeds);

}  // namespace datacom::fuzz
// SPDX-License-Identifier: Apache-2.0

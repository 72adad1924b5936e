#include "actor/rollout.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/log.h"
#include "common/base/status.h"
#include "common/rpc/assignment.h"

namespace datacom::actor {
namespace {

constexpr uint64_t kTimedEvery = 64;        // one iteration in so many is timed, which keeps the hot path cheap
constexpr uint64_t kGaugesEvery = 256;      // iterations between updates of the gauges of snapshot age and lag
constexpr uint64_t kMostWithoutRow = 1000;  // abandoned episodes after which a task without any row is given up

}  // namespace

Rollout::Rollout(Parts parts, InsertSession* session, SnapshotSubscriber* subscriber, ActorMetrics* metrics,
                 Options options)
    : parts_(std::move(parts)),
      session_(session),
      subscriber_(subscriber),
      metrics_(metrics),
      options_(std::move(options)),
      seen_(parts_.schema.obs_dim()),
      command_(parts_.schema.action_dim()) {}

absl::StatusOr<std::unique_ptr<Rollout>> Rollout::Make(Parts parts, InsertSession* session,
                                                       SnapshotSubscriber* subscriber, ActorMetrics* metrics,
                                                       Options options) {
  std::unique_ptr<Rollout> rollout(new Rollout(std::move(parts), session, subscriber, metrics, std::move(options)));
  RETURN_IF_ERROR(rollout->Adopt());
  for (const v1::OpenEpisode& open : session->registration().open_episodes()) {
    const auto state = std::find_if(rollout->members_.begin(), rollout->members_.end(),
                                    [&](const MemberState& each) { return each.member == open.member(); });
    if (state == rollout->members_.end()) {
      return absl::InternalError(absl::StrCat("open episode of member ", open.member(), ", which is not this actor's"));
    }
    RETURN_IF_ERROR(state->environments->Continue(open));
  }
  return rollout;
}

absl::Status Rollout::Adopt() {
  std::shared_ptr<const v1::Assignment> assignment = session_->assignment();
  if (assignment == assignment_) return absl::OkStatus();
  const bool first = assignment_ == nullptr;
  assignment_ = std::move(assignment);
  for (MemberState& state : members_) state.served = false;
  uint32_t lanes = 0;
  for (const v1::MemberLanes& entry : assignment_->members()) {
    RETURN_IF_ERROR(Serve(entry.member(), entry.lanes()));
    lanes += entry.lanes();
  }
  for (MemberState& state : members_) {
    if (state.served) continue;
    state.rule = nullptr;
    state.snapshot = nullptr;
  }
  if (!first)
    spdlog::info("assignment number={} members=\"{}\" lanes={}", assignment_->number(), DescribeMembers(*assignment_),
                 lanes);
  Subscribe();
  ReportEnvironments();
  ReportReady();
  return absl::OkStatus();
}

absl::Status Rollout::Serve(uint32_t member, uint32_t lanes) {
  ASSIGN_OR_RETURN(MemberState * state, FindOrAdd(member));
  state->served = true;
  state->released = false;
  const int before = state->environments->size();
  RETURN_IF_ERROR(state->environments->SetWanted(static_cast<int>(lanes)));
  const size_t count = state->environments->size();
  if (state->environments->size() > before) {  // its rule was made for smaller batches
    state->rule = nullptr;
    state->snapshot = nullptr;
  }
  if (count <= chosen_.size()) return absl::OkStatus();
  chosen_.resize(count);
  observations_.resize(count * parts_.schema.obs_dim());
  costs_.resize(count);
  actions_.resize(count * parts_.schema.action_dim());
  demonstrations_.resize(actions_.size());
  intervention_.resize(count);
  return absl::OkStatus();
}

absl::StatusOr<Rollout::MemberState*> Rollout::FindOrAdd(uint32_t member) {
  for (MemberState& state : members_) {
    if (state.member == member) return &state;
  }
  if (member >= parts_.member_seeds.size()) {
    return absl::FailedPreconditionError(
        absl::StrCat("member ", member, ": the experiment has ", parts_.member_seeds.size(), " members"));
  }
  const EnvironmentBatch::Seeds seeds = {parts_.run_seed, parts_.member_seeds[member],
                                         session_->registration().session()};
  MemberState state = {.member = member,
                       .environments = std::make_unique<EnvironmentBatch>(parts_.make_task, seeds),
                       .chunk = RowChunk(parts_.schema, std::max(options_.chunk_rows, 1u))};
  members_.push_back(std::move(state));
  return &members_.back();
}

// Tells the replay that a member that leaves has no open episode any more.
absl::Status Rollout::Release(MemberState* state) {
  state->waits_for = WaitsFor::kNothing;
  if (state->released) return absl::OkStatus();
  RETURN_IF_ERROR(Flush(state));
  session_->Release(state->member, assignment_->number());
  state->released = true;
  ReportReady();
  return absl::OkStatus();
}

void Rollout::Subscribe() {
  std::vector<uint32_t> members;
  for (const MemberState& state : members_) {
    if (state.served && !state.environments->acting().empty()) members.push_back(state.member);
  }
  std::sort(members.begin(), members.end());
  subscriber_->SetMembers(members);
}

void Rollout::ReportEnvironments() {
  size_t acting = 0;
  for (const MemberState& state : members_) acting += state.environments->acting().size();
  metrics_->environments.Set(static_cast<double>(acting));
}

void Rollout::ReportReady() {
  const auto acts = [](const MemberState& state) { return state.served && !state.environments->acting().empty(); };
  if (ready_ || std::any_of(members_.begin(), members_.end(),
                            [&](const MemberState& state) { return acts(state) && state.snapshot == nullptr; }))
    return;
  ready_ = true;
  options_.on_ready();
}

absl::Status Rollout::Run() {
  while (true) {
    RETURN_IF_ERROR(session_->status());
    RETURN_IF_ERROR(subscriber_->status());
    if (session_->finished()) return absl::OkStatus();
    if (options_.stop()) {
      for (MemberState& state : members_) RETURN_IF_ERROR(Flush(&state));
      Send();
      return absl::CancelledError("stopping was requested");
    }
    RETURN_IF_ERROR(Adopt());
    int stepped = 0;
    for (MemberState& state : members_) {
      if (!state.served) continue;
      ASSIGN_OR_RETURN(const int count, StepMember(&state));
      stepped += count;
    }
    Send();
    if (iteration_++ % kGaugesEvery == 0) ReportSnapshots();
    if (stepped > 0) {
      waiting_ = false;
      continue;
    }
    Wait();
  }
}

bool Rollout::Fresh(const Snapshot* snapshot, const InsertSession::Allowance& allowance) const {
  if (snapshot == nullptr) return false;
  return parts_.lockstep ? snapshot->version.update == allowance.min_policy_update
                         : snapshot->version.update >= allowance.min_policy_update;
}

absl::StatusOr<int> Rollout::StepMember(MemberState* state) {
  if (state->environments->acting().empty()) {
    RETURN_IF_ERROR(Release(state));
    return 0;
  }
  const InsertSession::Allowance allowance = session_->allowance(state->member);
  const uint64_t unsent = state->chunk.rows();
  std::shared_ptr<const Snapshot> snapshot = subscriber_->Latest(state->member);
  state->waits_for = allowance.rows <= unsent            ? WaitsFor::kCredit
                     : !Fresh(snapshot.get(), allowance) ? WaitsFor::kSnapshot
                                                         : WaitsFor::kNothing;
  if (state->waits_for != WaitsFor::kNothing) {
    // The next draw may wait for these rows while other members keep stepping.
    RETURN_IF_ERROR(Flush(state));
    return 0;
  }
  if (snapshot != state->snapshot) RETURN_IF_ERROR(LoadSnapshot(state, std::move(snapshot)));
  const uint64_t room = std::min<uint64_t>(allowance.rows - unsent, state->chunk.capacity() - unsent);
  const int batch = static_cast<int>(std::min<uint64_t>(room, state->environments->acting().size()));
  const bool timed = iteration_ % kTimedEvery == 0;
  Send();  // members that cannot step need not wait for this one
  Act(state, batch, timed);
  const Clock::Time before = timed ? options_.clock->Now() : Clock::Time{};
  int ended = 0, abandoned = 0;
  for (int i = 0; i < batch; ++i) {
    state->environments->Prepare(chosen_[i], state->acted.executed + i * parts_.schema.action_dim());
  }
  for (int i = 0; i < batch; ++i) {
    const EnvironmentBatch::Outcome outcome = state->environments->Step(chosen_[i], state->acted, i, &state->chunk);
    ended += outcome == EnvironmentBatch::Outcome::kEnded;
    abandoned += outcome == EnvironmentBatch::Outcome::kAbandoned;
  }
  if (timed) metrics_->step.Observe(Seconds(options_.clock->Now() - before) / batch);
  metrics_->env_steps.Increment(batch);
  metrics_->rows.Increment(batch - abandoned);
  rows_ += batch - abandoned;
  if (ended > 0) metrics_->episodes.Increment(ended);
  if (ended + abandoned > 0) {
    RETURN_IF_ERROR(state->environments->status());  // a task that breaks abandons its episode, or fails in a reset
    ReportEnvironments();                            // those that are no longer wanted stop
  }
  if (abandoned > 0) {
    metrics_->abandoned_invalid.Increment(abandoned);
    RETURN_IF_ERROR(CountAbandoned(*state, abandoned));
  }
  if (state->chunk.rows() == state->chunk.capacity() || ++state->chunk_age >= options_.flush_iterations) {
    RETURN_IF_ERROR(Flush(state));
  }
  return batch;
}

absl::Status Rollout::CountAbandoned(const MemberState& state, int count) {
  abandoned_ += count;
  const std::string& why = state.environments->first_fault();
  if (rows_ == 0 && abandoned_ >= kMostWithoutRow) {
    return absl::InvalidArgumentError(
        absl::StrCat(abandoned_, " episodes were abandoned and none gave a row; the first one: ", why,
                     ". `datacom task check` plays a task file and names every such number"));
  }
  if (abandoned_ < abandoned_logged_) return absl::OkStatus();
  abandoned_logged_ = 2 * abandoned_;
  spdlog::warn("episodes abandoned so far={} last_member={}: {} (in the member's first such episode)", abandoned_,
               state.member, why);
  return absl::OkStatus();
}

void Rollout::Act(MemberState* state, int batch, bool timed) {
  const size_t obs_dim = parts_.schema.obs_dim();
  const int noise_dim = state->rule->noise_dim();
  const std::vector<int>& acting = state->environments->acting();
  const int count = static_cast<int>(acting.size());
  for (int i = 0; i < batch; ++i) {
    const int environment = acting[(state->turn + i) % count];
    chosen_[i] = environment;
    const float* observation = state->environments->observation(environment);
    std::copy(observation, observation + obs_dim, &observations_[i * obs_dim]);
    costs_[i] = state->environments->previous_cost(environment);
    const std::vector<float>& memory = state->environments->memory(environment);
    std::copy(memory.begin(), memory.end(), memory_.begin() + i * memory.size());
    state->environments->FillNoise(environment, noise_dim, noise_.data() + static_cast<size_t>(i) * noise_dim);
  }
  state->turn = (state->turn + batch) % count;
  ActingDiagnostics diagnostics;
  if (timed) diagnostics.intervention = intervention_.data();
  const Clock::Time before = timed ? options_.clock->Now() : Clock::Time{};
  state->rule->Act(batch,
                   {observations_.data(), noise_.data(), costs_.data(), memory_.data(), Demonstrate(*state, batch)},
                   actions_.data(), diagnostics);
  const float* const executed = state->rule->executed();
  state->acted.actions = actions_.data();
  state->acted.executed = executed != nullptr ? executed : actions_.data();
  state->acted.memory = memory_.data();
  if (!timed) return;
  metrics_->safe_map.Observe(Seconds(options_.clock->Now() - before) / batch);
  for (int i = 0; i < batch; ++i) metrics_->intervention.Observe(intervention_[i]);
}

const float* Rollout::Demonstrate(const MemberState& state, int batch) {
  const Demonstrations& with = parts_.demonstrations;
  if (with.share <= 0 || state.snapshot->version.update >= with.until_update) return nullptr;
  const size_t n = command_.size();
  for (int i = 0; i < batch; ++i) {
    float* const out = demonstrations_.data() + i * n;
    *out = std::numeric_limits<float>::quiet_NaN();
    if (!state.environments->EpisodeIsWithin(chosen_[i], with.share)) continue;
    std::copy_n(observations_.data() + i * seen_.size(), seen_.size(), seen_.data());
    with.act(seen_.data(), command_.data());
    std::transform(command_.begin(), command_.end(), out, [](double value) { return static_cast<float>(value); });
  }
  return demonstrations_.data();
}

absl::Status Rollout::LoadSnapshot(MemberState* state, std::shared_ptr<const Snapshot> snapshot) {
  absl::Status status;
  if (state->rule == nullptr) {
    absl::StatusOr<std::unique_ptr<ActingRule>> rule = parts_.make_rule(*snapshot, state->environments->size());
    status = rule.status();
    if (rule.ok()) {
      state->rule = *std::move(rule);
      const auto count = static_cast<size_t>(state->environments->size());
      noise_.resize(std::max(noise_.size(), count * state->rule->noise_dim()));
      memory_.resize(std::max(memory_.size(), count * state->rule->memory_dim()));
      state->environments->SetMemory(state->rule->memory_dim());
      state->acted.columns = state->rule->columns();
    }
  } else {
    status = state->rule->Load(*snapshot);
  }
  if (!status.ok()) {
    metrics_->discarded.Increment();
    return absl::FailedPreconditionError(absl::StrCat("snapshot of member ", state->member, " at update ",
                                                      snapshot->version.update, " does not fit: ", status.message()));
  }
  state->snapshot = std::move(snapshot);
  state->acted.policy = state->snapshot->version;
  ReportReady();
  return absl::OkStatus();
}

absl::Status Rollout::Flush(MemberState* state) {
  state->chunk_age = 0;
  const uint32_t rows = state->chunk.rows();
  if (rows == 0) return absl::OkStatus();
  const absl::Status status =
      session_->Append(state->member, rows, state->chunk.Take(), state->environments->first_fault());
  appended_ = true;
  if (status.ok()) return status;
  // An ended session rejects rows before the loop has checked it; the session's status says what to do next.
  RETURN_IF_ERROR(session_->status());
  return status;
}

void Rollout::Send() {
  if (std::exchange(appended_, false)) session_->Send();
}

void Rollout::Wait() {
  const bool snapshot =
      std::any_of(members_.begin(), members_.end(), [](const MemberState& state) { return WaitsForSnapshot(state); });
  const WaitsFor reason = snapshot ? WaitsFor::kSnapshot : WaitsFor::kCredit;
  const Clock::Time before = options_.clock->Now();
  if (!waiting_) {
    waiting_ = true;
    wait_started_ = wait_logged_ = before;
  }
  options_.wait(options_.wait_slice);
  const Clock::Time after = options_.clock->Now();
  (reason == WaitsFor::kSnapshot ? metrics_->wait_snapshot : metrics_->wait_credit).Increment(Seconds(after - before));
  if (after - wait_logged_ >= options_.patience) {
    wait_logged_ = after;
    LogWait(reason);
    ReportSnapshots();
  }
}

void Rollout::LogWait(WaitsFor reason) {
  const double seconds = Seconds(wait_logged_ - wait_started_);
  if (assignment_->members().empty()) {
    spdlog::info("waiting seconds={:.0f} for=replay reason=member detail=\"other actors run all lanes\"", seconds);
    return;
  }
  if (reason == WaitsFor::kCredit) {
    const std::string detail = session_->waiting_for();
    spdlog::info("waiting seconds={:.0f} for=replay reason=credit detail=\"{}\"", seconds,
                 detail.empty() ? "no credit and no reason received; the replay may be unreachable" : detail);
    return;
  }
  for (const MemberState& state : members_) {
    if (!WaitsForSnapshot(state)) continue;
    const std::shared_ptr<const Snapshot> snapshot = subscriber_->Latest(state.member);
    spdlog::info("waiting seconds={:.0f} for=learner reason=snapshot member={} needs_update={} has_update={}", seconds,
                 state.member, session_->allowance(state.member).min_policy_update,
                 snapshot == nullptr ? "none" : std::to_string(snapshot->version.update));
    return;
  }
}

void Rollout::ReportSnapshots() {
  double age = 0, lag = 0;
  for (const MemberState& state : members_) {
    age = std::max(age, subscriber_->age_seconds(state.member));
    if (!state.served || state.snapshot == nullptr) continue;
    // The replay requires at least the learner's update minus the allowed lag, which gives the newest update known
    // here.
    const uint64_t required = session_->allowance(state.member).min_policy_update;
    const uint64_t newest = required == 0 ? 0 : required + parts_.max_policy_lag;
    const uint64_t acting = state.snapshot->version.update;
    lag = std::max(lag, newest > acting ? static_cast<double>(newest - acting) : 0.0);
  }
  metrics_->snapshot_age.Set(age);
  metrics_->policy_lag.Set(lag);
  const uint64_t discarded = subscriber_->discarded();
  if (discarded > discarded_) metrics_->discarded.Increment(static_cast<double>(discarded - discarded_));
  discarded_ = std::max(discarded_, discarded);
}

}  // namespace datacom::actor
// SPDX-License-Identifier: Apache-2.0

#include "learner/algorithms/population.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>

#include "learner/nn/named_stream.h"

namespace datacom::learner {
namespace {

constexpr int kMostOptimizers = 8;

// A standard normal number of at most 2.
double TruncatedNormal(NamedStream* stream) {
  while (true) {
    const double radius = std::sqrt(-2 * std::log(1 - stream->Uniform()));
    const double drawn = radius * std::cos(2 * std::acos(-1.0) * stream->Uniform());
    if (std::abs(drawn) <= 2) return drawn;
  }
}

}  // namespace

Population::Population(const AlgorithmConfig& config)
    : config_(config),
      members_(static_cast<int>(config.members.size())),
      kernels_(MakeKernels(config.learner.kernels(), config.learner.device(), config.learner.precision(),
                           config.team.get())),
      critic_kernels_(kernels_->Group<CriticKernels>()) {
  if (members_ < 1) throw std::invalid_argument("a population needs at least one member");
  block_ = kernels_->BlockSize(members_);
}

void Population::Build() {
  const int size = static_cast<int>(layout_.size());
  state_ = kernels_->NewFloats(members_, 3, size);
  parameters_ = state_.Rows(0, 1), first_moment_ = state_.Rows(1, 1), second_moment_ = state_.Rows(2, 1);
  gradients_ = kernels_->NewFloats(block_, 1, size);
  targets_ = kernels_->NewFloats(members_, 1, static_cast<int>(target_size_));
  Register("parameters", parameters_), Register("targets", targets_);
  Register("adam.first", first_moment_), Register("adam.second", second_moment_);
  learning_rates_ = kernels_->NewDoubles(members_, kMostOptimizers, 1);
  steps_ = kernels_->NewDoubles(members_, kMostOptimizers, 1);
  values_ = kernels_->NewDoubles(block_, kMostStatistics, 1);
  signs_ = kernels_->NewDoubles(1, kMostStatistics, 1);
  sums_ = kernels_->NewDoubles(members_, kMostStatistics, 2);
  active_ = kernels_->NewDoubles(members_, 1, 1, 1);
  Register("active", active_);
  const auto half_life = [](const MemberConfig& member) { return member.hyper.rate_half_life() > 0; };
  if (std::any_of(config_.members.begin(), config_.members.end(), half_life)) {
    decay_ =
        NewScalar([](const v1::Hyper& hyper) { return hyper.rate_half_life() > 0 ? 1 / hyper.rate_half_life() : 0; });
  }
  Initialise();
  q_min_ = NewStatistic(v1::MemberEpoch::kQMinFieldNumber);  // the smallest value comes before sums (StatisticRows)
  policy_loss_ = NewStatistic(v1::MemberEpoch::kPolicyLossFieldNumber);
  critic_loss_ = NewStatistic(v1::MemberEpoch::kCriticLossFieldNumber);
  q_mean_ = NewStatistic(v1::MemberEpoch::kQMeanFieldNumber);
  q_gap_ = NewStatistic(v1::MemberEpoch::kQGapFieldNumber);
}

// Each array of a member is drawn from its own named stream, so it depends only on run seed, member seed and name.
void Population::Initialise() {
  std::vector<float> values(layout_.size());
  for (int m = 0; m < members_; ++m) {
    std::fill(values.begin(), values.end(), 0.0f);
    for (const ParameterArray& array : layout_.arrays()) {
      NamedStream stream(NamedKey("learner.init." + array.name, {config_.run_seed, config_.members[m].seed}));
      for (int64_t i = 0; i < array.size(); ++i) {
        const double apart = array.deviation > 0 ? array.deviation * TruncatedNormal(&stream)
                                                 : stream.Uniform(-array.bound, array.bound);
        values[array.offset + i] = static_cast<float>(array.centre + apart);
      }
    }
    kernels_->Upload(values.data(), parameters_.Members(m, 1));
    kernels_->Upload(values.data(), targets_.Members(m, 1));
  }
}

Optimizer Population::NewOptimizer(const std::string& name, int gradient_norm_field, int64_t first, int64_t size,
                                   double (v1::Hyper::*learning_rate)() const) {
  const int row = static_cast<int>(ranges_.size());
  if (row == kMostOptimizers) throw std::logic_error("a population has too many optimisers, beginning with " + name);
  ranges_.push_back({static_cast<int>(first), static_cast<int>(size)});
  Optimizer optimizer;
  optimizer.row = row, optimizer.first = first, optimizer.size = size;
  optimizer.learning_rate = learning_rates_.Rows(row, 1);
  optimizer.gradient_norm_field = gradient_norm_field, optimizer.gradient_norm = NewSum(gradient_norm_field != 0, 1);
  kernels_->Upload(HyperValues<double>(config_, learning_rate).data(), optimizer.learning_rate);
  Register("steps." + name, steps_.Rows(row, 1));
  Register("stats.gradient_norm." + name, optimizer.gradient_norm.sum);
  if (gradient_norm_field != 0) Show(gradient_norm_field, &optimizer.gradient_norm);
  return optimizer;
}

UndoRange Population::NewUndoRange(const std::vector<Optimizer>& optimizers) {
  UndoRange range;
  range.first = layout_.size();
  int64_t end = 0;
  int first_row = kMostOptimizers, end_row = 0;
  for (const Optimizer& optimizer : optimizers) {
    range.first = std::min(range.first, optimizer.first);
    end = std::max(end, optimizer.first + optimizer.size);
    first_row = std::min(first_row, optimizer.row);
    end_row = std::max(end_row, optimizer.row + 1);
  }
  range.steps = steps_.Rows(first_row, end_row - first_row);
  range.kept_steps = kernels_->NewDoubles(block_, range.steps.rows, 1);
  range.state = kernels_->NewFloats(block_, 3, static_cast<int>(end - range.first));
  return range;
}

Statistic Population::NewSum(bool shown, double sign) {
  if (shown_rows_ == first_other_row_) throw std::logic_error("a population has too many statistics and optimisers");
  const int row = shown ? shown_rows_++ : --first_other_row_;
  kernels_->Upload(&sign, signs_.Rows(row, 1));
  return {row, sums_.Rows(row, 1), values_.Rows(row, 1)};
}

void Population::Show(int field, Statistic* statistic) {
  const EpochStatistic shown(v1::MemberEpoch::descriptor()->FindFieldByNumber(field));
  statistic->smallest = shown.about().fold() == v1::Statistic::MIN;
  shown_.emplace_back(shown, *statistic);
}

Statistic Population::NewStatistic(int field, double sign) {
  Statistic statistic = NewSum(/*shown=*/true, sign);
  Show(field, &statistic);
  if (statistic.smallest) StartAtInfinity(statistic);
  Register("stats." + shown_.back().first.name(), statistic.sum);
  return statistic;
}

void Population::ShowParameters(int field, int64_t first, int size, ShownValue value) {
  shown_parameters_.push_back({EpochStatistic(v1::MemberEpoch::descriptor()->FindFieldByNumber(field)),
                               parameters_.Cols(static_cast<int>(first), size), value});
}

ActionBox Population::NewActionBox() {
  const int n = config_.action_dim;
  const ActionBox box{kernels_->NewFloats(1, 1, n), kernels_->NewFloats(1, 1, n)};
  std::vector<float> half(n), centre(n);
  for (int i = 0; i < n; ++i) {
    half[i] = static_cast<float>((config_.action_high[i] - config_.action_low[i]) / 2);
    centre[i] = static_cast<float>((config_.action_high[i] + config_.action_low[i]) / 2);
  }
  kernels_->Upload(half.data(), box.half);
  kernels_->Upload(centre.data(), box.centre);
  return box;
}

void Population::CheckGradient(const Optimizer& optimizer) {
  const int first = static_cast<int>(optimizer.first), size = static_cast<int>(optimizer.size);
  kernels_->GradientNorm(gradients().Cols(first, size), optimizer.gradient_norm.value);
  Check(optimizer.gradient_norm);
}

void Population::Check(const Statistic& statistic) {
  kernels_->DeactivateUnlessFinite(statistic.value, Block(active_));
}

void Population::SaveForUndo(const UndoRange& range) {
  kernels_->Copy(Block(state_).Cols(static_cast<int>(range.first), range.state.cols), range.state);
  kernels_->Copy(Block(range.steps), range.kept_steps);
}

void Population::UndoWhereInactive(const UndoRange& range) {
  const DoubleView active = Block(active_);
  kernels_->Restore(range.state, active, Block(state_).Cols(static_cast<int>(range.first), range.state.cols));
  kernels_->Restore(range.kept_steps, active, Block(range.steps));
}

void Population::Step(const Optimizer& optimizer) {
  Adam(optimizer.row, 1, Block(active_));
  if (optimizer.gradient_norm_field != 0) Record(optimizer.gradient_norm);
}

void Population::Step(const Optimizer& optimizer, const DoubleView& taking) {
  Adam(optimizer.row, 1, taking);
  if (optimizer.gradient_norm_field != 0) RecordWhere(optimizer.gradient_norm, taking);
}

void Population::Step(const std::vector<Optimizer>& optimizers) {
  const int count = static_cast<int>(optimizers.size());
  for (int first = 0, end = 0; first < count; first = end) {
    end = first + 1;
    while (end < count && optimizers[end].row == optimizers[end - 1].row + 1) ++end;
    Adam(optimizers[first].row, end - first, Block(active_));
  }
  for (const Optimizer& optimizer : optimizers) {
    if (optimizer.gradient_norm_field != 0) Record(optimizer.gradient_norm);
  }
}

void Population::Adam(int row, int count, const DoubleView& taking) {
  kernels_->Adam({Block(state_), gradients(), ranges_.data() + row, Block(learning_rates_).Rows(row, count),
                  Block(steps_).Rows(row, count), taking, decay_.data == nullptr ? DoubleView() : Block(decay_)});
}

void Population::PolyakTargets() {
  kernels_->Polyak(parameters().Cols(0, targets_.cols), config_.learner.tau(), Block(active_), targets());
}

void Population::CheckAndRecordLoss(const Statistic& loss) {
  Check(loss);
  Record(loss);
}

void Population::RegisterStatistics(const ObservationStatistics& statistics) {
  Register("observation.count", statistics.count);
  Register("observation.mean", statistics.mean);
  Register("observation.squares", statistics.squares);
  Register("observation.reach", statistics.reach);
}

void Population::RecordCritics(const FloatView& q, const DoubleView& scale) {
  critic_kernels_->CriticValues(q, scale, q_mean_.value, q_min_.value, q_gap_.value);
  Record(q_mean_);
  Record(q_gap_);
  Record(q_min_);
}

void Population::Record(const Statistic& statistic) { RecordWhere(statistic, Block(active_)); }

void Population::RecordWhere(const Statistic& statistic, const DoubleView& taking) {
  kernels_->Accumulate(RowsOf(statistic.row, 1, statistic.smallest ? 1 : 0), taking);
}

StatisticRows Population::RowsOf(int row, int count, int smallest) const {
  return {values_.Rows(row, count), signs_.Rows(row, count), Block(sums_).Rows(row, count), smallest};
}

std::vector<double> Population::Values(const DoubleView& view) const {
  std::vector<double> values(static_cast<size_t>(members_) * view.cols);
  kernels_->Download(view, values.data());
  return values;
}

Stats Population::GetStats() const {
  std::vector<DoubleView> sums{active_};
  std::vector<FloatView> parameters;
  size_t size = members_;
  for (const auto& shown : shown_) sums.push_back(shown.second.sum), size += 2 * static_cast<size_t>(members_);
  for (const ShownParameters& shown : shown_parameters_) {
    parameters.push_back(shown.parameters);
    size += static_cast<size_t>(members_) * shown.parameters.cols;
  }
  std::vector<double> values(size);
  kernels_->DownloadAll(sums, parameters, values.data());

  Stats stats(members_, NoUpdates());
  const double* at = values.data();
  for (int m = 0; m < members_; ++m) stats[m].set_diverged(*at++ == 0);
  for (const auto& [shown, statistic] : shown_) {
    for (int m = 0; m < members_; ++m, at += 2) {
      if (at[1] > 0) shown.Set(statistic.smallest ? at[0] : at[0] / at[1], &stats[m]);
    }
  }
  for (const ShownParameters& shown : shown_parameters_) {
    for (int m = 0; m < members_; ++m, at += shown.parameters.cols) {
      shown.statistic.Set(shown.value(at, shown.parameters.cols), &stats[m]);
    }
  }
  return stats;
}

void Population::ResetStats() {
  const std::vector<double> zeros(static_cast<size_t>(members_) * kMostStatistics * 2, 0.0);
  kernels_->Upload(zeros.data(), sums_);
  for (const auto& shown : shown_) {
    if (shown.second.smallest) StartAtInfinity(shown.second);
  }
}

// The smallest of no values is infinite. A state of an earlier revision has 0.
void Population::StartAtInfinity(const Statistic& smallest) {
  std::vector<double> sums = Values(smallest.sum);
  for (int m = 0; m < members_; ++m) {
    if (sums[2 * m + 1] == 0) sums[2 * m] = HUGE_VAL;
  }
  kernels_->Upload(sums.data(), smallest.sum);
}

std::string Population::Signature() const {
  const size_t members = PopulationOf(config_).size();
  const char* const normalised = config_.network.critic_layer_norm() ? "+critic_layer_norm" : "";
  std::string signature = config_.algorithm + normalised + " members=" + std::to_string(members);
  for (const ParameterArray& array : layout_.arrays()) {
    signature += " " + array.name;
    for (uint32_t n : array.shape) signature += ":" + std::to_string(n);
  }
  return signature;
}

void Population::Register(const std::string& name, std::function<std::string()> save,
                          std::function<void(const std::string&)> load, bool shared) {
  saved_.push_back({name, std::move(save), std::move(load), shared});
}

void Population::RegisterShared(const std::string& name, uint64_t* value) {
  Register(
      name, [value] { return std::string(reinterpret_cast<const char*>(value), sizeof *value); },
      [value](const std::string& bytes) { std::memcpy(value, bytes.data(), sizeof *value); }, /*shared=*/true);
}

State Population::Save() const {
  State state;
  state["signature"] = Signature();
  for (const SavedEntry& entry : saved_) state[entry.name] = entry.save();
  return state;
}

std::vector<std::string> Population::shared_entries() const {
  std::vector<std::string> names{"signature"};
  for (const SavedEntry& entry : saved_) {
    if (entry.shared) names.push_back(entry.name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

void CheckState(const State& expected, const State& state) {
  const auto signature = state.find("signature");
  if (signature != state.end() && signature->second != expected.at("signature")) {
    throw std::invalid_argument("entry 'signature': the state was saved by '" + signature->second +
                                "', this learner is '" + expected.at("signature") + "'");
  }
  for (const auto& entry : expected) {
    const auto found = state.find(entry.first);
    if (found == state.end()) throw std::invalid_argument("the state has no entry '" + entry.first + "'");
    if (found->second.size() != entry.second.size()) {
      throw std::invalid_argument("entry '" + entry.first + "' has " + std::to_string(found->second.size()) +
                                  " bytes, expected " + std::to_string(entry.second.size()));
    }
  }
  for (const auto& entry : state) {
    if (expected.count(entry.first) == 0)
      throw std::invalid_argument("the state has an unknown entry '" + entry.first + "'");
  }
}

void Population::Load(const State& state) {
  CheckState(Save(), state);
  for (const SavedEntry& entry : saved_) entry.load(state.at(entry.name));
  for (const auto& shown : shown_) {
    if (shown.second.smallest) StartAtInfinity(shown.second);
  }
}

std::vector<float> HostParameters::Values(const ParameterArray& array) const {
  const float* const values = parameters_ + (array.offset - first_);
  return {values, values + array.size()};
}

std::vector<float> HostParameters::Read(const std::string& name) const {
  for (const ParameterArray& array : layout_.arrays()) {
    if (array.name == name && array.offset >= first_) return Values(array);
  }
  throw std::invalid_argument("there is no acting array '" + name + "'");
}

void HostParameters::AddNet(const std::string& prefix, ActingParameters* out) const {
  for (const ParameterArray& array : layout_.arrays()) {
    if (array.name.rfind(prefix + ".", 0) != 0) continue;
    if (array.offset < first_) throw std::logic_error("array '" + array.name + "' lies before acting_first_");
    out->arrays.push_back({array.name, array.shape, Values(array)});
  }
}

std::vector<ActingParameters> Population::GetActingParameters() const {
  std::vector<float> copy;
  const int first = static_cast<int>(acting_first_);
  const FloatView host = kernels_->ToHost(parameters_.Cols(first, parameters_.cols - first), &copy);
  std::vector<ActingParameters> all(members_);
  for (int m = 0; m < members_; ++m) Publish(m, {layout_, host.row(m, 0), acting_first_}, &all[m]);
  return all;
}

}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0

#include "learner/algorithms/dynamics_learner.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "learner/algorithms/minibatch_order.h"

namespace datacom::learner {

RowMemory::RowMemory(const AlgorithmConfig& config, int capacity)
    : members_(static_cast<int>(config.members.size())),
      first_(config.slice_first),
      obs_(config.obs_dim),
      actions_(config.action_dim),
      per_update_(BatchRows(config)),
      capacity_(capacity),
      width_(2 * obs_ + actions_ + 2),
      rows_(static_cast<size_t>(members_) * capacity * width_) {}

void RowMemory::Append(const Batch& batch) {
  for (int m = 0; m < members_; ++m) {
    for (int i = 0; i < per_update_; ++i) {
      const size_t from = static_cast<size_t>(first_ + m) * per_update_ + i;
      float* to = const_cast<float*>(Row(m, static_cast<int>((appended_ + i) % capacity_)));
      to = std::copy_n(&batch.observation[from * obs_], obs_, to);
      to = std::copy_n(&batch.action[from * actions_], actions_, to);
      *to++ = batch.reward[from];
      to = std::copy_n(&batch.next_observation[from * obs_], obs_, to);
      *to = batch.last[from];
    }
  }
  appended_ += per_update_;
}

void RowMemory::Continuing(int member, std::vector<int>* rows) const {
  const auto held = static_cast<int>(std::min<uint64_t>(appended_, capacity_));
  const int oldest = appended_ > static_cast<uint64_t>(capacity_) ? static_cast<int>(appended_ % capacity_) : 0;
  rows->clear();
  for (int i = 0; i < held; ++i) {
    const int row = (oldest + i) % capacity_;
    if (Row(member, row)[width_ - 1] == 0) rows->push_back(row);
  }
}

std::string RowMemory::Save() const {
  return std::string(reinterpret_cast<const char*>(rows_.data()), rows_.size() * sizeof(float));
}

void RowMemory::Load(const std::string& bytes, uint64_t appended) {
  std::memcpy(rows_.data(), bytes.data(), rows_.size() * sizeof(float));
  appended_ = appended;
}

namespace {

constexpr double kHeldOutShare = 0.2, kImprovement = 0.01;
constexpr int kPassesWithoutImprovement = 5;
constexpr double kLeastDeviation = 1e-12;

// The decay of the weights of layer `layer` of `layers`; the released ensemble has five.
double WeightDecay(int layer, int layers) {
  if (layer + 1 == layers) return 1e-4;
  return layer == 0 ? 2.5e-5 : layer == 1 ? 5e-5 : 7.5e-5;
}

}  // namespace

DynamicsLearner::DynamicsLearner(const AlgorithmConfig& config)
    : Population(config),
      batch_(BatchSize(config)),
      memory_(config, config.memory_rows),
      width_(config.obs_dim + 1),
      row_kernels_(kernels_->Group<OnPolicyKernels>()),
      observation_kernels_(kernels_->Group<ObservationKernels>()),
      dynamics_kernels_(kernels_->Group<DynamicsKernels>()) {
  continuing_.resize(block_);
  for (std::vector<int>& rows : continuing_) rows.reserve(config_.memory_rows);
}

void DynamicsLearner::DeclareEnsemble() {
  const int obs = config_.obs_dim, n = config_.action_dim;
  input_mean_ = layout_.AddVector("dynamics.input_mean", obs + n, 0);  // between two nets: undone with them
  input_std_ = layout_.AddVector("dynamics.input_std", obs + n, 1);
  model_first_ = layout_.size();
  WeightInit init;
  init.truncated_normal = true;
  const std::vector<int> hidden(config_.planning.hidden().begin(), config_.planning.hidden().end());
  nets_.resize(config_.planning.ensemble());
  for (size_t i = 0; i < nets_.size(); ++i) {
    nets_[i].mlp =
        layout_.AddMlp("dynamics." + std::to_string(i), Widths(obs + n, hidden, 2 * width_), Activation::kSwish, init);
  }
  model_end_ = layout_.size();
}

void DynamicsLearner::MakeModelWorkspace() {
  RegisterShared("updates", &updates_);  // loaded before the memory
  Register(
      "memory", [this] { return memory_.Save(); },
      [this](const std::string& bytes) { memory_.Load(bytes, updates_ * config_.epoch_rows); });
  model_optimizer_ = NewOptimizer("dynamics", v1::MemberEpoch::kConstraintGradientNormFieldNumber, model_first_,
                                  model_end_ - model_first_, &v1::Hyper::constraint_lr);
  model_loss_ = NewStatistic(v1::MemberEpoch::kConstraintLossFieldNumber);
  active_values_.resize(block_);
  const int inputs = config_.obs_dim + config_.action_dim, B = batch_,
            layers = static_cast<int>(nets_[0].mlp.layers.size());
  const size_t count = static_cast<size_t>(block_) * B;
  errors_ = kernels_->NewDoubles(block_, static_cast<int>(nets_.size()), 1);
  host_errors_.resize(block_ * nets_.size());
  for (size_t i = 0; i < nets_.size(); ++i) {
    Net& net = nets_[i];
    net.x = kernels_->NewFloats(block_, B, inputs), net.target = kernels_->NewFloats(block_, B, width_);
    net.weight = kernels_->NewFloats(block_, B, 1), net.d_out = kernels_->NewFloats(block_, B, 2 * width_);
    net.tape = kernels_->NewTape(net.mlp, block_, B);
    net.loss = kernels_->NewDoubles(block_, 1, 1), net.error = errors_.Rows(static_cast<int>(i), 1);
    net.order.resize(block_);
    for (std::vector<int>& order : net.order) order.reserve(config_.memory_rows);
    net.host_x.resize(count * inputs), net.host_target.resize(count * width_), net.host_weight.resize(count);
  }
  for (int i = 0; i < layers; ++i) {
    decay_.push_back(kernels_->NewDoubles(block_, 1, 1, WeightDecay(i, layers) / 2));
  }
  training_ = kernels_->NewDoubles(block_, 1, 1);
  progress_.resize(block_);
  for (Progress& progress : progress_) {
    progress.rows.reserve(config_.memory_rows);
    progress.best.resize(nets_.size());
  }
  training_values_.resize(block_);
  host_mean_.resize(inputs), host_std_.resize(inputs);
}

void DynamicsLearner::TrainModel() {
  for (int m = 0; m < block_; ++m) DivideRows(m);
  for (int pass = 0; TrainingPass(pass); ++pass) {
    if (config_.alive) config_.alive();
    HeldOutErrors();
    for (int m = 0; m < block_; ++m) Judge(m);
  }
}

void DynamicsLearner::DivideRows(int m) {
  Progress& progress = progress_[m];
  std::vector<int>& order = nets_[0].order[m];
  order.resize(continuing_[m].size());
  MinibatchOrder(config_.run_seed, SeedOf(m), updates_, /*pass=*/0, &order);
  progress.rows.resize(order.size());
  for (size_t i = 0; i < order.size(); ++i) progress.rows[i] = continuing_[m][order[i]];
  progress.held_out = static_cast<int>(kHeldOutShare * static_cast<double>(order.size()));
  progress.best.assign(nets_.size(), 1e10);
  progress.passes_without_improvement = 0;
  progress.done = progress.held_out == 0;
  if (!progress.done) Standardise(m);
}

// Mean and standard deviation of the inputs that the ensemble trains on.
void DynamicsLearner::Standardise(int m) {
  const Progress& progress = progress_[m];
  const int obs = config_.obs_dim, inputs = obs + config_.action_dim, member = first_member() + m;
  const auto input = [&](int row, int i) {
    return static_cast<double>(i < obs ? memory_.observation(member, row)[i] : memory_.action(member, row)[i - obs]);
  };
  const auto rows = static_cast<double>(progress.training());
  for (int i = 0; i < inputs; ++i) {
    double sum = 0, squares = 0;
    for (size_t r = progress.held_out; r < progress.rows.size(); ++r) sum += input(progress.rows[r], i);
    const double mean = sum / rows;
    for (size_t r = progress.held_out; r < progress.rows.size(); ++r) {
      const double apart = input(progress.rows[r], i) - mean;
      squares += apart * apart;
    }
    host_mean_[i] = static_cast<float>(mean);
    host_std_[i] = static_cast<float>(std::max(std::sqrt(squares / rows), kLeastDeviation));
  }
  kernels_->Upload(host_mean_.data(), ParametersOf(member).Cols(static_cast<int>(input_mean_), inputs));
  kernels_->Upload(host_std_.data(), ParametersOf(member).Cols(static_cast<int>(input_std_), inputs));
}

// Returns false if no member has anything left to learn.
bool DynamicsLearner::TrainingPass(int pass) {
  kernels_->Download(Block(active_), active_values_.data());
  int longest = 0;
  for (int m = 0; m < block_; ++m) {
    Progress& progress = progress_[m];
    progress.done = progress.done || active_values_[m] == 0;
    if (!progress.done) longest = std::max(longest, progress.training());
  }
  for (size_t i = 0; i < nets_.size() && longest > 0; ++i) {
    for (int m = 0; m < block_; ++m) {
      nets_[i].order[m].resize(progress_[m].training());
      const int number = pass * static_cast<int>(nets_.size()) + static_cast<int>(i) + 1;  // 0 divided the rows
      MinibatchOrder(config_.run_seed, SeedOf(m), updates_, number, &nets_[i].order[m]);
    }
  }
  for (int first = 0; first < longest; first += batch_) {
    kernels_->Run(
        kModel, [this, first] { LoadMinibatch(first); }, [this] { ModelStep(); });
  }
  return longest > 0;
}

void DynamicsLearner::FillRow(Net* net, int m, int r, int row, float weight) {
  const int obs = config_.obs_dim, n = config_.action_dim, member = first_member() + m;
  const size_t at = static_cast<size_t>(m) * batch_ + r;
  const float* const s = memory_.observation(member, row);
  const float* const next = memory_.next_observation(member, row);
  std::copy_n(s, obs, &net->host_x[at * (obs + n)]);
  std::copy_n(memory_.action(member, row), n, &net->host_x[at * (obs + n) + obs]);
  float* const target = &net->host_target[at * width_];
  target[0] = memory_.reward(member, row);
  for (int i = 0; i < obs; ++i) target[i + 1] = next[i] - s[i];
  net->host_weight[at] = weight;
}

void DynamicsLearner::Upload(const Net& net) {
  kernels_->Upload(net.host_x.data(), net.x);
  kernels_->Upload(net.host_target.data(), net.target);
  kernels_->Upload(net.host_weight.data(), net.weight);
}

// The last minibatch of a pass has fewer rows that count; the others repeat the first.
void DynamicsLearner::LoadMinibatch(int first) {
  for (int m = 0; m < block_; ++m) {
    const Progress& progress = progress_[m];
    training_values_[m] = !progress.done && first < progress.training();
  }
  for (Net& net : nets_) {
    for (int m = 0; m < block_; ++m) {
      const Progress& progress = progress_[m];
      for (int r = 0; r < batch_; ++r) {
        const bool counts = training_values_[m] != 0 && first + r < progress.training();
        if (progress.training() == 0) continue;
        const int place = counts ? net.order[m][first + r] : 0;
        FillRow(&net, m, r, progress.rows[progress.held_out + place], counts ? 1.0f : 0.0f);
      }
    }
    Upload(net);
  }
  kernels_->Upload(training_values_.data(), training_);
}

void DynamicsLearner::ModelStep() {
  const int inputs = config_.obs_dim + config_.action_dim;
  const FloatView mean = parameters().Cols(static_cast<int>(input_mean_), inputs);
  const FloatView std = parameters().Cols(static_cast<int>(input_std_), inputs);
  kernels_->Each(static_cast<int>(nets_.size()), [&](int i) {
    const Net& net = nets_[i];
    observation_kernels_->Normalise(net.x, mean, std, kNoLimit, net.x);
    kernels_->Forward(parameters(), net.mlp, net.x, net.tape);
    kernels_->SetZero(net.loss);
    dynamics_kernels_->Likelihood(net.tape.out, net.target, net.weight, net.d_out, net.loss);
    kernels_->Adjoint(parameters(), net.mlp, net.d_out, net.tape);
    kernels_->ParameterGradient(net.mlp, net.x, net.d_out, net.tape, gradients());
    for (size_t l = 0; l < net.mlp.layers.size(); ++l) {
      const MlpLayer& layer = net.mlp.layers[l];
      const int first = static_cast<int>(layer.weight), size = layer.in * layer.out;
      row_kernels_->AddSquares(parameters().Cols(first, size), decay_[l], gradients().Cols(first, size), net.loss);
    }
  });
  kernels_->SetZero(model_loss_.value);
  for (const Net& net : nets_) dynamics_kernels_->Add(net.loss, model_loss_.value);
  kernels_->DeactivateUnlessFinite(model_loss_.value, Block(active_));
  CheckGradient(model_optimizer_);
  kernels_->DeactivateUnlessFinite(model_loss_.value, training_);
  kernels_->DeactivateUnlessFinite(model_optimizer_.gradient_norm.value, training_);
  RecordWhere(model_loss_, training_);
  Step(model_optimizer_, training_);
}

void DynamicsLearner::HeldOutErrors() {
  kernels_->SetZero(errors_);
  int longest = 0;
  for (const Progress& progress : progress_) longest = std::max(longest, progress.done ? 0 : progress.held_out);
  for (int first = 0; first < longest; first += batch_) {
    Net& shared = nets_[0];
    for (int m = 0; m < block_; ++m) {
      const Progress& progress = progress_[m];
      for (int r = 0; r < batch_ && progress.held_out > 0; ++r) {
        const bool counts = first + r < progress.held_out;
        FillRow(&shared, m, r, progress.rows[counts ? first + r : 0], counts ? 1.0f : 0.0f);
      }
    }
    kernels_->Run(
        kError, [&] { Upload(shared); }, [this] { ErrorStep(); });
  }
  kernels_->Download(errors_, host_errors_.data());
}

void DynamicsLearner::ErrorStep() {
  const int inputs = config_.obs_dim + config_.action_dim;
  const Net& shared = nets_[0];
  observation_kernels_->Normalise(shared.x, parameters().Cols(static_cast<int>(input_mean_), inputs),
                                  parameters().Cols(static_cast<int>(input_std_), inputs), kNoLimit, shared.x);
  kernels_->Each(static_cast<int>(nets_.size()), [&](int i) {
    const Net& net = nets_[i];
    kernels_->Forward(parameters(), net.mlp, shared.x, net.tape);
    dynamics_kernels_->SquaredError(net.tape.out, shared.target, shared.weight, net.error);
  });
}

void DynamicsLearner::Judge(int m) {
  Progress& progress = progress_[m];
  if (progress.done) return;
  bool improved = false;
  for (size_t i = 0; i < nets_.size(); ++i) {
    const double error = host_errors_[m * nets_.size() + i] / progress.held_out;
    if ((progress.best[i] - error) / progress.best[i] > kImprovement) {
      progress.best[i] = error;
      improved = true;
    }
  }
  progress.passes_without_improvement = improved ? 0 : progress.passes_without_improvement + 1;
  progress.done = progress.passes_without_improvement > kPassesWithoutImprovement;
}

}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0

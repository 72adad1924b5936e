#include "learner/algorithms/safe_loop.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include "learner/algorithms/minibatch_order.h"
#include "learner/algorithms/register_algorithm.h"
#include "learner/nn/named_stream.h"

namespace datacom::learner {
namespace {

const RegisterAlgorithm<SafeLoop> kRegistered("safe_loop");

constexpr double kStartTemperature = 0.2, kTemperatureDecay = 0.99;
constexpr double kHeldOutShare = 0.2, kImprovement = 0.01;
constexpr int kPassesWithoutImprovement = 5;
constexpr double kLeastDeviation = 1e-12, kNoLimit = 1e30;

// Of the weights of layer `layer` of `layers`; the released ensemble has five.
double WeightDecay(int layer, int layers) {
  if (layer + 1 == layers) return 1e-4;
  return layer == 0 ? 2.5e-5 : layer == 1 ? 5e-5 : 7.5e-5;
}

const AlgorithmConfig& Checked(const AlgorithmConfig& config) {
  const v1::Planning& planning = config.planning;
  const int rows = config.epoch_rows;
  const auto period = [rows](uint32_t value) { return rows >= 1 && value > 0 && value % rows == 0; };
  if (!period(planning.policy_period()) || !period(planning.model_period())) {
    throw std::invalid_argument("safe_loop takes " + std::to_string(rows) + " rows an update; planning.policy_period " +
                                std::to_string(planning.policy_period()) + " and planning.model_period " +
                                std::to_string(planning.model_period()) + " must be multiples of it");
  }
  if (planning.ensemble() < 1 || planning.hidden().empty() || config.memory_rows < rows) {
    throw std::invalid_argument("safe_loop: planning.ensemble must be positive, planning.hidden must not be empty, " +
                                std::string("and the memory must hold the rows of an update"));
  }
  return config;
}

}  // namespace

SafeLoop::SafeLoop(const AlgorithmConfig& config)
    : Population(Checked(config)),
      batch_(config.batch_size),
      width_(config.obs_dim + 1),
      sac_kernels_(kernels_->Group<SacKernels>()),
      row_kernels_(kernels_->Group<OnPolicyKernels>()),
      dynamics_kernels_(kernels_->Group<DynamicsKernels>()),
      memory_(config, config.memory_rows) {
  DeclareNets();
  Build();
  RegisterShared("updates", &updates_);
  RegisterShared("policy_steps", &policy_steps_);
  actor_optimizer_ =
      NewOptimizer("actor", NetGroup::kActor, actor_first_, actor_end_ - actor_first_, &v1::Hyper::actor_lr);
  critic_optimizer_ =
      NewOptimizer("critic", NetGroup::kCritic, critics_.first(), critics_.size(), &v1::Hyper::critic_lr);
  model_optimizer_ = NewOptimizer("dynamics", NetGroup::kConstraint, model_first_, model_end_ - model_first_,
                                  &v1::Hyper::constraint_lr);
  undo_ = NewUndoRange({actor_optimizer_, critic_optimizer_, model_optimizer_});
  kept_targets_ = kernels_->NewFloats(block_, 1, static_cast<int>(critics_.size()));
  entropy_ = NewStatistic();
  model_loss_ = NewStatistic();
  Register("stats.entropy", entropy_.sum);
  Register("stats.constraint_loss", model_loss_.sum);
  active_values_.resize(block_);
  continuing_.resize(block_);
  for (std::vector<int>& rows : continuing_) rows.reserve(config_.memory_rows);
  MakePolicyWorkspace();
  MakeModelWorkspace();
  keep_ = [this] {
    SaveForUndo(undo_);
    kernels_->Copy(targets(), kept_targets_);
  };
  policy_ = [this] { PolicyStep(); };
  model_ = [this] { ModelStep(); };
  error_ = [this] { ErrorStep(); };
  finish_ = [this] {
    kernels_->Restore(kept_targets_, Block(active_), targets());
    UndoWhereInactive(undo_);
  };
}

void SafeLoop::DeclareNets() {
  const int obs = config_.obs_dim, n = config_.action_dim;
  critics_.Declare({"critic.0", "critic.1"}, CriticKind::kPlain, config_, &layout_);
  MirrorTargets(0, layout_.size());
  actor_first_ = layout_.size();
  actor_ = layout_.AddMlp("actor", Widths(obs, config_.actor_hidden, 2 * n), Activation::kRelu, {});
  actor_end_ = layout_.size();
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

void SafeLoop::MakePolicyWorkspace() {
  const int n = config_.action_dim, obs = config_.obs_dim, B = batch_;
  const auto rows = [this, B](int cols) { return kernels_->NewFloats(block_, B, cols); };
  mean_log_pi_ = entropy_.value;
  return_floor_ = NewScalar(&v1::Hyper::return_floor);
  box_ = NewActionBox();
  input_.Make(config_, block_, kernels_.get());
  critics_.MakeWorkspace(config_, /*target_first=*/0, block_, kernels_.get());
  actor_tape_ = kernels_->NewTape(actor_, block_, B);
  noise_ = rows(n), no_noise_ = rows(n), y_ = rows(1), d_action_ = rows(n), d_policy_ = rows(2 * n);
  log_alpha_ = kernels_->NewFloats(block_, 1, 1);
  now_ = {input_.rows.Rows(0, B).Cols(obs, n), rows(n), rows(1)};
  next_ = {input_.next.Cols(obs, n), rows(n), rows(1)};
  const size_t count = static_cast<size_t>(block_) * B;
  host_observation_.resize(count * obs), host_next_.resize(count * obs);
  host_action_.resize(count * n), host_noise_.resize(count * n);
  host_reward_.resize(count), host_log_alpha_.resize(block_);
}

void SafeLoop::MakeModelWorkspace() {
  const int inputs = config_.obs_dim + config_.action_dim, B = batch_,
            layers = static_cast<int>(nets_[0].mlp.layers.size());
  const size_t count = static_cast<size_t>(block_) * B;
  const auto scalar = [this] { return kernels_->NewDoubles(block_, 1, 1); };
  for (Net& net : nets_) {
    net.x = kernels_->NewFloats(block_, B, inputs), net.target = kernels_->NewFloats(block_, B, width_);
    net.weight = kernels_->NewFloats(block_, B, 1), net.d_out = kernels_->NewFloats(block_, B, 2 * width_);
    net.tape = kernels_->NewTape(net.mlp, block_, B);
    net.loss = scalar(), net.error = scalar();
    net.order.resize(block_);
    for (std::vector<int>& order : net.order) order.reserve(config_.memory_rows);
    net.host_x.resize(count * inputs), net.host_target.resize(count * width_), net.host_weight.resize(count);
  }
  const std::vector<double> ones(block_, 1.0);
  for (int i = 0; i < layers; ++i) {
    decay_.push_back(scalar());
    const std::vector<double> half(block_, WeightDecay(i, layers) / 2);
    kernels_->Upload(half.data(), decay_.back());
  }
  training_ = scalar();
  progress_.resize(block_);
  for (Progress& progress : progress_) {
    progress.rows.reserve(config_.memory_rows);
    progress.best.resize(nets_.size());
  }
  training_values_.resize(block_);
  host_mean_.resize(inputs), host_std_.resize(inputs);
}

void SafeLoop::Update(const Batch& batch) {
  memory_.Append(batch);
  rows_ = (updates_ + 1) * config_.epoch_rows;
  Population::Update(batch);
  if (PolicyDue()) policy_steps_ += config_.planning.policy_updates();
  ++updates_;
}

void SafeLoop::RunBlock(int /*plan*/, const std::function<void()>& /*compute*/) {
  const bool model = Due(config_.planning.model_period()), policy = PolicyDue();
  if (!model && !policy) return;
  for (int m = 0; m < block_; ++m) memory_.Continuing(first_member() + m, &continuing_[m]);
  kernels_->Run(kKeep, keep_);
  if (model) TrainModel();
  if (policy) PolicySteps();
  kernels_->Run(kFinish, finish_);
}

// ---- actor and critics

void SafeLoop::PolicySteps() {
  for (const std::vector<int>& rows : continuing_) {
    if (rows.empty()) return;
  }
  const int steps = static_cast<int>(config_.planning.policy_updates());
  for (int step = 0; step < steps; ++step) {
    DrawPolicyBatch(step);
    kernels_->Run(kPolicy, policy_);
  }
}

void SafeLoop::DrawPolicyBatch(int step) {
  const int obs = config_.obs_dim, n = config_.action_dim, B = batch_;
  const double decayed =
      std::log(kStartTemperature) + static_cast<double>(policy_steps_ + step) * std::log(kTemperatureDecay);
  std::fill(host_log_alpha_.begin(), host_log_alpha_.end(), static_cast<float>(std::max(decayed, -80.0)));
  for (int m = 0; m < block_; ++m) {
    const std::vector<int>& rows = continuing_[m];
    const int member = first_member() + m;
    NamedStream stream(
        NamedKey("learner.safe_loop.rows", {config_.run_seed, SeedOf(m), updates_, static_cast<uint64_t>(step)}));
    for (int r = 0; r < B; ++r) {
      const int row = rows[static_cast<size_t>(stream.Uniform() * static_cast<double>(rows.size()))];
      const size_t at = static_cast<size_t>(m) * B + r;
      std::copy_n(memory_.observation(member, row), obs, &host_observation_[at * obs]);
      std::copy_n(memory_.action(member, row), n, &host_action_[at * n]);
      std::copy_n(memory_.next_observation(member, row), obs, &host_next_[at * obs]);
      host_reward_[at] = memory_.reward(member, row);
    }
    FillNormal(
        NamedKey("learner.safe_loop.noise", {config_.run_seed, SeedOf(m), updates_, static_cast<uint64_t>(step)}),
        &host_noise_[static_cast<size_t>(m) * B * n], static_cast<int64_t>(B) * n);
  }
  kernels_->Upload(host_observation_.data(), Observation());
  kernels_->Upload(host_observation_.data(), input_.rows.Rows(B, B).Cols(0, obs));
  kernels_->Upload(host_action_.data(), input_.rows.Rows(B, B).Cols(obs, n));
  kernels_->Upload(host_next_.data(), input_.next.Cols(0, obs));
  kernels_->Upload(host_reward_.data(), input_.reward);
  kernels_->Upload(host_noise_.data(), noise_);
  kernels_->Upload(host_log_alpha_.data(), log_alpha_);
}

void SafeLoop::Sample(const FloatView& observation, const FloatView& noise, const ActionSample& out) {
  const int n = config_.action_dim;
  kernels_->Forward(parameters(), actor_, observation, actor_tape_);
  sac_kernels_->SampleAction(actor_tape_.out.Cols(0, n), actor_tape_.out.Cols(n, n), noise, box_, out);
}

void SafeLoop::PolicyStep() {
  CriticPart();
  ActorPart();
  PolyakTargets();
}

// Rows that end an episode are in no batch, so nothing is absorbing.
void SafeLoop::CriticPart() {
  Sample(input_.next.Cols(0, config_.obs_dim), noise_, next_);
  critics_.EvaluateTargets(targets(), input_);
  sac_kernels_->SoftTarget(input_.reward, input_.absorbing, critics_.next(0), critics_.next(1), next_.log_pi,
                           log_alpha_, config_.discount, y_);
  critic_kernels_->Floor(Block(return_floor_), y_);
  critics_.EvaluateStored(parameters(), input_);
  critics_.Regress(parameters(), input_, y_, gradients(), critic_loss_.value);
  CheckAndRecordLoss(critic_loss_);
  RecordCritics(critics_.stored(0), critics_.stored(1));
  CheckGradient(critic_optimizer_);
  Step(critic_optimizer_);
}

// At the policy's mean, as released: the density's noise is 0.
void SafeLoop::ActorPart() {
  const int n = config_.action_dim;
  Sample(Observation(), no_noise_, now_);
  critics_.EvaluateExecuted(parameters(), input_, critics_.nets());
  sac_kernels_->ActorLoss(critics_.executed(0), critics_.executed(1), now_.log_pi, log_alpha_, critics_.d_out(0),
                          critics_.d_out(1), policy_loss_.value, mean_log_pi_);
  critics_.ActionGradient(parameters(), critics_.nets(), /*add=*/false, d_action_);
  CheckAndRecordLoss(policy_loss_);
  Record(entropy_, /*sign=*/-1);
  sac_kernels_->SampleActionGradient(actor_tape_.out.Cols(n, n), no_noise_, box_, now_, d_action_, log_alpha_,
                                     d_policy_.Cols(0, n), d_policy_.Cols(n, n));
  kernels_->Adjoint(parameters(), actor_, d_policy_, actor_tape_);
  kernels_->ParameterGradient(actor_, Observation(), d_policy_, actor_tape_, gradients());
  CheckGradient(actor_optimizer_);
  Step(actor_optimizer_);
}

// ---- the ensemble

void SafeLoop::TrainModel() {
  for (int m = 0; m < block_; ++m) DivideRows(m);
  for (int pass = 0; TrainingPass(pass); ++pass) {
    if (config_.alive) config_.alive();
    HeldOutErrors();
    for (int m = 0; m < block_; ++m) Judge(m);
  }
}

void SafeLoop::DivideRows(int m) {
  Progress& progress = progress_[m];
  std::vector<int>& order = nets_[0].order[m];
  order.resize(continuing_[m].size());
  MinibatchOrder(config_.run_seed, SeedOf(m), updates_, /*pass=*/0, &order);
  progress.rows.resize(order.size());
  for (size_t i = 0; i < order.size(); ++i) progress.rows[i] = continuing_[m][order[i]];
  progress.held_out = static_cast<int>(kHeldOutShare * static_cast<double>(order.size()));
  progress.best.assign(nets_.size(), 1e10);
  progress.passes_since = 0;
  progress.done = progress.held_out == 0;
  if (!progress.done) Standardise(m);
}

// Mean and standard deviation of the inputs that the ensemble trains on.
void SafeLoop::Standardise(int m) {
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
bool SafeLoop::TrainingPass(int pass) {
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
    LoadMinibatch(first);
    kernels_->Run(kModel, model_);
  }
  return longest > 0;
}

void SafeLoop::FillRow(Net* net, int m, int r, int row, float weight) {
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

void SafeLoop::Upload(const Net& net) {
  kernels_->Upload(net.host_x.data(), net.x);
  kernels_->Upload(net.host_target.data(), net.target);
  kernels_->Upload(net.host_weight.data(), net.weight);
}

// The last minibatch of a pass has fewer rows that count; the others repeat the first.
void SafeLoop::LoadMinibatch(int first) {
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

void SafeLoop::ModelStep() {
  const int inputs = config_.obs_dim + config_.action_dim;
  const FloatView mean = parameters().Cols(static_cast<int>(input_mean_), inputs);
  const FloatView std = parameters().Cols(static_cast<int>(input_std_), inputs);
  kernels_->Each(static_cast<int>(nets_.size()), [&](int i) {
    const Net& net = nets_[i];
    row_kernels_->Normalise(net.x, mean, std, kNoLimit, net.x);
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
  kernels_->Accumulate(model_loss_.value, 1, training_, Block(model_loss_.sum));
  Step(model_optimizer_, training_);
}

void SafeLoop::HeldOutErrors() {
  for (const Net& net : nets_) kernels_->SetZero(net.error);
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
    Upload(shared);
    kernels_->Run(kError, error_);
  }
}

void SafeLoop::ErrorStep() {
  const int inputs = config_.obs_dim + config_.action_dim;
  const Net& shared = nets_[0];
  row_kernels_->Normalise(shared.x, parameters().Cols(static_cast<int>(input_mean_), inputs),
                          parameters().Cols(static_cast<int>(input_std_), inputs), kNoLimit, shared.x);
  kernels_->Each(static_cast<int>(nets_.size()), [&](int i) {
    const Net& net = nets_[i];
    kernels_->Forward(parameters(), net.mlp, shared.x, net.tape);
    dynamics_kernels_->SquaredError(net.tape.out, shared.target, shared.weight, net.error);
  });
}

void SafeLoop::Judge(int m) {
  Progress& progress = progress_[m];
  if (progress.done) return;
  bool improved = false;
  for (size_t i = 0; i < nets_.size(); ++i) {
    double error = 0;
    kernels_->Download(nets_[i].error.Members(m, 1), &error);
    error /= progress.held_out;
    if ((progress.best[i] - error) / progress.best[i] > kImprovement) {
      progress.best[i] = error;
      improved = true;
    }
  }
  progress.passes_since = improved ? 0 : progress.passes_since + 1;
  progress.done = progress.passes_since > kPassesWithoutImprovement;
}

// ---- results

Stats SafeLoop::GetStats() const {
  Stats stats = Population::GetStats();
  stats.entropy = Means(entropy_);
  stats.constraint_loss = Means(model_loss_);
  const double alpha = kStartTemperature * std::pow(kTemperatureDecay, static_cast<double>(policy_steps_));
  stats.alpha.assign(members_, alpha);
  return stats;
}

ActingParameters SafeLoop::GetActingParameters(int member) const {
  const v1::Planning& planning = config_.planning;
  ActingParameters parameters;
  for (const char* net : {"actor", "critic.0", "dynamics"}) AddActingNet(net, member, &parameters);
  const bool random = updates_ * config_.epoch_rows < planning.random_rows();
  parameters.scalars = {{"random_actions", random ? 1 : 0},
                        {"cost_limit", config_.members[member].hyper.cost_budget()},
                        {"plan_samples", planning.samples()},
                        {"plan_particles", planning.particles()},
                        {"plan_iterations", planning.iterations()}};
  return parameters;
}

State SafeLoop::Save() const {
  State state = Population::Save();
  state["memory"] = memory_.Save();
  return state;
}

void SafeLoop::Load(const State& state) {
  Population::Load(state);  // checks all entries: it compares with Save
  memory_.Load(state.at("memory"), updates_ * config_.epoch_rows);
}

}  // namespace datacom::learner

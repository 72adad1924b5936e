// Compares the Update of M members with the "GEMM floor": the matrix products of naive code by the same library. Both
// are measured alternately in the same run on one thread. Dynamics features, prefetch and replay are not included: the
// batch is in memory. On the CPU it also measures the peak of one core (fused multiply-adds in registers) and the share
// of it that an update reaches: the floor's operations in the time of the update.
//
//   datacom-bench-learner [--seconds S] [--device cpu|cuda] [--kernels auto|fused|tensor] [--members M] [--only TEXT]
// Instead, how updates scale over threads (learner_scaling.h):
//   datacom-bench-learner --threads 1,2 [--seconds S] [--members M] [--only TEXT]
// Instead, how many bytes of a snapshot N updates leave as they were:
//   datacom-bench-learner --unchanged N
//
// One line per measurement on standard error, JSON on standard output.
// value: member updates per second; floor: the rate of the products alone; ratio: time over the floor's time. Times are
// medians. learner/peak: value in GF/s. learner/.../peak_share: value is the update's share of the peak, floor that of
// the products alone.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "learner/algorithms/algorithm.h"
#include "learner/nn/cpu/gemm.h"
#include "learner/nn/cpu/loops.h"
#include "tests/bench/learner_scaling.h"
#include "tests/bench/learner_setup.h"

namespace datacom::learner {
namespace {

// Updates after which an algorithm's work repeats: TD3 updates its actor at every policy_delay-th. Times are means over
// one cycle.
int CycleOf(const std::string& algorithm, const AlgorithmConfig& config) {
  return algorithm == "safe_layer_td3" ? config.policy_delay : 1;
}

// The matrix products of one cycle of updates as naive code would compute them (sharing none), on memory of the same
// size.
class Floor {
 public:
  Floor(const std::string& algorithm, const AlgorithmConfig& config) {
    if (algorithm == "safe_layer_td3") {
      AddSafeLayerTd3(config);
    } else if (IsOnPolicy(algorithm)) {
      AddOnPolicy(algorithm == "rcpo", config);
    } else if (algorithm == "safe_loop") {
      AddSafeLoop(config);
    } else {
      AddSoftActorCritic(algorithm, config);
    }
    memory_.resize(config.members.size());
    for (auto& member : memory_) member.assign(size_, 0.01f);
    scratch_.assign(3 * kScratch, 0.01f);
  }
  size_t products() const { return products_.size(); }
  double flops() const {  // of one member
    double sum = 0;
    for (const Product& p : products_) sum += 2.0 * p.rows * p.in * p.out;
    return sum;
  }
  void Run() {
    float* a = scratch_.data();
    float* b = a + kScratch;
    float* c = b + kScratch;
    for (auto& member : memory_) {
      for (const Product& p : products_) {
        if (p.kind == kForward) {
          Multiply(Gemm::kPlain, p.rows, p.out, p.in, a, p.in, &member[p.weight], p.out, false, c, p.out);
        } else if (p.kind == kInput) {
          Multiply(Gemm::kTransposeB, p.rows, p.in, p.out, a, p.out, &member[p.weight], p.out, false, c, p.in);
        } else {
          Multiply(Gemm::kTransposeA, p.in, p.out, p.rows, a, p.in, b, p.out, false, &member[p.gradient], p.out);
        }
      }
    }
  }

 private:
  static constexpr size_t kScratch = 512 * 1024;
  enum Kind { kForward, kInput, kParameters };
  struct Layer {
    int in, out;
    size_t weight, gradient;
  };
  using Net = std::vector<Layer>;
  struct Product {
    Kind kind;
    int rows, in, out;
    size_t weight, gradient;
  };
  // repeated: inputs that the second layer reads a second time.
  Net NewNet(int in, const std::vector<int>& hidden, int out, int repeated = 0) {
    Net net;
    std::vector<int> widths{in};
    widths.insert(widths.end(), hidden.begin(), hidden.end());
    widths.push_back(out);
    for (size_t i = 0; i + 1 < widths.size(); ++i) {
      const int from = widths[i] + (i == 1 ? repeated : 0);
      const size_t size = (static_cast<size_t>(from) * widths[i + 1] + 15) / 16 * 16;
      net.push_back({from, widths[i + 1], size_, size_ + size});
      size_ += 2 * size;
    }
    return net;
  }
  void Add(Kind kind, int rows, const Layer& l) {
    products_.push_back({kind, rows, l.in, l.out, l.weight, l.gradient});
  }
  void Forward(const Net& net, int rows) {
    for (const Layer& layer : net) Add(kForward, rows, layer);
  }
  void Input(const Net& net, int rows) {
    for (size_t i = net.size(); i-- > 0;) Add(kInput, rows, net[i]);
  }
  void Parameters(const Net& net, int rows) {
    for (size_t i = net.size(); i-- > 0;) {
      Add(kParameters, rows, net[i]);
      if (i > 0) Add(kInput, rows, net[i]);
    }
  }

  void AddSoftActorCritic(const std::string& algorithm, const AlgorithmConfig& config) {
    const int B = config.batch_size, R = B + config.failure_batch_size;
    const int obs = config.obs_dim, n = config.action_dim, z = config.q_dim + config.x_dim;
    const int cost_critics = algorithm == "lag_sac" ? 1 : algorithm == "wcsac" ? 2 : 0;
    for (int net = 0; net < cost_critics; ++net)
      AddCritic(NewNet(obs + n, config.critic_hidden, 1), NewNet(obs + n, config.critic_hidden, 1), B);
    for (int net = 0; net < 2; ++net) {
      Net actor = NewNet(obs, config.actor_hidden, n), critic = NewNet(obs + n, config.critic_hidden, 1);
      Forward(actor, B), Parameters(actor, B), Forward(actor, B);  // s, its gradient, s'
      AddCritic(critic, NewNet(obs + n, config.critic_hidden, 1), B);
      if (algorithm != "datacom") continue;
      Net value = NewNet(z, config.constraint_hidden, 1);
      const Net value_target = NewNet(z, config.constraint_hidden, 1);
      for (int pass = 0; pass < 2; ++pass) Forward(value, B), Input(value, B);  // k and J at s, s'
      Forward(value, R), Forward(value_target, R), Parameters(value, R);
    }
    if (config.quantiles > 0) AddQuantiles(config, B, R);
    if (algorithm == "cbf_sac") {
      const Net barrier = NewNet(z, config.constraint_hidden, 1);
      Forward(barrier, B), Input(barrier, B), Forward(barrier, B);  // V, dV/dq, the tangents of its gradient
      for (const Layer& layer : barrier) Add(kParameters, B, layer);
    }
  }
  void AddSafeLayerTd3(const AlgorithmConfig& config) {
    const int B = config.batch_size, obs = config.obs_dim, n = config.action_dim;
    const Net model = NewNet(obs, config.constraint_hidden, n);
    const Net actor = NewNet(obs, config.actor_hidden, n), actor_target = NewNet(obs, config.actor_hidden, n);
    Net critics[2], targets[2];
    for (int i = 0; i < 2; ++i) {
      for (Net* net : {&critics[i], &targets[i]}) *net = NewNet(obs + n, config.critic_hidden, 1, /*repeated=*/n);
    }
    for (int update = 0; update < config.policy_delay; ++update) {
      Forward(model, B), Parameters(model, B), Forward(actor_target, B);
      for (int i = 0; i < 2; ++i) Forward(targets[i], B), Forward(critics[i], B), Parameters(critics[i], B);
    }
    Forward(actor, B), Forward(critics[0], B), Input(critics[0], B), Parameters(actor, B);
  }
  // Evaluations run over chunks of 256 rows. One product with the Fisher matrix is a pass in forward mode, which needs
  // two products per layer but the first, and one backwards.
  void AddOnPolicy(bool natural, const AlgorithmConfig& config) {
    const int N = config.epoch_rows, obs = config.obs_dim;
    const Net mean = NewNet(obs, config.actor_hidden, config.action_dim);
    const Net critics[] = {NewNet(obs, config.critic_hidden, 1), NewNet(obs, config.critic_hidden, 1)};
    const auto chunks = [N](const auto& work) {
      for (int first = 0; first < N; first += 256) work(std::min(256, N - first));
    };
    chunks([&](int rows) {
      Forward(mean, rows);
      for (const Net& critic : critics) Forward(critic, rows), Forward(critic, rows);  // s, s'
      if (natural) Parameters(mean, rows);
    });
    for (int product = 0; natural && product < 16; ++product) {
      chunks([&](int rows) {
        Forward(mean, rows);
        Forward({mean.begin() + 1, mean.end()}, rows);
        Parameters(mean, rows);
      });
    }
    for (int pass = 0; pass < config.passes; ++pass) {
      for (int first = 0; first < N; first += config.batch_size) {
        const int rows = std::min(config.batch_size, N - first);
        for (const Net& critic : critics) Forward(critic, rows), Parameters(critic, rows);
        if (!natural) Forward(mean, rows), Parameters(mean, rows);
      }
      if (!natural) chunks([&](int rows) { Forward(mean, rows); });  // the divergence
    }
  }
  void AddSafeLoop(const AlgorithmConfig& config) {
    constexpr int kPasses = 7;
    const int B = config.batch_size, obs = config.obs_dim, n = config.action_dim;
    const int held_out = config.epoch_rows / 5, training = config.epoch_rows - held_out;
    for (int i = 0; i < static_cast<int>(config.planning.ensemble()); ++i) {
      const Net net =
          NewNet(obs + n, {config.planning.hidden().begin(), config.planning.hidden().end()}, 2 * (obs + 1));
      for (int pass = 0; pass < kPasses; ++pass) {
        for (int first = 0; first < training; first += B) Forward(net, B), Parameters(net, B);
        for (int first = 0; first < held_out; first += B) Forward(net, B);
      }
    }
    const Net actor = NewNet(obs, config.actor_hidden, 2 * n);
    Net critics[2], targets[2];
    for (int i = 0; i < 2; ++i) {
      for (Net* net : {&critics[i], &targets[i]}) *net = NewNet(obs + n, config.critic_hidden, 1);
    }
    for (int step = 0; step < static_cast<int>(config.planning.policy_updates()); ++step) {
      Forward(actor, B), Forward(actor, B), Parameters(actor, B);  // s', s, its gradient
      for (int i = 0; i < 2; ++i) AddCritic(critics[i], targets[i], B);
    }
  }
  void AddQuantiles(const AlgorithmConfig& config, int B, int R) {
    const std::vector<int>& hidden = config.constraint_hidden;
    const int width = hidden.back(), z = config.q_dim + config.x_dim, all = R * config.quantiles;
    Net base[2], embedding[2], quantile[2];  // online, target
    for (int i = 0; i < 2; ++i) {
      base[i] = NewNet(z, {hidden.begin(), hidden.end() - 1}, width);
      embedding[i] = NewNet(config.quantile_embedding, {}, width);
      quantile[i] = NewNet(width, {width}, 1);
    }
    for (int pass = 0; pass < 2; ++pass) {  // k and J at s, s'
      Forward(base[0], B), Forward(embedding[0], 1), Forward(quantile[0], B);
      Input(quantile[0], B), Input(base[0], B);
    }
    for (int i = 0; i < 2; ++i) Forward(base[i], R), Forward(embedding[i], all), Forward(quantile[i], all);
    Parameters(quantile[0], all), Add(kInput, all, quantile[0].front());
    Parameters(embedding[0], all), Parameters(base[0], R);
  }
  void AddCritic(const Net& critic, const Net& target, int rows) {
    Forward(critic, rows), Input(critic, rows);                              // Q(s, a) and its gradient for a
    Forward(target, rows), Forward(critic, rows), Parameters(critic, rows);  // target and fit
  }

  std::vector<Product> products_;
  size_t size_ = 0;
  std::vector<std::vector<float>> memory_;
  std::vector<float> scratch_;
};

const Shape kHockey{"obs16", 16, 3, 6};

struct Options {
  std::string device = "cpu", kernels = "auto", only;  // only: measure the names that contain it
  double seconds = 2;
  std::vector<int> members;  // empty: 1, 8 and 32
  std::vector<int> threads;  // not empty: measure how updates scale over threads, and nothing else
  int unchanged = 0;         // updates; > 0: print what they leave of a snapshot, and nothing else
};

std::string NameOf(const std::string& algorithm, const Shape& shape, int members) {
  return "learner/" + algorithm + "/" + shape.name + "/M=" + std::to_string(members);
}

// The bytes of a snapshot in arrays that `updates` updates leave as they were.
void PrintUnchanged(const std::string& algorithm, const Shape& shape, int updates) {
  const AlgorithmConfig config = ConfigOf(algorithm, shape, 1);
  const std::unique_ptr<Algorithm> learner = MakeAlgorithm(config);
  const Batch batch = RandomBatch(config);
  const ActingParameters before = learner->GetActingParameters(0);
  for (int i = 0; i < updates; ++i) learner->Update(batch);
  const ActingParameters after = learner->GetActingParameters(0);
  size_t all = 0, unchanged = 0;
  for (size_t i = 0; i < after.arrays.size(); ++i) {
    all += 4 * after.arrays[i].values.size();
    if (after.arrays[i].values == before.arrays[i].values) unchanged += 4 * after.arrays[i].values.size();
  }
  std::printf("%-20s of %zu bytes of a snapshot %zu are unchanged after %d updates\n", algorithm.c_str(), all,
              unchanged, updates);
}

Result Measure(const std::string& algorithm, const Shape& shape, int members, const Options& options) {
  AlgorithmConfig config = TimedConfigOf(algorithm, shape, members);
  config.device = options.device;
  config.kernels = options.kernels;
  const std::unique_ptr<Algorithm> learner = MakeAlgorithm(config);
  const Batch batch = RandomBatch(config);
  Floor floor(algorithm, config);
  const int cycle = CycleOf(algorithm, config);
  const size_t fewest = IsLong(algorithm) ? 3 : 20;
  for (int i = 0; i < (IsLong(algorithm) ? 1 : 10); ++i)
    learner->Update(batch), floor.Run();  // warm caches, record graphs
  std::vector<double> update_times, floor_times;
  for (double spent = 0; spent < options.seconds || update_times.size() < fewest;) {
    update_times.push_back(Seconds([&] {
      for (int i = 0; i < cycle; ++i) learner->Update(batch);
    }));
    floor_times.push_back(Seconds([&] { floor.Run(); }));
    spent += update_times.back() + floor_times.back();
  }
  const double updates = static_cast<double>(members) * cycle;
  const double update = Median(update_times) / updates, base = Median(floor_times) / updates;
  Result result{NameOf(algorithm, shape, members), 1 / update, 1 / base, update / base};
  result.update_gflops = floor.flops() / cycle / update * 1e-9;
  std::fprintf(stderr, "%-34s %8.1f us a member update   floor (%zu products) %8.1f us   ratio %.2f   %5.1f GF/s\n",
               result.name.c_str(), update * 1e6, floor.products(), base * 1e6, result.ratio, result.update_gflops);
  return result;
}

Options Parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    if (flag == "--benchmark_format=json")
      continue;  // `datacom bench` passes it to every program; this one has no other format
    if (i + 1 >= argc) throw std::invalid_argument("flag '" + flag + "' is unknown or lacks its value");
    const std::string value = argv[++i];
    if (flag == "--seconds") {
      options.seconds = std::stod(value);
    } else if (flag == "--device") {
      options.device = value;
    } else if (flag == "--kernels") {
      options.kernels = value;
    } else if (flag == "--members") {
      options.members = {std::stoi(value)};
    } else if (flag == "--threads") {
      options.threads = ThreadCounts(value);
    } else if (flag == "--unchanged") {
      options.unchanged = std::stoi(value);
    } else if (flag == "--only") {
      options.only = value;
    } else {
      throw std::invalid_argument(
          "unknown flag '" + flag +
          "'; there are --seconds, --device, --kernels, --members, --threads, --only, --unchanged");
    }
  }
  return options;
}

// Without --only: D-ATACOM.
std::vector<ScalingCase> ScalingCases(const Options& options) {
  std::vector<ScalingCase> cases;
  for (const std::string& algorithm : RegisteredAlgorithms()) {
    for (const int members : options.members.empty() ? std::vector<int>{1, 2, 8, 32} : options.members) {
      const std::string name = NameOf(algorithm, kHockey, members);
      if (options.only.empty() ? algorithm == "datacom" : name.find(options.only) != std::string::npos)
        cases.push_back({algorithm, members});
    }
  }
  return cases;
}

void PrintJson(const std::vector<Result>& results) {
  std::printf("{\"benchmarks\": [");
  for (size_t i = 0; i < results.size(); ++i) {
    const Result& r = results[i];
    std::printf("%s\n  {\"name\": \"%s\", \"value\": %.6g, \"unit\": \"%s\"", i > 0 ? "," : "", r.name.c_str(), r.value,
                r.unit);
    if (r.floor > 0) std::printf(", \"floor\": %.6g, \"ratio\": %.4g", r.floor, r.ratio);
    std::printf("}");
  }
  std::printf("\n]}\n");
}

// GF/s of fused multiply-adds in registers: the best of several tries, because other work on the core only lowers it.
double PeakGflops() {
  constexpr int kSteps = 500000;
  double best = 0;
  for (int i = 0; i < 10; ++i) {
    double flops = 0;
    const double seconds = Seconds([&] { flops = ChosenLoops().fused_multiply_adds(kSteps); });
    best = std::max(best, flops / seconds * 1e-9);
  }
  return best;
}

void AddPeak(double peak, std::vector<Result>* results) {
  std::fprintf(stderr, "peak of one core, %s: %.1f GF/s\n", CpuArithmetic().c_str(), peak);
  std::vector<Result> added;
  added.push_back({"learner/peak", peak, 0, 0, "GF/s"});
  for (const Result& r : *results) {
    added.push_back(
        {r.name + "/peak_share", r.update_gflops / peak, r.update_gflops / peak * r.ratio, r.ratio, "share"});
  }
  results->insert(results->end(), added.begin(), added.end());
}

int Main(int argc, char** argv) {
  const Options options = Parse(argc, argv);
  if (!options.threads.empty()) {
    PrintJson(MeasureScaling(options.threads, ScalingCases(options), options.seconds));
    return 0;
  }
  if (options.unchanged > 0) {
    for (const std::string& algorithm : RegisteredAlgorithms()) PrintUnchanged(algorithm, kHockey, options.unchanged);
    return 0;
  }
  const Shape cartpole{"cartpole", 5, 1, 4}, joined{"obs16+17known", 16, 3, 6, 17};
  const bool cpu = options.device == "cpu";
  double peak = 0;
  std::vector<Result> results;
  const auto measure = [&](const std::string& algorithm, const Shape& shape) {
    for (const int members : options.members.empty() ? std::vector<int>{1, 8, 32} : options.members) {
      if (NameOf(algorithm, shape, members).find(options.only) == std::string::npos) continue;
      if (IsLong(algorithm) && members != 1) continue;
      results.push_back(Measure(algorithm, shape, members, options));
      if (cpu) peak = std::max(peak, PeakGflops());
    }
  };
  for (const std::string& algorithm : RegisteredAlgorithms()) {
    for (const Shape& shape : {kHockey, cartpole}) measure(algorithm, shape);
  }
  measure("datacom", joined);
  if (cpu) AddPeak(peak, &results);
  PrintJson(results);
  return 0;
}

}  // namespace
}  // namespace datacom::learner

int main(int argc, char** argv) {
  try {
    return datacom::learner::Main(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "datacom-bench-learner: %s\n", error.what());
    return 2;
  }
}

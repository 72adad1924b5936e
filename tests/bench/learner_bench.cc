// Compares the Update of M members with the "GEMM floor": the matrix products that it computes, by the same library.
// Both are measured alternately in the same run on one thread. Dynamics features, prefetch and replay are not included:
// the batch is in memory. On the CPU it also measures the peak of one core (fused multiply-adds in registers) and the
// share of it that an update reaches: the floor's operations in the time of the update.
//
//   datacom-bench-learner [--seconds S] [--device cpu|cuda] [--kernels auto|fused|tensor] [--members M,...]
//                         [--precision float32|tf32|bf16] [--only TEXT,...] [--hidden N] [--batch N]
// Instead, on a device, the microseconds of an update of all members, and with "all" of what a run does besides updates
// (a batch's way to the device, a publication, the statistics of an epoch, and one finished episode of 300 steps of
// every member), on observation 16, the fewest members first:
//   datacom-bench-learner --parts all|update [--seconds S] [--device ...] [--kernels ...] [--threads N]
//                         [--members M,...] [--only TEXT,...] [--hidden N] [--batch N]
// Instead, how updates scale over threads (learner_scaling.h):
//   datacom-bench-learner --threads 1,2 [--seconds S] [--members M] [--only TEXT,...]
// Instead, how many bytes of a snapshot N updates leave as they were:
//   datacom-bench-learner --unchanged N
//
// One line per measurement on standard error, JSON on standard output.
// value: member updates per second; floor: the rate of the products alone; ratio: time over the floor's time. Times are
// medians. learner/peak: value in GF/s. learner/.../peak_share: value is the update's share of the peak, floor the
// share of the products alone.
#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/base/team.h"
#include "learner/algorithms/algorithm.h"
#include "learner/nn/cpu/gemm.h"
#include "learner/nn/cpu/loops.h"
#include "learner/nn/kernels.h"
#include "tests/bench/learner_scaling.h"
#include "tests/bench/learner_setup.h"
#include "tests/learner/algorithms/arrays.h"

namespace datacom::learner {
namespace {

// Updates after which an algorithm's work repeats: TD3 updates its actor at every policy_delay-th. Times are means over
// one cycle.
int CycleOf(const std::string& algorithm, const AlgorithmConfig& config) {
  return algorithm == "safe_layer_td3" ? config.policy_delay : 1;
}

// The matrix products of one cycle of updates, without everything between them, on memory of the same size.
class Floor {
 public:
  Floor(const std::string& algorithm, AlgorithmConfig config) : members_(config.members.size()) {
    config.members.resize(1);
    config.learner.set_kernels("fused");
    config.learner.set_device("cpu");
    const std::unique_ptr<Algorithm> learner = MakeAlgorithm(config);
    const Batch batch = RandomBatch(config);
    learner->Update(batch);  // allocates
    NoteProducts(&products_);
    for (int i = 0; i < CycleOf(algorithm, config); ++i) learner->Update(batch);
    NoteProducts(nullptr);
    size_t largest = 0;
    for (const Product& p : products_) {
      largest = std::max({largest, Size(p.m, p.k), Size(p.k, p.n), Size(p.m, p.n)});
    }
    size_ = 2 * learner->Save().at("parameters").size() / sizeof(float);  // weights and gradients
    memory_.assign(members_ * size_ + largest, 0.01f);
    scratch_.assign(2 * largest, 0.01f);
  }
  size_t products() const { return products_.size(); }
  double flops() const {  // of one member
    double sum = 0;
    for (const Product& p : products_) sum += 2.0 * p.m * p.n * p.k;
    return sum;
  }
  // Each product has weights or their gradient in the member's memory and its other matrices in a cache.
  void Run() {
    float* const a = scratch_.data();
    float* const other = a + scratch_.size() / 2;
    for (size_t member = 0; member < members_; ++member) {
      size_t at = 0;
      for (const Product& p : products_) {
        float* const own = &memory_[member * size_ + at];
        const bool gradient = p.form == Gemm::kTransposeA;
        Multiply(p.form, p.m, p.n, p.k, a, gradient ? p.m : p.k, gradient ? other : own,
                 p.form == Gemm::kTransposeB ? p.k : p.n, false, gradient ? own : other, p.n);
        at = (at + (gradient ? Size(p.m, p.n) : Size(p.k, p.n))) % size_;
      }
    }
  }

 private:
  static size_t Size(int rows, int columns) { return static_cast<size_t>(rows) * columns; }

  const size_t members_;
  std::vector<Product> products_;
  size_t size_ = 0;  // of a member
  std::vector<float> memory_, scratch_;
};

const Shape kHockey{"obs16", 16, 3, 6};

struct Options {
  std::string device = "cpu", kernels = "auto", precision = "float32", only;  // only: see IsWanted
  double seconds = 2;
  std::vector<int> members;   // empty: 1, 8 and 32
  std::vector<int> threads;   // not empty: measure how updates scale over threads, and nothing else
  int unchanged = 0;          // updates; > 0: print what they leave of a snapshot, and nothing else
  std::string parts;          // "all" or "update": measure these parts of a run, and nothing else
  int hidden = 0, batch = 0;  // of the shape obs16, which is then the only one; 0: its own
};

std::string NameOf(const std::string& algorithm, const Shape& shape, int members) {
  return "learner/" + algorithm + "/" + shape.name + "/M=" + std::to_string(members);
}

// Whether the name contains one of the texts of --only, between which are commas, or there is none.
bool IsWanted(const std::string& name, const std::string& only) {
  bool wanted = only.empty();
  std::istringstream texts(only);
  for (std::string text; std::getline(texts, text, ',');) wanted = wanted || name.find(text) != std::string::npos;
  return wanted;
}

// The bytes of a snapshot in arrays that `updates` updates leave as they were.
void PrintUnchanged(const std::string& algorithm, const Shape& shape, int updates) {
  const AlgorithmConfig config = ConfigOf(algorithm, shape, 1);
  const std::unique_ptr<Algorithm> learner = MakeAlgorithm(config);
  const Batch batch = RandomBatch(config);
  const ActingParameters before = learner->GetActingParameters()[0];
  for (int i = 0; i < updates; ++i) learner->Update(batch);
  const ActingParameters after = learner->GetActingParameters()[0];
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
  config.learner.set_device(options.device);
  config.learner.set_kernels(options.kernels);
  config.learner.set_precision(options.precision);
  const std::unique_ptr<Algorithm> learner = MakeAlgorithm(config);
  for (int m = 0; shape.multiplier && m < members; ++m) SetArray(learner.get(), m, "multiplier", {0.2f});
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

// What an update of all members reads at most, as numbers of 4 bytes.
size_t NumbersOf(const Batch& batch) {
  size_t floats = 0, doubles = 0;
  for (const auto* values : {&batch.observation, &batch.action, &batch.reward, &batch.cost, &batch.next_observation,
                             &batch.absorbing, &batch.now.z, &batch.next.z, &batch.failure_z, &batch.failure_next_z,
                             &batch.failure_cost, &batch.failure_absorbing, &batch.failure_weight, &batch.noise_actor,
                             &batch.noise_next, &batch.level, &batch.next_level}) {
    floats += values->size();
  }
  for (const auto* values : {&batch.now.f, &batch.now.G, &batch.now.x_dot, &batch.now.known, &batch.next.f,
                             &batch.next.G, &batch.next.x_dot, &batch.next.known}) {
    doubles += values->size();
  }
  return floats + 2 * doubles;
}

// Microseconds of what a run does for all members together.
void MeasureParts(const std::string& algorithm, const Shape& shape, int members, const Options& options,
                  std::vector<Result>* results) {
  AlgorithmConfig config = TimedConfigOf(algorithm, shape, members);
  config.learner.set_device(options.device);
  config.learner.set_kernels(options.kernels);
  config.learner.set_precision(options.precision);
  if (!options.threads.empty()) config.team = std::make_shared<Team>(options.threads.back(), /*pin=*/false);
  const std::unique_ptr<Algorithm> learner = MakeAlgorithm(config);
  const Batch batch = RandomBatch(config);
  constexpr int kSteps = 300;
  const std::vector<float> z(static_cast<size_t>(kSteps + 1) * (config.q_dim + config.x_dim), 0.1f),
      costs(kSteps + 1, 0.0f);
  std::vector<EpisodeCosts> episodes;
  for (int m = 0; m < members; ++m) episodes.push_back({m, kSteps, z.data(), costs.data()});
  const auto measure = [&](const char* part, const std::function<void()>& work) {
    for (int i = 0; i < 5; ++i) work();  // warm caches, record graphs
    std::vector<double> times;
    for (double spent = 0; spent < options.seconds || times.size() < 3; spent += times.back()) {
      times.push_back(Seconds(work));
    }
    const double median = 1e6 * Median(times);
    std::fprintf(stderr, "%-34s %-12s %10.1f us, %8.2f us a member\n", NameOf(algorithm, shape, members).c_str(), part,
                 median, median / members);
    results->push_back({NameOf(algorithm, shape, members) + "/" + part, median, 0, 0, "us"});
  };
  measure("update", [&] { learner->Update(batch); });
  if (options.parts == "update") return;
  // The whole batch as one transfer, without the work of an update.
  const std::unique_ptr<Kernels> kernels = MakeKernels(options.kernels, options.device, options.precision);
  const std::vector<float> numbers(NumbersOf(batch));
  const FloatView there = kernels->NewFloats(members, 1, static_cast<int>(numbers.size()) / members);
  measure("transfer", [&] {
    kernels->Run(
        /*plan=*/0, [&] { kernels->Upload(numbers.data(), there); }, [] {});
  });
  measure("publication", [&] { learner->GetActingParameters(); });
  measure("statistics", [&] { learner->GetStats(); });
  if (config.q_dim > 0) measure("episodes", [&] { learner->ApplyEpisodes(episodes); });
}

std::vector<int> MemberCounts(const std::string& text) {
  std::vector<int> counts;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) counts.push_back(std::stoi(word));
  return counts;
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
    } else if (flag == "--precision") {
      options.precision = value;
    } else if (flag == "--members") {
      options.members = MemberCounts(value);
    } else if (flag == "--threads") {
      options.threads = ThreadCounts(value);
    } else if (flag == "--hidden") {
      options.hidden = std::stoi(value);
    } else if (flag == "--batch") {
      options.batch = std::stoi(value);
    } else if (flag == "--parts") {
      if (value != "all" && value != "update")
        throw std::invalid_argument("--parts must be 'all' or 'update', not '" + value + "'");
      options.parts = value;
    } else if (flag == "--unchanged") {
      options.unchanged = std::stoi(value);
    } else if (flag == "--only") {
      options.only = value;
    } else {
      throw std::invalid_argument("unknown flag '" + flag +
                                  "'; there are --seconds, --device, --kernels, --precision, --members, --threads, "
                                  "--only, --unchanged, --parts, --hidden, --batch");
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
      if (options.only.empty() ? algorithm == "datacom" : IsWanted(name, options.only))
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
  if (!options.threads.empty() && options.parts.empty()) {
    PrintJson(MeasureScaling(options.threads, ScalingCases(options), options.seconds));
    return 0;
  }
  if (options.unchanged > 0) {
    for (const std::string& algorithm : RegisteredAlgorithms()) PrintUnchanged(algorithm, kHockey, options.unchanged);
    return 0;
  }
  const Shape cartpole{"cartpole", 5, 1, 4}, joined{"obs16+17known", 16, 3, 6, 17},
      layer_norm{"obs16+critic_layer_norm", 16, 3, 6, 0, /*critic_layer_norm=*/true},
      normalised{"obs16+normalise_observations", 16, 3, 6, 0, false, /*normalise_observations=*/true},
      wide{"obs16+hidden256", 16, 3, 6, 0, false, false, /*hidden=*/256},
      large{"obs16+batch256", 16, 3, 6, 0, false, false, 128, /*batch=*/256},
      priced{"obs16+multiplier", 16, 3, 6, 0, false, false, 128, 64, /*multiplier=*/true};
  const std::string own_name = "obs16+hidden" + std::to_string(options.hidden > 0 ? options.hidden : 128) + "+batch" +
                               std::to_string(options.batch > 0 ? options.batch : 64);
  Shape own{own_name.c_str(), 16, 3, 6};
  const bool has_own = options.hidden > 0 || options.batch > 0;
  if (options.hidden > 0) own.hidden = options.hidden;
  if (options.batch > 0) own.batch = options.batch;
  if (!has_own) own.name = kHockey.name;
  const bool cpu = options.device == "cpu";
  double peak = 0;
  std::vector<Result> results;
  const auto measure = [&](const std::string& algorithm, const Shape& shape) {
    for (const int members : options.members.empty() ? std::vector<int>{1, 8, 32} : options.members) {
      if (!IsWanted(NameOf(algorithm, shape, members), options.only)) continue;
      if (IsLong(algorithm) && members != 1) continue;
      results.push_back(Measure(algorithm, shape, members, options));
      if (cpu) peak = std::max(peak, PeakGflops());
    }
  };
  if (!options.parts.empty()) {
    for (const int members : options.members.empty() ? std::vector<int>{1, 8, 32} : options.members) {
      for (const std::string& algorithm : RegisteredAlgorithms()) {
        if (IsLong(algorithm) || !IsWanted(NameOf(algorithm, own, members), options.only)) continue;
        MeasureParts(algorithm, own, members, options, &results);
      }
    }
    PrintJson(results);
    return 0;
  }
  for (const std::string& algorithm : RegisteredAlgorithms()) {
    measure(algorithm, own);
    if (!has_own) measure(algorithm, cartpole);
  }
  if (has_own) {
    if (cpu) AddPeak(peak, &results);
    PrintJson(results);
    return 0;
  }
  for (const Shape& shape : {joined, wide, large, priced}) measure("datacom", shape);
  for (const Shape& shape : {layer_norm, normalised}) measure("sac", shape);
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
// SPDX-License-Identifier: Apache-2.0

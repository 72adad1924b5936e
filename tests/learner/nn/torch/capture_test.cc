// What a CUDA graph cannot record, or would repeat wrongly, does not happen inside Kernels::Run of the tensor kernels.
// No GPU is needed: updates of every algorithm run on two devices of LibTorch while all operators are observed.
//
// "cpu" has real numbers. After the updates that a graph runs eagerly, no operator
//   - reads a number on the host (LibTorch's tag data_dependent_output: item, equal, ...),
//   - has a shape that depends on numbers (tag dynamic_output_shape: nonzero, masked_select, repeat_interleave, ...);
// updates of one plan issue the same operators with the same shapes and the same numbers from the host; and no memory
// allocated inside Run outlives it. Temporaries are allowed: during a capture CUDA's allocator takes them from the
// graph's own pool.
//
// "meta" has shapes without numbers and, like a GPU, memory apart from the host's. There no operator
//   - needs a number or copies one to the host (LibTorch throws),
//   - reads a tensor of the host: uploads, and tensors that were made on the wrong device.
//
// Not seen here: a CUDA kernel of LibTorch that waits for the device by itself, and an implementation that reads memory
// through the pointer of a view.
#include <ATen/ATen.h>
#include <ATen/ExpandUtils.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/record_function.h>
#include <c10/core/Allocator.h>
#include <torch/library.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "learner/nn/torch/torch_impl.h"
#include "tests/learner/algorithms/testing.h"

namespace datacom::learner {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// LibTorch has these operators on "meta" only in Python, or in later versions. All of them work element by element.
std::vector<int64_t> Sizes(const at::Tensor& a, const at::Tensor& b) { return at::infer_size(a.sizes(), b.sizes()); }
at::Tensor& Resized(at::Tensor& out, at::IntArrayRef sizes) {
  out.resize_(sizes);
  return out;
}
at::Tensor& Logical(const at::Tensor& a, const at::Tensor& b, at::Tensor& out) { return Resized(out, Sizes(a, b)); }

TORCH_LIBRARY_IMPL(aten, Meta, library) {
  library.impl("relu", [](const at::Tensor& x) { return at::empty_like(x); });
  library.impl("isnan", [](const at::Tensor& x) { return at::empty_like(x, at::kBool); });
  library.impl("abs.out", [](const at::Tensor& x, at::Tensor& out) -> at::Tensor& { return Resized(out, x.sizes()); });
  library.impl("logical_and.out", &Logical);
  library.impl("logical_or.out", &Logical);
  library.impl("where.self", [](const at::Tensor& condition, const at::Tensor& a, const at::Tensor& b) {
    return at::empty(at::infer_size(condition.sizes(), Sizes(a, b)), a.options());
  });
  library.impl(
      "where.self_out",
      [](const at::Tensor& condition, const at::Tensor& a, const at::Tensor& b, at::Tensor& out) -> at::Tensor& {
        return Resized(out, at::infer_size(condition.sizes(), Sizes(a, b)));
      });
}

// One call of Kernels::Run.
struct Observed {
  int64_t plan = -1;
  std::vector<std::string> calls;       // operators with the shapes and numbers that they take
  std::vector<std::string> forbidden;   // operators that a graph cannot record
  std::map<std::string, int> launches;  // operators that are work of the device, and how often
  std::set<void*> kept;                 // memory allocated and not freed
};

// The type of a size in LibTorch's report of memory; it differs between versions.
template <class T>
T SizeOf(void (c10::MemoryReportingInfoBase::*)(void*, int64_t, T, T, c10::Device));
using ReportedSize = decltype(SizeOf(&c10::MemoryReportingInfoBase::reportMemoryUsage));

void DescribeTensor(const at::Tensor& tensor, std::ostream& out) {
  if (!tensor.defined()) return;
  out << tensor.scalar_type() << tensor.sizes();
  const bool number = tensor.unsafeGetTensorImpl()->is_wrapped_number() && tensor.device().is_cpu();
  if (number && tensor.scalar_type() == at::kDouble) out << "=" << *static_cast<const double*>(tensor.data_ptr());
}

std::string Describe(const at::RecordFunction& call) {
  std::ostringstream out;
  out.precision(17);
  out << call.name();
  for (const c10::IValue& value : call.inputs()) {
    out << " ";
    if (value.isTensor()) {
      DescribeTensor(value.toTensor(), out);
    } else if (value.isTensorList()) {
      for (const at::Tensor& tensor : value.toTensorVector()) DescribeTensor(tensor, out);
    } else {
      out << value;
    }
  }
  return out.str();
}

// Whether the host needs numbers of the device for this operator.
bool DependsOnNumbers(const at::RecordFunction& call) {
  const auto name = call.operator_name();
  if (!name) return false;
  const auto schema = c10::Dispatcher::singleton().findOp(*name);
  return schema && (schema->hasTag(at::Tag::data_dependent_output) || schema->hasTag(at::Tag::dynamic_output_shape));
}

// Whether an operator on device "meta" reads memory of the host. A number alone is an argument of a CUDA kernel, unless
// it is copied.
bool ReadsHost(const at::RecordFunction& call) {
  const std::string name = call.name();
  const bool copies = name == "aten::copy_" || name == "aten::_to_copy";
  for (const c10::IValue& value : call.inputs()) {
    std::vector<at::Tensor> tensors;
    if (value.isTensor()) tensors = {value.toTensor()};
    if (value.isTensorList()) tensors = value.toTensorVector();
    for (const at::Tensor& tensor : tensors) {
      if (tensor.defined() && tensor.device().is_cpu() && (tensor.dim() > 0 || copies)) return true;
    }
  }
  return false;
}

// The work that an operator is for a device, without what it calls: 1, or 0 for views and allocations.
int LaunchesOf(const std::string& name) {
  static const std::set<std::string> kNoWork{
      "aten::as_strided",   "aten::detach",      "aten::empty",        "aten::empty_like", "aten::empty_strided",
      "aten::expand",       "aten::expand_as",   "aten::flatten",      "aten::narrow",     "aten::reshape",
      "aten::resize_",      "aten::result_type", "aten::select",       "aten::slice",      "aten::squeeze",
      "aten::transpose",    "aten::unflatten",   "aten::view",         "aten::unsqueeze",  "aten::_reshape_alias",
      "aten::_unsafe_view", "aten::to",          "aten::resolve_conj", "aten::resolve_neg"};
  return kNoWork.count(name) > 0 ? 0 : 1;
}

// Products are as much work on a GPU, whatever they call on the CPU: one operator, and a copy of the summand.
const std::map<std::string, int> kWhole{{"aten::baddbmm", 2}, {"aten::baddbmm_", 1}, {"aten::bmm", 1}};

// Observes all operators of the process while it exists, and the memory that its thread allocates. One at a time.
class Observer {
 public:
  explicit Observer(const std::string& device) : meta_(device == "meta") {
    current = this;
    handle_ = at::addGlobalCallback(at::RecordFunctionCallback(&Begin, &End)
                                        .needsInputs(true)
                                        .scopes({at::RecordScope::FUNCTION, at::RecordScope::USER_SCOPE}));
  }
  ~Observer() {
    at::removeCallback(handle_);
    current = nullptr;
  }
  Observer(const Observer&) = delete;
  Observer& operator=(const Observer&) = delete;

  std::vector<Observed> runs;
  int transfers = 0;  // between host and device

 private:
  class Memory : public c10::MemoryReportingInfoBase {
   public:
    explicit Memory(Observer* observer) : observer_(observer) {}
    void reportMemoryUsage(void* data, int64_t size, ReportedSize, ReportedSize, c10::Device) override {
      if (!observer_->inside_) return;
      if (size > 0) {
        observer_->runs.back().kept.insert(data);
      } else {
        observer_->runs.back().kept.erase(data);
      }
    }
    bool memoryProfilingEnabled() const override { return true; }

   private:
    Observer* const observer_;
  };

  static bool IsRange(const at::RecordFunction& call, const std::string& name) {
    return call.scope() == at::RecordScope::USER_SCOPE && call.name() == name;
  }
  static std::unique_ptr<at::ObserverContext> Begin(const at::RecordFunction& call) {
    current->transfers += IsRange(call, kTransferRange);
    if (IsRange(call, kRunRange)) {
      current->runs.emplace_back();
      current->runs.back().plan = call.seqNr();
      current->inside_ = true;
    } else if (current->inside_) {
      current->Add(call);
    }
    return nullptr;
  }
  static void End(const at::RecordFunction& call, at::ObserverContext*) {
    if (IsRange(call, kRunRange)) {
      current->inside_ = false;
    } else if (current->inside_ && call.scope() == at::RecordScope::FUNCTION) {
      current->Ended(call);
    }
  }

  void Add(const at::RecordFunction& call) {
    if (call.scope() == at::RecordScope::FUNCTION) {
      calls_work_.push_back(false);
      if (kWhole.count(call.name()) > 0) ++inside_whole_;
    }
    Observed& run = runs.back();
    run.calls.push_back(Describe(call));
    if (DependsOnNumbers(call) || (meta_ && ReadsHost(call))) run.forbidden.push_back(run.calls.back());
  }

  void Ended(const at::RecordFunction& call) {
    const auto whole = kWhole.find(call.name());
    const bool calls_work = calls_work_.back();
    calls_work_.pop_back();
    if (whole != kWhole.end()) --inside_whole_;
    const int launches = whole != kWhole.end() ? whole->second : calls_work ? 0 : LaunchesOf(call.name());
    if (inside_whole_ == 0 && launches > 0) runs.back().launches[call.name()] += launches;
    if ((launches > 0 || calls_work) && !calls_work_.empty()) calls_work_.back() = true;
  }

  static Observer* current;
  const bool meta_;
  std::vector<bool> calls_work_;  // of the operators that have begun
  int inside_whole_ = 0;          // how many of them are in kWhole
  bool inside_ = false;
  at::CallbackHandle handle_;
  c10::DebugInfoGuard memory_{c10::DebugInfoKind::PROFILER_STATE, std::make_shared<Memory>(this)};
};
Observer* Observer::current = nullptr;

// ---- every algorithm

class EveryAlgorithm : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(All, EveryAlgorithm, ::testing::ValuesIn(RegisteredAlgorithms()),
                         [](const auto& info) { return info.param; });
INSTANTIATE_TEST_SUITE_P(Joined, EveryAlgorithm,
                         ::testing::Values("datacom_known", "iqn_datacom_known", "datacom_robust"),
                         [](const auto& info) { return info.param; });
INSTANTIATE_TEST_SUITE_P(Varied, EveryAlgorithm,
                         ::testing::Values("sac_layer_norm", "datacom_layer_norm", "datacom_bf16", "cbf_sac_bf16"),
                         [](const auto& info) { return info.param; });

constexpr int kMembers = 2, kEager = 3;

AlgorithmConfig Config(const std::string& name, const std::string& device) {
  AlgorithmConfig config = SmallConfig(name, kMembers, "tensor");
  config.learner.set_device(device);
  return config;
}

void Pretrain(Algorithm* algorithm, const Batch& batch) {
  try {
    algorithm->Pretrain(batch);
  } catch (const std::invalid_argument&) {  // it cannot be pre-trained
  }
}

// The updates after those that a graph runs eagerly. Their batches differ in every number. One has no failures, one
// freezes a member.
std::vector<Observed> Updates(const AlgorithmConfig& config) {
  const std::unique_ptr<Algorithm> algorithm = MakeAlgorithm(config);
  const auto update = [&](uint64_t seed) {
    Batch batch = RandomBatch(config, seed);
    if (seed == kEager + 2) std::fill(batch.failure_weight.begin(), batch.failure_weight.end(), 0.0f);
    if (seed == kEager + 4) batch.reward[0] = NAN;
    Pretrain(algorithm.get(), batch);
    algorithm->Update(batch);
    if (config.learner.device() == "cpu") ApplyEpisodes(algorithm.get(), config, seed);
  };
  for (int u = 0; u < kEager; ++u) update(u);
  Observer observer(config.learner.device());
  for (int u = kEager; u < kEager + 6; ++u) update(u);
  return std::move(observer.runs);
}

TEST_P(EveryAlgorithm, AnUpdateReadsNoNumberOnTheHostAndHasFixedShapes) {
  const std::vector<Observed> runs = Updates(Config(GetParam(), "cpu"));
  ASSERT_GE(runs.size(), 6u);
  size_t calls = 0;
  for (const Observed& run : runs) {
    calls += run.calls.size();
    if (!TakesNewRows(GetParam())) {
      EXPECT_GT(run.calls.size(), 100u);
    }
    EXPECT_THAT(run.forbidden, IsEmpty());
  }
  EXPECT_GT(calls, 600u) << "of six updates";
}

TEST_P(EveryAlgorithm, UpdatesOfAPlanIssueTheSameOperatorsWithTheSameNumbers) {
  std::map<int64_t, Observed> first;
  for (const Observed& run : Updates(Config(GetParam(), "cpu"))) {
    const Observed& expected = first.emplace(run.plan, run).first->second;
    ASSERT_EQ(run.calls.size(), expected.calls.size()) << "of plan " << run.plan;
    for (size_t i = 0; i < run.calls.size(); ++i) ASSERT_EQ(run.calls[i], expected.calls[i]) << "of plan " << run.plan;
  }
  EXPECT_FALSE(first.empty());
}

TEST_P(EveryAlgorithm, NoMemoryAllocatedInAnUpdateOutlivesIt) {
  for (const Observed& run : Updates(Config(GetParam(), "cpu"))) EXPECT_EQ(run.kept.size(), 0u);
}

TEST_P(EveryAlgorithm, AnUpdateUploadsNothingAndNeedsOnlyShapes) {
  size_t calls = 0;
  for (const Observed& run : Updates(Config(GetParam(), "meta"))) {
    calls += run.calls.size();
    if (!TakesNewRows(GetParam())) {
      EXPECT_GT(run.calls.size(), 100u);
    }
    EXPECT_THAT(run.forbidden, IsEmpty());
  }
  EXPECT_GT(calls, 600u) << "of six updates";
}

// ---- operators of an update
//
// A device needs a few microseconds to start each of them. The ceilings may only fall.
const std::map<std::string, int> kMostLaunches{{"sac", 273}, {"datacom", 447}};

TEST(Operators, AnUpdateStartsFew) {
  for (const auto& [algorithm, most] : kMostLaunches) {
    const AlgorithmConfig config = Config(algorithm, "cpu");
    const std::unique_ptr<Algorithm> learner = MakeAlgorithm(config);
    const Observer observer("cpu");
    learner->Update(RandomBatch(config, 1));
    ASSERT_EQ(observer.runs.size(), 1u);
    int all = 0;
    std::string list = algorithm + "\n";
    for (const auto& [name, count] : observer.runs[0].launches) {
      all += count;
      list += std::to_string(count) + " " + name + "\n";
    }
    EXPECT_LE(all, most) << list;
    EXPECT_GE(all, most * 9 / 10) << "lower the ceiling of " << algorithm << " to it";
  }
}

// ---- transfers between host and device

template <class Work>
int TransfersIn(const Work& work) {
  const Observer observer("cpu");
  work();
  return observer.transfers;
}

std::vector<std::string> SamplingAlgorithms() {
  std::vector<std::string> names{"datacom_known", "datacom_priced", "datacom_robust", "iqn_datacom_known"};
  for (const std::string& name : RegisteredAlgorithms()) {
    if (!TakesNewRows(name)) names.push_back(name);
  }
  return names;
}

class EverySamplingAlgorithm : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(All, EverySamplingAlgorithm, ::testing::ValuesIn(SamplingAlgorithms()),
                         [](const auto& info) { return info.param; });

// For delta: who is active, the states, their values, the thresholds. A pass takes 24 states, an episode has at
// most 51.
TEST_P(EverySamplingAlgorithm, TransfersAreFewAndDoNotGrowWithTheMembers) {
  for (const int members : {1, 8, 64}) {
    const AlgorithmConfig config = SmallConfig(GetParam(), members, "tensor");
    const std::unique_ptr<Algorithm> algorithm = MakeAlgorithm(config);
    const Batch batch = RandomBatch(config, 1);
    EXPECT_EQ(TransfersIn([&] { algorithm->Update(batch); }), 1) << "all arrays of a batch";
    EXPECT_EQ(TransfersIn([&] { algorithm->GetActingParameters(); }), 1);
    EXPECT_EQ(TransfersIn([&] { algorithm->GetStats(); }), 1);
    for (const int length : {1, 30, 50}) {
      const std::vector<float> z((length + 1) * (config.q_dim + config.x_dim), 0.5f), costs(length + 1, 1.0f);
      std::vector<EpisodeCosts> episodes;
      for (int m = 0; m < members; ++m) episodes.push_back({m, length, z.data(), costs.data()});
      EXPECT_EQ(TransfersIn([&] { algorithm->ApplyEpisodes(episodes); }), InfoOf(GetParam()).learns_delta ? 4 : 0);
    }
  }
}

// ---- the observer itself: each thing that a graph cannot record is found

class BadImpl : public TorchImpl<KernelGroup> {
 public:
  using TorchImpl::TorchImpl;

  void Good(const FloatView& x) { Of(x).mul_(0.5).add_(at::ones_like(Of(x))); }
  void ReadNumber(const FloatView& x) { total_ += Of(x).sum().item<float>(); }
  void Compare(const FloatView& x) { at::equal(Of(x), at::ones_like(Of(x))); }
  void ShapeByNumbers(const FloatView& x) { at::masked_select(Of(x), Of(x).gt(0)); }
  void UploadNumbers(const FloatView& x) { Of(x).add_(at::tensor({1.0f, 2.0f}, Of(x).options())); }
  void UploadNumber(const FloatView& x) { Of(x).copy_(at::scalar_tensor(3.0f)); }
  void WrongDevice(const FloatView& x) { Of(x).add_(at::ones({x.cols})); }
  void Download(const FloatView& x) { Of(x).to(at::kCPU); }
  void OtherOperators(const FloatView& x) { ++count_ % 2 == 0 ? Of(x).neg_() : Of(x).abs_(); }
  void OtherNumber(const FloatView& x) { Of(x).mul_(1.0 / ++count_); }
  void OtherShape(const FloatView& x) { Of(x.Rows(0, 1 + ++count_ % 2)).zero_(); }
  void KeepMemory(const FloatView& x) { kept_ = Of(x) + 1; }

 private:
  int count_ = 0;
  float total_ = 0;
  at::Tensor kept_;
};

class BadImplementations : public ::testing::Test {
 protected:
  using Call = void (BadImpl::*)(const FloatView&);

  // Three runs of a call; the last one is the text of the exception if a run threw.
  std::vector<Observed> Runs(const std::string& device, Call call) {
    const std::unique_ptr<Kernels> kernels = MakeKernels("tensor", device);
    BadImpl impl{at::Device(device)};
    const FloatView x = kernels->NewFloats(kMembers, 3, 2);
    Observer observer(device);
    try {
      for (int i = 0; i < 3; ++i) kernels->Run(7, [&] { (impl.*call)(x); });
    } catch (const std::exception& error) {
      observer.runs.back().forbidden.emplace_back(error.what());
    }
    return std::move(observer.runs);
  }
  std::vector<std::string> Forbidden(const std::string& device, Call call) {
    return Runs(device, call).back().forbidden;
  }
};

TEST_F(BadImplementations, AGoodImplementationIsAllowed) {
  for (const char* device : {"cpu", "meta"}) {
    const std::vector<Observed> runs = Runs(device, &BadImpl::Good);
    ASSERT_EQ(runs.size(), 3u);
    for (const Observed& run : runs) {
      EXPECT_EQ(run.plan, 7);
      EXPECT_THAT(run.forbidden, IsEmpty()) << device;
      EXPECT_EQ(run.calls, runs[0].calls);
      EXPECT_EQ(run.kept.size(), 0u);
    }
    EXPECT_THAT(runs[0].calls, Contains(HasSubstr("0.5"))) << "numbers from the host are compared";
    EXPECT_THAT(runs[0].calls, Contains(HasSubstr("[2, 3, 2]"))) << "shapes are compared";
  }
}

TEST_F(BadImplementations, ReadingANumberIsFound) {
  EXPECT_THAT(Forbidden("cpu", &BadImpl::ReadNumber), Contains(HasSubstr("aten::_local_scalar_dense")));
  EXPECT_THAT(Forbidden("cpu", &BadImpl::Compare), Contains(HasSubstr("aten::equal")));
  EXPECT_FALSE(Forbidden("meta", &BadImpl::ReadNumber).empty());
  EXPECT_FALSE(Forbidden("meta", &BadImpl::Download).empty());
}

TEST_F(BadImplementations, AShapeThatDependsOnNumbersIsFound) {
  EXPECT_THAT(Forbidden("cpu", &BadImpl::ShapeByNumbers), Contains(HasSubstr("aten::masked_select")));
  EXPECT_FALSE(Forbidden("meta", &BadImpl::ShapeByNumbers).empty());
}

TEST_F(BadImplementations, ATensorOfTheHostIsFound) {
  EXPECT_THAT(Forbidden("meta", &BadImpl::UploadNumbers), Contains(HasSubstr("Float[2]")));
  EXPECT_THAT(Forbidden("meta", &BadImpl::UploadNumber), Contains(HasSubstr("aten::copy_")));
  EXPECT_FALSE(Forbidden("meta", &BadImpl::WrongDevice).empty());
}

TEST_F(BadImplementations, OtherOperatorsNumbersOrShapesInALaterUpdateAreFound) {
  for (const Call call : {&BadImpl::OtherOperators, &BadImpl::OtherNumber, &BadImpl::OtherShape}) {
    const std::vector<Observed> runs = Runs("cpu", call);
    ASSERT_EQ(runs.size(), 3u);
    EXPECT_NE(runs[0].calls, runs[1].calls);
  }
}

TEST_F(BadImplementations, MemoryThatIsKeptIsFound) {
  for (const Observed& run : Runs("cpu", &BadImpl::KeepMemory)) EXPECT_EQ(run.kept.size(), 1u);
}

}  // namespace
}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0

// Kernels as plain LibTorch operations on stacked tensors, all members in one launch, on any device. On CUDA an update
// is recorded once as a graph and then replayed. The formulas are the same as in cpu/; tests compare the two
// (tests/learner). The function at the end is the only one that the shared library exports.
#include <ATen/ATen.h>
#include <ATen/Version.h>
#include <ATen/core/grad_mode.h>
#include <ATen/record_function.h>
#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "learner/nn/kernels.h"
#include "learner/nn/torch/device_memory.h"
#include "learner/nn/torch/staging.h"
#include "learner/nn/torch/torch_impl.h"
#include "learner/nn/torch_errors.h"
#include "learner/nn/torch_library.h"

#ifdef DATACOM_CUDA_GRAPHS
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#endif

namespace datacom::learner {
namespace {

#ifdef DATACOM_CUDA_GRAPHS
constexpr bool kWithCuda = true;
// Runs the first updates eagerly on a side stream, where libraries initialise themselves. Then records one update and
// replays it.
struct Graph {
  static constexpr int kEagerRuns = 3;
  at::cuda::CUDAGraph graph;
  at::cuda::CUDAStream stream = at::cuda::getStreamFromPool();
  int runs = 0;
  void Run(const std::function<void()>& compute) {
    at::cuda::getCurrentCUDAStream().synchronize();  // uploads
    const c10::cuda::CUDAStreamGuard guard(stream);
    if (runs < kEagerRuns) {
      compute();
    } else {
      if (runs == kEagerRuns) {
        graph.capture_begin();
        compute();
        graph.capture_end();
      }
      graph.replay();
    }
    stream.synchronize();
    runs = runs > kEagerRuns ? runs : runs + 1;
  }
};
#else
constexpr bool kWithCuda = false;
struct Graph {
  void Run(const std::function<void()>& compute) { compute(); }
};
#endif

// Of the LibTorch in this process, from the description of its build; empty if that does not say it.
std::string TorchVersionFound() {
  const std::string build = at::show_config(), key = "TORCH_VERSION=";
  const size_t at = build.find(key);
  if (at == std::string::npos) return "";
  return build.substr(at + key.size(), build.find_first_not_of("0123456789.", at + key.size()) - at - key.size());
}

// "meta" is LibTorch's device for shapes without numbers. Experiments cannot choose it; tests do.
at::Device DeviceOf(const std::string& name) {
  const std::string found = TorchVersionFound();
  const std::string built_for = DATACOM_TORCH_VERSION;
  if (!found.empty() && found != built_for.substr(0, built_for.find_first_not_of("0123456789."))) {
    throw std::invalid_argument(WrongTorchVersion(built_for, found));
  }
  if (name == "cpu") return at::Device(at::kCPU);
  if (name == "meta") return at::Device(at::kMeta);
  if (name != "cuda") throw std::invalid_argument("device must be 'cpu' or 'cuda', not '" + name + "'");
  if (at::hasCUDA()) return at::Device(at::kCUDA);
  void* const driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  throw std::invalid_argument(WhyNoCuda(kWithCuda, driver != nullptr, built_for));
}

// Host memory [members, rows, cols] as a tensor.
template <class T>
at::Tensor Packed(T* data, int members, int rows, int cols) {
  return AsTensor(View<T>{data, members, rows, cols, static_cast<int64_t>(rows) * cols, cols}, at::Device(at::kCPU));
}

// Device "meta" has no numbers. There an algorithm that decides between its runs by what it reads gets ones.
template <class T>
bool ReadOnes(const at::Device& device, const View<T>& from, T* packed) {
  if (device.is_meta()) std::fill_n(packed, static_cast<size_t>(from.members) * from.rows * from.cols, T{1});
  return device.is_meta();
}

void Activate(const at::Tensor& x, Activation activation) {
  if (activation == Activation::kRelu) {
    x.relu_();
  } else if (activation == Activation::kSigmoid) {
    x.sigmoid_();
  } else {
    x.tanh_();
  }
}

// to = d times the slope of the units.
void MultiplySlope(const at::Tensor& d, const at::Tensor& hidden, Activation activation, at::Tensor to) {
  if (activation == Activation::kRelu) {
    at::threshold_backward_out(to, d, hidden, 0);
  } else if (activation == Activation::kSigmoid) {
    at::sigmoid_backward_out(to, d, hidden);
  } else {
    at::tanh_backward_out(to, d, hidden);
  }
}

at::Tensor Slope(const at::Tensor& hidden, Activation activation) {
  if (activation == Activation::kRelu) return hidden.gt(0).to(at::kFloat);
  return activation == Activation::kSigmoid ? hidden * (1 - hidden) : 1 - hidden * hidden;
}

void RestoreMembers(const at::Tensor& from, const at::Tensor& active, at::Tensor to) {
  at::where_out(to, active.eq(0), from, to);
}

class TorchKernels : public TorchImpl<Kernels> {
 public:
  TorchKernels(const std::string& device, const std::string& precision)
      : TorchImpl(DeviceOf(device)),
        bf16_(precision == "bf16"),
        betas_(at::tensor({0.9, 0.999}, at::kDouble).view({1, 1, 2}).to(this->device())),
        epsilon_(at::full({1}, 1e-8, at::TensorOptions().dtype(at::kFloat).device(this->device()))),
        memory_(this->device()) {
    at::globalContext().setAllowTF32CuBLAS(precision == "tf32");  // of all kernels in the process
  }

  int BlockSize(int members) const override { return members; }

  void* Allocate(size_t bytes) override { return memory_.Allocate(bytes); }

  void Upload(const float* packed, const FloatView& to) override { UploadTo(packed, to); }
  void Upload(const double* packed, const DoubleView& to) override { UploadTo(packed, to); }
  void Download(const FloatView& from, float* packed) override { DownloadFrom(from, packed); }
  void Download(const DoubleView& from, double* packed) override { DownloadFrom(from, packed); }

  void DownloadAll(const std::vector<DoubleView>& doubles, const std::vector<FloatView>& floats,
                   double* packed) override {
    std::vector<at::Tensor> parts;
    for (const DoubleView& view : doubles) parts.push_back(Of(view).flatten());
    for (const FloatView& view : floats) parts.push_back(Of(view).flatten().to(at::kDouble));
    const at::Tensor all = at::cat(parts);
    const auto size = static_cast<int>(all.numel());
    DownloadFrom(DoubleView{static_cast<double*>(all.data_ptr()), 1, 1, size, size, size}, packed);
  }

  FloatView ToHost(const FloatView& from, std::vector<float>* copy) override {
    const int64_t size = static_cast<int64_t>(from.rows) * from.cols;
    copy->resize(static_cast<size_t>(from.members * size));
    DownloadFrom(from, copy->data());
    return {copy->data(), from.members, from.rows, from.cols, size, from.cols};
  }

  void Run(int plan, const std::function<void()>& load, const std::function<void()>& compute) override {
    const at::NoGradGuard no_grad;
    Plan& work = plans_.try_emplace(plan, memory_).first->second;
    work.staging.Begin();
    staging_ = &work.staging;
    try {
      load();
    } catch (...) {
      staging_ = nullptr;
      throw;
    }
    staging_ = nullptr;
    work.staging.Send();
    at::RecordFunction range(at::RecordScope::USER_SCOPE);  // for profilers: the plan is the sequence number
    if (range.isActive()) range.before(kRunRange, plan);
    const auto run = [&] {
      work.staging.Scatter();
      compute();
    };
    if (!device().is_cuda()) return run();
    if (work.graph == nullptr) work.graph = std::make_unique<Graph>();
    work.graph->Run(run);
  }

  void Forward(const FloatView& block, const MlpLayout& net, const FloatView& x, const MlpTape& tape) override {
    const int last = static_cast<int>(net.layers.size()) - 1;
    at::Tensor value = Of(x);
    for (int i = 0; i <= last; ++i) {
      const FloatView to = (i == last ? tape.out : tape.hidden[i]).Rows(0, x.rows);
      at::Tensor linear = Of(to.Cols(0, net.layers[i].out));
      const at::Tensor weight = Weight(block, net.layers[i]), bias = Bias(block, net.layers[i]);
      bf16_ ? at::add_out(linear, Product(value, weight), bias) : at::baddbmm_out(linear, bias, value, weight);
      if (i < last && net.hidden == Activation::kSwish) {
        const at::Tensor share = at::sigmoid(linear), unit = linear * share;
        Of(tape.adjoint[i].Rows(0, x.rows)).copy_(share + unit * (1 - share));
        linear.copy_(unit);
      } else if (i < last && net.layer_norm) {
        const at::Tensor apart = linear - linear.mean(2, /*keepdim=*/true);
        const at::Tensor variance = at::square(apart).mean(2, /*keepdim=*/true) + 1e-5;
        const at::Tensor inverse = at::sqrt(variance) / variance;  // NaN if it overflows
        const at::Tensor normal = apart * inverse;
        linear.copy_(at::relu(normal));
        Of(tape.adjoint[i].Rows(0, x.rows)).copy_(normal);
        Of(tape.inverse_deviation[i].Rows(0, x.rows)).copy_(inverse);
      } else if (i < last) {
        Activate(linear, net.hidden);
      }
      if (i == 0 && net.repeated > 0) {
        Of(to.Cols(net.layers[0].out, net.repeated)).copy_(Of(x.Cols(x.cols - net.repeated, net.repeated)));
      }
      value = Of(to);
    }
  }

  void Adjoint(const FloatView& block, const MlpLayout& net, const FloatView& d_out, const MlpTape& tape) override {
    at::Tensor d = Of(d_out);
    for (int i = static_cast<int>(net.layers.size()) - 1; i > 0; --i) {
      const int width = net.layers[i - 1].out;  // without repeated inputs
      const at::Tensor hidden = Of(tape.hidden[i - 1].Rows(0, d_out.rows).Cols(0, width));
      const at::Tensor weight = Weight(block, net.layers[i]).narrow(1, 0, width);
      const at::Tensor to = Of(tape.adjoint[i - 1].Rows(0, d_out.rows));
      const at::Tensor behind = Product(d, weight.transpose(1, 2));
      if (!net.layer_norm && net.hidden != Activation::kSwish) {
        MultiplySlope(behind, hidden, net.hidden, to);
        d = to;
        continue;
      }
      d = behind * (net.layer_norm ? Slope(hidden, net.hidden) : to);
      if (net.layer_norm) {  // `to` holds the normalised pre-activations
        const at::Tensor along = to * (d * to).mean(2, /*keepdim=*/true);
        d = Of(tape.inverse_deviation[i - 1].Rows(0, d_out.rows)) * (d - d.mean(2, /*keepdim=*/true) - along);
      }
      to.copy_(d);
    }
  }

  void ScaleAdjoint(const FloatView& d_out, const MlpTape& tape) override {
    for (const FloatView& adjoint : tape.adjoint) Of(adjoint.Rows(0, d_out.rows)).mul_(Of(d_out));
  }

  void InputGradient(const FloatView& block, const MlpLayout& net, const MlpTape& tape, int first_col, bool add,
                     const FloatView& d_x) override {
    const auto through = [&](int layer, int first, const FloatView& to, bool added) {
      const at::Tensor weight = Weight(block, net.layers[layer]).narrow(1, first, to.cols).transpose(1, 2);
      const at::Tensor adjoint = Of(tape.adjoint[layer].Rows(0, d_x.rows));
      ProductTo(adjoint, weight, added, Of(to));
    };
    through(0, first_col, d_x, add);
    const RepeatedColumns again = RepeatedOf(net, first_col, d_x.cols);
    if (again.count > 0) through(1, again.layer_first, d_x.Cols(again.first, again.count), /*added=*/true);
  }

  void ParameterGradient(const MlpLayout& net, const FloatView& x, const FloatView& d_out, const MlpTape& tape,
                         const FloatView& gradient_block) override {
    const int last = static_cast<int>(net.layers.size()) - 1;
    for (int i = 0; i <= last; ++i) {
      const at::Tensor in = Of(i == 0 ? x : tape.hidden[i - 1].Rows(0, x.rows));
      const at::Tensor d = Of(i == last ? d_out : tape.adjoint[i].Rows(0, x.rows));
      ProductTo(in.transpose(1, 2), d, /*add=*/false, Weight(gradient_block, net.layers[i]));
      at::Tensor bias = Bias(gradient_block, net.layers[i]);
      at::sum_out(bias, d, 1, /*keepdim=*/true);
    }
  }

  // cpu/cpu_kernels.cc has the derivation.
  void SlopeGradient(const FloatView& block, const MlpLayout& net, const FloatView& x, const FloatView& d_value,
                     const FloatView& d_slope, const MlpTape& tape, const MlpTape& /*tangent*/,
                     const FloatView& gradient_block) override {
    const int last = static_cast<int>(net.layers.size()) - 1;
    const at::Tensor d = Of(d_value);
    at::Tensor tangent = Of(d_slope);
    for (int i = 0; i <= last; ++i) {
      const at::Tensor value = Of(i == 0 ? x : tape.hidden[i - 1]);
      const at::Tensor adjoint = i == last ? at::ones_like(d) : Of(tape.adjoint[i]);
      Weight(gradient_block, net.layers[i]).copy_(Product((d * value + tangent).transpose(1, 2), adjoint));
      Bias(gradient_block, net.layers[i]).copy_((d * adjoint).sum(1, /*keepdim=*/true));
      if (i < last) tangent = Product(tangent, Weight(block, net.layers[i])) * Slope(Of(tape.hidden[i]), net.hidden);
    }
  }

  // cpu/cpu_kernels.cc has the equation.
  void Tangent(const FloatView& block, const FloatView& direction, const MlpLayout& net, const FloatView& x,
               const MlpTape& tape, const MlpTape& tangent) override {
    const int last = static_cast<int>(net.layers.size()) - 1;
    at::Tensor before;
    for (int i = 0; i <= last; ++i) {
      const MlpLayer& layer = net.layers[i];
      const at::Tensor in = Of(i == 0 ? x : tape.hidden[i - 1].Rows(0, x.rows));
      at::Tensor now = Product(in, Weight(direction, layer)) + Bias(direction, layer);
      if (i > 0) now = now + Product(before, Weight(block, layer));
      if (i < last) now = now * Slope(Of(tape.hidden[i].Rows(0, x.rows)), net.hidden);
      const FloatView to = i == last ? tangent.out : tangent.hidden[i];
      Of(to.Rows(0, x.rows)).copy_(now);
      before = now;
    }
  }

  // What belongs to an optimiser's steps is computed for all optimisers at once. Members that are not active keep their
  // bits.
  void Adam(const AdamRanges& ranges) override {
    const at::Tensor off = Of(ranges.active).le(0), steps = Of(ranges.steps);
    steps.add_(Of(ranges.active));
    at::Tensor rate = Of(ranges.learning_rates);
    if (ranges.decay.data != nullptr) rate = rate * at::exp2(steps * Of(ranges.decay) * -1);
    const at::Tensor corrections = at::rsub(at::pow(betas_, steps), 1);  // of both moments: [members, optimisers, 2]
    const at::Tensor step_size = (rate / corrections.narrow(2, 0, 1)).to(at::kFloat);
    const at::Tensor root = at::rsqrt(corrections.narrow(2, 1, 1)).to(at::kFloat);
    for (int i = 0; i < ranges.steps.rows; ++i) {
      const ColumnRange& own = ranges.ranges[i];
      const at::Tensor gradient = Of(ranges.gradients.Cols(own.first, own.count));
      at::Tensor state = Of(ranges.state.Cols(own.first, own.count)), next = at::empty(state.sizes(), state.options());
      at::Tensor parameters = next.narrow(1, 0, 1), first = next.narrow(1, 1, 1), second = next.narrow(1, 2, 1);
      at::lerp_out(first, state.narrow(1, 1, 1), gradient, 0.1);
      at::addcmul_out(second, state.narrow(1, 2, 1) * 0.999, gradient, gradient, /*value=*/0.001);
      const at::Tensor size = at::addcmul(epsilon_, at::sqrt(second), root.narrow(1, i, 1));
      at::addcmul_out(parameters, state.narrow(1, 0, 1), first / size, step_size.narrow(1, i, 1), /*value=*/-1);
      at::where_out(state, off, state, next);
    }
  }

  void Polyak(const FloatView& source, double tau, const DoubleView& active, const FloatView& target) override {
    at::Tensor to = Of(target);
    at::where_out(to, Of(active).le(0), to, at::lerp(to, Of(source), tau));
  }

  void DeactivateUnlessFinite(const DoubleView& values, const DoubleView& active) override {
    const at::Tensor largest = at::linalg_vector_norm(Of(values), HUGE_VAL, at::IntArrayRef({1, 2}), /*keepdim=*/true);
    Of(active).mul_(largest.lt(HUGE_VAL));  // NaN is not
  }

  void SetZero(const DoubleView& values) override { Of(values).zero_(); }

  void RowMean(const DoubleView& rows, const DoubleView& mean) override { MeanRowsTo(Of(rows), mean); }

  void RowMean(const FloatView& rows, const DoubleView& mean) override { MeanRowsTo(Of(rows), mean); }

  void RowShareAboveZero(const DoubleView& rows, const DoubleView& share) override {
    MeanRowsTo(Of(rows).gt(0).to(at::kDouble), share);
  }

  void Accumulate(const StatisticRows& rows, const DoubleView& active) override {
    const at::Tensor off = Of(active).le(0), totals = Of(rows.sums.Cols(0, 1));
    Of(rows.sums.Cols(1, 1)).add_(Of(active));
    const int others = rows.values.rows - rows.smallest;
    if (rows.smallest > 0) {
      const at::Tensor values = Of(rows.values.Rows(0, rows.smallest)).masked_fill_(off, HUGE_VAL);
      at::Tensor least = totals.narrow(1, 0, rows.smallest);
      at::minimum_out(least, least, values);
    }
    if (others > 0) {
      const at::Tensor values = Of(rows.values.Rows(rows.smallest, others)).masked_fill_(off, 0);
      totals.narrow(1, rows.smallest, others).addcmul_(values, Of(rows.signs.Rows(rows.smallest, others)));
    }
  }

  void GradientNorm(const FloatView& gradient, const DoubleView& norm) override {
    Of(norm).copy_(at::linalg_vector_norm(Of(gradient), 2, 2, /*keepdim=*/true));
  }

  void Copy(const FloatView& from, const FloatView& to) override { Of(to).copy_(Of(from)); }

  void Copy(const DoubleView& from, const DoubleView& to) override { Of(to).copy_(Of(from)); }

  void Restore(const FloatView& from, const DoubleView& active, const FloatView& to) override {
    RestoreMembers(Of(from), Of(active), Of(to));
  }

  void Restore(const DoubleView& from, const DoubleView& active, const DoubleView& to) override {
    RestoreMembers(Of(from), Of(active), Of(to));
  }

 private:
  std::unique_ptr<KernelGroup> MakeImpl(std::type_index group) override { return TorchImpls::Make(group, device()); }

  // A net's parameters out of every member's block: [members, in, out] or [members, 1, out].
  at::Tensor Weight(const FloatView& block, const MlpLayer& layer) const {
    return Of(FloatView{block.data + layer.weight, block.members, layer.in, layer.out, block.member_stride, layer.out});
  }

  at::Tensor Bias(const FloatView& block, const MlpLayer& layer) const {
    return Of(FloatView{block.data + layer.bias, block.members, 1, layer.out, block.member_stride, layer.out});
  }

  // The matrix product a b of every member; with precision bf16 that of the rounded factors, in float32. LibTorch has
  // such a product only on CUDA. Elsewhere the rounded factors are multiplied as float32.
  at::Tensor Product(const at::Tensor& a, const at::Tensor& b) const {
    if (!bf16_) return at::bmm(a, b);
    const at::Tensor left = a.to(at::kBFloat16), right = b.to(at::kBFloat16);
#ifdef DATACOM_CUDA_GRAPHS
    if (device().is_cuda()) return at::bmm(left, right, at::kFloat);
#endif
    return at::bmm(left.to(at::kFloat), right.to(at::kFloat));
  }

  // to = a b, or to + a b.
  void ProductTo(const at::Tensor& a, const at::Tensor& b, bool add, at::Tensor to) const {
    if (bf16_) {
      add ? to.add_(Product(a, b)) : to.copy_(Product(a, b));
    } else {
      add ? to.baddbmm_(a, b) : at::bmm_out(to, a, b);
    }
  }

  void MeanRowsTo(const at::Tensor& rows, const DoubleView& mean) const {
    at::Tensor out = Of(mean);
    at::mean_out(out, rows, 1, /*keepdim=*/true, at::kDouble);
  }

  template <class T>
  void UploadTo(const T* packed, const View<T>& to) {
    if (staging_ != nullptr) return staging_->Add(packed, to);
    Transfer(Packed(const_cast<T*>(packed), to.members, to.rows, to.cols), Of(to));
  }

  template <class T>
  void DownloadFrom(const View<T>& from, T* packed) {
    if (ReadOnes(device(), from, packed)) return;
    Transfer(Of(from), Packed(packed, from.members, from.rows, from.cols));
  }

  struct Plan {
    explicit Plan(const DeviceMemory& memory) : staging(memory) {}
    Staging staging;
    std::unique_ptr<Graph> graph;  // none on the CPU
  };

  const bool bf16_;
  const at::Tensor betas_, epsilon_;  // of Adam
  DeviceMemory memory_;
  std::map<int, Plan> plans_;
  Staging* staging_ = nullptr;  // of the plan that loads
};

}  // namespace

extern "C" void datacom_torch_make_kernels(const std::string& device, const std::string& precision,
                                           std::unique_ptr<Kernels>* kernels, std::string* version) {
  *version = DATACOM_TORCH_VERSION;
  *kernels = std::make_unique<TorchKernels>(device, precision);
}

}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0

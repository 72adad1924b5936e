// Kernels on the CPU: products by gemm.h, and everything between two products in one pass over memory (loops.h, for the
// processor's instruction set). Works on one member at a time (BlockSize 1). So a member's activations, weights and
// moments stay in cache, and a member has the same numbers in every population. A call runs on the thread that
// makes it; Each offers its calls to a team.
#include <sys/mman.h>
#ifdef __SSE2__
#include <xmmintrin.h>
#endif

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

#include "learner/nn/cpu/cpu_impl.h"
#include "learner/nn/cpu/gemm.h"
#include "learner/nn/cpu/loops.h"
#include "learner/nn/kernels.h"

namespace datacom::learner {
namespace {

// Layers with at most this many outputs use dot products, which are faster for them than matrix products.
constexpr int kNarrow = 8;

// to[:, 0, count) = from[:, 0, count)
void CopyColumns(const float* from, int64_t from_stride, int rows, int count, float* to, int64_t to_stride) {
  for (int r = 0; r < rows; ++r) std::memcpy(to + r * to_stride, from + r * from_stride, sizeof(float) * count);
}

// d_x (+)= adjoint W^T for the d_x.cols inputs of the layer from first_col on.
void LayerInputGradient(const Loops& loops, const FloatView& block, const MlpLayer& layer, const FloatView& adjoint,
                        int first_col, bool add, const FloatView& d_x) {
  for (int m = 0; m < d_x.members; ++m) {
    const float* weight = block.row(m, 0) + layer.weight + static_cast<int64_t>(first_col) * layer.out;
    if (d_x.cols <= kNarrow) {
      loops.narrow_product(adjoint.row(m, 0), adjoint.row_stride, d_x.rows, layer.out, weight, d_x.cols,
                           /*bias=*/nullptr, add, d_x.row(m, 0), d_x.row_stride);
      continue;
    }
    Multiply(Gemm::kTransposeB, d_x.rows, d_x.cols, layer.out, adjoint.row(m, 0), adjoint.row_stride, weight, layer.out,
             add, d_x.row(m, 0), d_x.row_stride);
  }
}

// rows * cols floats of this thread, valid until its next call with the same slot; grows on demand.
enum ScratchSlot { kWeightScratch, kRowScratch };
float* Scratch(ScratchSlot slot, int rows, int cols) {
  thread_local std::vector<float> scratch[2];
  const size_t size = static_cast<size_t>(rows) * cols;
  if (scratch[slot].size() < size) scratch[slot].resize(size);
  return scratch[slot].data();
}

// The mode of float arithmetic of a thread, for as long as it exists.
class FloatMode {
 public:
#ifdef __SSE2__
  static unsigned Current() { return _mm_getcsr(); }
  // Adam's first moments of inactive units decay to denormals, which slow every operation down tens of times.
  static unsigned WithoutDenormals() {
    constexpr unsigned kFlushToZero = 0x8000, kDenormalsAreZero = 0x0040;
    return Current() | kFlushToZero | kDenormalsAreZero;
  }
  explicit FloatMode(unsigned mode) : before_(Current()) { _mm_setcsr(mode); }
  ~FloatMode() { _mm_setcsr(before_); }
#else
  static unsigned Current() { return 0; }
  static unsigned WithoutDenormals() { return 0; }
  explicit FloatMode(unsigned) : before_(0) {}
#endif
  FloatMode(const FloatMode&) = delete;
  FloatMode& operator=(const FloatMode&) = delete;

 private:
  [[maybe_unused]] const unsigned before_;
};

// Like Loops::squared_sum, in float64: no square of a float32 overflows.
double WideSquaredSum(const float* x, int n) {
  double total = 0;
  for (int j = 0; j < n; ++j) total += static_cast<double>(x[j]) * x[j];
  return total;
}

// active: leaves out the members for which it is not 0; absent: copies all.
template <class T>
void CopyMembers(const View<T>& from, const View<T>& to, const DoubleView& active = {}) {
  for (int m = 0; m < from.members; ++m) {
    if (active.data != nullptr && active.at(m) != 0) continue;
    for (int r = 0; r < from.rows; ++r) std::memcpy(to.row(m, r), from.row(m, r), sizeof(T) * from.cols);
  }
}

template <class T>
void MeanOfRows(const View<T>& rows, const DoubleView& mean) {
  for (int m = 0; m < rows.members; ++m) {
    double sum = 0;
    for (int r = 0; r < rows.rows; ++r) sum += rows.at(m, r);
    mean.at(m) = sum / rows.rows;
  }
}

class CpuKernels : public Kernels {
 public:
  explicit CpuKernels(Team* team) : team_(team), loops_(ChosenLoops()) {}
  ~CpuKernels() override {
    for (void* memory : allocations_) std::free(memory);
  }
  CpuKernels(const CpuKernels&) = delete;
  CpuKernels& operator=(const CpuKernels&) = delete;

  int BlockSize(int members) const override { return 1; }

  void* Allocate(size_t bytes) override {
    // Every update walks through the parameters, moments and targets of a population. Huge pages save address
    // translations.
    constexpr size_t kLine = 64, kHugePage = size_t{2} << 20;
    const size_t unit = bytes >= kHugePage ? kHugePage : kLine;
    const size_t rounded = (bytes + kLine + unit - 1) / unit * unit;
    void* memory = std::aligned_alloc(unit, rounded);
    if (memory == nullptr) throw std::bad_alloc();
#ifdef MADV_HUGEPAGE
    if (unit == kHugePage) madvise(memory, rounded, MADV_HUGEPAGE);  // if there are none, nothing is lost
#endif
    allocations_.push_back(memory);
    std::memset(memory, 0, rounded);
    return memory;
  }

  void Upload(const float* packed, const FloatView& to) override { CopyIn(packed, to); }
  void Upload(const double* packed, const DoubleView& to) override { CopyIn(packed, to); }
  void Download(const FloatView& from, float* packed) override { CopyOut(from, packed); }
  void Download(const DoubleView& from, double* packed) override { CopyOut(from, packed); }

  void DownloadAll(const std::vector<DoubleView>& doubles, const std::vector<FloatView>& floats,
                   double* packed) override {
    for (const DoubleView& view : doubles) packed = CopyOut(view, packed);
    for (const FloatView& view : floats) packed = CopyOut(view, packed);
  }
  FloatView ToHost(const FloatView& from, std::vector<float>* /*copy*/) override { return from; }

  void Run(int /*plan*/, const std::function<void()>& load, const std::function<void()>& compute) override {
    load();
    const FloatMode mode(FloatMode::WithoutDenormals());
    compute();
  }

  void Forward(const FloatView& block, const MlpLayout& net, const FloatView& x, const MlpTape& tape) override {
    const int last = static_cast<int>(net.layers.size()) - 1;
    for (int m = 0; m < x.members; ++m) {
      const float* parameters = block.row(m, 0);
      for (int i = 0; i <= last; ++i) {
        const MlpLayer& layer = net.layers[i];
        const FloatView& in = i == 0 ? x : tape.hidden[i - 1];
        const FloatView& out = i == last ? tape.out : tape.hidden[i];
        const float* weight = parameters + layer.weight;
        const float* bias = parameters + layer.bias;
        if (i == last && layer.out <= kNarrow) {
          loops_.narrow_product(in.row(m, 0), in.row_stride, x.rows, layer.in, Columns(weight, layer), layer.out, bias,
                                /*add=*/false, out.row(m, 0), out.row_stride);
          continue;
        }
        Multiply(Gemm::kPlain, x.rows, layer.out, layer.in, in.row(m, 0), in.row_stride, weight, layer.out,
                 /*add=*/false, out.row(m, 0), out.row_stride);
        if (i < last) {
          if (net.hidden == Activation::kSwish) {
            const FloatView& slope = tape.adjoint[i];
            loops_.swish(bias, x.rows, layer.out, out.row_stride, out.row(m, 0), slope.row_stride, slope.row(m, 0));
            continue;
          }
          if (net.layer_norm) {
            const FloatView &normal = tape.adjoint[i], &inverse = tape.inverse_deviation[i];
            loops_.normalised_relu(bias, x.rows, layer.out, out.row_stride, out.row(m, 0), normal.row_stride,
                                   normal.row(m, 0), inverse.row_stride, inverse.row(m, 0));
            continue;
          }
          loops_.activate(net.hidden, bias, x.rows, layer.out, out.row_stride, out.row(m, 0));
          if (i == 0 && net.repeated > 0) {
            CopyColumns(x.row(m, 0) + layer.in - net.repeated, x.row_stride, x.rows, net.repeated,
                        out.row(m, 0) + layer.out, out.row_stride);
          }
        } else {
          for (int r = 0; r < x.rows; ++r) {
            for (int j = 0; j < layer.out; ++j) out.at(m, r, j) += bias[j];
          }
        }
      }
    }
  }

  void Adjoint(const FloatView& block, const MlpLayout& net, const FloatView& d_out, const MlpTape& tape) override {
    const int last = static_cast<int>(net.layers.size()) - 1;
    for (int m = 0; m < d_out.members; ++m) {
      for (int i = last; i > 0; --i) {
        const MlpLayer& layer = net.layers[i];
        const float* weight = block.row(m, 0) + layer.weight;
        const FloatView& from = i == last ? d_out : tape.adjoint[i];
        const FloatView& hidden = tape.hidden[i - 1];
        const FloatView& to = tape.adjoint[i - 1];
        // The slopes of swish and the normalised pre-activations stand in `to`: the product then goes elsewhere.
        const bool swish = net.hidden == Activation::kSwish, apart = net.layer_norm || swish;
        const bool narrow = i == last && layer.out <= kNarrow && !swish;
        const int width = apart ? to.cols : narrow ? layer.in : net.layers[i - 1].out;  // the last: no repeated inputs
        float* const product = apart ? Scratch(kRowScratch, d_out.rows, width) : to.row(m, 0);
        const int64_t stride = apart ? width : to.row_stride;
        if (narrow) {
          loops_.narrow_adjoint(net.hidden, from.row(m, 0), from.row_stride, layer.out, Columns(weight, layer),
                                hidden.row(m, 0), hidden.row_stride, d_out.rows, width, product, stride);
        } else {
          Multiply(Gemm::kTransposeB, d_out.rows, width, layer.out, from.row(m, 0), from.row_stride, weight, layer.out,
                   /*add=*/false, product, stride);
        }
        if (net.layer_norm) {
          const FloatView& inverse = tape.inverse_deviation[i - 1];
          loops_.normalised_relu_adjoint(product, stride, inverse.row(m, 0), inverse.row_stride, d_out.rows, width,
                                         to.row(m, 0), to.row_stride);
        } else if (swish) {
          loops_.multiply_rows(product, stride, d_out.rows, width, to.row(m, 0), to.row_stride);
        } else if (!narrow) {
          loops_.multiply_slope(net.hidden, hidden.row(m, 0), hidden.row_stride, d_out.rows, width, product, stride);
        }
      }
    }
  }

  void ScaleAdjoint(const FloatView& d_out, const MlpTape& tape) override {
    for (const FloatView& adjoint : tape.adjoint) {
      for (int m = 0; m < d_out.members; ++m) {
        loops_.scale_rows(d_out.row(m, 0), d_out.row_stride, d_out.rows, adjoint.cols, adjoint.row(m, 0),
                          adjoint.row_stride);
      }
    }
  }

  void InputGradient(const FloatView& block, const MlpLayout& net, const MlpTape& tape, int first_col, bool add,
                     const FloatView& d_x) override {
    LayerInputGradient(loops_, block, net.layers.front(), tape.adjoint.front(), first_col, add, d_x);
    const RepeatedColumns again = RepeatedOf(net, first_col, d_x.cols);
    if (again.count == 0) return;
    LayerInputGradient(loops_, block, net.layers[1], tape.adjoint[1], again.layer_first, /*add=*/true,
                       d_x.Cols(again.first, again.count));
  }

  void ParameterGradient(const MlpLayout& net, const FloatView& x, const FloatView& d_out, const MlpTape& tape,
                         const FloatView& gradient_block) override {
    const int last = static_cast<int>(net.layers.size()) - 1;
    for (int m = 0; m < x.members; ++m) {
      for (int i = 0; i <= last; ++i) {
        const MlpLayer& layer = net.layers[i];
        const FloatView& in = i == 0 ? x : tape.hidden[i - 1];
        const FloatView& d = i == last ? d_out : tape.adjoint[i];
        float* d_weight = gradient_block.row(m, 0) + layer.weight;
        float* d_bias = gradient_block.row(m, 0) + layer.bias;
        loops_.column_sums(d.row(m, 0), d.row_stride, x.rows, layer.out, d_bias);
        if (i == last && layer.out <= kNarrow) {
          float* columns = Scratch(kWeightScratch, layer.in, layer.out);
          for (int o = 0; o < layer.out; ++o) {
            loops_.weighted_column_sums(in.row(m, 0), in.row_stride, d.row(m, 0) + o, d.row_stride, x.rows, layer.in,
                                        columns + o * layer.in);
          }
          loops_.transpose(columns, layer.in, layer.out, layer.in, d_weight, layer.out);
          continue;
        }
        Multiply(Gemm::kTransposeA, layer.in, layer.out, x.rows, in.row(m, 0), in.row_stride, d.row(m, 0), d.row_stride,
                 /*add=*/false, d_weight, layer.out);
      }
    }
  }

  // dy/dx = W_1 D_1 W_2 .. w with the slopes D of the hidden units, constants for ReLU. Along v = d_slope the tangents
  // t_0 = v, t_i = D_i W_i^T t_(i-1) turn <v, dy/dx> into <w, t_last>, which is linear in every weight. The gradient of
  // layer i's weights is t_(i-1) times the adjoint of a unit output; the gradient of d_value y is d_value h_(i-1) times
  // the same adjoint.
  void SlopeGradient(const FloatView& block, const MlpLayout& net, const FloatView& x, const FloatView& d_value,
                     const FloatView& d_slope, const MlpTape& tape, const MlpTape& tangent,
                     const FloatView& gradient_block) override {
    const int last = static_cast<int>(net.layers.size()) - 1;
    for (int m = 0; m < x.members; ++m) {
      for (int i = 0; i < last; ++i) {
        const MlpLayer& layer = net.layers[i];
        const FloatView& in = i == 0 ? d_slope : tangent.hidden[i - 1];
        const FloatView& hidden = tape.hidden[i];
        const FloatView& out = tangent.hidden[i];
        Multiply(Gemm::kPlain, x.rows, layer.out, layer.in, in.row(m, 0), in.row_stride, block.row(m, 0) + layer.weight,
                 layer.out, /*add=*/false, out.row(m, 0), out.row_stride);
        loops_.multiply_slope(net.hidden, hidden.row(m, 0), hidden.row_stride, x.rows, layer.out, out.row(m, 0),
                              out.row_stride);
      }
      for (int i = 0; i <= last; ++i) {
        const MlpLayer& layer = net.layers[i];
        const FloatView& value = i == 0 ? x : tape.hidden[i - 1];
        const FloatView& both = i == 0 ? d_slope : tangent.hidden[i - 1];
        loops_.add_scaled_rows(value.row(m, 0), value.row_stride, d_value.row(m, 0), d_value.row_stride, x.rows,
                               layer.in, both.row(m, 0), both.row_stride);
        float* d_weight = gradient_block.row(m, 0) + layer.weight;
        float* d_bias = gradient_block.row(m, 0) + layer.bias;
        if (i == last) {
          loops_.column_sums(both.row(m, 0), both.row_stride, x.rows, layer.in, d_weight);
          loops_.column_sums(d_value.row(m, 0), d_value.row_stride, x.rows, 1, d_bias);
          continue;
        }
        const FloatView& adjoint = tape.adjoint[i];
        loops_.weighted_column_sums(adjoint.row(m, 0), adjoint.row_stride, d_value.row(m, 0), d_value.row_stride,
                                    x.rows, layer.out, d_bias);
        Multiply(Gemm::kTransposeA, layer.in, layer.out, x.rows, both.row(m, 0), both.row_stride, adjoint.row(m, 0),
                 adjoint.row_stride, /*add=*/false, d_weight, layer.out);
      }
    }
  }

  // With hidden units h, their tangents t and the direction (V, c): t_i = act'(h_i) (t_(i-1) W_i + h_(i-1) V_i + c_i),
  // t_0 = 0; the output has no act'.
  void Tangent(const FloatView& block, const FloatView& direction, const MlpLayout& net, const FloatView& x,
               const MlpTape& tape, const MlpTape& tangent) override {
    const int last = static_cast<int>(net.layers.size()) - 1;
    for (int m = 0; m < x.members; ++m) {
      const float* parameters = block.row(m, 0);
      const float* along = direction.row(m, 0);
      for (int i = 0; i <= last; ++i) {
        const MlpLayer& layer = net.layers[i];
        const FloatView& in = i == 0 ? x : tape.hidden[i - 1];
        const FloatView& out = i == last ? tangent.out : tangent.hidden[i];
        if (i == last && i > 0 && layer.out <= kNarrow) {
          const FloatView& before = tangent.hidden[i - 1];
          loops_.narrow_product(in.row(m, 0), in.row_stride, x.rows, layer.in, Columns(along + layer.weight, layer),
                                layer.out, along + layer.bias, /*add=*/false, out.row(m, 0), out.row_stride);
          loops_.narrow_product(before.row(m, 0), before.row_stride, x.rows, layer.in,
                                Columns(parameters + layer.weight, layer), layer.out, /*bias=*/nullptr, /*add=*/true,
                                out.row(m, 0), out.row_stride);
          continue;
        }
        CopyColumns(along + layer.bias, /*from_stride=*/0, x.rows, layer.out, out.row(m, 0), out.row_stride);
        Multiply(Gemm::kPlain, x.rows, layer.out, layer.in, in.row(m, 0), in.row_stride, along + layer.weight,
                 layer.out, /*add=*/true, out.row(m, 0), out.row_stride);
        if (i > 0) {
          const FloatView& before = tangent.hidden[i - 1];
          Multiply(Gemm::kPlain, x.rows, layer.out, layer.in, before.row(m, 0), before.row_stride,
                   parameters + layer.weight, layer.out, /*add=*/true, out.row(m, 0), out.row_stride);
        }
        if (i == last) continue;
        const FloatView& hidden = tape.hidden[i];
        loops_.multiply_slope(net.hidden, hidden.row(m, 0), hidden.row_stride, x.rows, layer.out, out.row(m, 0),
                              out.row_stride);
      }
    }
  }

  void Adam(const AdamRanges& ranges) override {
    Each(ranges.steps.rows, [&](int optimizer) { AdamOf(ranges, optimizer); });
  }

  void Polyak(const FloatView& source, double tau, const DoubleView& active, const FloatView& target) override {
    for (int m = 0; m < source.members; ++m) {
      if (active.at(m) == 0) continue;
      const float* const from = source.row(m, 0);
      const float take = static_cast<float>(tau), keep = static_cast<float>(1 - tau);
      float* const to = target.row(m, 0);
      EachLines(source.cols, [&](int at, int count) { loops_.polyak(from + at, take, keep, count, to + at); });
    }
  }

  void DeactivateUnlessFinite(const DoubleView& values, const DoubleView& active) override {
    for (int m = 0; m < values.members; ++m) {
      for (int r = 0; r < values.rows; ++r) {
        if (!std::isfinite(values.at(m, r))) active.at(m) = 0;
      }
    }
  }

  void SetZero(const DoubleView& values) override {
    for (int m = 0; m < values.members; ++m) {
      for (int r = 0; r < values.rows; ++r) values.at(m, r) = 0;
    }
  }

  void RowMean(const DoubleView& rows, const DoubleView& mean) override { MeanOfRows(rows, mean); }

  void RowMean(const FloatView& rows, const DoubleView& mean) override { MeanOfRows(rows, mean); }

  void RowShareAboveZero(const DoubleView& rows, const DoubleView& share) override {
    for (int m = 0; m < rows.members; ++m) {
      int above = 0;
      for (int r = 0; r < rows.rows; ++r) above += rows.at(m, r) > 0 ? 1 : 0;
      share.at(m) = static_cast<double>(above) / rows.rows;
    }
  }

  void Accumulate(const StatisticRows& rows, const DoubleView& active) override {
    for (int m = 0; m < rows.values.members; ++m) {
      if (active.at(m) == 0) continue;
      for (int r = 0; r < rows.values.rows; ++r) {
        const double value = rows.values.at(m, r);
        double &total = rows.sums.at(m, r, 0), &count = rows.sums.at(m, r, 1);
        if (r >= rows.smallest) {
          total += rows.signs.at(0, r) * value;
        } else {
          total = count == 0 ? value : std::min(total, value);
        }
        count += 1;
      }
    }
  }

  void GradientNorm(const FloatView& gradient, const DoubleView& norm) override {
    for (int m = 0; m < gradient.members; ++m) {
      double sum = loops_.squared_sum(gradient.row(m, 0), gradient.cols);
      if (!std::isfinite(sum)) sum = WideSquaredSum(gradient.row(m, 0), gradient.cols);
      norm.at(m) = std::sqrt(sum);
    }
  }

  void Copy(const FloatView& from, const FloatView& to) override { CopyMembers(from, to); }
  void Copy(const DoubleView& from, const DoubleView& to) override { CopyMembers(from, to); }

  void Restore(const FloatView& from, const DoubleView& active, const FloatView& to) override {
    CopyMembers(from, to, active);
  }
  void Restore(const DoubleView& from, const DoubleView& active, const DoubleView& to) override {
    CopyMembers(from, to, active);
  }

 private:
  int RangeCount() const override { return team_ == nullptr ? 1 : 2; }

  std::unique_ptr<KernelGroup> MakeImpl(std::type_index group) override { return CpuImpls::Make(group); }

  void RunEach(int count, const Call& body) override {
    const unsigned of_caller = FloatMode::Current();
    Share(team_, count, [&](int i) {
      const FloatMode mode(of_caller);
      body(i);
    });
  }

  void AdamOf(const AdamRanges& ranges, int optimizer) {
    const ColumnRange own = ranges.ranges[optimizer];
    for (int m = 0; m < ranges.state.members; ++m) {
      if (ranges.active.at(m) == 0) continue;
      const float* gradient = ranges.gradients.row(m, 0) + own.first;
      const double step = ++ranges.steps.at(m, optimizer);
      const double rate = ranges.learning_rates.at(m, optimizer) *
                          (ranges.decay.data == nullptr ? 1 : std::exp2(-step * ranges.decay.at(m)));
      const float step_size = static_cast<float>(rate / (1 - std::pow(0.9, step)));
      const float root = static_cast<float>(1 / std::sqrt(1 - std::pow(0.999, step)));
      float* const parameters = ranges.state.row(m, 0) + own.first;
      float* const first_moment = ranges.state.row(m, 1) + own.first;
      float* const second_moment = ranges.state.row(m, 2) + own.first;
      EachLines(own.count, [&](int at, int count) {
        loops_.adam({gradient + at, parameters + at, first_moment + at, second_moment + at, count, step_size, root});
      });
    }
  }

  // Calls body(at, count) for ranges of n floats, in any order and at the same time. Each begins at a cache line.
  template <class Body>
  void EachLines(int n, const Body& body) {
    constexpr int kLine = 16, kFewest = 512;  // floats; fewer are not worth another thread
    const int lines = n < kFewest ? 0 : n / kLine;
    Ranges(lines, [&](int first, int count) { body(first * kLine, count * kLine); });
    body(lines * kLine, n - lines * kLine);
  }

  // The weights transposed, [out, in].
  const float* Columns(const float* weight, const MlpLayer& layer) {
    if (layer.out == 1) return weight;
    float* columns = Scratch(kWeightScratch, layer.in, layer.out);
    loops_.transpose(weight, layer.out, layer.in, layer.out, columns, layer.in);
    return columns;
  }

  Team* const team_;
  const Loops& loops_;
  std::vector<void*> allocations_;
};

}  // namespace

std::unique_ptr<Kernels> MakeCpuKernels(Team* team) { return std::make_unique<CpuKernels>(team); }

}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0

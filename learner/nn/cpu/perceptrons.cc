// Memory and perceptrons of CpuKernels.
#include <sys/mman.h>
#ifdef __SSE2__
#include <xmmintrin.h>
#endif

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <new>

#include "learner/nn/cpu/cpu_impl.h"
#include "learner/nn/cpu/cpu_kernels.h"
#include "learner/nn/cpu/gemm.h"
#include "learner/nn/cpu/loops.h"

namespace datacom::learner {
namespace {

// Layers with at most this many outputs use dot products, which are faster for them than matrix products.
constexpr int kNarrow = 8;

// to[:, 0, count) = from[:, 0, count)
void CopyColumns(const float* from, int64_t from_stride, int rows, int count, float* to, int64_t to_stride) {
  for (int r = 0; r < rows; ++r) std::memcpy(to + r * to_stride, from + r * from_stride, sizeof(float) * count);
}

template <class T>
void CopyIn(const T* packed, const View<T>& to) {
  for (int m = 0; m < to.members; ++m) {
    for (int r = 0; r < to.rows; ++r, packed += to.cols) std::memcpy(to.row(m, r), packed, sizeof(T) * to.cols);
  }
}

template <class T>
void CopyOut(const View<T>& from, T* packed) {
  for (int m = 0; m < from.members; ++m) {
    for (int r = 0; r < from.rows; ++r, packed += from.cols) std::memcpy(packed, from.row(m, r), sizeof(T) * from.cols);
  }
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
    Multiply(Gemm::kTransposeB, d_x.rows, d_x.cols, layer.out, adjoint.row(m, 0), static_cast<int>(adjoint.row_stride),
             weight, layer.out, add, d_x.row(m, 0), static_cast<int>(d_x.row_stride));
  }
}

// in * out floats of this thread, valid until its next call; grows on demand.
float* Scratch(const MlpLayer& layer) {
  thread_local std::vector<float> scratch;
  const size_t size = static_cast<size_t>(layer.in) * layer.out;
  if (scratch.size() < size) scratch.resize(size);
  return scratch.data();
}

// rows * cols floats of this thread, valid until its next call; grows on demand. Not the memory of the above.
float* RowScratch(int rows, int cols) {
  thread_local std::vector<float> scratch;
  const size_t size = static_cast<size_t>(rows) * cols;
  if (scratch.size() < size) scratch.resize(size);
  return scratch.data();
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

}  // namespace

CpuKernels::CpuKernels(Team* team) : team_(team), loops_(ChosenLoops()) {}

CpuKernels::~CpuKernels() {
  for (void* memory : allocations_) std::free(memory);
}

void* CpuKernels::Allocate(size_t bytes) {
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

void CpuKernels::Upload(const float* packed, const FloatView& to) { CopyIn(packed, to); }
void CpuKernels::Upload(const double* packed, const DoubleView& to) { CopyIn(packed, to); }
void CpuKernels::Download(const FloatView& from, float* packed) { CopyOut(from, packed); }
void CpuKernels::Download(const DoubleView& from, double* packed) { CopyOut(from, packed); }

const float* CpuKernels::Columns(const float* weight, const MlpLayer& layer) {
  if (layer.out == 1) return weight;
  float* columns = Scratch(layer);
  loops_.transpose(weight, layer.out, layer.in, layer.out, columns);
  return columns;
}

void CpuKernels::Run(int /*plan*/, const std::function<void()>& compute) {
  const FloatMode mode(FloatMode::WithoutDenormals());
  compute();
}

void CpuKernels::RunEach(int count, const Call& body) {
  const unsigned of_caller = FloatMode::Current();
  Share(team_, count, [&](int i) {
    const FloatMode mode(of_caller);
    body(i);
  });
}

void CpuKernels::Forward(const FloatView& block, const MlpLayout& net, const FloatView& x, const MlpTape& tape) {
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
      Multiply(Gemm::kPlain, x.rows, layer.out, layer.in, in.row(m, 0), static_cast<int>(in.row_stride), weight,
               layer.out,
               /*add=*/false, out.row(m, 0), static_cast<int>(out.row_stride));
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

void CpuKernels::Adjoint(const FloatView& block, const MlpLayout& net, const FloatView& d_out, const MlpTape& tape) {
  const int last = static_cast<int>(net.layers.size()) - 1;
  for (int m = 0; m < d_out.members; ++m) {
    for (int i = last; i > 0; --i) {
      const MlpLayer& layer = net.layers[i];
      const float* weight = block.row(m, 0) + layer.weight;
      const FloatView& from = i == last ? d_out : tape.adjoint[i];
      const FloatView& hidden = tape.hidden[i - 1];
      const FloatView& to = tape.adjoint[i - 1];
      if (net.layer_norm) {  // `to` holds the normalised pre-activations
        float* const product = RowScratch(d_out.rows, to.cols);
        const FloatView& inverse = tape.inverse_deviation[i - 1];
        if (i == last && layer.out <= kNarrow) {
          loops_.narrow_adjoint(net.hidden, from.row(m, 0), from.row_stride, layer.out, Columns(weight, layer),
                                hidden.row(m, 0), hidden.row_stride, d_out.rows, to.cols, product, to.cols);
        } else {
          Multiply(Gemm::kTransposeB, d_out.rows, to.cols, layer.out, from.row(m, 0), static_cast<int>(from.row_stride),
                   weight, layer.out, /*add=*/false, product, to.cols);
        }
        loops_.normalised_relu_adjoint(product, to.cols, inverse.row(m, 0), inverse.row_stride, d_out.rows, to.cols,
                                       to.row(m, 0), to.row_stride);
        continue;
      }
      if (net.hidden == Activation::kSwish) {  // `to` holds the slopes
        float* const product = RowScratch(d_out.rows, to.cols);
        Multiply(Gemm::kTransposeB, d_out.rows, to.cols, layer.out, from.row(m, 0), static_cast<int>(from.row_stride),
                 weight, layer.out, /*add=*/false, product, to.cols);
        loops_.multiply_rows(product, to.cols, d_out.rows, to.cols, to.row(m, 0), to.row_stride);
        continue;
      }
      if (i == last && layer.out <= kNarrow) {
        loops_.narrow_adjoint(net.hidden, from.row(m, 0), from.row_stride, layer.out, Columns(weight, layer),
                              hidden.row(m, 0), hidden.row_stride, d_out.rows, layer.in, to.row(m, 0), to.row_stride);
        continue;
      }
      const int width = net.layers[i - 1].out;  // without repeated inputs
      Multiply(Gemm::kTransposeB, d_out.rows, width, layer.out, from.row(m, 0), static_cast<int>(from.row_stride),
               weight, layer.out, /*add=*/false, to.row(m, 0), static_cast<int>(to.row_stride));
      loops_.multiply_slope(net.hidden, hidden.row(m, 0), hidden.row_stride, d_out.rows, width, to.row(m, 0),
                            to.row_stride);
    }
  }
}

void CpuKernels::ScaleAdjoint(const FloatView& d_out, const MlpTape& tape) {
  for (const FloatView& adjoint : tape.adjoint) {
    for (int m = 0; m < d_out.members; ++m) {
      loops_.scale_rows(d_out.row(m, 0), d_out.row_stride, d_out.rows, adjoint.cols, adjoint.row(m, 0),
                        adjoint.row_stride);
    }
  }
}

void CpuKernels::InputGradient(const FloatView& block, const MlpLayout& net, const MlpTape& tape, int first_col,
                               bool add, const FloatView& d_x) {
  LayerInputGradient(loops_, block, net.layers.front(), tape.adjoint.front(), first_col, add, d_x);
  const RepeatedColumns again = RepeatedOf(net, first_col, d_x.cols);
  if (again.count == 0) return;
  LayerInputGradient(loops_, block, net.layers[1], tape.adjoint[1], again.layer_first, /*add=*/true,
                     d_x.Cols(again.first, again.count));
}

void CpuKernels::ParameterGradient(const MlpLayout& net, const FloatView& x, const FloatView& d_out,
                                   const MlpTape& tape, const FloatView& gradient_block) {
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
        float* columns = Scratch(layer);
        for (int o = 0; o < layer.out; ++o) {
          loops_.weighted_column_sums(in.row(m, 0), in.row_stride, d.row(m, 0) + o, d.row_stride, x.rows, layer.in,
                                      columns + o * layer.in);
        }
        loops_.transpose(columns, layer.in, layer.out, layer.in, d_weight);
        continue;
      }
      Multiply(Gemm::kTransposeA, layer.in, layer.out, x.rows, in.row(m, 0), static_cast<int>(in.row_stride),
               d.row(m, 0), static_cast<int>(d.row_stride), /*add=*/false, d_weight, layer.out);
    }
  }
}

// dy/dx = W_1 D_1 W_2 .. w with the slopes D of the hidden units, constants for ReLU. Along v = d_slope the tangents
// t_0 = v, t_i = D_i W_i^T t_(i-1) turn <v, dy/dx> into <w, t_last>, which is linear in every weight. The gradient of
// layer i's weights is t_(i-1) times the adjoint of a unit output; the gradient of d_value y is d_value h_(i-1) times
// the same adjoint.
void CpuKernels::SlopeGradient(const FloatView& block, const MlpLayout& net, const FloatView& x,
                               const FloatView& d_value, const FloatView& d_slope, const MlpTape& tape,
                               const MlpTape& tangent, const FloatView& gradient_block) {
  const int last = static_cast<int>(net.layers.size()) - 1;
  for (int m = 0; m < x.members; ++m) {
    for (int i = 0; i < last; ++i) {
      const MlpLayer& layer = net.layers[i];
      const FloatView& in = i == 0 ? d_slope : tangent.hidden[i - 1];
      const FloatView& hidden = tape.hidden[i];
      const FloatView& out = tangent.hidden[i];
      Multiply(Gemm::kPlain, x.rows, layer.out, layer.in, in.row(m, 0), static_cast<int>(in.row_stride),
               block.row(m, 0) + layer.weight, layer.out, /*add=*/false, out.row(m, 0),
               static_cast<int>(out.row_stride));
      loops_.multiply_slope(net.hidden, hidden.row(m, 0), hidden.row_stride, x.rows, layer.out, out.row(m, 0),
                            out.row_stride);
    }
    for (int i = 0; i <= last; ++i) {
      const MlpLayer& layer = net.layers[i];
      const FloatView& value = i == 0 ? x : tape.hidden[i - 1];
      const FloatView& both = i == 0 ? d_slope : tangent.hidden[i - 1];
      loops_.add_scaled_rows(value.row(m, 0), value.row_stride, d_value.row(m, 0), d_value.row_stride, x.rows, layer.in,
                             both.row(m, 0), both.row_stride);
      float* d_weight = gradient_block.row(m, 0) + layer.weight;
      float* d_bias = gradient_block.row(m, 0) + layer.bias;
      if (i == last) {
        loops_.column_sums(both.row(m, 0), both.row_stride, x.rows, layer.in, d_weight);
        loops_.column_sums(d_value.row(m, 0), d_value.row_stride, x.rows, 1, d_bias);
        continue;
      }
      const FloatView& adjoint = tape.adjoint[i];
      loops_.weighted_column_sums(adjoint.row(m, 0), adjoint.row_stride, d_value.row(m, 0), d_value.row_stride, x.rows,
                                  layer.out, d_bias);
      Multiply(Gemm::kTransposeA, layer.in, layer.out, x.rows, both.row(m, 0), static_cast<int>(both.row_stride),
               adjoint.row(m, 0), static_cast<int>(adjoint.row_stride), /*add=*/false, d_weight, layer.out);
    }
  }
}

// With hidden units h, their tangents t and the direction (V, c): t_i = act'(h_i) (t_(i-1) W_i + h_(i-1) V_i + c_i),
// t_0 = 0; the output has no act'.
void CpuKernels::Tangent(const FloatView& block, const FloatView& direction, const MlpLayout& net, const FloatView& x,
                         const MlpTape& tape, const MlpTape& tangent) {
  const int last = static_cast<int>(net.layers.size()) - 1;
  for (int m = 0; m < x.members; ++m) {
    const float* parameters = block.row(m, 0);
    const float* along = direction.row(m, 0);
    for (int i = 0; i <= last; ++i) {
      const MlpLayer& layer = net.layers[i];
      const FloatView& in = i == 0 ? x : tape.hidden[i - 1];
      const FloatView& out = i == last ? tangent.out : tangent.hidden[i];
      const int in_stride = static_cast<int>(in.row_stride), out_stride = static_cast<int>(out.row_stride);
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
      Multiply(Gemm::kPlain, x.rows, layer.out, layer.in, in.row(m, 0), in_stride, along + layer.weight, layer.out,
               /*add=*/true, out.row(m, 0), out_stride);
      if (i > 0) {
        const FloatView& before = tangent.hidden[i - 1];
        Multiply(Gemm::kPlain, x.rows, layer.out, layer.in, before.row(m, 0), static_cast<int>(before.row_stride),
                 parameters + layer.weight, layer.out, /*add=*/true, out.row(m, 0), out_stride);
      }
      if (i == last) continue;
      const FloatView& hidden = tape.hidden[i];
      loops_.multiply_slope(net.hidden, hidden.row(m, 0), hidden.row_stride, x.rows, layer.out, out.row(m, 0),
                            out.row_stride);
    }
  }
}

std::unique_ptr<KernelGroup> CpuKernels::MakeImpl(std::type_index group) { return CpuImpls::Make(group); }

std::unique_ptr<Kernels> MakeCpuKernels(Team* team) { return std::make_unique<CpuKernels>(team); }

}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0

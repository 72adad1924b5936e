// Everything that an update does to arrays, in steps large enough to be fast: a whole pass through a perceptron, one
// pass over the rows of a batch, one pass over a flat range of parameters. Algorithms are written once against these
// interfaces. There are two backends: cpu/ (products and vectorised loops) and torch/ (LibTorch's operations on
// any device, in a shared library that is loaded on demand).
//
// The kernels of one loss are a KernelGroup, declared next to its algorithm (learner/algorithms/*_kernels.h). It has an
// implementation for each backend (*_cpu.cc, *_torch.cc), which registers itself (kernel_impls.h).
//
// Not thread-safe, except inside Each, Together and Ranges. On the CPU only Allocate and New* allocate, and each thread
// once its scratch memory. The views say which members a call works on; members never mix.
#ifndef DATACOM_LEARNER_NN_KERNELS_H_
#define DATACOM_LEARNER_NN_KERNELS_H_

#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <typeindex>
#include <vector>

#include "common/base/team.h"
#include "learner/nn/parameter_layout.h"
#include "learner/nn/view.h"

namespace datacom::learner {

// The range of a task's actions.
struct ActionBox {
  FloatView half, centre;  // [1, 1, action]
};

// Columns of the members' blocks.
struct ColumnRange {
  int first = 0, count = 0;
};

// Optimisers that step together, each over its own columns.
struct AdamRanges {
  FloatView state;                      // [members, 3, size]: parameters, first and second moments
  FloatView gradients;                  // [members, 1, size]
  const ColumnRange* ranges = nullptr;  // of each optimiser
  DoubleView learning_rates, steps;     // [members, optimisers, 1]
  DoubleView active;
  DoubleView decay;  // 1 / steps until the rate is half; empty: the rates stay
};

// Numbers that an update computes, one in each row, and their sums over updates.
struct StatisticRows {
  DoubleView values;  // [members, rows, 1]
  DoubleView signs;   // [1, rows, 1]: a value is added with this factor
  DoubleView sums;    // [members, rows, 2]: total, count
  int smallest = 0;   // the first ones keep the smallest value instead of the total
};

// The kernels of one loss.
class KernelGroup {
 public:
  virtual ~KernelGroup() = default;
};

// What Group throws: the abstract class that the backend does not implement.
struct MissingKernels : std::logic_error {
  using std::logic_error::logic_error;
};

// Owns all memory that it hands out. Scalars per member, such as `active` (0 once the member has diverged), are
// [members, 1, 1].
class Kernels {
 public:
  virtual ~Kernels() = default;

  // How many of `members` one pass works on: 1 on the CPU, so that a member stays in cache; all with LibTorch, so that
  // launches are few.
  virtual int BlockSize(int members) const = 0;
  virtual void* Allocate(size_t bytes) = 0;  // zeroed, cache-line aligned
  // A transfer to or from a device costs far more than its bytes, so what belongs together is moved at once.

  virtual void Upload(const float* packed, const FloatView& to) = 0;  // host [members, rows, cols] -> view
  virtual void Upload(const double* packed, const DoubleView& to) = 0;
  virtual void Download(const FloatView& from, float* packed) = 0;  // waits for the device
  virtual void Download(const DoubleView& from, double* packed) = 0;
  // The same for several arrays, one after another, the floats last and as doubles: one transfer.
  virtual void DownloadAll(const std::vector<DoubleView>& doubles, const std::vector<FloatView>& floats,
                           double* packed) = 0;
  // The array where the host can read it: `from` itself, or a copy of it in *copy.
  virtual FloatView ToHost(const FloatView& from, std::vector<float>* copy) = 0;
  // Runs load and then compute. load calls only Upload, and all its uploads are one transfer. compute calls kernels,
  // but not Allocate, Upload or Download. The calls of both must be the same for the same `plan`, because a device may
  // record and replay them. Throws std::logic_error if it notices that they are not.
  virtual void Run(int plan, const std::function<void()>& load, const std::function<void()>& compute) = 0;
  void Run(int plan, const std::function<void()>& compute) {
    Run(
        plan, [] {}, compute);
  }

  // Arrays whose numbers have this value.
  FloatView NewFloats(int members, int rows, int cols, float value = 0);
  DoubleView NewDoubles(int members, int rows, int cols, double value = 0);
  // Throws std::invalid_argument if the net has layer_norm and cannot.
  MlpTape NewTape(const MlpLayout& net, int members, int rows);

  // Passes through perceptrons (parameter_layout.h). `block`: parameters or gradients of the members, [members, 1,
  // size]; x: [members, rows, in].

  virtual void Forward(const FloatView& block, const MlpLayout& net, const FloatView& x, const MlpTape& tape) = 0;
  // Adjoints of the hidden pre-activations, for an objective whose gradient for the output is d_out [members, rows,
  // out]. For swish units and with layer_norm once after each Forward on the same rows, which leaves the units' slopes
  // or the normalised pre-activations in tape.adjoint.
  virtual void Adjoint(const FloatView& block, const MlpLayout& net, const FloatView& d_out, const MlpTape& tape) = 0;
  // Multiplies the rows of adjoints by d_out [members, rows, 1]: turns a unit output's adjoints into an objective's
  // adjoints.
  virtual void ScaleAdjoint(const FloatView& d_out, const MlpTape& tape) = 0;
  // d_x [members, rows, n]: gradient for the n input columns from first_col on; added to d_x if `add`.
  virtual void InputGradient(const FloatView& block, const MlpLayout& net, const MlpTape& tape, int first_col, bool add,
                             const FloatView& d_x) = 0;
  virtual void ParameterGradient(const MlpLayout& net, const FloatView& x, const FloatView& d_out, const MlpTape& tape,
                                 const FloatView& gradient_block) = 0;
  // For a net with one output y and ReLU hidden units, without layer_norm: the gradient of <d_value, y> + <d_slope,
  // dy/dx> for the parameters, given the adjoints of a unit output in `tape`. `tangent` has the shape of tape; it and
  // d_slope [members, rows, in] are overwritten.
  virtual void SlopeGradient(const FloatView& block, const MlpLayout& net, const FloatView& x, const FloatView& d_value,
                             const FloatView& d_slope, const MlpTape& tape, const MlpTape& tangent,
                             const FloatView& gradient_block) = 0;
  // Forward mode, for a net without repeated inputs, swish units and layer_norm: tangent.out [members, rows, out] = the
  // derivative of the output along `direction`, a block like `block`: d/de net(block + e direction)(x) at e = 0. `tape`
  // holds the hidden units at x. tangent.hidden is overwritten.
  virtual void Tangent(const FloatView& block, const FloatView& direction, const MlpLayout& net, const FloatView& x,
                       const MlpTape& tape, const MlpTape& tangent) = 0;

  // Steps of optimisers and statistics of them.

  // A step of Adam (betas 0.9 and 0.999, eps 1e-8) for active members. Their gradients are finite (GradientNorm).
  virtual void Adam(const AdamRanges& ranges) = 0;
  virtual void Polyak(const FloatView& source, double tau, const DoubleView& active, const FloatView& target) = 0;
  // Euclidean norm of a gradient [members, 1, n]; not finite if an entry is not. It may be infinite from 1.8e19 on:
  // such squares overflow float32, and with them the moments of Adam.
  virtual void GradientNorm(const FloatView& gradient, const DoubleView& norm) = 0;
  // Sets active = 0 for members with a value [members, rows, 1] that is not finite.
  virtual void DeactivateUnlessFinite(const DoubleView& values, const DoubleView& active) = 0;

  virtual void SetZero(const DoubleView& values) = 0;                        // [members, rows, 1]
  virtual void RowMean(const DoubleView& rows, const DoubleView& mean) = 0;  // [members, rows, 1] -> [members, 1, 1]
  virtual void RowMean(const FloatView& rows, const DoubleView& mean) = 0;
  virtual void RowShareAboveZero(const DoubleView& rows, const DoubleView& share) = 0;  // the same shapes
  // Adds the values of active members to their sums. May overwrite the values of the others. A sum that keeps the
  // smallest value starts at infinity.
  virtual void Accumulate(const StatisticRows& rows, const DoubleView& active) = 0;

  // Copies of what a step changes, to undo it.

  virtual void Copy(const FloatView& from, const FloatView& to) = 0;
  virtual void Copy(const DoubleView& from, const DoubleView& to) = 0;
  // Copies the members that are not active.
  virtual void Restore(const FloatView& from, const DoubleView& active, const FloatView& to) = 0;
  virtual void Restore(const DoubleView& from, const DoubleView& active, const DoubleView& to) = 0;

  // This backend's implementation of the abstract class G; made once, lives as long as the Kernels. Throws
  // MissingKernels if the backend has none.
  template <class G>
  G* Group() {
    return static_cast<G*>(Find(typeid(G)));
  }

  // Calls body(i) for 0 <= i < count, in any order and at the same time where threads have nothing to do. A call may
  // use these kernels, but must not read or write what another call writes.
  template <class Body>
  void Each(int count, const Body& body) {
    RunEach(count, {[](const void* object, int i) { (*static_cast<const Body*>(object))(i); }, &body});
  }
  // The same for different parts: calls each of them once.
  template <class... Parts>
  void Together(const Parts&... parts) {
    Each(sizeof...(parts), [&](int i) {
      int part = 0;
      ((part++ == i ? parts() : void()), ...);
    });
  }
  // Divides [0, size) into ranges for Each and calls body(first, count) for each range. The number of ranges may
  // differ, so no number may depend on where they begin.
  template <class Body>
  void Ranges(int size, const Body& body) {
    const int ranges = std::min(RangeCount(), size);
    Each(ranges, [&](int i) {
      const int first = size * i / ranges;
      body(first, size * (i + 1) / ranges - first);
    });
  }

 protected:
  struct Call {
    void (*call)(const void* body, int i);
    const void* body;
    void operator()(int i) const { call(body, i); }
  };
  virtual int RangeCount() const { return 1; }
  virtual void RunEach(int count, const Call& body) {
    for (int i = 0; i < count; ++i) body(i);
  }
  virtual std::unique_ptr<KernelGroup> MakeImpl(std::type_index group) = 0;  // null if there is none

 private:
  KernelGroup* Find(std::type_index group);
  std::map<std::type_index, std::unique_ptr<KernelGroup>> groups_;
};

// kind: "fused" (cpu/, on device "cpu"), "tensor" (torch/, on any device) or "auto", by the device. Throws
// std::invalid_argument for another kind, for an unavailable device, and if LibTorch cannot be loaded.
// precision: LearnerOptions.precision; cpu/ has only float32 and throws for another one. The CPU's kernels share what
// may run together with `team`, which may be null and must outlive them.
std::unique_ptr<Kernels> MakeKernels(const std::string& kind, const std::string& device,
                                     const std::string& precision = "float32", Team* team = nullptr);
bool UsesCpuKernels(const std::string& kind, const std::string& device);  // whether MakeKernels chooses cpu/
std::unique_ptr<Kernels> MakeCpuKernels(Team* team);                      // cpu/

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_NN_KERNELS_H_
// SPDX-License-Identifier: Apache-2.0

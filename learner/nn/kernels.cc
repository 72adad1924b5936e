#include "learner/nn/kernels.h"

#include <cstdint>
#include <stdexcept>

#include "learner/nn/torch_library.h"

namespace datacom::learner {
namespace {

// Each member starts on a cache line, so that the same instructions run for every member.
int64_t MemberStride(int rows, int cols, size_t width) {
  const int64_t line = static_cast<int64_t>(64 / width);
  return (static_cast<int64_t>(rows) * cols + line - 1) / line * line;
}

template <class T>
View<T> NewView(Kernels* kernels, int members, int rows, int cols, T value) {
  const int64_t stride = MemberStride(rows, cols, sizeof(T));
  T* data = static_cast<T*>(kernels->Allocate(sizeof(T) * stride * members));
  const View<T> view{data, members, rows, cols, stride, cols};
  if (value != 0) {
    const std::vector<T> values(static_cast<size_t>(members) * rows * cols, value);
    kernels->Upload(values.data(), view);
  }
  return view;
}

}  // namespace

FloatView Kernels::NewFloats(int members, int rows, int cols, float value) {
  return NewView(this, members, rows, cols, value);
}
DoubleView Kernels::NewDoubles(int members, int rows, int cols, double value) {
  return NewView(this, members, rows, cols, value);
}

MlpTape Kernels::NewTape(const MlpLayout& net, int members, int rows) {
  if (net.layer_norm && (net.hidden != Activation::kRelu || net.repeated > 0)) {
    throw std::invalid_argument("layer normalisation needs ReLU units without repeated inputs");
  }
  MlpTape tape;
  for (size_t i = 0; i + 1 < net.layers.size(); ++i) {
    tape.hidden.push_back(NewFloats(members, rows, net.layers[i + 1].in));
    tape.adjoint.push_back(NewFloats(members, rows, net.layers[i].out));
    if (net.layer_norm) tape.inverse_deviation.push_back(NewFloats(members, rows, 1));
  }
  tape.out = NewFloats(members, rows, net.out());
  return tape;
}

KernelGroup* Kernels::Find(std::type_index group) {
  std::unique_ptr<KernelGroup>& impl = groups_[group];
  if (impl == nullptr) impl = MakeImpl(group);
  if (impl == nullptr) throw MissingKernels(group.name());
  return impl.get();
}

bool UsesCpuKernels(const std::string& kind, const std::string& device) {
  return kind == "fused" || (kind == "auto" && device == "cpu");
}

std::unique_ptr<Kernels> MakeKernels(const std::string& kind, const std::string& device, const std::string& precision,
                                     Team* team) {
  if (kind == "fused" && device != "cpu") {
    throw std::invalid_argument("kernels 'fused' run on device 'cpu', not '" + device + "'");
  }
  if (UsesCpuKernels(kind, device)) {
    if (precision != "float32") throw std::invalid_argument("precision '" + precision + "' needs kernels 'tensor'");
    return MakeCpuKernels(team);
  }
  if (kind == "tensor" || kind == "auto") return MakeTorchKernels(device, precision);
  throw std::invalid_argument("kernels must be 'fused', 'tensor' or 'auto', not '" + kind + "'");
}

}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0

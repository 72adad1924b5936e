// The base of LibTorch's implementations of kernel groups (kernels.h). Shapes are [members, rows, ...]; scalars per
// member broadcast.
//
// A CUDA graph records what an implementation does and repeats it for later updates. So it touches numbers only with
// LibTorch's operations on the device: it reads nothing back, uploads nothing, chooses neither shapes nor operations by
// values, and passes no number that changes between updates. tests/learner/nn/torch/capture_test.cc checks this for
// every algorithm.
#ifndef DATACOM_LEARNER_NN_TORCH_TORCH_IMPL_H_
#define DATACOM_LEARNER_NN_TORCH_TORCH_IMPL_H_

#include <ATen/ATen.h>

#include <type_traits>

#include "learner/nn/kernel_impls.h"

namespace datacom::learner {

// Ranges that a profiler sees: around the work of Kernels::Run, and around each transfer between host and device.
inline constexpr char kRunRange[] = "datacom.run", kTransferRange[] = "datacom.transfer";

using TorchImpls = KernelImpls<at::Device>;

// The view as a tensor that shares its memory; on device "meta" a tensor of the same shape.
template <class T>
at::Tensor AsTensor(const View<T>& view, const at::Device& device) {
  const auto options =
      at::TensorOptions().dtype(std::is_same<T, float>::value ? at::kFloat : at::kDouble).device(device);
  if (device.is_meta()) {
    return at::empty_strided({view.members, view.rows, view.cols}, {view.member_stride, view.row_stride, 1}, options);
  }
  return at::from_blob(view.data, {view.members, view.rows, view.cols}, {view.member_stride, view.row_stride, 1},
                       options);
}

template <class Group>
class TorchImpl : public Group {
 public:
  explicit TorchImpl(const at::Device& device) : device_(device) {}

 protected:
  template <class T>
  at::Tensor Of(const View<T>& view) const {
    return AsTensor(view, device_);
  }

  const at::Device& device() const { return device_; }

 private:
  const at::Device device_;
};

// [members, rows, last] seen as [members, rows, a, b].
inline at::Tensor AsMatrix(const at::Tensor& x, int64_t a, int64_t b) {
  return x.unflatten(2, at::IntArrayRef({a, b}));
}

// x [.., a] times a small matrix [.., a, b] of its own in every row: a product and a sum. A batched matrix product
// would start one small product for each row.
inline at::Tensor TimesMatrix(const at::Tensor& x, const at::Tensor& matrix) {
  return (x.unsqueeze(3) * matrix).sum(2);
}

inline at::Tensor MeanRows(const at::Tensor& x) { return x.to(at::kDouble).mean(1, /*keepdim=*/true); }

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_NN_TORCH_TORCH_IMPL_H_
// SPDX-License-Identifier: Apache-2.0

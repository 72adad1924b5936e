// Transfers between host and device. The uploads of a plan of Kernels::Run are one of them. Not thread-safe; a Staging
// owns its memory on both sides.
#ifndef DATACOM_LEARNER_NN_TORCH_STAGING_H_
#define DATACOM_LEARNER_NN_TORCH_STAGING_H_

#include <ATen/ATen.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <stdexcept>
#include <variant>
#include <vector>

#include "learner/nn/torch/torch_impl.h"

namespace datacom::learner {

// One transfer between host and device.
inline void Transfer(const at::Tensor& from, const at::Tensor& to, bool wait = true) {
  at::RecordFunction range(at::RecordScope::USER_SCOPE);
  if (range.isActive()) range.before(kTransferRange);
  to.copy_(from, /*non_blocking=*/!wait);
}

// The uploads that a plan makes before its work: one transfer of packed values, and a copy on the device to where each
// of them belongs, which a graph can record. The first load finds out what there is.
class Staging {
 public:
  explicit Staging(const at::Device& device) : device_(device) {}

  void Begin() {
    next_ = 0;
    if (!packed_.defined()) pieces_.clear(), first_.clear();  // of a first load that failed
  }
  template <class T>
  void Add(const T* packed, const View<T>& to) {
    const auto* const bytes = reinterpret_cast<const char*>(packed);
    const int64_t size = static_cast<int64_t>(sizeof(T)) * to.members * to.rows * to.cols;
    if (!packed_.defined()) {
      pieces_.push_back({static_cast<int64_t>(first_.size()), to});
      first_.insert(first_.end(), bytes, bytes + size);
      first_.resize((first_.size() + 7) / 8 * 8);
    } else if (next_ == pieces_.size() || !SameView(std::get_if<View<T>>(&pieces_[next_].to), to)) {
      throw std::logic_error("a plan of LibTorch's kernels loads other arrays than at first");
    } else {
      std::copy_n(bytes, size, static_cast<char*>(packed_.data_ptr()) + pieces_[next_].offset);
    }
    ++next_;
  }
  // Ends the load. Returns before the transfer has ended.
  void Send() {
    if (next_ != pieces_.size())
      throw std::logic_error("a plan of LibTorch's kernels loads fewer arrays than at first");
    if (pieces_.empty()) return;
    if (!packed_.defined()) Allocate();
    Transfer(packed_, arrived_, /*wait=*/false);  // Graph::Run waits for it
  }
  void Scatter() const {
    for (const Piece& piece : pieces_) {
      std::visit([&](const auto& to) { ScatterTo(piece.offset, to); }, piece.to);
    }
  }

 private:
  struct Piece {
    int64_t offset = 0;  // bytes
    std::variant<FloatView, DoubleView> to;
  };
  template <class T>
  static bool SameView(const View<T>* a, const View<T>& b) {
    return a != nullptr && a->data == b.data && a->members == b.members && a->rows == b.rows && a->cols == b.cols &&
           a->member_stride == b.member_stride && a->row_stride == b.row_stride;
  }
  template <class T>
  void ScatterTo(int64_t offset, const View<T>& to) const {
    T* const data = reinterpret_cast<T*>(static_cast<char*>(arrived_.data_ptr()) + offset);
    const View<T> from{data, to.members, to.rows, to.cols, static_cast<int64_t>(to.rows) * to.cols, to.cols};
    AsTensor(to, device_).copy_(AsTensor(from, device_));
  }
  void Allocate() {
    const auto size = static_cast<int64_t>(first_.size());
    const at::TensorOptions bytes = at::TensorOptions().dtype(at::kByte);
    packed_ = at::empty({size}, bytes.pinned_memory(device_.is_cuda()));
    arrived_ = at::empty({size}, bytes.device(device_.is_meta() ? at::Device(at::kCPU) : device_));
    std::copy_n(first_.data(), size, static_cast<char*>(packed_.data_ptr()));
    std::vector<char>().swap(first_);
  }

  const at::Device device_;
  std::vector<Piece> pieces_;
  std::vector<char> first_;      // the values of the first load
  at::Tensor packed_, arrived_;  // on the host and on the device
  size_t next_ = 0;
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_NN_TORCH_STAGING_H_
// SPDX-License-Identifier: Apache-2.0

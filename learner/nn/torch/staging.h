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

#include "learner/nn/torch/device_memory.h"
#include "learner/nn/torch/torch_impl.h"

namespace datacom::learner {

// One transfer between host and device.
inline void Transfer(const at::Tensor& from, const at::Tensor& to, bool wait = true) {
  at::RecordFunction range(at::RecordScope::USER_SCOPE);
  if (range.isActive()) range.before(kTransferRange);
  to.copy_(from, /*non_blocking=*/!wait);
}

// The uploads that a plan makes before its work: one transfer of packed values, and on the device an operator that
// writes them to where they belong, which a graph can record. The first load finds out what there is. Values are moved
// as words of 4 bytes, so that they keep their bits.
class Staging {
 public:
  explicit Staging(const DeviceMemory& memory) : memory_(memory) {}

  void Begin() {
    next_ = 0;
    if (!packed_.defined()) pieces_.clear(), first_.clear(), targets_.clear();  // of a first load that failed
  }
  template <class T>
  void Add(const T* packed, const View<T>& to) {
    const auto* const bytes = reinterpret_cast<const char*>(packed);
    const int64_t size = static_cast<int64_t>(sizeof(T)) * to.members * to.rows * to.cols;
    if (!packed_.defined()) {
      pieces_.push_back({static_cast<int64_t>(first_.size()), to});
      first_.insert(first_.end(), bytes, bytes + size);
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
  // One operator for each target.
  void Scatter() const {
    for (const Target& target : targets_) target.words.index_copy_(0, target.positions, target.values);
  }

 private:
  struct Piece {
    int64_t offset = 0;  // bytes
    std::variant<FloatView, DoubleView> to;
  };
  struct Target {
    at::Tensor words;      // of an array of the memory
    at::Tensor positions;  // in it, of the values
    at::Tensor values;     // a part of what arrives
  };
  template <class T>
  static bool SameView(const View<T>* a, const View<T>& b) {
    return a != nullptr && a->data == b.data && a->members == b.members && a->rows == b.rows && a->cols == b.cols &&
           a->member_stride == b.member_stride && a->row_stride == b.row_stride;
  }
  DeviceMemory::Place PlaceOf(const Piece& piece) const {
    return std::visit([this](const auto& to) { return memory_.PlaceOf(to.data); }, piece.to);
  }
  // Adds the positions of a view that begins at this word.
  template <class T>
  static void AddPositions(const View<T>& to, int64_t word, std::vector<int64_t>* positions) {
    constexpr int64_t kWords = sizeof(T) / DeviceMemory::kWordBytes;
    for (int m = 0; m < to.members; ++m) {
      for (int r = 0; r < to.rows; ++r) {
        const int64_t first = word + (m * to.member_stride + r * to.row_stride) * kWords;
        for (int64_t i = 0; i < to.cols * kWords; ++i) positions->push_back(first + i);
      }
    }
  }
  void Allocate() {
    const auto words = static_cast<int64_t>(first_.size()) / DeviceMemory::kWordBytes;
    const at::TensorOptions options = at::TensorOptions().dtype(at::kInt);
    arrived_ = at::empty({words}, options.device(memory_.device()));
    FindTargets();
    packed_ = at::empty({words}, options.pinned_memory(memory_.device().is_cuda()));
    std::copy_n(first_.data(), first_.size(), static_cast<char*>(packed_.data_ptr()));
    std::vector<char>().swap(first_);
  }
  // Pieces that follow each other and lie in the same array are one target.
  void FindTargets() {
    std::vector<int64_t> positions;
    int64_t done = 0;  // words
    for (size_t i = 0; i < pieces_.size(); ++i) {
      const DeviceMemory::Place place = PlaceOf(pieces_[i]);
      std::visit([&](const auto& to) { AddPositions(to, place.word, &positions); }, pieces_[i].to);
      if (i + 1 < pieces_.size() && PlaceOf(pieces_[i + 1]).array == place.array) continue;
      const auto count = static_cast<int64_t>(positions.size());
      if (count == 0) continue;
      const at::Tensor host = at::from_blob(positions.data(), {count}, at::TensorOptions().dtype(at::kLong));
      const at::Tensor on_device = at::empty({count}, host.options().device(memory_.device())).copy_(host);
      targets_.push_back({memory_.Words(place.array), on_device, arrived_.narrow(0, done, count)});
      done += count;
      positions.clear();
    }
  }

  const DeviceMemory& memory_;
  std::vector<Piece> pieces_;
  std::vector<char> first_;      // the values of the first load
  at::Tensor packed_, arrived_;  // on the host and on the device
  std::vector<Target> targets_;
  size_t next_ = 0;
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_NN_TORCH_STAGING_H_
// SPDX-License-Identifier: Apache-2.0

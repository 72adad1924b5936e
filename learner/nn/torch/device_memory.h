// Memory of a device, cut from a few large arrays, so that one operator on such an array can write to many places. Owns
// the memory; not thread-safe.
#ifndef DATACOM_LEARNER_NN_TORCH_DEVICE_MEMORY_H_
#define DATACOM_LEARNER_NN_TORCH_DEVICE_MEMORY_H_

#include <ATen/ATen.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <vector>

namespace datacom::learner {

class DeviceMemory {
 public:
  static constexpr int64_t kWordBytes = 4;

  // On device "meta", which has no addresses, the memory lies on the host.
  explicit DeviceMemory(const at::Device& device) : device_(device) {}
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  // Zeroed; begins on a cache line of a GPU.
  void* Allocate(size_t bytes) {
    constexpr int64_t kLine = 128;                                                // bytes
    constexpr int64_t kSmallest = int64_t{1} << 18, kLargest = int64_t{1} << 26;  // words
    const int64_t words = (static_cast<int64_t>(bytes) / kLine + 1) * (kLine / kWordBytes);
    for (Array& array : arrays_) {
      if (array.words.numel() - array.used >= words) return Take(words, &array);
    }
    // Each array is as large as all before it, up to the limit, so there are few.
    const int64_t size = std::max(words, std::clamp(all_words_, kSmallest, kLargest));
    const at::Device place = device_.is_meta() ? at::Device(at::kCPU) : device_;
    arrays_.push_back({at::zeros({size}, at::TensorOptions().dtype(at::kInt).device(place))});
    all_words_ += size;
    return Take(words, &arrays_.back());
  }

  // The array that holds an address from Allocate, and the address's word in it.
  struct Place {
    int array = 0;
    int64_t word = 0;
  };
  Place PlaceOf(const void* address) const {
    for (size_t i = 0; i < arrays_.size(); ++i) {
      const int64_t bytes = static_cast<const char*>(address) - static_cast<const char*>(arrays_[i].words.data_ptr());
      if (bytes >= 0 && bytes < arrays_[i].words.numel() * kWordBytes) return {static_cast<int>(i), bytes / kWordBytes};
    }
    throw std::logic_error("an address that is not from the kernels' memory");
  }
  // The words of an array, int32; on device "meta" a tensor of the same shape.
  at::Tensor Words(int array) const {
    const at::Tensor& words = arrays_[array].words;
    return device_.is_meta() ? at::empty(words.sizes(), words.options().device(device_)) : words;
  }

  const at::Device& device() const { return device_; }

 private:
  struct Array {
    at::Tensor words;
    int64_t used = 0;
  };
  static void* Take(int64_t words, Array* array) {
    void* const taken = static_cast<char*>(array->words.data_ptr()) + array->used * kWordBytes;
    array->used += words;
    return taken;
  }

  const at::Device device_;
  std::vector<Array> arrays_;
  int64_t all_words_ = 0;
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_NN_TORCH_DEVICE_MEMORY_H_
// SPDX-License-Identifier: Apache-2.0

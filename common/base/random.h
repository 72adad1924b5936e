// Counter-based random streams (Philox 4x32-10; Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011).
//
// A stream is a pure function of its key: the same key gives the same numbers in any process, order or thread. Keys are
// made from a purpose and numbers, so that every random decision of a run has a name: StreamKey("actor.noise", {run,
// member, ...}). Value types, cheap to make, no global state. Not thread-safe per object.
#ifndef DATACOM_COMMON_BASE_RANDOM_H_
#define DATACOM_COMMON_BASE_RANDOM_H_

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string_view>

namespace datacom {

// 64-bit key of a named stream: purpose and parts hashed with a fixed function (stable across builds and machines).
uint64_t StreamKey(std::string_view purpose, std::initializer_list<uint64_t> parts);

// A number that the operating system draws: another one in every process. Thread-safe.
uint64_t SystemRandomNumber();

class RandomStream {
 public:
  explicit RandomStream(uint64_t key) : key_(key) {}

  uint32_t NextUint32();
  uint64_t NextUint64();
  double Uniform();                         // [0, 1), 53 bits
  double Uniform(double low, double high);  // [low, high)
  uint64_t Below(uint64_t bound);           // uniform in [0, bound), bound > 0, unbiased
  // A child stream: a function of `purpose` and this stream's key, independent of how much was drawn from this one.
  RandomStream Child(std::string_view purpose) const { return RandomStream(StreamKey(purpose, {key_})); }
  double Normal();  // standard normal; Box-Muller on two draws, which keeps the second value

 private:
  uint64_t key_;
  uint64_t counter_ = 0;
  std::array<uint32_t, 4> block_{};
  int used_ = 4;
  bool has_spare_ = false;
  double spare_ = 0;
};

// out[i] = i-th standard normal of the stream `key`, rounded to float32. No allocation.
void FillNormal(uint64_t key, float* out, int64_t count);
// out[i] = i-th uniform number of the stream `key`, rounded to float32, in [0, 1]. No allocation.
void FillUniform(uint64_t key, float* out, int64_t count);

}  // namespace datacom

#endif  // DATACOM_COMMON_BASE_RANDOM_H_
// SPDX-License-Identifier: Apache-2.0

// The memory that an algorithm computes in, on the device of its backend.
#ifndef DATACOM_LEARNER_NN_MEMORY_H_
#define DATACOM_LEARNER_NN_MEMORY_H_

#include <cstddef>
#include <functional>

#include "learner/nn/parameter_layout.h"
#include "learner/nn/view.h"

namespace datacom::learner {

// Owns all memory that it hands out. Not thread-safe.
class Memory {
 public:
  virtual ~Memory() = default;

  // How many of `members` one pass works on: 1 on the CPU, so that a member stays in cache; all with LibTorch, so that
  // launches are few.
  virtual int BlockSize(int members) const = 0;
  virtual void* Allocate(size_t bytes) = 0;                           // zeroed, cache-line aligned
  virtual void Upload(const float* packed, const FloatView& to) = 0;  // host [members, rows, cols] -> view
  virtual void Upload(const double* packed, const DoubleView& to) = 0;
  virtual void Download(const FloatView& from, float* packed) = 0;  // waits for the device
  virtual void Download(const DoubleView& from, double* packed) = 0;
  // Runs compute, which calls kernels, but not Allocate, Upload or Download. The calls must be the same for the same
  // `plan`, because a device may record and replay them.
  virtual void Run(int plan, const std::function<void()>& compute) = 0;

  FloatView NewFloats(int members, int rows, int cols);
  DoubleView NewDoubles(int members, int rows, int cols);
  // Throws std::invalid_argument if the net has layer_norm and cannot.
  MlpTape NewTape(const MlpLayout& net, int members, int rows);
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_NN_MEMORY_H_
// SPDX-License-Identifier: Apache-2.0

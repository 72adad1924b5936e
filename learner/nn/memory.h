// The memory that an algorithm computes in, on the device of its backend.
#ifndef DATACOM_LEARNER_NN_MEMORY_H_
#define DATACOM_LEARNER_NN_MEMORY_H_

#include <cstddef>
#include <functional>

#include "learner/nn/parameter_layout.h"
#include "learner/nn/view.h"

namespace datacom::learner {

// Owns everything it hands out, for as long as it lives. Not thread-safe.
class Memory {
 public:
  virtual ~Memory() = default;

  // How many of `members` one pass works on: 1 where cache locality decides (CPU), all where launches do (LibTorch).
  virtual int BlockSize(int members) const = 0;
  virtual void* Allocate(size_t bytes) = 0;                           // zeroed, cache-line aligned
  virtual void Upload(const float* packed, const FloatView& to) = 0;  // host [members, rows, cols] -> view
  virtual void Upload(const double* packed, const DoubleView& to) = 0;
  virtual void Download(const FloatView& from, float* packed) = 0;  // waits for the device
  virtual void Download(const DoubleView& from, double* packed) = 0;
  // Runs compute, which calls kernels and neither Allocate, Upload nor Download; always the same calls for the same
  // `plan`: a device may record and replay them.
  virtual void Run(int plan, const std::function<void()>& compute) = 0;

  FloatView NewFloats(int members, int rows, int cols);
  DoubleView NewDoubles(int members, int rows, int cols);
  MlpTape NewTape(const Mlp& net, int members, int rows);
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_NN_MEMORY_H_

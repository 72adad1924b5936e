// Everything that an update does to arrays, in steps large enough to be fast: a whole pass through a perceptron, one
// pass over the rows of a batch, one pass over a flat range of parameters. Algorithms are written once against these
// interfaces. There are two backends: cpu/ (vectorised loops, libxsmm's products) and torch/ (LibTorch's operations on
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
#include <map>
#include <memory>
#include <string>
#include <typeindex>

#include "common/base/team.h"
#include "learner/nn/memory.h"
#include "learner/nn/optimisers.h"
#include "learner/nn/perceptrons.h"

namespace datacom::learner {

// The kernels of one loss.
class KernelGroup {
 public:
  virtual ~KernelGroup() = default;
};

class Kernels : public Memory, public Perceptrons, public Optimisers, public Undo {
 public:
  // This backend's implementation of the abstract class G; made once, lives as long as the Kernels. Throws
  // std::logic_error if the backend has none.
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
// The CPU's kernels share what may run together with `team`, which may be null and must outlive them.
std::unique_ptr<Kernels> MakeKernels(const std::string& kind, const std::string& device, Team* team = nullptr);
bool UsesCpuKernels(const std::string& kind, const std::string& device);  // whether MakeKernels chooses cpu/

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_NN_KERNELS_H_
// SPDX-License-Identifier: Apache-2.0

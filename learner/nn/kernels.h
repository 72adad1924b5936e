// Everything that an update does to arrays, in steps large enough to be fast: a whole pass through a perceptron, one
// pass over the rows of a batch, one pass over a flat range of parameters. Algorithms are written once against these
// interfaces. There are two backends: cpu/ (vectorised loops, libxsmm's products) and torch/ (LibTorch's operations on
// any device, in a shared library that is loaded on demand).
//
// The kernels of one loss are a KernelGroup, declared beside its algorithm (learner/algorithms/*_kernels.h). It has a
// form for each backend (*_cpu.cc, *_torch.cc), which registers itself (forms.h).
//
// Not thread-safe. On the CPU only Allocate and New* allocate. The views say which members a call works on; members
// never mix.
#ifndef DATACOM_LEARNER_NN_KERNELS_H_
#define DATACOM_LEARNER_NN_KERNELS_H_

#include <map>
#include <memory>
#include <string>
#include <typeindex>

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
  // This backend's form of the abstract class G; made once, lives as long as the Kernels. Throws std::logic_error if
  // the backend has none.
  template <class G>
  G* Group() {
    return static_cast<G*>(Find(typeid(G)));
  }

 protected:
  virtual std::unique_ptr<KernelGroup> MakeForm(std::type_index group) = 0;  // null if there is none

 private:
  KernelGroup* Find(std::type_index group);
  std::map<std::type_index, std::unique_ptr<KernelGroup>> groups_;
};

// kind: "fused" (cpu/, on device "cpu"), "tensor" (torch/, on any device) or "auto", by the device. Throws
// std::invalid_argument for another kind, for an unavailable device, and if LibTorch cannot be loaded.
std::unique_ptr<Kernels> MakeKernels(const std::string& kind, const std::string& device);

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_NN_KERNELS_H_

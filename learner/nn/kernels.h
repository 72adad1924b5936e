// Everything an update does to arrays, at the granularity that makes it fast: whole passes through perceptrons, one
// pass over the rows of a batch, one pass over a flat range of parameters. Algorithms are written once against these
// interfaces. There are two backends: cpu/ (vectorised loops, libxsmm's products) and torch/ (LibTorch's operations, on
// any device; a shared library that is loaded when it is asked for).
//
// What one loss needs is a KernelGroup, declared beside its algorithm (learner/algorithms/*_kernels.h), with a form for
// each backend (*_cpu.cc, *_torch.cc) that registers itself (forms.h).
//
// Not thread-safe. No call but Allocate and New* allocates on the CPU. Calls take their members from the views; members
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
  // This backend's form of a group, an abstract class; made once, lives as long as the Kernels. Throws
  // std::logic_error where the backend has none.
  template <class G>
  G* Group() {
    return static_cast<G*>(Find(typeid(G)));
  }

 protected:
  virtual std::unique_ptr<KernelGroup> MakeForm(std::type_index group) = 0;  // null: there is none

 private:
  KernelGroup* Find(std::type_index group);
  std::map<std::type_index, std::unique_ptr<KernelGroup>> groups_;
};

// kind: "fused" (cpu/, on device "cpu"), "tensor" (torch/, on any device) or "auto", by the device. Throws
// std::invalid_argument for another kind, for a device that there is not, and where LibTorch cannot be loaded.
std::unique_ptr<Kernels> MakeKernels(const std::string& kind, const std::string& device);

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_NN_KERNELS_H_

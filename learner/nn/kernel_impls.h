// A backend's implementations of kernel groups, by the group's class. A file that defines one has one line, which
// registers it when the program or library is loaded; a second one of the same group ends the program:
//
//   const CpuImpls::Register<SacKernels, SacCpu> kRegistered;
//
// The linker must keep the file: it is linked as an object, not from an archive.
#ifndef DATACOM_LEARNER_NN_KERNEL_IMPLS_H_
#define DATACOM_LEARNER_NN_KERNEL_IMPLS_H_

#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <type_traits>
#include <typeindex>
#include <typeinfo>

#include "learner/nn/kernels.h"

namespace datacom::learner {

// Arguments of the constructors of the backend's implementations.
template <class... Arguments>
class KernelImpls {
 public:
  template <class Group, class Impl>
  struct Register {
    static_assert(std::is_base_of_v<Group, Impl> && std::is_base_of_v<KernelGroup, Group>);
    Register() {
      const Maker make = [](const Arguments&... arguments) -> std::unique_ptr<KernelGroup> {
        return std::make_unique<Impl>(arguments...);
      };
      if (All().emplace(typeid(Group), make).second) return;
      std::fprintf(stderr, "two implementations of kernel group %s are registered\n", typeid(Group).name());
      std::abort();
    }
  };

  // Null if there is none.
  static std::unique_ptr<KernelGroup> Make(std::type_index group, const Arguments&... arguments) {
    const auto found = All().find(group);
    return found == All().end() ? nullptr : found->second(arguments...);
  }

 private:
  using Maker = std::unique_ptr<KernelGroup> (*)(const Arguments&... arguments);
  static std::map<std::type_index, Maker>& All() {
    static std::map<std::type_index, Maker> all;
    return all;
  }
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_NN_KERNEL_IMPLS_H_
// SPDX-License-Identifier: Apache-2.0

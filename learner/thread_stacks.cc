// Raises small thread stacks to what a process with LibTorch needs.
//
// The HTTP library under /metrics starts its threads on 100 KiB stacks. glibc takes thread-local storage of all loaded
// libraries from that stack, and LibTorch's alone is larger: pthread_create then fails with EINVAL and /metrics cannot
// be served. The library offers no setting for it, so the executable's own definition stands in front of glibc's and
// asks for at least a megabyte (of address space; pages count when they are touched).
#include <dlfcn.h>
#include <pthread.h>

#include <algorithm>
#include <cstddef>

extern "C" __attribute__((visibility("default"))) int pthread_attr_setstacksize(pthread_attr_t* attributes,
                                                                                size_t bytes) noexcept {
  using Function = int (*)(pthread_attr_t*, size_t);
  static const Function original = reinterpret_cast<Function>(::dlsym(RTLD_NEXT, "pthread_attr_setstacksize"));
  constexpr size_t kLeast = size_t{1} << 20;
  return original(attributes, std::max(bytes, kLeast));
}

// Counts this thread's heap allocations from any source (new, malloc, Eigen, MuJoCo). Replaces the C library's
// functions for the whole executable: include it in exactly one source file. Under AddressSanitizer, which replaces
// them too, nothing is counted and kCountsAllocations is false.
#ifndef DATACOM_TESTS_TESTING_COUNTING_ALLOCATOR_H_
#define DATACOM_TESTS_TESTING_COUNTING_ALLOCATOR_H_

#include <cerrno>
#include <cstddef>
#include <cstdint>

namespace datacom::testing {

inline thread_local uint64_t thread_allocations = 0;
#ifdef DATACOM_SANITIZED
inline constexpr bool kCountsAllocations = false;
#else
inline constexpr bool kCountsAllocations = true;
#endif

// The number of allocations by `work` on this thread.
template <typename Work>
uint64_t CountAllocations(Work work) {
  const uint64_t before = thread_allocations;
  work();
  return thread_allocations - before;
}

}  // namespace datacom::testing

#ifndef DATACOM_SANITIZED
extern "C" {
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* old, size_t size);
void* __libc_memalign(size_t alignment, size_t size);

void* malloc(size_t size) {
  ++datacom::testing::thread_allocations;
  return __libc_malloc(size);
}
void* calloc(size_t count, size_t size) {
  ++datacom::testing::thread_allocations;
  return __libc_calloc(count, size);
}
void* realloc(void* old, size_t size) {
  ++datacom::testing::thread_allocations;
  return __libc_realloc(old, size);
}
void* aligned_alloc(size_t alignment, size_t size) {
  ++datacom::testing::thread_allocations;
  return __libc_memalign(alignment, size);
}
int posix_memalign(void** out, size_t alignment, size_t size) {
  ++datacom::testing::thread_allocations;
  *out = __libc_memalign(alignment, size);
  return *out == nullptr ? ENOMEM : 0;
}
}
#endif

#endif  // DATACOM_TESTS_TESTING_COUNTING_ALLOCATOR_H_
// SPDX-License-Identifier: Apache-2.0

// Values as their little-endian bytes, one after the other, in a string. Pure functions; thread-safe.
#ifndef DATACOM_COMMON_BASE_BYTES_H_
#define DATACOM_COMMON_BASE_BYTES_H_

#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>

#include "absl/strings/string_view.h"

namespace datacom {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "values are copied byte by byte");

// Valid as long as the value.
template <typename T>
absl::string_view RawBytes(const T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

template <typename T>
void PutValue(const T& value, std::string* out) {
  out->append(RawBytes(value).data(), sizeof value);
}

// Removes a value from the front; returns false when too few bytes are left.
template <typename T>
bool TakeValue(absl::string_view* in, T* value) {
  static_assert(std::is_trivially_copyable_v<T>);
  if (in->size() < sizeof *value) return false;
  std::memcpy(value, in->data(), sizeof *value);
  in->remove_prefix(sizeof *value);
  return true;
}

// A byte sequence with its length (u64) in front.
inline void PutSized(absl::string_view bytes, std::string* out) {
  PutValue<uint64_t>(bytes.size(), out);
  out->append(bytes.data(), bytes.size());
}

inline bool TakeSized(absl::string_view* in, absl::string_view* bytes) {
  uint64_t size = 0;
  if (!TakeValue(in, &size) || in->size() < size) return false;
  *bytes = in->substr(0, size);
  in->remove_prefix(size);
  return true;
}

}  // namespace datacom

#endif  // DATACOM_COMMON_BASE_BYTES_H_
// SPDX-License-Identifier: Apache-2.0

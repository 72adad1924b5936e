// Compresses with gzip's format. Pure functions; thread-safe.
#ifndef DATACOM_COMMON_CONFIG_GZIP_H_
#define DATACOM_COMMON_CONFIG_GZIP_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace datacom {

std::string Gzip(absl::string_view content);
// DATA_LOSS if it is not one whole piece of compressed content, or has more than `most` bytes.
absl::StatusOr<std::string> Gunzip(absl::string_view compressed, size_t most);

}  // namespace datacom

#endif  // DATACOM_COMMON_CONFIG_GZIP_H_
// SPDX-License-Identifier: Apache-2.0

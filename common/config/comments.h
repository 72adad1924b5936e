// The .proto files that users write, with their comments: a google.protobuf.FileDescriptorSet, embedded at build time.
#ifndef DATACOM_COMMON_CONFIG_COMMENTS_H_
#define DATACOM_COMMON_CONFIG_COMMENTS_H_

#include <cstddef>

namespace datacom {

extern const unsigned char kCommentedFiles[];
extern const size_t kCommentedFilesSize;

}  // namespace datacom

#endif  // DATACOM_COMMON_CONFIG_COMMENTS_H_
// SPDX-License-Identifier: Apache-2.0

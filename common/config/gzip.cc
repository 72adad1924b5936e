#include "common/config/gzip.h"

#include <algorithm>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/bytes.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/gzip_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"

namespace datacom {

std::string Gzip(absl::string_view content) {
  std::string out;
  google::protobuf::io::StringOutputStream end(&out);
  google::protobuf::io::GzipOutputStream stream(&end);
  google::protobuf::io::CodedOutputStream(&stream).WriteRaw(content.data(), static_cast<int>(content.size()));
  stream.Close();
  return out;
}

absl::StatusOr<std::string> Gunzip(absl::string_view compressed, size_t most) {
  if (compressed.size() > INT32_MAX)  // the streams count with 32 bits
    return absl::DataLossError(absl::StrCat("it has ", compressed.size(), " bytes before it is decompressed"));
  google::protobuf::io::ArrayInputStream begin(compressed.data(), static_cast<int>(compressed.size()));
  google::protobuf::io::GzipInputStream stream(&begin);
  std::string content;
  const void* block = nullptr;
  int size = 0;
  while (stream.Next(&block, &size)) {
    if (content.size() + static_cast<size_t>(size) > most) {
      return absl::DataLossError(absl::StrCat("it has more than ", most, " bytes"));
    }
    content.append(static_cast<const char*>(block), size);
  }
  if (stream.ZlibErrorCode() < 0) return absl::DataLossError("it cannot be decompressed");
  // The stream of a file that is cut short ends without an error. A whole file ends with the size of its content.
  uint32_t stated = 0;
  absl::string_view end = compressed.substr(compressed.size() - std::min(compressed.size(), sizeof stated));
  if (!TakeValue(&end, &stated) || stated != static_cast<uint32_t>(content.size())) {
    return absl::DataLossError("it is cut short, or has something behind its end");
  }
  return content;
}

}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0

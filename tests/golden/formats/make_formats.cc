// usage: make_formats FOLDER
//
// Writes the golden files of this build's formats into a new folder (docs/formats.md). Run from the repository's root.
#include <cstdio>
#include <filesystem>

#include "common/base/files.h"
#include "common/base/status.h"
#include "tests/golden/formats/conversation.h"
#include "tests/golden/formats/format_files.h"
#include "tests/testing/temporary_folder.h"

namespace {

absl::Status Make(const std::string& folder) {
  RETURN_IF_ERROR(datacom::golden::WriteFormats(folder));
  RETURN_IF_ERROR(datacom::golden::Pack(folder));
  const datacom::testing::TemporaryFolder state;
  datacom::golden::Peers peers(state.path());
  ASSIGN_OR_RETURN(const auto messages, peers.Replay(datacom::golden::Script()));
  return datacom::WriteFileAtomically(folder + "/conversation", datacom::golden::Encode(messages));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: make_formats FOLDER\n");
    return 2;
  }
  const absl::Status status = Make(argv[1]);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
// SPDX-License-Identifier: Apache-2.0

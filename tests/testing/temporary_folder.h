// A new folder for a test, which is removed with all that it holds. Blocks on the disk; not thread-safe.
#ifndef DATACOM_TESTS_TESTING_TEMPORARY_FOLDER_H_
#define DATACOM_TESTS_TESTING_TEMPORARY_FOLDER_H_

#include <stdlib.h>

#include <filesystem>
#include <stdexcept>
#include <string>
#include <system_error>

namespace datacom::testing {

class TemporaryFolder {
 public:
  explicit TemporaryFolder(const std::filesystem::path& parent = std::filesystem::temp_directory_path())
      : path_((parent / "datacom-test-XXXXXX").string()) {
    if (::mkdtemp(path_.data()) == nullptr) throw std::runtime_error("no folder can be made in " + parent.string());
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// A parent for files that are replaced thousands of times: in memory where the machine has such a folder.
inline std::filesystem::path ParentInMemory() {
  const std::filesystem::path memory = "/dev/shm";
  return std::filesystem::is_directory(memory) ? memory : std::filesystem::temp_directory_path();
}

}  // namespace datacom::testing

#endif  // DATACOM_TESTS_TESTING_TEMPORARY_FOLDER_H_
// SPDX-License-Identifier: Apache-2.0

#include "tests/fuzz/fuzz_target.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <map>
#include <string>

#include "common/base/bytes.h"
#include "common/base/framed_file.h"
#include "google/protobuf/stubs/logging.h"
#include "spdlog/spdlog.h"
#include "tests/testing/temporary_folder.h"

namespace datacom::fuzz {
namespace {

std::map<std::string, const Target*>& Targets() {
  static std::map<std::string, const Target*> targets;
  return targets;
}
const Target* chosen = nullptr;

}  // namespace

Target::Target(const char* name, void (*run)(absl::string_view input), std::vector<Seed> (*seeds)())
    : name(name), run(run), seeds(seeds) {
  Targets()[name] = this;
}

bool Choose(const std::string& name) {
  const auto found = Targets().find(name);
  if (found != Targets().end()) chosen = found->second;
  return found != Targets().end();
}

const Target& Chosen() {
  MUST(chosen != nullptr);
  return *chosen;
}

void Fail(const char* file, int line, const std::string& what) {
  std::fprintf(stderr, "%s:%d: %s\n", file, line, what.c_str());
  std::abort();
}

void MustRefuse(const absl::Status& status) {
  MUST(!status.ok());
  MUST_BECAUSE(!status.message().empty(), status.ToString());
}

void MustAccept(const absl::Status& status) { MUST_BECAUSE(status.ok(), status.ToString()); }

uint8_t Input::Byte() {
  uint8_t value = 0;
  TakeValue(&rest_, &value);
  return value;
}

uint16_t Input::Short() {
  uint16_t value = 0;
  TakeValue(&rest_, &value);
  return value;
}

absl::string_view Input::Bytes(size_t count) {
  const absl::string_view bytes = rest_.substr(0, count);
  rest_.remove_prefix(bytes.size());
  return bytes;
}

std::string Short(uint16_t value) {
  std::string bytes;
  PutValue(value, &bytes);
  return bytes;
}

std::string Text(absl::string_view bytes) {
  MUST(bytes.size() <= UINT16_MAX);
  return Short(static_cast<uint16_t>(bytes.size())).append(bytes.data(), bytes.size());
}

const std::string& Folder() {
  static const testing::TemporaryFolder folder(testing::ParentInMemory());
  return folder.path();
}

void WriteBytes(const std::string& path, absl::string_view bytes) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  MUST_BECAUSE(fd >= 0, path);
  MUST_BECAUSE(::write(fd, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()), path);
  ::close(fd);
}

std::string ReadBytes(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  MUST_BECAUSE(fd >= 0, path);
  std::string bytes(static_cast<size_t>(::lseek(fd, 0, SEEK_END)), '\0');
  MUST_BECAUSE(::pread(fd, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()), path);
  ::close(fd);
  return bytes;
}

std::string FrameLike(absl::string_view sample, absl::string_view payload) {
  FrameHeader header;
  MUST(sample.size() >= sizeof header);
  std::memcpy(&header, sample.data(), sizeof header);
  FileFormat format;
  format.magic = sample.substr(0, sizeof header.magic);
  format.version = header.version;
  return Frame(format, payload);
}

}  // namespace datacom::fuzz

// With libFuzzer the name of the program, a symbolic link, chooses the target.
extern "C" int LLVMFuzzerInitialize(int*, char*** argv) {
  datacom::fuzz::Choose(std::filesystem::path((*argv)[0]).filename().string());
  spdlog::set_level(spdlog::level::off);
  google::protobuf::SetLogHandler(nullptr);
  datacom::fuzz::Folder();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    datacom::fuzz::Chosen().run(absl::string_view(reinterpret_cast<const char*>(data), size));
  } catch (const std::exception& exception) {
    datacom::fuzz::Fail(__FILE__, __LINE__, std::string("an exception escaped: ") + exception.what());
  }
  return 0;
}
// SPDX-License-Identifier: Apache-2.0

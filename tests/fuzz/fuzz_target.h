// The parts of a fuzz target. A target is one source file with two functions and a Target that registers them: Run
// gives the code under test one input, and Seeds makes the inputs to begin with. All targets are one program. The
// preset `fuzz` links it with libFuzzer, every other preset with driver.cc, which ctest runs.
//
// Run must not depend on earlier inputs, on time or on random numbers. It ends the process (MUST) when the code under
// test breaks a promise. Not thread-safe: one input at a time. Files lie in memory (/dev/shm) where there is such a
// folder.
#ifndef DATACOM_TESTS_FUZZ_FUZZ_TARGET_H_
#define DATACOM_TESTS_FUZZ_FUZZ_TARGET_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace datacom::fuzz {

struct Seed {
  std::string name;
  std::string input;
};

// Registers a target under a name; a static object of the target's file.
struct Target {
  Target(const char* name, void (*run)(absl::string_view input), std::vector<Seed> (*seeds)());
  const char* name;
  void (*run)(absl::string_view input);
  std::vector<Seed> (*seeds)();
};
// Chooses the target that the program fuzzes from now on; false when there is none of that name.
bool Choose(const std::string& name);
const Target& Chosen();

// Writes `what` to stderr and aborts; libFuzzer and driver.cc then keep the input.
[[noreturn]] void Fail(const char* file, int line, const std::string& what);
#define MUST(condition) MUST_BECAUSE(condition, "")
#define MUST_BECAUSE(condition, why)                                                                           \
  do {                                                                                                         \
    if (!(condition)) ::datacom::fuzz::Fail(__FILE__, __LINE__, std::string(#condition " is false ") + (why)); \
  } while (false)

// A refusal is not OK and says why.
void MustRefuse(const absl::Status& status);
void MustAccept(const absl::Status& status);

// Reads an input from left to right. After its end every number is 0 and every text is empty.
class Input {
 public:
  explicit Input(absl::string_view bytes) : rest_(bytes) {}
  bool empty() const { return rest_.empty(); }
  uint8_t Byte();
  uint16_t Short();                                    // little-endian
  absl::string_view Bytes(size_t count);               // at most what is left
  absl::string_view Text() { return Bytes(Short()); }  // its length in front
  absl::string_view Rest() { return Bytes(rest_.size()); }

 private:
  absl::string_view rest_;
};

// The form that Input::Text reads.
std::string Text(absl::string_view bytes);
// A number's little-endian bytes, for seeds.
std::string Short(uint16_t value);

// An empty folder of this process. It is removed at exit.
const std::string& Folder();
void WriteBytes(const std::string& path, absl::string_view bytes);  // without waiting for the disk
std::string ReadBytes(const std::string& path);

// A framed file (common/base/framed_file.h) of the kind and version of `sample` around `payload`, with its checksum.
std::string FrameLike(absl::string_view sample, absl::string_view payload);

}  // namespace datacom::fuzz

#endif  // DATACOM_TESTS_FUZZ_FUZZ_TARGET_H_
// SPDX-License-Identifier: Apache-2.0

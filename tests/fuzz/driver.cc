// The main program of the fuzz targets without libFuzzer: runs a target's seeds, the files of its corpus, and random
// mutations of both. The same arguments give the same inputs; the time limit only ends them earlier, after at
// least kLeastMutations.
//
//   fuzz_targets TARGET CORPUS_FOLDER [MUTATIONS [SECONDS]]
//   fuzz_targets TARGET --write-corpus CORPUS_FOLDER            writes the target's seeds
//
// When an input fails, it is written to the file fuzz-failure-TARGET in the working folder.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "tests/fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv);
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace datacom::fuzz {
namespace {

namespace fs = std::filesystem;

constexpr size_t kLongest = 1 << 14;  // bytes of an input

constexpr long kLeastMutations = 200;  // however slow the machine is

std::string current;       // the input that runs
std::string failure_path;  // set before a signal can come

void KeepInput(int signal) {
  const int fd = ::open(failure_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd >= 0 && ::write(fd, current.data(), current.size()) >= 0) ::close(fd);
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

void RunOne(std::string input) {
  current = std::move(input);
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(current.data()), current.size());
}

class Mutator {
 public:
  explicit Mutator(std::vector<std::string> inputs) : inputs_(std::move(inputs)) {}

  std::string Next() {
    std::string input = inputs_[Below(inputs_.size())];
    for (size_t edits = 1 + Below(5); edits > 0; --edits) Edit(&input);
    input.resize(std::min(input.size(), kLongest));
    return input;
  }

 private:
  size_t Below(size_t bound) { return random_() % bound; }

  void Edit(std::string* input) {
    static const std::vector<std::string> kNumbers = {std::string(1, '\0'),
                                                      std::string(4, '\0'),
                                                      std::string(8, '\0'),
                                                      "\xff",
                                                      std::string(4, '\xff'),
                                                      std::string(8, '\xff'),
                                                      "\x01",
                                                      "\x80",
                                                      std::string("\0\0\0\x80", 4),
                                                      "\xff\xff\xff\x7f"};
    const size_t at = Below(input->size() + 1);
    switch (Below(6)) {
      case 0:  // one bit
        if (at < input->size()) (*input)[at] = static_cast<char>((*input)[at] ^ (1 << Below(8)));
        return;
      case 1:  // one byte
        if (at < input->size()) (*input)[at] = static_cast<char>(Below(256));
        return;
      case 2: {  // a number of interest
        const std::string& number = kNumbers[Below(kNumbers.size())];
        input->replace(at, number.size(), number);
        return;
      }
      case 3:
        input->erase(at, 1 + Below(16));
        return;
      case 4:
        input->insert(at, 1 + Below(16), static_cast<char>(Below(256)));
        return;
      default: {  // a part of another input
        const std::string& other = inputs_[Below(inputs_.size())];
        const size_t from = Below(other.size() + 1);
        input->insert(at, other, from, Below(64));
        return;
      }
    }
  }

  const std::vector<std::string> inputs_;
  std::mt19937_64 random_{20240229};
};

void WriteCorpus(const std::string& folder) {
  fs::create_directories(folder);
  for (const Seed& seed : Chosen().seeds()) WriteBytes(folder + "/" + seed.name, seed.input);
}

std::vector<std::string> Beginnings(const std::string& folder) {
  std::vector<std::string> inputs = {""}, paths;
  for (const Seed& seed : Chosen().seeds()) inputs.push_back(seed.input);
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) paths.push_back(entry.path().string());
  std::sort(paths.begin(), paths.end());
  for (const std::string& path : paths) inputs.push_back(ReadBytes(path));
  return inputs;
}

int Main(std::vector<std::string> arguments) {
  if (arguments.size() < 2 || !Choose(arguments[0])) {
    std::fprintf(stderr, "usage: TARGET CORPUS_FOLDER [MUTATIONS [SECONDS]] | TARGET --write-corpus CORPUS_FOLDER\n");
    return 2;
  }
  failure_path = "fuzz-failure-" + arguments[0];
  arguments.erase(arguments.begin());
  if (arguments[0] == "--write-corpus" && arguments.size() == 2) {
    WriteCorpus(arguments[1]);
    return 0;
  }
  for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL}) std::signal(signal, KeepInput);
  const std::vector<std::string> inputs = Beginnings(arguments[0]);
  for (const std::string& input : inputs) RunOne(input);
  const long mutations = arguments.size() > 1 ? std::atol(arguments[1].c_str()) : 0;
  const double seconds = arguments.size() > 2 ? std::atof(arguments[2].c_str()) : 5;
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  Mutator mutator(inputs);
  long run = 0;
  const auto continues = [&] { return run < kLeastMutations || std::chrono::steady_clock::now() < end; };
  for (; run < mutations && continues(); ++run) RunOne(mutator.Next());
  std::printf("%zu inputs and %ld mutations\n", inputs.size(), run);
  return 0;
}

}  // namespace
}  // namespace datacom::fuzz

int main(int argc, char** argv) {
  LLVMFuzzerInitialize(&argc, &argv);
  return datacom::fuzz::Main({argv + 1, argv + argc});
}
// SPDX-License-Identifier: Apache-2.0

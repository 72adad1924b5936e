#include "common/base/machine.h"

#include <fstream>

#include "absl/strings/match.h"

namespace datacom {

std::string ProcessorName() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (absl::StartsWith(line, "model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown";
}

}  // namespace datacom

#include "learner/build_text.h"

#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/machine.h"
#include "common/base/version.h"
#include "google/protobuf/stubs/common.h"
#include "grpcpp/grpcpp.h"
#include "learner/algorithms/algorithm.h"
#include "spdlog/version.h"

namespace datacom::learner {
namespace {

constexpr absl::string_view kSimulators = "simulators ";

// The simulators of the run, oldest first: those in the text before, and this build's.
std::string Simulators(const std::string& before) {
  if (before.empty()) return Simulator();
  std::string earlier = "not recorded";
  for (const absl::string_view line : absl::StrSplit(before, '\n')) {
    if (absl::StartsWith(line, kSimulators)) earlier = std::string(line.substr(kSimulators.size()));
  }
  return absl::EndsWith(earlier, Simulator()) ? earlier : absl::StrCat(earlier, ", ", Simulator());
}

}  // namespace

std::string BuildText(const std::string& before) {
  const std::string torch = TorchVersion();
  return absl::StrCat(
      "version ", Version(), "\nrevision ", Revision(), "\nprotocol ", kProtocolVersion, "\ngrpc ", grpc::Version(),
      "\nprotobuf ", google::protobuf::internal::VersionString(GOOGLE_PROTOBUF_VERSION), "\nlibtorch ",
      torch.empty() ? "not loaded" : torch, "\n", kSimulators, Simulators(before), "\nspdlog ", SPDLOG_VER_MAJOR, ".",
      SPDLOG_VER_MINOR, ".", SPDLOG_VER_PATCH, "\ncompiler ", __VERSION__, "\narithmetic ", CpuArithmetic(),
      "\nmachine ", ProcessorName(), ", ", std::thread::hardware_concurrency(), " processors\nstarted ",
      absl::FormatTime("%Y-%m-%d", absl::Now(), absl::UTCTimeZone()), "\n");
}

}  // namespace datacom::learner

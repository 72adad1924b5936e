#include "learner/build_text.h"

#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/machine.h"
#include "common/base/version.h"
#include "google/protobuf/stubs/common.h"
#include "grpcpp/grpcpp.h"
#include "learner/algorithms/algorithm.h"
#include "spdlog/version.h"

namespace datacom::learner {

std::string BuildText() {
  const std::string torch = TorchVersion();
  return absl::StrCat("version ", Version(), "\nrevision ", Revision(), "\nprotocol ", kProtocolVersion, "\ngrpc ",
                      grpc::Version(), "\nprotobuf ",
                      google::protobuf::internal::VersionString(GOOGLE_PROTOBUF_VERSION), "\nlibtorch ",
                      torch.empty() ? "not loaded" : torch, "\nspdlog ", SPDLOG_VER_MAJOR, ".", SPDLOG_VER_MINOR, ".",
                      SPDLOG_VER_PATCH, "\ncompiler ", __VERSION__, "\narithmetic ", CpuArithmetic(), "\nmachine ",
                      ProcessorName(), ", ", std::thread::hardware_concurrency(), " processors\nstarted ",
                      absl::FormatTime("%Y-%m-%d", absl::Now(), absl::UTCTimeZone()), "\n");
}

}  // namespace datacom::learner

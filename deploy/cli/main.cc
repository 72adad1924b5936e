// The `datacom` command.
#include <cstdio>
#include <string>

#include "common/base/standard_output.h"
#include "common/base/status.h"
#include "common/base/version.h"
#include "deploy/cli/verbs.h"

int main(int argc, char** argv) {
  std::string problem;
  if (!datacom::CheckProcessor(&problem)) {
    std::fprintf(stderr, "datacom: %s\n", problem.c_str());
    return datacom::kExitFailure;
  }
  return datacom::RunWatched([&] { return datacom::cli::RunCommand(argc, argv); });
}
// SPDX-License-Identifier: Apache-2.0

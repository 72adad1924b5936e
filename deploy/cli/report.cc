// datacom report: one self-contained page over one or several runs.
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "deploy/cli/map.h"
#include "deploy/cli/verbs.h"
#include "deploy/report/report.h"

namespace datacom::cli {

void AddReport(CLI::App* app, int* exit_code) {
  auto folders = std::make_shared<std::vector<std::string>>();
  auto out = std::make_shared<std::string>();
  CLI::App* verb = app->add_subcommand(
      "report",
      "Writes a self-contained page: learning curves with 95 % bands, safety, throughput, learned constraint");
  verb->add_option("run_dirs", *folders, "run folders; several are compared")->required();
  verb->add_option("--out", *out, "the page")->required();
  verb->footer("Example: datacom report runs/datacom runs/sac --out compare.html");
  verb->callback([folders, out, exit_code] {
    const std::filesystem::path folder = std::filesystem::absolute(*out).parent_path();
    absl::Status status =
        absl::InvalidArgumentError(absl::StrCat("--out ", *out, ": there is no folder ", folder.string()));
    std::error_code error;
    if (std::filesystem::is_directory(folder, error)) status = report::WriteReport(*folders, *out, &MakeMap);
    if (status.ok()) std::printf("report: %s\n", out->c_str());
    *exit_code = Finish(status);
  });
}

}  // namespace datacom::cli

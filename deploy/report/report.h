// The report of one or several runs: one self-contained HTML page, and the page that follows running ones.
//
// Reads experiment.textproto, build.txt, progress.csv, episodes.csv and the film (film.html, .mp4, .webp or .png, at
// most 8 MB) of each run folder, and baselines. The page itself computes its verdicts from the curves (verdict.js).
// The plotting library (Chart.js) is read from its Debian package and inlined together with its licence. Apart from
// reading files and calling the map maker, the functions are pure; thread-safe.
#ifndef DATACOM_DEPLOY_REPORT_REPORT_H_
#define DATACOM_DEPLOY_REPORT_REPORT_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "deploy/report/groups.h"
#include "nlohmann/json.hpp"

namespace datacom::report {

// The quantity of a curve: a column of progress.csv, or a value derived from the records (MemberCurve).
struct Quantity {
  std::string column;
  std::string title;
  const char* group;  // section of the page
  bool summary;       // has a column in the summary table
  bool from_zero;     // never negative: the axis begins at 0
  bool logarithmic;   // axis
};
// The quantities of the runs' named costs come last.
std::vector<Quantity> Quantities(const std::vector<Run>& runs);

// Returns the feasibility map of a run folder as JSON text (what `datacom render --map --out FILE.json` writes).
using MapMaker = std::function<absl::StatusOr<std::string>(const std::string& run_dir)>;

struct ReportOptions {
  Shown shown = Shown::kLast;               // the epoch that tables show; curves show all
  std::vector<std::string> baselines = {};  // files that `datacom eval --csv` wrote
  bool each_member = false;                 // a curve for each member instead of each group's mean
  size_t points = 0;  // at most about so many points of all curves together, evenly; 0: all points
};
// All data of the page: the runs of the folders (ReadRuns) and their groups. Calls `map`, if there is one, for every
// run whose algorithm learns a constraint; where that fails, the page shows the reason. Without `map` there are no
// pictures at all.
absl::StatusOr<nlohmann::json> ReportData(const std::vector<std::string>& folders, const MapMaker& map,
                                          const ReportOptions& options = {});

struct Plotting {
  std::string script;
  std::string licence;
};
// Reads $DATACOM_CHART_JS or the package's file; NOT_FOUND naming the package to install.
absl::StatusOr<Plotting> ReadPlotting();

std::string RenderPage(const nlohmann::json& data, const Plotting& plotting);

// The page of `datacom watch`: it draws a report from server-sent events instead of embedded data, and shows how far
// each run is and who waits for whom.
struct LivePage {
  std::string html;  // loads nothing; opens the event stream "events" next to it
  // For the header Content-Security-Policy: allows the page's own scripts and style by their hashes, the stream, and
  // nothing else.
  std::string policy;
};
LivePage RenderLivePage(const Plotting& plotting);

// ReportData, ReadPlotting, RenderPage, then replaces `path` atomically. A path that ends with .svg gets only the
// figure (figure.h).
absl::Status WriteReport(const std::vector<std::string>& folders, const std::string& path, const MapMaker& map,
                         const ReportOptions& options = {});

}  // namespace datacom::report

#endif  // DATACOM_DEPLOY_REPORT_REPORT_H_
// SPDX-License-Identifier: Apache-2.0

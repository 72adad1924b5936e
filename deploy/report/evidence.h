// One page about all results of a folder such as deploy/results: curves, tables and figures of every entry in its
// entries.csv. Self-contained HTML without a script: figures are SVG. Thread-safe; blocks on the disk.
#ifndef DATACOM_DEPLOY_REPORT_EVIDENCE_H_
#define DATACOM_DEPLOY_REPORT_EVIDENCE_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "deploy/report/figure.h"

namespace datacom::report {

// Writes frames of an episode of a result's policy to a PNG. `member` is the run's member.
using FilmMaker = std::function<absl::Status(const std::string& folder, int member, const std::string& png)>;

struct EvidenceOptions {
  Centre centre = Centre::kMean;  // of the curves
  std::string figures;            // a folder for TASK.svg, the curves of each task; empty: none
  FilmMaker film;                 // null: no pictures of episodes
};

// Reads entries.csv and the records of each entry in `results`; writes the page to `path`. An entry without records is
// listed as missing. NOT_FOUND without entries.csv or without any records; the errors of ReadRuns.
absl::Status WriteEvidence(const std::string& results, const std::string& path, const EvidenceOptions& options);

}  // namespace datacom::report

#endif  // DATACOM_DEPLOY_REPORT_EVIDENCE_H_
// SPDX-License-Identifier: Apache-2.0

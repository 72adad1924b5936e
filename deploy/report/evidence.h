// One page about all results of a folder such as deploy/results: curves, tables and figures of every entry in its
// entries.csv. Self-contained HTML without a script: figures are SVG. Thread-safe; blocks on the disk.
#ifndef DATACOM_DEPLOY_REPORT_EVIDENCE_H_
#define DATACOM_DEPLOY_REPORT_EVIDENCE_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "deploy/report/figure.h"

namespace datacom::report {

// Writes a picture about the result in a folder to a PNG. `number` says of what. NOT_FOUND when the result keeps no
// such thing.
using PictureMaker = std::function<absl::Status(const std::string& folder, uint64_t number, const std::string& png)>;

struct EvidenceOptions {
  Centre centre = Centre::kMean;  // of the curves
  std::string figures;            // a folder for TASK.svg, the curves of each task; empty: none
  // Null: no such pictures.
  PictureMaker film;       // frames of an episode of a member's last policy
  PictureMaker map;        // a member's learned constraint at the end; asked only of algorithms with one
  PictureMaker violation;  // frames of an episode of training up to a violation, by id
};

// Reads entries.csv and the records of each entry in `results`; writes the page to `path`. An entry without records is
// listed as missing. NOT_FOUND without entries.csv or without any records; the errors of ReadRuns.
absl::Status WriteEvidence(const std::string& results, const std::string& path, const EvidenceOptions& options);

}  // namespace datacom::report

#endif  // DATACOM_DEPLOY_REPORT_EVIDENCE_H_
// SPDX-License-Identifier: Apache-2.0

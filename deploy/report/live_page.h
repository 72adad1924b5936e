// The page of `datacom watch`: it draws a report from server-sent events instead of embedded data, and shows how far
// each run is and who waits for whom. Pure; thread-safe.
#ifndef DATACOM_DEPLOY_REPORT_LIVE_PAGE_H_
#define DATACOM_DEPLOY_REPORT_LIVE_PAGE_H_

#include <string>

#include "deploy/report/report.h"

namespace datacom::report {

struct LivePage {
  std::string html;  // loads nothing; opens the event stream "events" next to it
  // For the header Content-Security-Policy: allows the page's own scripts and style by their hashes, the stream, and
  // nothing else.
  std::string policy;
};
LivePage RenderLivePage(const Plotting& plotting);

}  // namespace datacom::report

#endif  // DATACOM_DEPLOY_REPORT_LIVE_PAGE_H_
// SPDX-License-Identifier: Apache-2.0

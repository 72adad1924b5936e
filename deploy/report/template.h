// The parts of the report page and of the live page, embedded at build time from the files of this folder.
#ifndef DATACOM_DEPLOY_REPORT_TEMPLATE_H_
#define DATACOM_DEPLOY_REPORT_TEMPLATE_H_

namespace datacom::report {

extern const char
    kPageTemplate[];  // with {{STYLE}}, {{DATA}}, {{PLOTTING}}, {{LICENCE}}, {{MAPS}}, {{VERDICT}}, {{SCRIPT}}
extern const char kStyle[];
extern const char kMapScript[];
extern const char kVerdictScript[];
extern const char kScript[];
extern const char kLiveTemplate[];  // with {{STYLE}}, {{PLOTTING}}, {{LICENCE}}, {{VERDICT}}, {{SCRIPT}}, {{LIVE}}
extern const char kLiveScript[];

}  // namespace datacom::report

#endif  // DATACOM_DEPLOY_REPORT_TEMPLATE_H_
// SPDX-License-Identifier: Apache-2.0

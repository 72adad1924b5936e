// The parts of the report page, embedded at build time from page.html, style.css and page.js of this folder.
#ifndef DATACOM_DEPLOY_REPORT_TEMPLATE_H_
#define DATACOM_DEPLOY_REPORT_TEMPLATE_H_

namespace datacom::report {

extern const char kPageTemplate[];  // with {{STYLE}}, {{DATA}}, {{PLOTTING}}, {{LICENCE}}, {{SCRIPT}}
extern const char kStyle[];
extern const char kScript[];

}  // namespace datacom::report

#endif  // DATACOM_DEPLOY_REPORT_TEMPLATE_H_

// The pages of datacom-tools, embedded at build time from the files of this folder.
#ifndef DATACOM_DEPLOY_TOOLS_PAGE_PAGE_H_
#define DATACOM_DEPLOY_TOOLS_PAGE_PAGE_H_

namespace datacom::tools {

extern const char kDrawScript[];  // draws what scene_json.h describes
extern const char kDemoPage[], kDemoScript[], kDemoStyle[];
extern const char kFilmPage[];  // with {{TITLE}}, {{DATA}}, {{DRAW}} and {{FILM}}
extern const char kFilmScript[];

}  // namespace datacom::tools

#endif  // DATACOM_DEPLOY_TOOLS_PAGE_PAGE_H_
// SPDX-License-Identifier: Apache-2.0

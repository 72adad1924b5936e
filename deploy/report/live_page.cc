#include "deploy/report/live_page.h"

#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/records/sha256.h"
#include "deploy/report/template.h"

namespace datacom::report {
namespace {

// " 'sha256-...'" for each element `name` of the page.
std::string Hashes(const std::string& html, const std::string& name) {
  const std::string begin = absl::StrCat("<", name, ">"), end = absl::StrCat("</", name, ">");
  std::string hashes;
  for (size_t at = html.find(begin); at != std::string::npos; at = html.find(begin, at)) {
    at += begin.size();
    const std::string hash = Sha256Hex(html.substr(at, html.find(end, at) - at));
    absl::StrAppend(&hashes, " 'sha256-", absl::Base64Escape(absl::HexStringToBytes(hash)), "'");
    at = html.find(end, at);
  }
  return hashes;
}

}  // namespace

LivePage RenderLivePage(const Plotting& plotting) {
  LivePage page;
  page.html = absl::StrReplaceAll(kLiveTemplate, {{"{{STYLE}}", kStyle},
                                                  {"{{PLOTTING}}", ScriptText(plotting)},
                                                  {"{{LICENCE}}", LicenceText(plotting)},
                                                  {"{{VERDICT}}", kVerdictScript},
                                                  {"{{SCRIPT}}", kScript},
                                                  {"{{LIVE}}", kLiveScript}});
  page.policy = absl::StrCat(
      "default-src 'none'; script-src", Hashes(page.html, "script"), "; style-src", Hashes(page.html, "style"),
      "; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; ", "frame-ancestors 'none'");
  return page;
}

}  // namespace datacom::report
// SPDX-License-Identifier: Apache-2.0

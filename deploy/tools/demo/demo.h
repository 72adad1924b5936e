// `datacom demo`: a page on this machine that plays the shipped policies side by side, with a switch for the shield.
#ifndef DATACOM_DEPLOY_TOOLS_DEMO_DEMO_H_
#define DATACOM_DEPLOY_TOOLS_DEMO_DEMO_H_

#include <cstdint>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "common/metrics/http_server.h"

namespace datacom::tools {

// The page and what it asks for. Agents are opened when they are first asked for. Not thread-safe; an answer takes some
// tenths of a second.
//
//   /            the page                          /draw.js, /demo.js, /demo.css   its parts
//   /scenes      [{"name", "title", "agents": [{"label", "source"}]}]
//   /agent?scene=I&agent=J                         Agent::About
//   /episode?scene=I&agent=J&seed=S&changes=C      Agent::Play; C is "step:on:delta,..." or empty
//   /map?scene=I&agent=J                           Agent::Map; null for an agent without a learned constraint
//
// Anything else, and a number that is out of range, has no answer. An agent that fails gives {"error"}.
class DemoSite {
 public:
  DemoSite();
  ~DemoSite();
  std::optional<HttpServer::Answer> Get(const std::string& target);

 private:
  struct Agents;
  const std::unique_ptr<Agents> agents_;
};

struct DemoCommand {
  uint16_t port = 0;    // 0: a free one
  bool browser = true;  // open one, where there is a display
};
// Prints the page's address and serves it until the process must stop. UNAVAILABLE if the port is taken.
absl::Status RunDemoCommand(const DemoCommand& command, std::ostream* out);

}  // namespace datacom::tools

#endif  // DATACOM_DEPLOY_TOOLS_DEMO_DEMO_H_
// SPDX-License-Identifier: Apache-2.0

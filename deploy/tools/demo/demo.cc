#include "deploy/tools/demo/demo.h"

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <map>
#include <memory>
#include <ostream>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/spawn.h"
#include "common/base/status.h"
#include "common/base/stop.h"
#include "common/records/message_json.h"
#include "deploy/tools/demo/agent.h"
#include "deploy/tools/page/page.h"

namespace datacom::tools {
namespace {

using nlohmann::json;

struct Player {
  const char *label, *source;
};
// What the page offers. The first two agents of a scene are shown side by side; a single one without its shield and
// with it.
struct Scene {
  const char *name, *title;
  std::vector<Player> players;
};
const std::vector<Scene>& Scenes() {
  static const auto* const kScenes = new std::vector<Scene>{
      {"air_hockey",
       "Air hockey: score without leaving the table, and without exceeding the joints' limits",
       {{"SAC", "shipped:air_hockey/sac"},
        {"D-ATACOM, learned from violations", "shipped:air_hockey/datacom"},
        {"D-ATACOM, told its limits", "shipped:air_hockey/limits_known"}}},
      {"cartpole",
       "CartPole: bring the tip of the pole to the goal; it must never fall below the horizontal",
       {{"SAC", "shipped:cartpole/sac"}, {"D-ATACOM, from scratch", "shipped:cartpole/from_scratch"}}},
      {"navigation",
       "Navigation: drive to the target, past a robot that waves its arm",
       {{"D-ATACOM, told its limits", "shipped:navigation/limits_known"}}},
      {"air_hockey_7dof",
       "Air hockey with seven joints: the mallet stays on the table",
       {{"D-ATACOM, told its limits", "shipped:air_hockey_7dof/limits_known"}}},
  };
  return *kScenes;
}

constexpr int kMapResolution = 60;
constexpr size_t kMostChanges = 64;

// The parameters of a target: "a=b&c=d" after the path.
std::map<std::string, std::string> ParametersOf(const std::string& target) {
  std::map<std::string, std::string> parameters;
  const size_t question = target.find('?');
  if (question == std::string::npos) return parameters;
  for (const absl::string_view part : absl::StrSplit(target.substr(question + 1), '&')) {
    const std::pair<std::string, std::string> pair = absl::StrSplit(part, absl::MaxSplits('=', 1));
    parameters[pair.first] = pair.second;
  }
  return parameters;
}

// A whole number from 0 to below `bound`.
std::optional<uint64_t> NumberOf(const std::string& text, uint64_t bound) {
  uint64_t number = 0;
  if (!absl::SimpleAtoi(text, &number) || number >= bound) return std::nullopt;
  return number;
}

// "step:on:delta,step:off:delta"; in ascending steps.
std::optional<std::vector<ShieldChange>> ChangesOf(const std::string& text) {
  std::vector<ShieldChange> changes;
  if (text.empty()) return changes;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    const std::vector<std::string> words = absl::StrSplit(part, ':');
    ShieldChange change;
    if (words.size() != 3 || !absl::SimpleAtoi(words[0], &change.step) || !absl::SimpleAtod(words[2], &change.delta) ||
        (words[1] != "on" && words[1] != "off") || !std::isfinite(change.delta) ||
        (!changes.empty() && change.step < changes.back().step) || changes.size() == kMostChanges) {
      return std::nullopt;
    }
    change.shield = words[1] == "on";
    changes.push_back(change);
  }
  return changes;
}

json SceneList() {
  json list = json::array();
  for (const Scene& scene : Scenes()) {
    json agents = json::array();
    for (const Player& player : scene.players) agents.push_back({{"label", player.label}, {"source", player.source}});
    list.push_back({{"name", scene.name}, {"title", scene.title}, {"agents", std::move(agents)}});
  }
  return list;
}

absl::StatusOr<json> Described(Agent* agent) {
  json about = agent->About();
  ASSIGN_OR_RETURN(about["scene"], agent->Scene());
  return about;
}

HttpServer::Answer Json(const absl::StatusOr<json>& content) {
  return {"application/json", JsonText(content.ok() ? *content : json{{"error", content.status().message()}})};
}

// Lets the desktop open an address. A failure is none of ours: the address is printed.
void OpenBrowser(const std::string& address) {
  if (std::getenv("DISPLAY") == nullptr && std::getenv("WAYLAND_DISPLAY") == nullptr) return;
  Spawn spawn;
  posix_spawnattr_setflags(&spawn.attributes, POSIX_SPAWN_SETSID);  // Ctrl-C is not for the browser
  pid_t child = 0;
  spawn.Start({"xdg-open", address}, &child);
}

}  // namespace

struct DemoSite::Agents {
  // The agent of the parameters; null if there is none.
  absl::StatusOr<Agent*> Of(const std::map<std::string, std::string>& parameters) {
    const auto part = [&](const char* name, size_t bound) {
      const auto at = parameters.find(name);
      return at == parameters.end() ? std::nullopt : NumberOf(at->second, bound);
    };
    const std::optional<uint64_t> scene = part("scene", Scenes().size());
    const std::optional<uint64_t> number = scene ? part("agent", Scenes()[*scene].players.size()) : std::nullopt;
    if (!number) return nullptr;
    std::unique_ptr<Agent>& agent = opened[{*scene, *number}];
    if (agent == nullptr) {
      const Player& player = Scenes()[*scene].players[*number];
      ASSIGN_OR_RETURN(agent, Agent::Open(player.source, player.label));
    }
    return agent.get();
  }

  std::map<std::pair<uint64_t, uint64_t>, std::unique_ptr<Agent>> opened;
};

DemoSite::DemoSite() : agents_(std::make_unique<Agents>()) {}
DemoSite::~DemoSite() = default;

std::optional<HttpServer::Answer> DemoSite::Get(const std::string& target) {
  const std::string path = target.substr(0, target.find('?'));
  if (path == "/") return HttpServer::Answer{"text/html; charset=utf-8", kDemoPage};
  if (path == "/demo.js") return HttpServer::Answer{"text/javascript; charset=utf-8", kDemoScript};
  if (path == "/draw.js") return HttpServer::Answer{"text/javascript; charset=utf-8", kDrawScript};
  if (path == "/demo.css") return HttpServer::Answer{"text/css; charset=utf-8", kDemoStyle};
  if (path == "/scenes") return Json(SceneList());
  if (path != "/agent" && path != "/episode" && path != "/map") return std::nullopt;
  std::map<std::string, std::string> parameters = ParametersOf(target);
  const absl::StatusOr<Agent*> agent = agents_->Of(parameters);
  if (!agent.ok()) return Json(agent.status());
  if (*agent == nullptr) return std::nullopt;
  if (path == "/agent") return Json(Described(*agent));
  if (path == "/map") return Json((*agent)->has_constraint() ? (*agent)->Map(kMapResolution) : json(nullptr));
  const std::optional<uint64_t> seed = NumberOf(parameters["seed"], uint64_t{1} << 32);
  const std::optional<std::vector<ShieldChange>> changes = ChangesOf(parameters["changes"]);
  if (!seed || !changes) return std::nullopt;
  return Json((*agent)->Play(*seed, *changes));
}

absl::Status RunDemoCommand(const DemoCommand& command, std::ostream* out) {
  DemoSite site;
  HttpServer::Options options =
      HttpServer::ForThisMachine(absl::StrCat("127.0.0.1:", command.port),
                                 "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src "
                                 "data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'");
  options.page = [] { return std::string(kDemoPage); };
  options.others = [&site](const std::string& target) { return site.Get(target); };
  ASSIGN_OR_RETURN(const std::unique_ptr<HttpServer> server, HttpServer::Start(options));
  Stop::InstallSignalHandlers();  // before the address is printed: a script may stop the demo at once
  const std::string address = absl::StrCat("http://", server->address(), "/");
  *out << "demo: " << address << " shows the shipped policies until Ctrl-C" << std::endl;
  if (command.browser) OpenBrowser(address);
  while (!Stop::Process().WaitFor(std::chrono::hours(1))) {
  }
  return absl::OkStatus();
}

}  // namespace datacom::tools
// SPDX-License-Identifier: Apache-2.0

#include "common/tasks/text/mujoco_names.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace datacom::text {
namespace {

int CountOf(const mjModel& model, mjtObj type) {
  switch (type) {
    case mjOBJ_BODY:
      return static_cast<int>(model.nbody);
    case mjOBJ_JOINT:
      return static_cast<int>(model.njnt);
    case mjOBJ_SITE:
      return static_cast<int>(model.nsite);
    case mjOBJ_GEOM:
      return static_cast<int>(model.ngeom);
    case mjOBJ_SENSOR:
      return static_cast<int>(model.nsensor);
    case mjOBJ_ACTUATOR:
      return static_cast<int>(model.nu);
    case mjOBJ_KEY:
      return static_cast<int>(model.nkey);
    default:
      return 0;
  }
}

std::string Listed(const mjModel& model, mjtObj type) {
  std::vector<std::string> named;
  for (const std::string& name : NamesOf(model, type)) {
    if (!name.empty()) named.push_back(name);
  }
  return named.empty() ? "none with a name" : absl::StrJoin(named, ", ");
}

bool MatchesFrom(const char* glob, const char* name) {
  for (; *glob != '\0'; ++glob, ++name) {
    if (*glob == '*') {
      for (;; ++name) {
        if (MatchesFrom(glob + 1, name)) return true;
        if (*name == '\0') return false;
      }
    }
    if (*name == '\0' || (*glob != '?' && *glob != *name)) return false;
  }
  return *name == '\0';
}

}  // namespace

absl::Status Wrong(const std::string& field, const std::string& why) {
  return absl::InvalidArgumentError(absl::StrCat(field, ": ", why));
}

bool IsIdentifier(const std::string& name) {
  const auto valid = [](char c) { return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  return !name.empty() && !absl::ascii_isdigit(static_cast<unsigned char>(name[0])) &&
         std::all_of(name.begin(), name.end(), valid);
}

std::vector<std::string> NamesOf(const mjModel& model, mjtObj type) {
  std::vector<std::string> names;
  for (int i = 0; i < CountOf(model, type); ++i) {
    const char* name = mj_id2name(&model, type, i);
    names.emplace_back(name == nullptr ? "" : name);
  }
  return names;
}

std::string PlainName(const mjModel& model, mjtObj type, int id) {
  const char* given = mj_id2name(&model, type, id);
  if (given == nullptr || *given == '\0') return absl::StrCat(mju_type2Str(type), "_", id);
  std::string name = given;
  for (char& c : name) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return absl::ascii_isdigit(static_cast<unsigned char>(name[0])) ? "_" + name : name;
}

bool MatchesGlob(const std::string& glob, const std::string& name) { return MatchesFrom(glob.c_str(), name.c_str()); }

absl::StatusOr<std::vector<int>> Match(const mjModel& model, mjtObj type, const std::string& glob,
                                       const std::string& field) {
  std::vector<int> found;
  const std::vector<std::string> names = NamesOf(model, type);
  for (size_t i = 0; i < names.size(); ++i) {
    if (!names[i].empty() && MatchesGlob(glob, names[i])) found.push_back(static_cast<int>(i));
  }
  if (!found.empty()) return found;
  return Wrong(field, absl::StrCat("no ", mju_type2Str(type), " of the model matches \"", glob,
                                   "\"; there are: ", Listed(model, type)));
}

const mjtNum* Place::position(const mjData& data) const {
  return (type == mjOBJ_SITE ? data.site_xpos : type == mjOBJ_GEOM ? data.geom_xpos : data.xpos) + 3 * id;
}

const mjtNum* Place::axes(const mjData& data) const {
  return (type == mjOBJ_SITE ? data.site_xmat : type == mjOBJ_GEOM ? data.geom_xmat : data.xmat) + 9 * id;
}

int Place::body(const mjModel& model) const {
  return type == mjOBJ_SITE ? model.site_bodyid[id] : type == mjOBJ_GEOM ? model.geom_bodyid[id] : id;
}

absl::StatusOr<Place> FindPlace(const mjModel& model, const std::string& name, const std::string& field) {
  for (const mjtObj type : {mjOBJ_SITE, mjOBJ_BODY, mjOBJ_GEOM}) {
    if (const int id = mj_name2id(&model, type, name.c_str()); id >= 0) return Place{type, id};
  }
  return Wrong(field,
               absl::StrCat("\"", name, "\" is no site, body or geom of the model. Sites: ", Listed(model, mjOBJ_SITE),
                            ". Bodies: ", Listed(model, mjOBJ_BODY), ". Geoms: ", Listed(model, mjOBJ_GEOM)));
}

}  // namespace datacom::text
// SPDX-License-Identifier: Apache-2.0

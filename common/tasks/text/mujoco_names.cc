#include "common/tasks/text/mujoco_names.h"

#include <fnmatch.h>

#include <algorithm>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "datacom/v1/rule.pb.h"
#include "google/protobuf/descriptor.h"

namespace datacom::text {
namespace {

constexpr int kMostTurns = 2;

int CountOf(const mjModel& model, mjtObj type) {
  const auto count = type == mjOBJ_BODY       ? model.nbody
                     : type == mjOBJ_JOINT    ? model.njnt
                     : type == mjOBJ_SITE     ? model.nsite
                     : type == mjOBJ_GEOM     ? model.ngeom
                     : type == mjOBJ_SENSOR   ? model.nsensor
                     : type == mjOBJ_ACTUATOR ? model.nu
                     : type == mjOBJ_KEY      ? model.nkey
                                              : 0;
  return static_cast<int>(count);
}

std::string Listed(const mjModel& model, mjtObj type) {
  std::vector<std::string> named = NamesOf(model, type);
  const auto behind = std::remove(named.begin(), named.end(), "");
  const auto nameless = named.end() - behind;
  named.erase(behind, named.end());
  if (nameless > 0) named.push_back(absl::StrCat(nameless, " without a name"));
  return named.empty() ? "none" : absl::StrJoin(named, ", ");
}

// One '_' for each character that an expression cannot have, also for one of several bytes.
std::string Plain(const std::string& given) {
  std::string name;
  for (const char c : given) {
    const auto byte = static_cast<unsigned char>(c);
    if (absl::ascii_isalnum(byte)) {
      name.push_back(c);
    } else if ((byte & 0xC0) != 0x80) {  // not a further byte of a UTF-8 character
      name.push_back('_');
    }
  }
  return name.empty() || absl::ascii_isdigit(static_cast<unsigned char>(name[0])) ? "_" + name : name;
}

}  // namespace

absl::Status Wrong(const std::string& field, const std::string& why) {
  return absl::InvalidArgumentError(absl::StrCat(field, ": ", why));
}

absl::Status RefuseFields(const google::protobuf::Message& message, std::initializer_list<const char*> parts,
                          const std::string& field, const std::string& why) {
  for (const char* const part : parts) {
    const google::protobuf::FieldDescriptor* const found = message.GetDescriptor()->FindFieldByName(part);
    if (message.GetReflection()->HasField(message, found)) return Wrong(absl::StrCat(field, ".", part), why);
  }
  return absl::OkStatus();
}

mjtObj ElementType(const google::protobuf::FieldDescriptor& field) {
  return static_cast<mjtObj>(mju_str2Type(field.options().GetExtension(v1::rule).element().c_str()));
}

absl::StatusOr<Named> OnlyNamed(const google::protobuf::Message& message, const std::string& field) {
  std::vector<std::string> possible;
  std::vector<Named> found;
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    const google::protobuf::FieldDescriptor* const part = message.GetDescriptor()->field(i);
    if (ElementType(*part) == mjOBJ_UNKNOWN) continue;
    possible.push_back(part->name());
    if (!message.GetReflection()->HasField(message, part)) continue;
    found.push_back({ElementType(*part), message.GetReflection()->GetString(message, part),
                     absl::StrCat(field, ".", part->name())});
  }
  if (found.size() == 1) return found.front();
  return Wrong(field,
               absl::StrCat("names ", found.size(), " of ", absl::StrJoin(possible, ", "), "; exactly one is needed"));
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
  const char* const given = mj_id2name(&model, type, id);
  const bool named = given != nullptr && *given != '\0';
  std::string name = named ? Plain(given) : absl::StrCat(mju_type2Str(type), "_", id);
  if (named && name == given) return name;
  for (int other = 0; other < CountOf(model, type); ++other) {
    const char* const its = other == id ? nullptr : mj_id2name(&model, type, other);
    if (its == nullptr || *its == '\0' || Plain(its) != name) continue;
    absl::StrAppend(&name, "_", id);
    other = -1;  // another name may look like the longer one
  }
  return name;
}

bool MatchesGlob(const std::string& glob, const std::string& name) {
  return glob == name || ::fnmatch(glob.c_str(), name.c_str(), FNM_NOESCAPE) == 0;
}

bool Matches(const mjModel& model, mjtObj type, const std::string& glob, int id) {
  const int exact = glob.empty() ? -1 : mj_name2id(&model, type, glob.c_str());
  if (exact >= 0) return id == exact;
  const char* const name = mj_id2name(&model, type, id);
  return name != nullptr && *name != '\0' && MatchesGlob(glob, name);
}

absl::StatusOr<std::vector<int>> Match(const mjModel& model, mjtObj type, const std::string& glob,
                                       const std::string& field) {
  std::vector<int> found;
  for (int id = 0; id < CountOf(model, type); ++id) {
    if (Matches(model, type, glob, id)) found.push_back(id);
  }
  if (!found.empty()) return found;
  return Wrong(field, absl::StrCat("no ", mju_type2Str(type), " of the model matches \"", glob,
                                   "\"; there are: ", Listed(model, type)));
}

absl::Status CheckWithinLimits(const mjModel& model, int joint, double low, double high, const std::string& field) {
  const bool hinge = model.jnt_type[joint] == mjJNT_HINGE;
  const std::string values = low == high ? absl::StrCat(low) : absl::StrCat(low, " to ", high);
  if (model.jnt_limited[joint] == 0) {
    if (!hinge || std::max(std::abs(low), std::abs(high)) <= kMostTurns * 2 * M_PI) return absl::OkStatus();
    return Wrong(field, absl::StrCat(values, " rad are more than ", kMostTurns, " turns of joint ",
                                     PlainName(model, mjOBJ_JOINT, joint)));
  }
  const mjtNum* const range = model.jnt_range + 2 * joint;
  const double slack = 1e-6 * (range[1] - range[0]);  // a limit is written with fewer digits
  if (low >= range[0] - slack && high <= range[1] + slack) return absl::OkStatus();
  return Wrong(field, absl::StrCat(values, " goes beyond the limits of joint ", PlainName(model, mjOBJ_JOINT, joint),
                                   ", which are ", range[0], " to ", range[1], hinge ? " rad" : " m"));
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

// Finds elements of a MuJoCo model by name or glob, for task files. Pure functions; thread-safe.
#ifndef DATACOM_COMMON_TASKS_TEXT_MUJOCO_NAMES_H_
#define DATACOM_COMMON_TASKS_TEXT_MUJOCO_NAMES_H_

#include <initializer_list>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "google/protobuf/message.h"
#include "mujoco/mujoco.h"

namespace datacom::text {

// INVALID_ARGUMENT: "field: why".
absl::Status Wrong(const std::string& field, const std::string& why);

// "field.part: why" for the first of these fields that the message has.
absl::Status RefuseFields(const google::protobuf::Message& message, std::initializer_list<const char*> parts,
                          const std::string& field, const std::string& why);

// The type of the elements that a field names (Rule.element); mjOBJ_UNKNOWN if it names none.
mjtObj ElementType(const google::protobuf::FieldDescriptor& field);
// What a message, which is called `field`, names in its only field that names elements. INVALID_ARGUMENT unless it has
// exactly one of them.
struct Named {
  mjtObj type = mjOBJ_UNKNOWN;
  std::string glob, field;
};
absl::StatusOr<Named> OnlyNamed(const google::protobuf::Message& message, const std::string& field);

// Whether the joint can be everywhere between low and high. Degrees that were meant as radians would put it beyond its
// limits, or turn it often. INVALID_ARGUMENT "field: why".
absl::Status CheckWithinLimits(const mjModel& model, int joint, double low, double high, const std::string& field);

// Names of a type in the model's order; an element without a name has an empty one.
std::vector<std::string> NamesOf(const mjModel& model, mjtObj type);
// "slide_joint" for "slide-joint": as expressions write it. An element without a name is called after type and number;
// its number also follows a name that is not its own and that another element of the type has, too. No two elements of
// a type have the same one.
std::string PlainName(const mjModel& model, mjtObj type, int id);

// The element of that name, else those whose names match it as a glob (`*`, `?`, `[1-5]`, `[!abc]`), in the model's
// order. INVALID_ARGUMENT if there is none; the message lists the names of the type.
absl::StatusOr<std::vector<int>> Match(const mjModel& model, mjtObj type, const std::string& glob,
                                       const std::string& field);
// Whether Match finds this element.
bool Matches(const mjModel& model, mjtObj type, const std::string& glob, int id);
bool MatchesGlob(const std::string& glob, const std::string& name);

// A site, body or geom.
struct Place {
  mjtObj type = mjOBJ_UNKNOWN;
  int id = -1;
  const mjtNum* position(const mjData& data) const;  // [3] in the world
  const mjtNum* axes(const mjData& data) const;      // [3, 3] row-major: columns are its axes in the world
  int body(const mjModel& model) const;
};
// The site, else the body, else the geom of that name. INVALID_ARGUMENT listing all of them.
absl::StatusOr<Place> FindPlace(const mjModel& model, const std::string& name, const std::string& field);

}  // namespace datacom::text

#endif  // DATACOM_COMMON_TASKS_TEXT_MUJOCO_NAMES_H_
// SPDX-License-Identifier: Apache-2.0

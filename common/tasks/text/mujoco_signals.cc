#include "common/tasks/text/mujoco_signals.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"

namespace datacom::text {
namespace {

// Of the place's origin, along the world's axes: angular, then linear.
void WorldVelocity(const mjModel& model, const mjData& data, const Place& place, mjtNum* six) {
  mj_objectVelocity(&model, &data, place.type == mjOBJ_BODY ? mjOBJ_XBODY : place.type, place.id, six, 0);
}

absl::Status WrongQuantity(const v1::Signal& signal, const std::string& field, const std::string& what,
                           const std::string& choice) {
  return Wrong(field + ".quantity", absl::StrCat(what, " has no ", signal.quantity(), "; it has: ", choice));
}

// Where the activations of an actuator begin in mjData::act, and how many it has.
std::pair<int, int> ActivationsOf(const mjModel& model, int actuator) {
#if mjVERSION_HEADER >= 300
  return {model.actuator_actadr[actuator], model.actuator_actnum[actuator]};
#else
  const int address = actuator - static_cast<int>(model.nu - model.na);  // the last actuators have one each
  return {address, address >= 0 ? 1 : 0};
#endif
}

std::string DefaultName(const v1::Signal& signal, const std::string& element) {
  const std::string& quantity = signal.quantity();
  return quantity.empty() || quantity == "position" || quantity == "sine_cosine" ? element
                                                                                 : absl::StrCat(element, "_", quantity);
}

}  // namespace

absl::StatusOr<Signals> Signals::Make(const mjModel& model, const google::protobuf::RepeatedPtrField<v1::Signal>& list,
                                      const std::string& field) {
  Signals signals;
  for (int i = 0; i < list.size(); ++i) {
    const std::string entry = absl::StrCat(field, "[", i, "]");
    signals.begins_.push_back(signals.size());
    if (field != "observation") {
      RETURN_IF_ERROR(
          RefuseFields(list[i], {"number", "value", "clip", "scale", "history"}, entry, "is only for observations"));
    }
    if (IsDerived(list[i])) continue;
    RETURN_IF_ERROR(signals.Add(model, list[i], entry));
  }
  signals.begins_.push_back(signals.size());
  return signals;
}

absl::Status Signals::Add(const mjModel& model, const v1::Signal& signal, const std::string& field) {
  ASSIGN_OR_RETURN(const Named measured, OnlyNamed(signal, field));
  ASSIGN_OR_RETURN(const std::vector<int> found, Match(model, measured.type, measured.glob, measured.field));
  const int before = size();
  for (const int id : found) {
    std::vector<std::string> suffixes;
    if (measured.type == mjOBJ_JOINT) {
      RETURN_IF_ERROR(AddJoint(model, signal, field, id, &suffixes));
    } else if (measured.type == mjOBJ_SENSOR || measured.type == mjOBJ_ACTUATOR) {
      const bool sensor = measured.type == mjOBJ_SENSOR;
      RETURN_IF_ERROR(
          RefuseFields(signal, {"quantity", "axes", "relative_to"}, field,
                       sensor ? "a sensor has none; leave it out" : "an activation has none; leave it out"));
      Reading reading;
      reading.array = sensor ? &mjData::sensordata : &mjData::act;
      std::tie(reading.address, reading.count) =
          sensor ? std::pair(model.sensor_adr[id], model.sensor_dim[id]) : ActivationsOf(model, id);
      if (reading.count == 0) continue;
      if (sensor && IsRangeFinder(model, id) && model.sensor_cutoff[id] > 0) {
        reading.kind = Kind::kRange;
        reading.cutoff = model.sensor_cutoff[id];
      }
      for (int i = 0; i < reading.count; ++i) suffixes.push_back(reading.count == 1 ? "" : absl::StrCat(i));
      readings_.push_back(reading);
    } else {
      RETURN_IF_ERROR(AddPlace(model, signal, field, Place{measured.type, id}, &suffixes));
    }
    const std::string element = PlainName(model, measured.type, id);
    const std::string name = !signal.has_name()  ? DefaultName(signal, element)
                             : found.size() == 1 ? signal.name()
                                                 : absl::StrCat(signal.name(), ".", element);
    for (const std::string& suffix : suffixes)
      names_.push_back(suffix.empty() ? name : absl::StrCat(name, ".", suffix));
  }
  if (size() > before || measured.type != mjOBJ_ACTUATOR) return absl::OkStatus();
  return Wrong(measured.field, found.size() > 1 ? absl::StrCat("none of ", found.size(), " actuators has an activation")
                                                : absl::StrCat("actuator ", PlainName(model, mjOBJ_ACTUATOR, found[0]),
                                                               " has no activation"));
}

absl::Status Signals::AddJoint(const mjModel& model, const v1::Signal& signal, const std::string& field, int id,
                               std::vector<std::string>* suffixes) {
  const int type = model.jnt_type[id];
  if (signal.has_relative_to())
    return Wrong(field + ".relative_to", "joints have none; leave it out, or name a body or site");
  if (signal.has_axes()) {
    const std::string body = PlainName(model, mjOBJ_BODY, model.jnt_bodyid[id]);
    return Wrong(field + ".axes", absl::StrCat("joints have none; for some axes of a free joint write body: \"", body,
                                               "\" instead of joint: \"", PlainName(model, mjOBJ_JOINT, id), "\""));
  }
  const std::string quantity = signal.has_quantity() ? signal.quantity() : "position";
  const bool scalar = type == mjJNT_SLIDE || type == mjJNT_HINGE;
  Reading reading;
  reading.array = &mjData::qpos;
  reading.address = model.jnt_qposadr[id];
  if (scalar && (quantity == "position" || quantity == "angle")) reading.dof = model.jnt_dofadr[id];
  if (quantity == "position") {
    *suffixes = scalar               ? std::vector<std::string>{""}
                : type == mjJNT_BALL ? std::vector<std::string>{"w", "x", "y", "z"}
                                     : std::vector<std::string>{"x", "y", "z", "qw", "qx", "qy", "qz"};
  } else if (quantity == "velocity" || quantity == "actuator_force") {
    reading.array = quantity == "velocity" ? &mjData::qvel : &mjData::qfrc_actuator;
    reading.address = model.jnt_dofadr[id];
    *suffixes = scalar               ? std::vector<std::string>{""}
                : type == mjJNT_BALL ? std::vector<std::string>{"x", "y", "z"}
                                     : std::vector<std::string>{"x", "y", "z", "wx", "wy", "wz"};
  } else if (type == mjJNT_HINGE && quantity == "angle") {
    reading.kind = Kind::kAngle;
    *suffixes = {""};
  } else if (type == mjJNT_HINGE && quantity == "sine_cosine") {
    reading.kind = Kind::kSineCosine;
    *suffixes = {"sin", "cos"};
  } else {
    return WrongQuantity(signal, field, absl::StrCat("joint ", PlainName(model, mjOBJ_JOINT, id)),
                         type == mjJNT_HINGE ? "position, velocity, actuator_force, angle, sine_cosine"
                                             : "position, velocity, actuator_force");
  }
  reading.count = static_cast<int>(suffixes->size());
  readings_.push_back(reading);
  return absl::OkStatus();
}

absl::StatusOr<bool> Signals::AddOfBody(const v1::Signal& signal, const std::string& field, int id,
                                        std::vector<std::string>* suffixes) {
  struct Quantity {
    mjtNum* mjData::*array;
    std::vector<std::string> suffixes;
  };
  static const auto& kQuantities = *new std::map<std::string, Quantity>{
      {"com_inertia", {&mjData::cinert, {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"}}},
      {"com_velocity", {&mjData::cvel, {"wx", "wy", "wz", "x", "y", "z"}}},
      {"external_force", {&mjData::cfrc_ext, {"tx", "ty", "tz", "x", "y", "z"}}},
      {"subtree_com", {&mjData::subtree_com, {"x", "y", "z"}}}};
  const auto found = kQuantities.find(signal.quantity());
  if (found == kQuantities.end()) return false;
  RETURN_IF_ERROR(
      RefuseFields(signal, {"axes", "relative_to"}, field, signal.quantity() + " is as MuJoCo has it; leave it out"));
  *suffixes = found->second.suffixes;
  Reading reading;
  reading.array = found->second.array;
  reading.count = static_cast<int>(suffixes->size());
  reading.address = reading.count * id;
  readings_.push_back(reading);
  return true;
}

absl::Status Signals::AddPlace(const mjModel& model, const v1::Signal& signal, const std::string& field, Place place,
                               std::vector<std::string>* suffixes) {
  if (place.type == mjOBJ_BODY) {
    ASSIGN_OR_RETURN(const bool added, AddOfBody(signal, field, place.id, suffixes));
    if (added) return absl::OkStatus();
  }
  static const auto& kVectors =
      *new std::map<std::string, Kind>{{"position", Kind::kPosition},
                                       {"velocity", Kind::kVelocity},
                                       {"angular_velocity", Kind::kAngularVelocity},
                                       {"local_velocity", Kind::kLocalVelocity},
                                       {"local_angular_velocity", Kind::kLocalAngularVelocity},
                                       {"gravity", Kind::kGravity}};
  const std::string quantity = signal.has_quantity() ? signal.quantity() : "position";
  Reading reading;
  reading.place = place;
  reading.moved_by_joints = model.body_mocapid[model.body_rootid[place.body(model)]] < 0;
  if (signal.has_relative_to()) {
    ASSIGN_OR_RETURN(reading.frame, FindPlace(model, signal.relative_to(), field + ".relative_to"));
    reading.moved_by_joints &= model.body_mocapid[model.body_rootid[reading.frame.body(model)]] < 0;
  }
  if (signal.has_axes() && (quantity == "distance" || quantity == "orientation")) {
    return Wrong(field + ".axes", absl::StrCat("the quantity ", quantity, " has none; leave it out"));
  }
  if (quantity == "distance") {
    if (!signal.has_relative_to()) return Wrong(field + ".relative_to", "must be set: the distance to what");
    reading.kind = Kind::kDistance;
    *suffixes = {""};
  } else if (quantity == "orientation" && place.type != mjOBJ_GEOM) {
    reading.kind = Kind::kOrientation;
    *suffixes = {"w", "x", "y", "z"};
  } else if (const auto kind = kVectors.find(quantity); kind != kVectors.end()) {
    reading.kind = kind->second;
    const bool local = reading.kind == Kind::kLocalVelocity || reading.kind == Kind::kLocalAngularVelocity ||
                       reading.kind == Kind::kGravity;
    if (local && signal.has_relative_to()) {
      return Wrong(field + ".relative_to", absl::StrCat(quantity, " is along the element's own axes; leave it out"));
    }
    const std::string axes = signal.has_axes() ? signal.axes() : "xyz";
    if (axes.empty() || axes.size() > 3 || axes.find_first_not_of("xyz") != std::string::npos) {
      return Wrong(field + ".axes", absl::StrCat("\"", axes, "\" is not one to three of the letters x, y, z"));
    }
    for (size_t i = 0; i < axes.size(); ++i) {
      reading.axes[i] = axes[i] - 'x';
      suffixes->emplace_back(1, axes[i]);
    }
  } else {
    return WrongQuantity(signal, field, absl::StrCat("a ", mju_type2Str(place.type)),
                         "position, velocity, angular_velocity, local_velocity, local_angular_velocity, gravity, "
                         "distance, of sites and bodies orientation, and of bodies com_inertia, com_velocity, "
                         "external_force, subtree_com");
  }
  reading.count = static_cast<int>(suffixes->size());
  readings_.push_back(reading);
  return absl::OkStatus();
}

bool Signals::external_forces() const {
  return std::any_of(readings_.begin(), readings_.end(),
                     [](const Reading& reading) { return reading.array == &mjData::cfrc_ext; });
}

void Signals::Read(const mjModel& model, const mjData& data, double* out) const {
  for (const Reading& reading : readings_) {
    ReadOne(model, data, reading, out);
    out += reading.count;
  }
}

void Signals::ReadOne(const mjModel& model, const mjData& data, const Reading& reading, double* out) {
  switch (reading.kind) {
    case Kind::kCopy:
      std::copy_n(data.*reading.array + reading.address, reading.count, out);
      return;
    case Kind::kRange: {
      const mjtNum measured = (data.*reading.array)[reading.address];
      *out = measured < 0 ? reading.cutoff : measured;
      return;
    }
    case Kind::kAngle:
      *out = std::atan2(std::sin(data.qpos[reading.address]), std::cos(data.qpos[reading.address]));
      return;
    case Kind::kSineCosine:
      out[0] = std::sin(data.qpos[reading.address]);
      out[1] = std::cos(data.qpos[reading.address]);
      return;
    case Kind::kDistance:
      *out = mju_dist3(reading.place.position(data), reading.frame.position(data));
      return;
    case Kind::kOrientation: {
      mjtNum matrix[9];
      mju_copy(matrix, reading.place.axes(data), 9);
      if (reading.frame.id >= 0) {
        mju_mulMatTMat(matrix, reading.frame.axes(data), reading.place.axes(data), 3, 3, 3);
      }
      mju_mat2Quat(out, matrix);
      return;
    }
    default:
      ReadVector(model, data, reading, reading.kind, out);
  }
}

void Signals::ReadVector(const mjModel& model, const mjData& data, const Reading& reading, Kind kind, double* out) {
  const bool local = kind == Kind::kLocalVelocity || kind == Kind::kLocalAngularVelocity || kind == Kind::kGravity;
  const Place& frame = local ? reading.place : reading.frame;  // whose axes; id -1: the world
  mjtNum world[3] = {0, 0, 0}, seen[3];
  if (kind == Kind::kGravity) {
    const mjtNum length = mju_norm3(model.opt.gravity);
    if (length > 0) mju_scl3(world, model.opt.gravity, 1 / length);
  } else if (kind == Kind::kPosition) {
    mju_copy3(world, reading.place.position(data));
    if (frame.id >= 0) mju_subFrom3(world, frame.position(data));
  } else {
    const int part = kind == Kind::kAngularVelocity || kind == Kind::kLocalAngularVelocity ? 0 : 3;
    mjtNum six[6];  // angular, then linear
    WorldVelocity(model, data, reading.place, six);
    mju_copy3(world, six + part);
    if (!local && frame.id >= 0) {
      WorldVelocity(model, data, frame, six);
      mju_subFrom3(world, six + part);
    }
  }
  mju_copy3(seen, world);
  if (frame.id >= 0) mju_mulMatTVec(seen, frame.axes(data), world, 3, 3);
  for (int i = 0; i < reading.count; ++i) out[i] = seen[reading.axes[i]];
}

void Signals::Rates(const mjModel& model, const mjData& data, const double* before, const double* now, double dt,
                    double* out) const {
  for (const Reading& reading : readings_) {
    if (reading.dof >= 0) {
      *out = data.qvel[reading.dof];
    } else if (reading.kind == Kind::kPosition && reading.moved_by_joints && reading.frame.id < 0) {
      ReadVector(model, data, reading, Kind::kVelocity, out);
    } else {
      for (int i = 0; i < reading.count; ++i) out[i] = dt > 0 ? (now[i] - before[i]) / dt : 0.0;
    }
    out += reading.count, before += reading.count, now += reading.count;
  }
}

}  // namespace datacom::text
// SPDX-License-Identifier: Apache-2.0

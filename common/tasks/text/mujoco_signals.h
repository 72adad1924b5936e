// Reads the signals of a task file (proto Signal) from MuJoCo's state. Immutable once made; thread-safe; Read and Rates
// neither block nor allocate.
#ifndef DATACOM_COMMON_TASKS_TEXT_MUJOCO_SIGNALS_H_
#define DATACOM_COMMON_TASKS_TEXT_MUJOCO_SIGNALS_H_

#include <array>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/tasks/text/mujoco_names.h"
#include "datacom/v1/task.pb.h"
#include "google/protobuf/repeated_ptr_field.h"
#include "mujoco/mujoco.h"

namespace datacom::text {

class Signals {
 public:
  // `field`: the list's name in messages. Entries that measure nothing (`number`, `value`; IsDerived) are only for
  // observations, and have no numbers here. INVALID_ARGUMENT "field[i].part: why", listing what there is to choose
  // from.
  static absl::StatusOr<Signals> Make(const mjModel& model, const google::protobuf::RepeatedPtrField<v1::Signal>& list,
                                      const std::string& field);

  int size() const { return static_cast<int>(names_.size()); }
  const std::vector<std::string>& names() const { return names_; }  // of the numbers
  // Where the numbers of each entry of the list begin; then size().
  const std::vector<int>& begins() const { return begins_; }
  // Whether a signal reads cfrc_ext, which only mj_rnePostConstraint computes: call it before Read.
  bool external_forces() const;
  // out: [size()]
  void Read(const mjModel& model, const mjData& data, double* out) const;
  // Derivatives of the numbers, [size()]. They come from MuJoCo for scalar joints and for positions of sites, bodies
  // and geoms that no mocap body carries; for the others they are (now - before) / dt.
  void Rates(const mjModel& model, const mjData& data, const double* before, const double* now, double dt,
             double* out) const;

 private:
  enum class Kind {
    kCopy,   // of an array of mjData
    kRange,  // the same of a range finder, but its cutoff where it hits nothing
    kAngle,
    kSineCosine,
    kPosition,
    kVelocity,
    kAngularVelocity,
    kLocalVelocity,
    kLocalAngularVelocity,
    kGravity,
    kOrientation,
    kDistance
  };
  struct Reading {
    Kind kind = Kind::kCopy;
    mjtNum* mjData::*array = nullptr;  // of kCopy and kRange
    int address = 0;                   // in the array, or in qpos
    mjtNum cutoff = 0;                 // of kRange
    int dof = -1;                      // whose velocity is the derivative; -1: none
    int count = 1;
    Place place;
    Place frame;  // id -1: the world
    std::array<int, 3> axes = {0, 1, 2};
    bool moved_by_joints = true;
  };
  absl::Status Add(const mjModel& model, const v1::Signal& signal, const std::string& field);
  absl::Status AddJoint(const mjModel& model, const v1::Signal& signal, const std::string& field, int id,
                        std::vector<std::string>* suffixes);
  absl::Status AddPlace(const mjModel& model, const v1::Signal& signal, const std::string& field, Place place,
                        std::vector<std::string>* suffixes);
  // False: the quantity is another one.
  absl::StatusOr<bool> AddOfBody(const v1::Signal& signal, const std::string& field, int id,
                                 std::vector<std::string>* suffixes);
  static void ReadOne(const mjModel& model, const mjData& data, const Reading& reading, double* out);
  // Of this kind, which is a vector, along the axes that the reading has.
  static void ReadVector(const mjModel& model, const mjData& data, const Reading& reading, Kind kind, double* out);

  std::vector<Reading> readings_;
  std::vector<std::string> names_;
  std::vector<int> begins_;
};

// Whether the sensor is a range finder of one ray. MuJoCo gives -1 where it hits nothing, which looks like a hit at
// once; a signal reads the sensor's cutoff instead, if it has one.
inline bool IsRangeFinder(const mjModel& model, int sensor) {
  return model.sensor_type[sensor] == mjSENS_RANGEFINDER && model.sensor_dim[sensor] == 1;
}

// Whether the signal is made of numbers that expressions know.
inline bool IsDerived(const v1::Signal& signal) { return signal.has_number() || signal.has_value(); }

}  // namespace datacom::text

#endif  // DATACOM_COMMON_TASKS_TEXT_MUJOCO_SIGNALS_H_
// SPDX-License-Identifier: Apache-2.0

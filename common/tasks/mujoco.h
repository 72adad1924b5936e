// The one boundary to MuJoCo: compiles models, owns their memory, and turns the library's errors into a Status.
//
// MuJoCo reports an error by calling a process-wide handler that must not return. Ours throws, and only inside
// GuardMujoco, which catches; the library's C frames between carry unwind tables and own nothing that the next
// mj_resetData does not reclaim. An error outside a guard (somebody else's use of the library) ends the process with
// its message, as MuJoCo's own handler does. Warnings are kept in mjData::warning, never printed. Thread-safe as long
// as an mjData is used by one thread at a time. Nothing blocks.
#ifndef DATACOM_COMMON_TASKS_MUJOCO_H_
#define DATACOM_COMMON_TASKS_MUJOCO_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/tasks/task.h"
#include "mujoco/mujoco.h"

namespace datacom {

using MujocoModel = std::shared_ptr<const mjModel>;
struct MujocoDataDeleter {
  void operator()(mjData* data) const { mj_deleteData(data); }
};
using MujocoData = std::unique_ptr<mjData, MujocoDataDeleter>;

// What the error handler throws; caught by GuardMujoco alone. Holds no heap memory of its own.
struct MujocoError {
  char message[256];
};

// Scope in which MuJoCo's errors throw MujocoError on this thread; outside, they end the process.
class MujocoGuard {
 public:
  MujocoGuard();
  ~MujocoGuard();
  MujocoGuard(const MujocoGuard&) = delete;
  MujocoGuard& operator=(const MujocoGuard&) = delete;
};

// Runs `call`; INTERNAL with MuJoCo's message if it failed.
template <typename Call>
absl::Status GuardMujoco(Call&& call) {
  MujocoGuard guard;
  try {
    call();
  } catch (const MujocoError& error) {
    return absl::InternalError(error.message);
  }
  return absl::OkStatus();
}

// Compiles `xml`. INTERNAL naming the model and what MuJoCo said.
absl::StatusOr<MujocoModel> CompileMujocoModel(const std::string& name, const std::string& xml);
absl::StatusOr<MujocoData> MakeMujocoData(const mjModel& model);

// Has MuJoCo warned since the last mj_resetData (bad position, velocity, acceleration or control, a full buffer, ...)?
bool MujocoWarned(const mjData& data);

// Runs `call`, which steps `data`. False when MuJoCo failed or warned: the state means nothing then. No allocation
// unless MuJoCo fails.
template <typename Call>
bool RunMujoco(const mjData& data, Call&& call) {
  MujocoGuard guard;
  try {
    call();
  } catch (const MujocoError&) {
    return false;
  }
  return !MujocoWarned(data);
}

// mj_step `substeps` times; false as RunMujoco says.
bool StepMujoco(const mjModel& model, int substeps, mjData* data);

// One environment's physics: the compiled model, shared, or a scaled copy of it, and its mjData.
class Simulation {
 public:
  static absl::StatusOr<Simulation> Make(MujocoModel model);

  const mjModel& model() const { return nominal_ ? *model_ : *scaled_; }
  mjData* data() const { return data_.get(); }  // valid as long as this; a renderer reads, or writes only caches
  // Starts an episode: mj_resetData, then `set(model, data)`, which places things and may call MuJoCo. When MuJoCo
  // fails in there, every step is invalid until the next start.
  template <typename Set>
  void Start(Set&& set) {
    started_ = GuardMujoco([&] {
                 mj_resetData(&model(), data_.get());
                 set(model(), data_.get());
               }).ok();
  }
  // mj_step `substeps` times; false as RunMujoco says.
  bool Step(int substeps) { return started_ && StepMujoco(model(), substeps, data_.get()); }
  // For tasks that step in a way of their own: call(model, data); false as RunMujoco says.
  template <typename Call>
  bool Run(Call&& call) {
    return started_ && RunMujoco(*data_, [this, &call] { call(model(), data_.get()); });
  }
  // From the next Start on, masses and inertias, joint damping and contact friction are `scale` times the compiled
  // ones, and the model's constants what compiling such a model gives. data() is scratch for that.
  void Scale(const PhysicsScale& scale);

 private:
  Simulation(MujocoModel model, MujocoData data) : model_(std::move(model)), data_(std::move(data)) {}
  MujocoModel model_;
  std::shared_ptr<mjModel> scaled_;  // null until a scale other than 1 is asked for
  bool nominal_ = true;
  bool started_ = true;
  MujocoData data_;
};

}  // namespace datacom

#endif  // DATACOM_COMMON_TASKS_MUJOCO_H_

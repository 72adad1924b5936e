// The one boundary to MuJoCo: compiles models, owns their memory, and turns the library's errors into a Status.
//
// MuJoCo reports an error by calling a process-wide handler that must not return. Ours throws an exception, but only
// under a MujocoGuard; GuardMujoco and RunMujoco catch it. The library's C frames in between have unwind tables and own
// nothing that the next mj_resetData does not reclaim. An error outside a guard (other code that uses the library) ends
// the process with its message, as MuJoCo's own handler does. Warnings stay in mjData::warning and are never printed.
// Thread-safe as long as one thread at a time uses an mjData. Nothing blocks.
#ifndef DATACOM_COMMON_TASKS_MUJOCO_H_
#define DATACOM_COMMON_TASKS_MUJOCO_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

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

// Thrown by the error handler; caught by GuardMujoco and RunMujoco. Holds no heap memory.
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

// Runs `call`; INTERNAL with MuJoCo's message when MuJoCo fails, RESOURCE_EXHAUSTED when it throws: its C++ library is
// its own, so no handler of this program sees std::bad_alloc.
template <typename Call>
absl::Status GuardMujoco(Call&& call) {
  MujocoGuard guard;
  try {
    call();
  } catch (const MujocoError& error) {
    return absl::InternalError(error.message);
  } catch (...) {
    return absl::ResourceExhaustedError("MuJoCo has no memory for it");
  }
  return absl::OkStatus();
}

// Compiles a model file. `files`: where MuJoCo reads it and what it refers to; null: the disk. INTERNAL with MuJoCo's
// message when that fails.
absl::StatusOr<MujocoModel> LoadMujocoModel(const std::string& path, const mjVFS* files = nullptr);
// Compiles the first of these files, which are paths in one folder and contents. MuJoCo reads nothing else, so a file
// that is not among them is an error that names it.
absl::StatusOr<MujocoModel> CompileMujocoFiles(const std::vector<std::pair<std::string, std::string>>& files);
// The same for NAME.xml, which has the content `xml` and refers to `assets`; the model's name is in messages.
absl::StatusOr<MujocoModel> CompileMujocoModel(const std::string& name, const std::string& xml,
                                               const std::vector<std::pair<std::string, std::string>>& assets = {});
absl::StatusOr<MujocoData> MakeMujocoData(const mjModel& model);

// Copies positions, velocities, activations, controls and mocap bodies; what follows from them is not computed.
void CopyState(const mjModel& model, const mjData& from, mjData* to);

// Returns whether MuJoCo has warned since the last mj_resetData (bad position, velocity, acceleration, control; full
// buffer).
bool MujocoWarned(const mjData& data);

// Runs `call`, which steps `data`. False when MuJoCo failed or warned: the state is then invalid. Allocates only when
// MuJoCo fails.
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

// Calls mj_step `substeps` times; false as for RunMujoco.
bool StepMujoco(const mjModel& model, int substeps, mjData* data);

// Factors on single elements of a model: masses and inertias of bodies [nbody], damping of joints [nv], friction of
// geoms [ngeom] and forces of actuators [nu].
struct ElementScale {
  std::vector<double> mass, damping, friction, force;
};

// One environment's physics: the shared compiled model, or its own scaled copy, and its mjData.
class Simulation {
 public:
  static absl::StatusOr<Simulation> Make(MujocoModel model);

  const mjModel& model() const { return nominal_ ? *model_ : *scaled_; }
  mjData* data() const { return data_.get(); }  // valid as long as this; renderers write only its caches
  // Starts an episode: mj_resetData, then `set(model, data)`, which sets the start state and may call MuJoCo. When
  // MuJoCo fails there, every step is invalid until the next start.
  template <typename Set>
  void Start(Set&& set) {
    started_ = GuardMujoco([&] {
                 mj_resetData(&model(), data_.get());
                 set(model(), data_.get());
               }).ok();
  }
  // Calls mj_step `substeps` times; false as for RunMujoco.
  bool Step(int substeps) { return started_ && StepMujoco(model(), substeps, data_.get()); }
  // Runs call(model, data), for tasks with their own stepping; false as for RunMujoco.
  template <typename Call>
  bool Run(Call&& call) {
    return started_ && RunMujoco(*data_, [this, &call] { call(model(), data_.get()); });
  }
  // From the next Start on, masses and inertias, joint damping and contact friction are `scale` times the compiled
  // ones, times the factors of single elements if there are some, and the model's derived constants match them. Uses
  // data() as scratch memory.
  void Scale(const PhysicsScale& scale, const ElementScale* elements = nullptr);

 private:
  Simulation(MujocoModel model, MujocoData data) : model_(std::move(model)), data_(std::move(data)) {}
  MujocoModel model_;
  std::shared_ptr<mjModel> scaled_;  // null until Scale is called with a factor other than 1
  bool nominal_ = true;
  bool started_ = true;
  MujocoData data_;
};

// A task in MuJoCo with its own simulation. The task sets the cost of the state reached.
class SimulatedTask : public Task {
 public:
  const TaskSpec& spec() const override { return spec_; }
  double Cost() const override { return cost_; }
  void ScalePhysics(const PhysicsScale& scale) override { simulation_.Scale(scale); }
  const Simulation* simulation() const override { return &simulation_; }

 protected:
  SimulatedTask(TaskSpec spec, Simulation simulation) : spec_(std::move(spec)), simulation_(std::move(simulation)) {}

  const TaskSpec spec_;
  Simulation simulation_;
  double cost_ = 0;
};

// `task` in a first state, which the stream of this name draws.
inline std::unique_ptr<Task> Started(std::unique_ptr<Task> task, const std::string& stream_name) {
  RandomStream stream(StreamKey(stream_name, {}));
  task->Reset(&stream, std::vector<double>(task->spec().obs_dim).data());
  return task;
}

}  // namespace datacom

#endif  // DATACOM_COMMON_TASKS_MUJOCO_H_
// SPDX-License-Identifier: Apache-2.0

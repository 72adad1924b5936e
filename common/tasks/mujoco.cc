#include "common/tasks/mujoco.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace datacom {
namespace {

thread_local int guard_depth = 0;

void OnError(const char* message) {
  if (guard_depth == 0) {
    std::fprintf(stderr, "MuJoCo: %s\n", message);
    std::abort();
  }
  MujocoError error{};
  std::strncpy(error.message, message, sizeof(error.message) - 1);
  throw error;
}

void OnWarning(const char*) {}

void InstallHandlers() {
  static std::once_flag once;
  std::call_once(once, [] {
    mju_user_error = &OnError;
    mju_user_warning = &OnWarning;
  });
}

// MuJoCo reads a model from a virtual folder of files.
class VirtualFiles {
 public:
  VirtualFiles() : vfs_(new mjVFS) { mj_defaultVFS(vfs_.get()); }
  ~VirtualFiles() { mj_deleteVFS(vfs_.get()); }
  // False if MuJoCo refuses the file. Since version 3 a single call adds one.
  bool Add(const char* name, const std::string& content) {
#if mjVERSION_HEADER >= 300
    return mj_addBufferVFS(vfs_.get(), name, content.data(), static_cast<int>(content.size())) == 0;
#else
    if (mj_makeEmptyFileVFS(vfs_.get(), name, static_cast<int>(content.size())) != 0) return false;
    std::memcpy(vfs_->filedata[mj_findFileVFS(vfs_.get(), name)], content.data(), content.size());
    return true;
#endif
  }
  const mjVFS* get() const { return vfs_.get(); }

 private:
  std::unique_ptr<mjVFS> vfs_;
};

// mj_setConst of MuJoCo 4, unlike MuJoCo 2's, leaves the mean mass and the mean inertia, by which the solver scales its
// tolerance, as they are. The mean inertia is the mean of the mass matrix's diagonal.
void ScaleStatistics(const mjModel& nominal, double mass, mjModel* scaled) {
#if mjVERSION_HEADER >= 300
  const auto inertia = [](const mjModel& model) { return mju_sum(model.dof_M0, model.nv); };
  scaled->stat.meanmass = nominal.stat.meanmass * mass;
  if (nominal.nv > 0) scaled->stat.meaninertia = nominal.stat.meaninertia * inertia(*scaled) / inertia(nominal);
#endif
}

void ScaleElements(const mjModel& nominal, const ElementScale& elements, mjModel* scaled) {
  for (int body = 0; body < nominal.nbody; ++body) {
    scaled->body_mass[body] *= elements.mass[body];
    mju_scl3(scaled->body_inertia + 3 * body, scaled->body_inertia + 3 * body, elements.mass[body]);
  }
  for (int dof = 0; dof < nominal.nv; ++dof) scaled->dof_damping[dof] *= elements.damping[dof];
  for (int geom = 0; geom < nominal.ngeom; ++geom) {
    mju_scl3(scaled->geom_friction + 3 * geom, scaled->geom_friction + 3 * geom, elements.friction[geom]);
  }
  for (int id = 0; id < nominal.nu; ++id) {
    mju_scl(scaled->actuator_gainprm + mjNGAIN * id, nominal.actuator_gainprm + mjNGAIN * id, elements.force[id],
            mjNGAIN);
    mju_scl(scaled->actuator_biasprm + mjNBIAS * id, nominal.actuator_biasprm + mjNBIAS * id, elements.force[id],
            mjNBIAS);
  }
}

// MuJoCo 2 sorts all bodies for collisions, a third of a small model's step, even if only the pairs that the model
// lists can collide.
void SkipBroadPhase(mjModel* model) {
#if mjVERSION_HEADER < 300
  for (int i = 0; i < model->ngeom; ++i) {
    if (model->geom_contype[i] != 0 || model->geom_conaffinity[i] != 0) return;
  }
  model->opt.collision = mjCOL_PAIR;
#endif
}

}  // namespace

MujocoGuard::MujocoGuard() {
  InstallHandlers();
  ++guard_depth;
}

MujocoGuard::~MujocoGuard() { --guard_depth; }

absl::StatusOr<MujocoModel> CompileMujocoModel(const std::string& name, const std::string& xml,
                                               const std::vector<std::pair<std::string, std::string>>& assets) {
  std::string file = name + ".xml";  // an asset may have that name; MuJoCo 2 compares names without regard to case
  const auto is_file = [&file](const auto& asset) { return absl::EqualsIgnoreCase(asset.first, file); };
  while (std::any_of(assets.begin(), assets.end(), is_file)) file.insert(0, 1, '_');
  VirtualFiles source;
  bool added = source.Add(file.c_str(), xml);
  for (const auto& [asset, content] : assets) added = added && source.Add(asset.c_str(), content);
  if (!added) return absl::InternalError(absl::StrCat("model ", name, ": MuJoCo cannot create virtual files for it"));
  char message[1000] = "";
  mjModel* model = nullptr;
  const absl::Status status =
      GuardMujoco([&] { model = mj_loadXML(file.c_str(), source.get(), message, sizeof(message)); });
  if (!status.ok()) return absl::InternalError(absl::StrCat("model ", name, ": ", status.message()));
  if (model == nullptr) return absl::InternalError(absl::StrCat("model ", name, ": ", message));
  SkipBroadPhase(model);
  return MujocoModel(model, [](const mjModel* m) { mj_deleteModel(const_cast<mjModel*>(m)); });
}

absl::StatusOr<MujocoData> MakeMujocoData(const mjModel& model) {
  mjData* data = nullptr;
  const absl::Status status = GuardMujoco([&] { data = mj_makeData(&model); });
  if (!status.ok()) return status;
  if (data == nullptr) return absl::ResourceExhaustedError("MuJoCo could not allocate mjData");
  return MujocoData(data);
}

absl::StatusOr<Simulation> Simulation::Make(MujocoModel model) {
  absl::StatusOr<MujocoData> data = MakeMujocoData(*model);
  if (!data.ok()) return data.status();
  return Simulation(std::move(model), *std::move(data));
}

void Simulation::Scale(const PhysicsScale& scale, const ElementScale* elements) {
  nominal_ = scale.mass == 1 && scale.damping == 1 && scale.friction == 1 && elements == nullptr;
  if (nominal_) return;
  if (scaled_ == nullptr) scaled_ = std::shared_ptr<mjModel>(mj_copyModel(nullptr, model_.get()), &mj_deleteModel);
  const mjModel& nominal = *model_;
  mju_scl(scaled_->body_mass, nominal.body_mass, scale.mass, nominal.nbody);
  mju_scl(scaled_->body_inertia, nominal.body_inertia, scale.mass, 3 * nominal.nbody);
  mju_scl(scaled_->dof_damping, nominal.dof_damping, scale.damping, nominal.nv);
  mju_scl(scaled_->geom_friction, nominal.geom_friction, scale.friction, 3 * nominal.ngeom);
  mju_scl(scaled_->pair_friction, nominal.pair_friction, scale.friction, 5 * nominal.npair);
  if (elements != nullptr) ScaleElements(nominal, *elements, scaled_.get());
  mj_resetData(scaled_.get(), data_.get());
  mj_setConst(scaled_.get(), data_.get());  // cannot fail: the compiler ran it with the same memory
  const double mass = elements == nullptr
                          ? scale.mass
                          : mju_sum(scaled_->body_mass, nominal.nbody) / mju_sum(nominal.body_mass, nominal.nbody);
  ScaleStatistics(nominal, mass, scaled_.get());
  // mj_setConst overwrites these, which the XML may set; they do not depend on mass.
  scaled_->stat.extent = nominal.stat.extent;
  scaled_->stat.meansize = nominal.stat.meansize;
  mju_copy3(scaled_->stat.center, nominal.stat.center);
}

bool MujocoWarned(const mjData& data) {
  for (const mjWarningStat& warning : data.warning) {
    if (warning.number != 0) return true;
  }
  return false;
}

bool StepMujoco(const mjModel& model, int substeps, mjData* data) {
  return RunMujoco(*data, [&] {
    for (int i = 0; i < substeps; ++i) mj_step(&model, data);
  });
}

}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0

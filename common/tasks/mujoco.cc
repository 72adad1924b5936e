#include "common/tasks/mujoco.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/base/status.h"
#include "common/tasks/mujoco_files.h"

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
#if mjVERSION_HEADER >= 4000000
    mj_setCacheCapacity(mj_getCache(), 0);  // it takes a file for unchanged that was written twice in a second
#endif
  });
}

#if mjVERSION_HEADER < 4000000
// MuJoCo 2 knows files by their names without folders, and without regard to case.
class VirtualFiles {
 public:
  VirtualFiles() : vfs_(new mjVFS) { mj_defaultVFS(vfs_.get()); }
  ~VirtualFiles() { mj_deleteVFS(vfs_.get()); }
  // False if it has a file of that name.
  bool Add(const std::string& name, const std::string& content) {
    if (mj_makeEmptyFileVFS(vfs_.get(), name.c_str(), static_cast<int>(content.size())) != 0) return false;
    std::memcpy(vfs_->filedata[mj_findFileVFS(vfs_.get(), name.c_str())], content.data(), content.size());
    return true;
  }
  const mjVFS* get() const { return vfs_.get(); }

 private:
  std::unique_ptr<mjVFS> vfs_;
};
#endif

// What mj_loadXML does, but for textures that the model leaves in their files: these are loaded, too.
mjModel* Load(const char* path, const mjVFS* files, char* message, int size) {
#if mjVERSION_HEADER >= 4000000
  mjSpec* const spec = mj_parseXML(path, files, message, size);
  if (spec == nullptr) return nullptr;
  for (mjsElement* at = mjs_firstElement(spec, mjOBJ_TEXTURE); at != nullptr; at = mjs_nextElement(spec, at)) {
    mjs_asTexture(at)->embed = mjEMBED_TRUE;
  }
  mjModel* const model = mj_compile(spec, files);
  if (model == nullptr) std::snprintf(message, size, "%s", mjs_getError(spec));
  mj_deleteSpec(spec);
  return model;
#else
  return mj_loadXML(path, files, message, size);
#endif
}

// mj_setConst of MuJoCo 4, unlike MuJoCo 2's, leaves the mean mass and the mean inertia, by which the solver scales its
// tolerance, as they are. The mean inertia is the mean of the mass matrix's diagonal.
void ScaleStatistics(const mjModel& nominal, double mass, mjModel* scaled) {
#if mjVERSION_HEADER >= 300
  const auto inertia = [](const mjModel& model) { return mju_sum(model.dof_M0, model.nv); };
  scaled->stat.meanmass = nominal.stat.meanmass * mass;
  if (nominal.nv > 0) scaled->stat.meaninertia = nominal.stat.meaninertia * inertia(*scaled) / inertia(nominal);
#endif
}

// Elements of actuator_acc0. An actuator of MuJoCo 4 may have several forces.
int OutputsOf(const mjModel& model) {
#if mjVERSION_HEADER >= 4000000
  return static_cast<int>(model.nout);
#else
  return static_cast<int>(model.nu);
#endif
}

void ScaleElements(const mjModel& nominal, const ElementScale& elements, mjModel* scaled) {
  for (int body = 0; body < nominal.nbody; ++body) {
    scaled->body_mass[body] *= elements.mass[body];
    mju_scl3(scaled->body_inertia + 3 * body, scaled->body_inertia + 3 * body, elements.mass[body]);
  }
  for (int dof = 0; dof < nominal.nv; ++dof) {
    scaled->dof_damping[dof] *= elements.damping[dof];
#if mjVERSION_HEADER >= 4000000
    mjtNum* const higher = scaled->dof_dampingpoly + mjNPOLY * dof;
    mju_scl(higher, higher, elements.damping[dof], mjNPOLY);
#endif
  }
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

absl::StatusOr<MujocoModel> LoadMujocoModel(const std::string& path, const mjVFS* files) {
  char message[1000] = "";
  mjModel* model = nullptr;
  RETURN_IF_ERROR(GuardMujoco([&] { model = Load(path.c_str(), files, message, sizeof(message)); }));
  if (model == nullptr) return absl::InternalError(message);
  SkipBroadPhase(model);
  return MujocoModel(model, &mj_deleteModel);
}

absl::StatusOr<MujocoModel> CompileMujocoFiles(const std::vector<std::pair<std::string, std::string>>& files) {
  const std::string folder = absl::StrCat(kModelFolder, "/"), path = folder + files.front().first;
#if mjVERSION_HEADER >= 4000000
  std::map<std::string, const std::string*> contents;
  for (const auto& [name, content] : files) contents[folder + name] = &content;
  const MujocoFiles source([&contents](const std::string& wanted) {
    const auto found = contents.find(wanted);
    return found == contents.end() ? nullptr : found->second;
  });
  absl::StatusOr<MujocoModel> model = LoadMujocoModel(path, source.get());
  if (model.ok()) return model;
  const std::string why = absl::StrReplaceAll(model.status().message(), {{folder, ""}});
  const bool missing = absl::StrContains(why, "opening file");
  return absl::InternalError(missing ? why + ": it is not among the files that are kept with the model" : why);
#else
  VirtualFiles source;
  for (const auto& [name, content] : files) {
    if (!source.Add(name, content)) {
      return absl::InternalError(absl::StrCat("two of its files are called ", name,
                                              " without folder and case; MuJoCo 2 cannot distinguish them"));
    }
  }
  return LoadMujocoModel(path, source.get());
#endif
}

absl::StatusOr<MujocoModel> CompileMujocoModel(const std::string& name, const std::string& xml,
                                               const std::vector<std::pair<std::string, std::string>>& assets) {
  std::vector<std::pair<std::string, std::string>> files = {{name + ".xml", xml}};
  files.insert(files.end(), assets.begin(), assets.end());
  return Annotate(CompileMujocoFiles(files), "model " + name);
}

absl::StatusOr<MujocoData> MakeMujocoData(const mjModel& model) {
  mjData* data = nullptr;
  RETURN_IF_ERROR(GuardMujoco([&] { data = mj_makeData(&model); }));
  if (data == nullptr) return absl::ResourceExhaustedError("MuJoCo could not allocate mjData");
  return MujocoData(data);
}

void CopyState(const mjModel& model, const mjData& from, mjData* to) {
  mju_copy(to->qpos, from.qpos, model.nq);
  mju_copy(to->qvel, from.qvel, model.nv);
  mju_copy(to->act, from.act, model.na);
  mju_copy(to->ctrl, from.ctrl, model.nu);
  mju_copy(to->mocap_pos, from.mocap_pos, 3 * model.nmocap);
  mju_copy(to->mocap_quat, from.mocap_quat, 4 * model.nmocap);
}

absl::StatusOr<Simulation> Simulation::Make(MujocoModel model) {
  ASSIGN_OR_RETURN(MujocoData data, MakeMujocoData(*model));
  return Simulation(std::move(model), std::move(data));
}

void Simulation::Scale(const PhysicsScale& scale, const ElementScale* elements) {
  nominal_ = scale.mass == 1 && scale.damping == 1 && scale.friction == 1 && elements == nullptr;
  if (nominal_) return;
  if (scaled_ == nullptr) scaled_ = std::shared_ptr<mjModel>(mj_copyModel(nullptr, model_.get()), &mj_deleteModel);
  const mjModel& nominal = *model_;
  mju_scl(scaled_->body_mass, nominal.body_mass, scale.mass, nominal.nbody);
  mju_scl(scaled_->body_inertia, nominal.body_inertia, scale.mass, 3 * nominal.nbody);
  mju_scl(scaled_->dof_damping, nominal.dof_damping, scale.damping, nominal.nv);
#if mjVERSION_HEADER >= 4000000
  mju_scl(scaled_->dof_dampingpoly, nominal.dof_dampingpoly, scale.damping, mjNPOLY * nominal.nv);
#endif
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
  // The largest force of a muscle may follow from it, and a heavier body makes no muscle stronger.
  mju_copy(scaled_->actuator_acc0, nominal.actuator_acc0, OutputsOf(nominal));
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

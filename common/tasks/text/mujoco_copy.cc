#include "common/tasks/text/mujoco_copy.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/base/status.h"
#include "common/tasks/text/model_xml.h"
#include "common/tasks/text/mujoco_compiled.h"
#include "mujoco/mujoco.h"

namespace datacom::text {
namespace {

constexpr char kCopy[] = "copy";

using GeomBodies = std::map<int, int>;  // by the index of a geom's element: its body in the compiled model

bool InTree(const XmlElement& element) {
  return element.In("worldbody") && (element.path.back() == "worldbody" || element.path.back() == "body" ||
                                     element.path.back() == "frame" || element.path.back() == "replicate");
}
bool IsJoint(const XmlElement& element) {
  return InTree(element) && (element.name == "joint" || element.name == "freejoint");
}
bool IsActuator(const XmlElement& element) { return element.path.size() == 1 && element.In("actuator"); }
bool HasName(const XmlElement& element) {
  const std::string* const name = element.Find("name");
  return name != nullptr && !name->empty();
}

// A name that is not taken yet, and is then.
std::string Free(const std::string& wanted, std::set<std::string>* taken) {
  std::string name = wanted;
  for (int i = 2; !taken->insert(name).second; ++i) name = absl::StrCat(wanted, "_", i);
  return name;
}

// What an element is called after: its body's name, or the joint, tendon, site or body that it drives.
std::string Wanted(const std::vector<XmlElement>& elements, const XmlElement& element) {
  if (IsActuator(element)) {
    for (const char* const target : {"joint", "jointinparent", "tendon", "site", "slidersite", "body"}) {
      if (const std::string* const name = element.Find(target); name != nullptr && !name->empty()) return *name;
    }
    return "actuator";
  }
  for (int at = element.parent; at >= 0; at = elements[at].parent) {
    if (elements[at].name == "body" && HasName(elements[at])) return *elements[at].Find("name");
  }
  return "joint";
}

void InsertName(const XmlElement& element, const std::string& name, ModelEdits* edits) {
  edits->Insert(element.file, element.name_end,
                absl::StrCat(" name=\"", absl::StrReplaceAll(name, {{"\"", "&quot;"}}), "\""));
}

uint64_t BytesOf(const v1::TextTask& task) {
  uint64_t bytes = 0;
  for (const v1::TaskFile& file : task.file()) bytes += file.content().size();
  return bytes;
}

// Whether an element refers to a geom by name, so the geom must stay.
std::set<std::string> ReferredGeoms(const std::vector<XmlElement>& elements) {
  std::set<std::string> names;
  for (const XmlElement& element : elements) {
    for (const auto& [attribute, value] : element.attributes) {
      if (absl::StartsWith(attribute, "geom") || attribute == "objname" || attribute == "refname" ||
          attribute == "sidesite")
        names.insert(value);
    }
  }
  return names;
}

// The geoms that only draw a mesh.
absl::StatusOr<GeomBodies> VisualGeoms(const v1::TextTask& task, const std::vector<XmlElement>& elements) {
  v1::TextTask named = task;
  ModelEdits edits;
  const std::set<std::string> referred = ReferredGeoms(elements);
  std::map<int, std::string> names;  // by the element's index
  for (size_t i = 0; i < elements.size(); ++i) {
    const XmlElement& element = elements[i];
    if (!InTree(element) || element.name != "geom") continue;
    if (HasName(element)) {
      if (referred.count(*element.Find("name")) == 0) names[static_cast<int>(i)] = *element.Find("name");
      continue;
    }
    names[static_cast<int>(i)] = absl::StrCat("datacom unnamed ", i);
    InsertName(element, names[static_cast<int>(i)], &edits);
  }
  edits.Apply(&named);
  ASSIGN_OR_RETURN(const MujocoModel model, CompileFiles(kCopy, named));
  GeomBodies found;
  for (const auto& [index, name] : names) {
    const int id = mj_name2id(model.get(), mjOBJ_GEOM, name.c_str());
    const bool draws = id >= 0 && model->geom_contype[id] == 0 && model->geom_conaffinity[id] == 0;
    if (draws && model->geom_type[id] == mjGEOM_MESH) found[index] = model->geom_bodyid[id];
  }
  return found;
}

bool Close(const mjtNum* a, const mjtNum* b, int count) {
  return std::equal(a, a + count, b,
                    [](mjtNum x, mjtNum y) { return std::abs(x - y) <= 1e-12 * std::max(std::abs(x), std::abs(y)); });
}

// Bodies whose mass, centre or inertia differ.
std::set<int> Differing(const mjModel& before, const mjModel& after) {
  std::set<int> bodies;
  for (int i = 0; i < before.nbody; ++i) {
    if (!Close(before.body_mass + i, after.body_mass + i, 1) ||
        !Close(before.body_inertia + 3 * i, after.body_inertia + 3 * i, 3) ||
        !Close(before.body_ipos + 3 * i, after.body_ipos + 3 * i, 3) ||
        !Close(before.body_iquat + 4 * i, after.body_iquat + 4 * i, 4))
      bodies.insert(i);
  }
  return bodies;
}

v1::TextTask Without(const v1::TextTask& task, const std::vector<XmlElement>& elements, const GeomBodies& geoms) {
  ModelEdits edits;
  for (const auto& [index, body] : geoms) edits.Remove(elements[index]);
  for (const XmlElement& element : elements) {
    if (element.name == "skin" && (element.In("asset") || element.In("deformable"))) edits.Remove(element);
  }
  v1::TextTask made = task;
  edits.Apply(&made);
  return made;
}

std::set<std::string> ValuesOf(const std::vector<XmlElement>& elements, const std::string& attribute) {
  std::set<std::string> values;
  for (const XmlElement& element : elements) {
    if (const std::string* const value = element.Find(attribute)) values.insert(*value);
  }
  return values;
}

// An asset without a name is called after its file.
std::string AssetName(const XmlElement& element) {
  if (HasName(element)) return *element.Find("name");
  const std::string* const file = element.Find("file");
  return file == nullptr ? "" : std::filesystem::path(*file).stem().string();
}

// The assets of a type that no element names. MuJoCo draws a skybox without being told to.
void RemoveUnused(const std::string& type, v1::TextTask* task) {
  const std::vector<XmlElement> elements = ModelElements(*task);
  const std::set<std::string> used = ValuesOf(elements, type);
  ModelEdits edits;
  for (const XmlElement& element : elements) {
    if (element.path.size() != 1 || !element.In("asset") || element.name != type) continue;
    const std::string* const kind = element.Find("type");
    const std::string name = AssetName(element);
    if (name.empty() || used.count(name) > 0 || (kind != nullptr && *kind == "skybox")) continue;
    edits.Remove(element);
  }
  edits.Apply(task);
}

// Files that no element names. The first file is the model.
void RemoveUnusedFiles(v1::TextTask* task) {
  v1::TextTask kept = *task;
  kept.clear_file();
  for (int i = 0; i < task->file_size(); ++i) {
    const std::string& name = task->file(i).name();
    const bool used = std::any_of(task->file().begin(), task->file().end(), [&](const v1::TaskFile& file) {
      const bool xml =
          absl::EndsWith(file.name(), ".xml") || absl::EndsWith(file.name(), ".urdf") || &file == &task->file(0);
      return xml && (absl::StrContains(file.content(), absl::StrCat("\"", name, "\"")) ||
                     absl::StrContains(file.content(), absl::StrCat("'", name, "'")));
    });
    if (i == 0 || used) *kept.add_file() = task->file(i);
  }
  *task = std::move(kept);
}

}  // namespace

std::vector<std::string> NameElements(v1::TextTask* task) {
  const std::vector<XmlElement> elements = ModelElements(*task);
  std::set<std::string> joints, actuators;
  for (const XmlElement& element : elements) {
    if (!HasName(element)) continue;
    if (IsJoint(element)) joints.insert(*element.Find("name"));
    if (IsActuator(element)) actuators.insert(*element.Find("name"));
  }
  std::vector<std::string> added;
  ModelEdits edits;
  for (const XmlElement& element : elements) {
    const bool joint = IsJoint(element);
    if (HasName(element) || (!joint && !IsActuator(element))) continue;
    const std::string name = Free(Wanted(elements, element), joint ? &joints : &actuators);
    InsertName(element, name, &edits);
    added.push_back(absl::StrCat(joint ? "joint " : "actuator ", name));
  }
  if (added.empty()) return {};
  v1::TextTask named = *task;
  edits.Apply(&named);
  if (!CompileFiles(kCopy, named).ok()) return {};
  *task = std::move(named);
  return added;
}

absl::StatusOr<WithoutVisual> RemoveVisual(v1::TextTask* task) {
  WithoutVisual result;
  result.bytes = BytesOf(*task);
  ASSIGN_OR_RETURN(const MujocoModel before, CompileFiles(kCopy, *task));
  const std::vector<XmlElement> elements = ModelElements(*task);
  ASSIGN_OR_RETURN(GeomBodies geoms, VisualGeoms(*task, elements));
  result.geoms = static_cast<int>(geoms.size());
  v1::TextTask smaller = Without(*task, elements, geoms);
  absl::StatusOr<MujocoModel> after = CompileFiles(kCopy, smaller);
  if (!after.ok()) {  // a body would have no mass: only bodies with an <inertial> lose their meshes
    std::set<int> own;
    for (const XmlElement& element : elements) {
      if (element.name == "inertial") own.insert(element.parent);
    }
    for (auto it = geoms.begin(); it != geoms.end();) {
      it = own.count(elements[it->first].parent) > 0 || it->second == 0 ? std::next(it) : geoms.erase(it);
    }
    smaller = Without(*task, elements, geoms);
    ASSIGN_OR_RETURN(after, CompileFiles(kCopy, smaller));
  }
  if (const std::set<int> differ = Differing(*before, **after); !differ.empty()) {
    for (auto it = geoms.begin(); it != geoms.end();) {
      it = differ.count(it->second) > 0 ? geoms.erase(it) : std::next(it);
    }
    smaller = Without(*task, elements, geoms);
  }
  for (const char* const type : {"mesh", "material", "texture"}) RemoveUnused(type, &smaller);
  RemoveUnusedFiles(&smaller);
  ASSIGN_OR_RETURN(const MujocoModel last, CompileFiles(kCopy, smaller));
  if (!Differing(*before, *last).empty()) {
    return absl::InternalError("model: without its visual meshes the model has other masses");
  }
  result.kept = result.geoms - static_cast<int>(geoms.size());
  result.left = BytesOf(smaller);
  *task = std::move(smaller);
  return result;
}

}  // namespace datacom::text
// SPDX-License-Identifier: Apache-2.0

#include "common/tasks/text/mujoco_draft.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "common/base/status.h"
#include "common/tasks/mujoco_same.h"
#include "common/tasks/text/model_files.h"
#include "common/tasks/text/mujoco_compiled.h"
#include "common/tasks/text/mujoco_names.h"
#include "common/tasks/text/xml_tags.h"
#include "mujoco/mujoco.h"

namespace datacom::text {
namespace {

namespace fs = std::filesystem;

// The elements of a model's XML text with their places in it, so that a copy of a model can be edited without changing
// anything else. Pure functions; thread-safe.
struct XmlElement {
  int model = 0;                  // 0: the task's; the others are attached
  int file = 0;                   // index among the task's files
  std::string name;               // "joint"
  std::vector<std::string> path;  // elements around it, the outermost first; without the root and without includes
  int parent = -1;                // index of the element that it is in; -1 below the root
  size_t begin = 0, end = 0;      // of the whole element with what is in it
  size_t name_at = 0;             // where a name goes: behind "<joint", or into an empty attribute
  std::vector<std::pair<std::string, std::string>> attributes;
  // Null if there is none.
  const std::string* Find(absl::string_view attribute) const {
    for (const auto& [key, value] : attributes) {
      if (key == attribute) return &value;
    }
    return nullptr;
  }
  bool In(absl::string_view section) const { return !path.empty() && path.front() == section; }
};

// Walks a model and those that it attaches; in place of an <include>, the file that it names.
class Walk {
 public:
  explicit Walk(const v1::TextTask& task) : task_(task) {
    if (task.file_size() > 0) models_.push_back(0);
    for (; model_ < models_.size(); ++model_) File(models_[model_], {}, -1);
  }

  std::vector<XmlElement> elements;
  std::vector<std::pair<int, XmlElement>> includes;  // by the file that each names

 private:
  void File(int file, std::vector<std::string> path, int parent) {
    if (!visited_.insert(file).second) return;  // MuJoCo refuses a file that is included twice
    const absl::string_view xml = task_.file(file).content();
    std::vector<Open> open;  // the elements that have begun
    for (size_t at = 0; const std::optional<XmlTag> tag = NextTag(xml, at); at = tag->end) {
      if (!absl::StartsWith(tag->name, "/")) {
        Begin(file, *tag, &path, &parent, &open);
        continue;
      }
      if (open.empty()) return;
      Close(open.back(), tag->end, &path, &parent);
      open.pop_back();
    }
  }

  struct Open {
    int element = -1;  // -1: the root, or an include
    int parent = -1;   // what `parent` was before
  };

  void Close(const Open& open, size_t end, std::vector<std::string>* path, int* parent) {
    *parent = open.parent;
    if (open.element < 0) return;
    elements[open.element].end = end;
    path->pop_back();
  }

  void Begin(int file, const XmlTag& tag, std::vector<std::string>* path, int* parent, std::vector<Open>* open) {
    XmlElement element;
    element.model = static_cast<int>(model_), element.file = file;
    element.begin = tag.begin, element.end = tag.end, element.name_at = tag.name_end;
    element.name = std::string(tag.name), element.parent = *parent, element.path = *path;
    for (const auto& [name, value] : tag.attributes) {
      element.attributes.emplace_back(name, Decoded(value));
      if (name == "name") element.name_at = value.data() - task_.file(file).content().data();
    }
    const bool root = open->empty(), include = element.name == "include";
    if (include) Include(element, tag.whole, *path, *parent);
    if (element.name == "model" && element.In("asset")) Attach(element);
    if (tag.whole) {
      if (!root && !include) elements.push_back(element);
      return;
    }
    open->push_back({root || include ? -1 : static_cast<int>(elements.size()), *parent});
    if (root || include) return;
    *parent = static_cast<int>(elements.size());
    path->push_back(element.name);
    elements.push_back(std::move(element));
  }

  void Include(const XmlElement& element, bool whole, const std::vector<std::string>& path, int parent) {
    for (const int from : {models_[model_], element.file}) {  // as MuJoCo: relative to the model, else to this file
      const int file = Beside(from, element);
      if (file < 0) continue;
      if (whole) includes.emplace_back(file, element);
      return File(file, path, parent);
    }
  }

  void Attach(const XmlElement& element) {
    int file = Beside(models_[model_], element);
    if (file < 0) file = Beside(element.file, element);
    if (file >= 0 && visited_.count(file) == 0) models_.push_back(file);
  }

  // The number of the file that the element names, relative to the file `from`; -1 if it is not among the task's.
  int Beside(int from, const XmlElement& element) const {
    const std::string* const given = element.Find("file");
    if (given == nullptr) return -1;
    const std::string name = PathBeside(task_.file(from).name(), *given);
    const auto found = std::find_if(task_.file().begin(), task_.file().end(),
                                    [&](const v1::TaskFile& file) { return file.name() == name; });
    return found == task_.file().end() ? -1 : static_cast<int>(found - task_.file().begin());
  }

  const v1::TextTask& task_;
  std::vector<int> models_;  // their first files; grows
  size_t model_ = 0;         // the one at hand
  std::set<int> visited_;
};

// The elements below the root of the task's first file in the text's order, with those of the included files in place
// of the <include>, then those of the attached models. XML that MuJoCo would refuse gives any part of them.
std::vector<XmlElement> ModelElements(const v1::TextTask& task) { return std::move(Walk(task).elements); }

// Whether nothing is in its root.
bool IsEmpty(const std::string& xml) {
  const std::optional<XmlTag> root = NextTag(xml, 0), next = root ? NextTag(xml, root->end) : std::nullopt;
  return !next || absl::StartsWith(next->name, "/");
}

// Changes of the task's files, applied together.
class ModelEdits {
 public:
  void Insert(int file, size_t at, const std::string& text) { edits_[{file, at}] = {at, text}; }
  void Remove(const XmlElement& element) { edits_[{element.file, element.begin}] = {element.end, ""}; }
  void Apply(v1::TextTask* task) const {
    size_t removed_to = 0;  // what lies in an element that is removed is not edited
    std::map<std::pair<int, size_t>, std::pair<size_t, std::string>> kept;
    int file = -1;
    for (const auto& [place, edit] : edits_) {
      if (place.first != file) file = place.first, removed_to = 0;
      if (place.second < removed_to) continue;
      removed_to = edit.first;
      kept.insert({place, edit});
    }
    for (auto each = kept.rbegin(); each != kept.rend(); ++each) {
      const auto& [place, edit] = *each;
      task->mutable_file(place.first)->mutable_content()->replace(place.second, edit.first - place.second, edit.second);
    }
    const Walk walk(*task);
    ModelEdits empty;  // MuJoCo includes no empty file
    for (const auto& [included, element] : walk.includes) {
      if (IsEmpty(task->file(included).content())) empty.Remove(element);
    }
    if (!empty.edits_.empty()) empty.Apply(task);
  }

 private:
  // By file and place: where what is replaced ends, and by what.
  std::map<std::pair<int, size_t>, std::pair<size_t, std::string>> edits_;
};

using GeomBodies = std::map<int, int>;  // by the index of a geom's element: its body in the compiled model

bool InTree(const XmlElement& element) {
  return element.In("worldbody") && (element.path.back() == "worldbody" || element.path.back() == "body" ||
                                     element.path.back() == "frame" || element.path.back() == "replicate");
}
bool IsJoint(const XmlElement& element) {
  return InTree(element) && (element.name == "joint" || element.name == "freejoint");
}
bool IsActuator(const XmlElement& element) { return element.path.size() == 1 && element.In("actuator"); }
bool IsKeyframe(const XmlElement& element) { return element.path.size() == 1 && element.In("keyframe"); }
// Of what gets a name; empty for everything else.
std::string KindOf(const XmlElement& element) {
  return IsJoint(element) ? "joint" : IsActuator(element) ? "actuator" : IsKeyframe(element) ? "keyframe" : "";
}
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
  if (IsKeyframe(element)) return "key";
  for (int at = element.parent; at >= 0; at = elements[at].parent) {
    if (elements[at].name == "body" && HasName(elements[at])) return *elements[at].Find("name");
  }
  return "joint";
}

void InsertName(const XmlElement& element, const std::string& name, ModelEdits* edits) {
  const std::string value =
      absl::StrReplaceAll(name, {{"&", "&amp;"}, {"<", "&lt;"}, {"\"", "&quot;"}, {"'", "&apos;"}, {"\n", "&#10;"}});
  const bool empty = element.Find("name") != nullptr;
  edits->Insert(element.file, element.name_at, empty ? value : absl::StrCat(" name=\"", value, "\""));
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
    if (element.model > 0 || !InTree(element) || element.name != "geom") continue;
    if (HasName(element)) {
      if (referred.count(*element.Find("name")) == 0) names[static_cast<int>(i)] = *element.Find("name");
      continue;
    }
    names[static_cast<int>(i)] = absl::StrCat("datacom unnamed ", i);
    InsertName(element, names[static_cast<int>(i)], &edits);
  }
  edits.Apply(&named);
  ASSIGN_OR_RETURN(const MujocoModel model, CompileFiles(named));
  GeomBodies found;
  for (const auto& [index, name] : names) {
    const int id = mj_name2id(model.get(), mjOBJ_GEOM, name.c_str());
    const bool draws = id >= 0 && model->geom_contype[id] == 0 && model->geom_conaffinity[id] == 0 &&
                       model->geom_fluid[mjNFLUID * id] == 0;
    if (draws && model->geom_type[id] == mjGEOM_MESH) found[index] = model->geom_bodyid[id];
  }
  return found;
}

// A ray, and the distance of a body, also meet what only draws.
absl::Status CheckSensors(const mjModel& model) {
  for (int id = 0; id < model.nsensor; ++id) {
    bool sees = model.sensor_type[id] == mjSENS_RANGEFINDER;
#if mjVERSION_HEADER >= 4000000
    sees |= model.sensor_type[id] >= mjSENS_GEOMDIST && model.sensor_type[id] <= mjSENS_GEOMFROMTO &&
            (model.sensor_objtype[id] != mjOBJ_GEOM || model.sensor_reftype[id] != mjOBJ_GEOM);
#endif
    if (!sees) continue;
    return Wrong("model", absl::StrCat("its sensor ", PlainName(model, mjOBJ_SENSOR, id),
                                       " also measures geoms that only draw a mesh; remove them in the model by hand, "
                                       "or leave out --no-visual"));
  }
  return absl::OkStatus();
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
    if (element.model == 0 && element.name == "skin" && (element.In("asset") || element.In("deformable")))
      edits.Remove(element);
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
  return file == nullptr ? "" : fs::path(PathBeside("", *file)).stem().string();
}

// The assets of a type that no element names. MuJoCo draws a skybox without being told to.
void RemoveUnused(const std::string& type, v1::TextTask* task) {
  const std::vector<XmlElement> elements = ModelElements(*task);
  const std::set<std::string> used = ValuesOf(elements, type);
  ModelEdits edits;
  for (const XmlElement& element : elements) {
    if (element.model > 0 || element.path.size() != 1 || !element.In("asset") || element.name != type) continue;
    const std::string* const kind = element.Find("type");
    const std::string name = AssetName(element);
    if (name.empty() || used.count(name) > 0 || (kind != nullptr && *kind == "skybox")) continue;
    edits.Remove(element);
  }
  edits.Apply(task);
}

// Files that no other file names. The first file is the model.
void RemoveUnusedFiles(v1::TextTask* task) {
  v1::TextTask kept = *task;
  kept.clear_file();
  std::vector<std::string> values;  // of all attributes
  for (const v1::TaskFile& file : task->file()) {
    if (!IsXml(file.content())) continue;
    for (size_t at = 0; const std::optional<XmlTag> tag = NextTag(file.content(), at); at = tag->end) {
      for (const auto& [name, value] : tag->attributes) values.push_back(Decoded(value));
    }
  }
  for (int i = 0; i < task->file_size(); ++i) {
    const std::string name = fs::path(task->file(i).name()).filename().string();
    const auto names = [&name](const std::string& value) { return absl::EndsWith(value, name); };
    if (i == 0 || std::any_of(values.begin(), values.end(), names)) *kept.add_file() = task->file(i);
  }
  *task = std::move(kept);
}

}  // namespace

std::vector<std::string> NameElements(v1::TextTask* task) {
  const std::vector<XmlElement> elements = ModelElements(*task);
  std::map<std::pair<int, std::string>, std::set<std::string>> taken;  // names by model and kind
  for (const XmlElement& element : elements) {
    if (HasName(element)) taken[{element.model, KindOf(element)}].insert(*element.Find("name"));
  }
  std::vector<std::string> added;
  ModelEdits edits;
  for (const XmlElement& element : elements) {
    const std::string kind = KindOf(element);
    if (HasName(element) || kind.empty()) continue;
    const std::string name = Free(Wanted(elements, element), &taken[{element.model, kind}]);
    InsertName(element, name, &edits);
    added.push_back(absl::StrCat(kind, " ", name));
  }
  if (added.empty()) return {};
  v1::TextTask named = *task;
  edits.Apply(&named);
  const absl::StatusOr<MujocoModel> before = CompileFiles(*task), after = CompileFiles(named);
  if (!before.ok() || !after.ok() || !CheckSameModel(**before, **after, Names::kAny).ok()) return {};
  *task = std::move(named);
  return added;
}

absl::StatusOr<WithoutVisual> RemoveVisual(v1::TextTask* task) {
  WithoutVisual result;
  result.bytes = BytesOf(*task);
  ASSIGN_OR_RETURN(const MujocoModel before, CompileFiles(*task));
  const std::vector<XmlElement> elements = ModelElements(*task);
  ASSIGN_OR_RETURN(GeomBodies geoms, VisualGeoms(*task, elements));
  result.geoms = static_cast<int>(geoms.size());
  if (!geoms.empty()) RETURN_IF_ERROR(CheckSensors(*before));
  v1::TextTask smaller = Without(*task, elements, geoms);
  absl::StatusOr<MujocoModel> after = CompileFiles(smaller);
  if (!after.ok()) {  // a body would have no mass: only bodies with an <inertial> lose their meshes
    std::set<int> own;
    for (const XmlElement& element : elements) {
      if (element.name == "inertial") own.insert(element.parent);
    }
    std::erase_if(geoms,
                  [&](const auto& geom) { return own.count(elements[geom.first].parent) == 0 && geom.second != 0; });
    smaller = Without(*task, elements, geoms);
    ASSIGN_OR_RETURN(after, CompileFiles(smaller));
  }
  if (const std::set<int> differ = Differing(*before, **after); !differ.empty()) {
    std::erase_if(geoms, [&differ](const auto& geom) { return differ.count(geom.second) > 0; });
    smaller = Without(*task, elements, geoms);
  }
  for (const char* const type : {"mesh", "material", "texture"}) RemoveUnused(type, &smaller);
  RemoveUnusedFiles(&smaller);
  ASSIGN_OR_RETURN(const MujocoModel last, CompileFiles(smaller));
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

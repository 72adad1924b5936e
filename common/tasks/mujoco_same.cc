#include "common/tasks/mujoco_same.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "mujoco/mjxmacro.h"

namespace datacom {
namespace {

#if mjVERSION_HEADER >= 4000000
#define DATACOM_MODEL_SIZES MJMODEL_SIZES
#else
#define DATACOM_MODEL_SIZES MJMODEL_INTS
#define XNV X
#endif

struct Size {
  absl::string_view name;
  long long original, copy;
};

struct Field {
  absl::string_view name, size;  // body_mass, nbody
  long long rows;
  size_t row_bytes;
  const void *original, *copy;
  std::string (*print)(const void* row, size_t bytes);
};

template <typename T>
std::string Print(const void* row, size_t bytes) {
  std::string text;
  for (size_t i = 0; i < bytes / sizeof(T); ++i) {
    T value;
    std::memcpy(&value, static_cast<const char*>(row) + i * sizeof(T), sizeof(T));
    if constexpr (sizeof(T) == 1) {
      absl::StrAppend(&text, i == 0 ? "" : " ", static_cast<int>(value));
    } else {
      absl::StrAppend(&text, i == 0 ? "" : " ", value);
    }
  }
  return text;
}

std::vector<Size> SizesOf(const mjModel& original, const mjModel& copy) {
#define X(name) {#name, static_cast<long long>(original.name), static_cast<long long>(copy.name)},
  return {DATACOM_MODEL_SIZES};
#undef X
}

std::vector<Field> FieldsOf(const mjModel& original, const mjModel& copy) {
  const mjModel* const m = &original;
  MJMODEL_POINTERS_PREAMBLE(m)
#define X(type, name, rows, columns)               \
  {                                                \
      #name,                                       \
      #rows,                                       \
      static_cast<long long>(m->rows),             \
      sizeof(type) * static_cast<size_t>(columns), \
      original.name,                               \
      copy.name,                                   \
      &Print<type>},
  return {MJMODEL_POINTERS};
#undef X
}

// What follows from names and paths.
bool OfText(absl::string_view field) {
  return absl::StartsWith(field, "name") || absl::StartsWith(field, "nnames") || field == "paths" ||
         field == "npaths" || absl::EndsWith(field, "_pathadr") || field == "tex_contenttypeadr" ||
         field == "nbuffer" || field == "narena";
}

// The type of the elements that a size counts, and for the data of files where those of an element begin.
mjtObj TypeOf(const mjModel& model, absl::string_view size, const int** begins) {
  *begins = size == "nmeshvert"     ? model.mesh_vertadr
            : size == "nmeshface"   ? model.mesh_faceadr
            : size == "nhfielddata" ? model.hfield_adr
                                    : nullptr;
  if (*begins != nullptr) return size == "nhfielddata" ? mjOBJ_HFIELD : mjOBJ_MESH;
  static constexpr std::pair<absl::string_view, const char*> kShort[] = {
      {"njnt", "joint"},    {"nv", "dof"},       {"ncam", "camera"}, {"ntex", "texture"},
      {"nmat", "material"}, {"neq", "equality"}, {"nu", "actuator"}};
  for (const auto& [known, type] : kShort) {
    if (known == size) return static_cast<mjtObj>(mju_str2Type(type));
  }
  return static_cast<mjtObj>(mju_str2Type(std::string(size.substr(1)).c_str()));
}

// "body hand_palm", "entry 17".
std::string Element(const mjModel& model, const Field& field, long long row) {
  const int* begins = nullptr;
  const mjtObj type = TypeOf(model, field.size, &begins);
  int id = static_cast<int>(row);
  if (type == mjOBJ_UNKNOWN) return absl::StrCat("entry ", row);
  if (begins != nullptr) {
    const long long count = type == mjOBJ_MESH ? model.nmesh : model.nhfield;
    id = static_cast<int>(std::upper_bound(begins, begins + count, static_cast<int>(row)) - begins) - 1;
  }
  if (type == mjOBJ_DOF) return absl::StrCat("degree of freedom ", row);
  const char* const name = mj_id2name(&model, type, id);
  return absl::StrCat(mju_type2Str(type), " ", name == nullptr || *name == '\0' ? absl::StrCat("number ", id) : name);
}

template <typename Value>
absl::string_view BytesOf(const Value& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

absl::Status Differs(absl::string_view what, absl::string_view original, absl::string_view copy) {
  return absl::FailedPreconditionError(
      absl::StrCat("the copy of the model differs from it: ", what, " is ", copy, " instead of ", original));
}

}  // namespace

absl::Status CheckSameModel(const mjModel& original, const mjModel& copy, Names names) {
  for (const bool elements : {true, false}) {  // other sizes follow from the numbers of elements
    for (const Size& size : SizesOf(original, copy)) {
      const int* begins = nullptr;
      if (size.original == size.copy || OfText(size.name)) continue;
      if (elements && (TypeOf(original, size.name, &begins) == mjOBJ_UNKNOWN || begins != nullptr)) continue;
      return Differs(size.name, absl::StrCat(size.original), absl::StrCat(size.copy));
    }
  }
  for (const Field& field : FieldsOf(original, copy)) {
    if (OfText(field.name)) continue;
    for (long long row = 0; row < field.rows; ++row) {
      const char* const one = static_cast<const char*>(field.original) + row * field.row_bytes;
      const char* const other = static_cast<const char*>(field.copy) + row * field.row_bytes;
      if (std::memcmp(one, other, field.row_bytes) == 0) continue;
      return Differs(absl::StrCat(field.name, " of ", Element(original, field, row)), field.print(one, field.row_bytes),
                     field.print(other, field.row_bytes));
    }
  }
  const auto same = [](const auto& one, const auto& other) { return BytesOf(one) == BytesOf(other); };
#if mjVERSION_HEADER >= 4000000
#define X(type, name, size)                                                                 \
  if (!same(original.opt.name, copy.opt.name)) {                                            \
    return Differs("option " #name, Print<type>(&original.opt.name, sizeof(type) * (size)), \
                   Print<type>(&copy.opt.name, sizeof(type) * (size)));                     \
  }
#define XVEC X
  MJOPTION_FIELDS
#undef X
#undef XVEC
#else
  if (!same(original.opt, copy.opt)) return Differs("<option>", "the original's", "another");
#endif
  if (!same(original.stat, copy.stat)) return Differs("<statistic>", "the original's", "another");
  if (!same(original.vis, copy.vis)) return Differs("<visual>", "the original's", "another");
  if (names == Names::kAny) return absl::OkStatus();
  if (original.nnames != copy.nnames || std::memcmp(original.names, copy.names, original.nnames) != 0) {
    return Differs("the names of its elements", "the original's", "others");
  }
  return absl::OkStatus();
}

}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0

#include "common/tasks/text/model_copies.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/status.h"
#include "common/tasks/text/xml_tags.h"

namespace datacom::text {
namespace {

constexpr double kMostIncludes = 1000;  // each is a call within the call of the file around it
constexpr double kTexel = 3.0 / 8;      // numbers: a byte for each of three colours

// The value of an attribute; empty without one.
std::string ValueOf(const XmlTag& tag, absl::string_view attribute) {
  for (const auto& [name, value] : tag.attributes) {
    if (name == attribute) return Decoded(value);
  }
  return "";
}

// The numbers of an attribute, each at least 1.
std::vector<double> NumbersOf(const XmlTag& tag, absl::string_view attribute) {
  std::vector<double> numbers;
  const std::string text = ValueOf(tag, attribute);
  for (const absl::string_view word : absl::StrSplit(text, absl::ByAnyChar(kXmlSpace), absl::SkipEmpty())) {
    double number = 0;
    if (absl::SimpleAtod(word, &number)) numbers.push_back(std::max(1.0, number));
  }
  return numbers;
}

// Their product; 1 without any.
double ProductOf(const XmlTag& tag, absl::string_view attribute) {
  double product = 1;
  for (const double number : NumbersOf(tag, attribute)) product *= number;
  return product;
}

// The numbers that MuJoCo allocates for an element because its attributes say so.
double AllocatedBy(const XmlTag& tag) {
  const std::string builtin = ValueOf(tag, "builtin");
  if (tag.name == "hfield") return ProductOf(tag, "nrow") * ProductOf(tag, "ncol");
  if (tag.name == "numeric") return ProductOf(tag, "size");
  if (tag.name == "size") return ProductOf(tag, "nuserdata");
  if (tag.name == "texture" && !builtin.empty() && builtin != "none") {
    const double width = ProductOf(tag, "width"), height = ProductOf(tag, "height");
    return kTexel * (ValueOf(tag, "type") == "2d" ? width * height : std::max(width * height, 6 * width * width));
  }
  if (tag.name == "mesh" && !builtin.empty()) {
    const std::vector<double> sizes = NumbersOf(tag, "params");
    if (sizes.empty()) return 1;
    const double largest = *std::max_element(sizes.begin(), sizes.end());
    return builtin == "sphere" ? 60 * std::pow(4, sizes[0]) : 6 * largest * largest;
  }
  return ProductOf(tag, "nsample") * (tag.name == "user" ? ProductOf(tag, "dim") : 1);
}

class Budget {
 public:
  explicit Budget(const FindModelFile& find) : find_(find) {}

  // A model of which so many copies are made, and those that it attaches. Every <attach> copies the assets once,
  // however often it is replicated.
  absl::Status Model(const std::string& path, double copies, double assets) {
    if (!around_.insert(path).second) {  // MuJoCo would read it for ever
      return absl::InvalidArgumentError(absl::StrCat("model: ", path, " attaches itself"));
    }
    const auto depth = static_cast<double>(around_.size());
    if (depth > kMostIncludes) return Refused("model", "is attached within", depth, "models", kMostIncludes);
    again_ = !known_.insert(path).second;
    model_ = path, assets_ = assets, attached_.clear(), attaching_.clear(), included_.clear(), sizes_.clear();
    RETURN_IF_ERROR(File(path, copies));
    std::map<std::string, Attaching> attaching = std::exchange(attaching_, {});
    for (const auto& [name, file] : std::exchange(attached_, {})) {
      const Attaching& by = attaching[name.empty() ? NameIn(file) : name];
      RETURN_IF_ERROR(Model(file, std::max(copies, by.copies), assets * std::max(1.0, by.elements)));
    }
    around_.erase(path);
    return absl::OkStatus();
  }

 private:
  struct Attaching {  // the elements that attach a model, and the copies that they make of it
    double elements = 0, copies = 0;
  };

  // What a model is called that has no name where it is attached; empty if it has none of its own either.
  std::string NameIn(const std::string& path) const {
    const std::string* const xml = find_(path);
    const std::optional<XmlTag> root = xml == nullptr ? std::nullopt : NextTag(*xml, 0);
    return root ? ValueOf(*root, "model") : "";
  }

  absl::Status File(const std::string& path, double copies) {
    const std::string* const xml = find_(path);
    if (xml == nullptr || !included_.insert(path).second) return absl::OkStatus();  // MuJoCo includes no file twice
    const auto files = static_cast<double>(included_.size());
    if (files > kMostIncludes) return Refused("include", "is one of those of", files, "files", kMostIncludes);
    std::vector<double> around = {copies};             // copies that the open replicates make of what is in them
    std::vector<std::pair<std::string, double>> open;  // bodies and frames, and elements_ before each
    for (size_t at = 0; const std::optional<XmlTag> tag = NextTag(*xml, at); at = tag->end) {
      if (tag->name == "/replicate" && around.size() > 1) around.pop_back();
      if ((tag->name == "/body" || tag->name == "/frame") && !open.empty()) {
        sizes_[open.back().first] = (elements_ - open.back().second) / around.back();
        open.pop_back();
      }
      if (absl::StartsWith(tag->name, "/")) continue;
      if (!tag->whole && (tag->name == "body" || tag->name == "frame")) {
        open.emplace_back(absl::StrCat(tag->name, " ", ValueOf(*tag, "name")), elements_);
      }
      RETURN_IF_ERROR(Element(*tag, path, around.back()));
      if (tag->name == "replicate" && !tag->whole) around.push_back(around.back() * ProductOf(*tag, "count"));
    }
    return absl::OkStatus();
  }

  absl::Status Element(const XmlTag& tag, const std::string& path, double around) {
    const absl::string_view name = tag.name;
    if (name == "include") return File(Place(ValueOf(tag, "file"), path), around);
    if (name == "model") attached_.emplace_back(ValueOf(tag, "name"), Place(ValueOf(tag, "file"), path));
    if (name == "attach") Attach(tag, around);
    const bool counted = name == "replicate" || name == "composite" || name == "flexcomp";
    const double copies = counted ? around * ProductOf(tag, "count") : around;
    if (counted && copies > kMostCopies) return Refused(name, "makes", copies, "parts", kMostCopies);
    elements_ += copies;
    if (copies > 1 || again_) parts_ += copies;
    if (parts_ > kMostParts) return Refused(name, "is one of", parts_, "parts that are copies", kMostParts);
    for (const auto& [attribute, value] : tag.attributes) {
      if (name == "size" && absl::StartsWith(attribute, "nuser_")) user_ = std::max(user_, ProductOf(tag, attribute));
    }
    const bool asset = name == "hfield" || name == "texture" || name == "mesh";
    numbers_ += (asset ? assets_ : around) * AllocatedBy(tag);
    const double numbers = numbers_ + user_ * elements_;
    if (numbers > kMostNumbers) return Refused(name, "is one of those that make", numbers, "numbers", kMostNumbers);
    return absl::OkStatus();
  }

  // Without a model: of a body or frame of this one; of all so far if it is not known.
  void Attach(const XmlTag& tag, double around) {
    const std::string model = ValueOf(tag, "model"), kind = ValueOf(tag, "body").empty() ? "frame" : "body";
    if (model.empty()) {
      const auto known = sizes_.find(absl::StrCat(kind, " ", ValueOf(tag, kind)));
      const double size = known == sizes_.end() ? elements_ : known->second;
      elements_ += around * size, parts_ += around * size;
      if (known != sizes_.end()) sizes_[absl::StrCat(kind, " ", ValueOf(tag, "prefix"), ValueOf(tag, kind))] = size;
      return;
    }
    for (const std::string& attached : {model, std::string()}) {  // "": models without any name
      attaching_[attached].elements += 1, attaching_[attached].copies += around;
    }
  }

  // As MuJoCo: relative to the model, else to the file that names it.
  std::string Place(const std::string& file, const std::string& path) const {
    const std::string first = PathBeside(model_, file);
    return find_(first) != nullptr ? first : PathBeside(path, file);
  }

  static absl::Status Refused(absl::string_view element, absl::string_view makes, double count, absl::string_view what,
                              double most) {
    return absl::InvalidArgumentError(
        absl::StrCat("model: its <", element, "> ", makes, " ", count, " ", what, "; at most ", most, " are taken"));
  }

  const FindModelFile& find_;
  std::set<std::string> known_, around_;  // models that have been looked at; the one at hand, and those that attach it
  std::string model_;                     // the one at hand
  bool again_ = false;                    // it is known already
  double assets_ = 1;                     // copies of its assets
  std::vector<std::pair<std::string, std::string>> attached_;  // names and files of the models that it names
  std::map<std::string, Attaching> attaching_;                 // by name
  std::set<std::string> included_;                             // its files
  std::map<std::string, double> sizes_;                        // elements of each of its bodies and frames
  double elements_ = 0, parts_ = 0, numbers_ = 0, user_ = 0;   // user_: numbers of every element
};

}  // namespace

absl::Status CheckCopies(const std::string& model, const FindModelFile& find) {
  return Budget(find).Model(model, /*copies=*/1, /*assets=*/1);
}

}  // namespace datacom::text
// SPDX-License-Identifier: Apache-2.0

#include "common/tasks/text/model_copies.h"

#include <map>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace datacom::text {
namespace {

using ::testing::HasSubstr;

// Of the model m.xml beside other files.
std::string Refusal(const std::string& xml, std::map<std::string, std::string> files = {}) {
  files["m.xml"] = xml;
  const absl::Status status = CheckCopies("m.xml", [&files](const std::string& path) -> const std::string* {
    const auto found = files.find(path);
    return found == files.end() ? nullptr : &found->second;
  });
  EXPECT_EQ(absl::IsInvalidArgument(status), !status.ok()) << status;
  return std::string(status.message());
}

TEST(ModelCopies, AreRefusedAboveTenThousandNamingElementAndNumber) {
  EXPECT_EQ(Refusal("<worldbody><replicate count=\"10000\"><geom/></replicate></worldbody>"), "");
  EXPECT_EQ(Refusal("<worldbody><replicate count=\"10001\"><geom/></replicate></worldbody>"),
            "model: its <replicate> makes 10001 parts; at most 10000 are taken");
  EXPECT_THAT(Refusal("<replicate offset='1 0 0'\n count = '1e8'/>"), HasSubstr("<replicate> makes 1e+08 parts"));
  EXPECT_THAT(Refusal("<?xml version=\"1.0\"?><!DOCTYPE m><replicate a=\">\" count='1e8'>"), HasSubstr("1e+08 parts"));
  EXPECT_THAT(Refusal("<composite type=\"grid\" count=\"200 51 1\"/>"), HasSubstr("<composite> makes 10200 parts"));
  EXPECT_THAT(Refusal("<flexcomp count=\"22 22 22\"/>"), HasSubstr("<flexcomp> makes 10648 parts"));
  EXPECT_EQ(Refusal("<composite count=\"100 100\"/><composite count=\"100 100\"/>"), "");
}

TEST(ModelCopies, OfNestedReplicatesMultiply) {
  const std::string inner = "<replicate count=\"101\"><geom/></replicate>";
  EXPECT_THAT(Refusal("<replicate count=\"100\">" + inner + "</replicate>"), HasSubstr("makes 10100 parts"));
  EXPECT_EQ(Refusal("<replicate count=\"100\"></replicate>" + inner + "<replicate count=\"100\"/>" + inner), "");
}

TEST(ModelCopies, InCommentsAndOtherElementsAreNoCopies) {
  EXPECT_EQ(Refusal("<!-- <replicate count=\"1e8\"/> --><custom><text name=\"count\" data=\"a > 1e8\"/></custom>"), "");
  EXPECT_EQ(Refusal("<replicates count=\"1e8\"/><replicate recount=\"1e8\"/><replicate count=\"\"/>"), "");
  EXPECT_EQ(Refusal(""), "");
  EXPECT_EQ(Refusal("</replicate></replicate><!-- no end"), "");
}

TEST(ModelCopies, AreCountedWhereACharacterReferenceWritesTheNumber) {
  EXPECT_THAT(Refusal("<replicate count=\"&#49;000000\">"), HasSubstr("<replicate> makes 1e+06 parts"));
  EXPECT_THAT(Refusal("<replicate count='1&#x30;00&#x000030;0'>"), HasSubstr("makes 100000 parts"));
}

TEST(ModelCopies, OfIncludedAndAttachedModelsMultiply) {
  const std::string inner = "<mujoco><replicate count='1000'><geom/></replicate></mujoco>";
  const std::string many = "<replicate> makes 1e+06 parts";
  EXPECT_THAT(Refusal("<replicate count='1000'><include file='b/c.xml'/></replicate>", {{"b/c.xml", inner}}),
              HasSubstr(many));
  EXPECT_THAT(Refusal("<replicate count='1000'><include file='b\\c.xml'/></replicate>", {{"b/c.xml", inner}}),
              HasSubstr(many));
  EXPECT_THAT(Refusal("<replicate count='1000'><include file='b/c.xml'/></replicate>",
                      {{"b/c.xml", "<include file='d&#228;.xml'/>"}, {"b/d\xC3\xA4.xml", inner}}),
              HasSubstr(many))
      << "beside the including file";
  EXPECT_THAT(
      Refusal("<asset><model name='x' file='c.xml'/></asset><replicate count='1000'><attach model='x'/></replicate>",
              {{"c.xml", inner}}),
      HasSubstr(many));
  EXPECT_THAT(Refusal("<include file='b/c.xml'/><replicate count='1000'><attach model='x'/></replicate>",
                      {{"b/c.xml", "<mujoco><model name='x' file='d.xml'/></mujoco>"}, {"b/d.xml", inner}}),
              HasSubstr(many))
      << "beside the file that names it";
  EXPECT_EQ(Refusal("<include file='c.xml'/><model file='absent.xml'/><attach/>", {{"c.xml", inner}}), "");
}

TEST(ModelCopies, OfSeveralAttachesAddUpAlsoWithinAttachedModels) {
  const auto model = [](const std::string& file, int attaches) {
    std::string xml = "<mujoco><asset><model name='x' file='" + file + "'/></asset><worldbody>";
    for (int i = 0; i < attaches; ++i) xml += "<attach model='x'/>";
    return xml;
  };
  EXPECT_THAT(Refusal(model("a.xml", 100),
                      {{"a.xml", model("b.xml", 100)}, {"b.xml", model("c.xml", 100)}, {"c.xml", "<geom/>"}}),
              HasSubstr("<attach> is one of 200400 parts that are copies"));
  EXPECT_EQ(Refusal(model("a.xml", 30), {{"a.xml", model("b.xml", 30)}, {"b.xml", "<geom/><geom/>"}}), "");
  std::string to_a, to_b;
  for (int i = 0; i < 500; ++i) to_a += "<model file='a.xml'/>", to_b += "<model file='b.xml'/>";
  EXPECT_THAT(Refusal(to_a, {{"a.xml", to_b}, {"b.xml", "<geom/>"}}), HasSubstr("parts that are copies"))
      << "each is read, also if nothing attaches it";
}

TEST(ModelCopies, OfTheModelsOwnBodiesAndFramesMultiply) {
  const auto doubled = [](int times) {
    std::string xml = "<frame name='f0'><geom/></frame>";
    for (int i = 1; i <= times; ++i) {
      xml = "<frame name='f" + std::to_string(i) + "'>" + xml + "<attach frame='f" + std::to_string(i - 1) +
            "'/></frame>";
    }
    return xml;
  };
  EXPECT_EQ(Refusal(doubled(10)), "");
  EXPECT_THAT(Refusal(doubled(20)), HasSubstr("its <attach> is one of "));
  std::string large;
  for (int i = 0; i < 5000; ++i) large += "<geom/>";
  large += "<replicate count='2'><body name='b'><geom/></body></replicate>";
  for (int i = 0; i < 1000; ++i) large += "<attach body='b' prefix='c'/><attach body='cb'/>";
  EXPECT_EQ(Refusal(large), "") << "only the body is copied";
}

TEST(ModelCopies, OfAModelWithoutANameAreThoseThatAttachItByItsOwn) {
  std::string xml, geoms, attaches;
  for (int i = 0; i < 600; ++i) geoms += "<geom/>";
  std::map<std::string, std::string> files;
  for (const char* const name :
       {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p", "q", "r", "s", "t"}) {
    const std::string file = std::string("sub/") + name;
    xml += "<model file='" + file + "'/><attach model='" + name + "'/>";
    files[file] = std::string("<mujoco model='") + name + "'>" + geoms;
  }
  EXPECT_EQ(Refusal(xml, files), "");
  for (int i = 0; i < 400; ++i) attaches += "<attach model='a'/>";
  EXPECT_THAT(Refusal(xml + attaches, files), HasSubstr("parts that are copies"));
}

TEST(ModelCopies, OfAssetsAreMadeByEveryAttachAndByNoReplicate) {
  const std::string asset = "<asset><model name='x' file='c.xml'/></asset>", attach = "<attach model='x'/>";
  const std::map<std::string, std::string> files = {
      {"c.xml", "<texture builtin='flat' type='2d' width='1000' height='1000'/>"}};
  EXPECT_EQ(Refusal(asset + "<replicate count='1000'>" + attach + "</replicate>", files), "");
  std::string attaches;
  for (int i = 0; i < 100; ++i) attaches += attach;
  EXPECT_THAT(Refusal(asset + attaches, files), HasSubstr("its <texture> is one of those that make 3.75"));
}

TEST(ModelCopies, AModelThatAttachesItselfIsRefused) {
  const std::string next = "<asset><model name='x' file='n.xml'/></asset>";
  EXPECT_EQ(Refusal("<asset><model name='x' file='m.xml'/></asset>"), "model: m.xml attaches itself");
  EXPECT_EQ(Refusal(next, {{"n.xml", "<asset><model name='x' file='./m.xml'/></asset>"}}),
            "model: m.xml attaches itself");
  EXPECT_EQ(Refusal(next + next, {{"n.xml", ""}}), "") << "two may attach the same";
}

TEST(ModelCopies, TogetherAreAtMostTwoHundredThousand) {
  std::string xml;
  for (int i = 0; i < 20; ++i) xml += "<replicate count='5000'><geom/></replicate>";
  EXPECT_EQ(Refusal(xml), "");
  EXPECT_EQ(Refusal(xml + "<replicate count='2'>"),
            "model: its <replicate> is one of 200002 parts that are copies; at most 200000 are taken");
}

TEST(ModelCopies, OfNumbersAreLimitedWhereverAttributesAllocateThem) {
  for (const char* large :
       {"<texture builtin='flat' type='2d' width='15000' height='15000'/>", "<texture builtin='flat' width='4000'/>",
        "<hfield nrow='60000' ncol='60000'/>", "<mesh builtin='sphere' params='12'/>", "<numeric size='100000000'/>",
        "<size nuserdata='100000000'/>", "<size nuser_geom='20000000'/><geom/>", "<user dim='100000000'/>",
        "<motor nsample='100000000'/>"}) {
    EXPECT_THAT(Refusal(large), HasSubstr("numbers; at most 3.35544e+07 are taken")) << large;
  }
  EXPECT_EQ(Refusal("<texture type='skybox' builtin='gradient' width='512' height='3072'/><hfield nrow='1000' "
                    "ncol='1000'/><mesh builtin='sphere' params='5'/><size nuser_geom='-1'/>"),
            "");
}

}  // namespace
}  // namespace datacom::text
// SPDX-License-Identifier: Apache-2.0

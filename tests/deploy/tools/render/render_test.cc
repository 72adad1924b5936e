// Real rendering, where a GL context can be made; the other tests run everywhere.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "actor/actor_setup.h"
#include "actor/episode_player.h"
#include "common/base/files.h"
#include "common/base/team.h"
#include "datacom/v1/experiment.pb.h"
#include "deploy/tools/policies/run_policies.h"
#include "deploy/tools/render/film.h"
#include "deploy/tools/render/render_command.h"
#include "deploy/tools/render/scene_view.h"
#include "deploy/tools/render/video.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/testing/environment_variable.h"
#include "tests/testing/is_ok.h"
#include "tests/testing/manual_clock.h"
#include "tests/testing/run_folders.h"

namespace datacom::tools {
namespace {

namespace fs = std::filesystem;
using ::datacom::testing::IsOk;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int kWidth = 192, kHeight = 108;

std::string Temporary(const std::string& name) { return (fs::path(::testing::TempDir()) / name).string(); }

std::string Bytes(const Picture& picture) {
  std::string bytes;
  for (int i = 0; i < picture.width() * picture.height(); ++i) {
    bytes.append(reinterpret_cast<const char*>(picture.pixels()) + 4 * i, 3);
  }
  return bytes;
}

int DifferentPixels(const std::string& a, const std::string& b) {
  int different = 0;
  for (size_t i = 0; i < a.size(); i += 3) different += std::memcmp(&a[i], &b[i], 3) != 0;
  return different;
}

#define NEEDS_GL(gl)                                                 \
  absl::StatusOr<std::unique_ptr<GlContext>> gl = GlContext::Make(); \
  ASSERT_THAT(gl, IsOk())

std::unique_ptr<Task> StartedTask(const std::string& name, uint64_t seed) {
  std::unique_ptr<Task> task = MakeTask(name, v1::TaskOptions()).value();
  std::vector<double> observation(task->spec().obs_dim);
  RandomStream stream(seed);
  task->Reset(&stream, observation.data());
  return task;
}

void Drive(Task* task, int steps) {
  std::vector<double> observation(task->spec().obs_dim);
  for (int i = 0; i < steps; ++i) task->Step(task->spec().action_high.data(), observation.data());
}

std::string Draw(Renderer* renderer, const Task& task) {
  Picture picture(kWidth, kHeight);
  const absl::Status status = renderer->Render(*task.simulation(), picture.pixels());
  EXPECT_THAT(status, IsOk());
  return Bytes(picture);
}

// Every renderer, which needs a GL context.
constexpr decltype(&Renderer::WithOpenGl) kRenderers[] = {
    &Renderer::WithOpenGl, [](const mjModel& model, const std::string& camera, int width, int height) {
      return Renderer::WithRays(model, camera, width, height);
    }};

TEST(Renderer, ShowsEveryTaskThroughEveryCameraAndMovesWithIt) {
  NEEDS_GL(gl);
  for (const auto make : kRenderers) {
    for (const std::string& name : TaskNames()) {
      const std::unique_ptr<Task> task = StartedTask(name, 1);
      const mjModel& model = task->simulation()->model();
      std::vector<std::string> cameras = CameraNames(model);
      EXPECT_FALSE(cameras.empty()) << name;
      const auto usual = make(model, "", kWidth, kHeight).value();
      const std::string start = Draw(usual.get(), *task);
      for (const std::string& camera : cameras) {
        SCOPED_TRACE(absl::StrCat(name, " ", camera));
        const auto renderer = make(model, camera, kWidth, kHeight).value();
        const std::string picture = Draw(renderer.get(), *task);
        std::map<std::string, int> colours;
        for (size_t i = 0; i < picture.size(); i += 3) ++colours[picture.substr(i, 3)];
        EXPECT_GT(colours.size(), 100u);  // neither blank nor a silhouette
      }
      Drive(task.get(), 40);
      EXPECT_GT(DifferentPixels(start, Draw(usual.get(), *task)), 20) << name;
    }
  }
}

TEST(Renderer, GivesEqualPixelsForEqualStatesAndDoesNotChangeTheSimulation) {
  NEEDS_GL(gl);
  for (const auto make : kRenderers) {
    for (const std::string& name : TaskNames()) {
      SCOPED_TRACE(name);
      std::string pictures[2];
      for (std::string& picture : pictures) {
        const std::unique_ptr<Task> task = StartedTask(name, 2), alone = StartedTask(name, 2);
        const mjModel& model = task->simulation()->model();
        const auto renderer = make(model, "", kWidth, kHeight).value();
        Drive(task.get(), 10);
        Drive(alone.get(), 10);
        picture = Draw(renderer.get(), *task);
        const mjData& drawn = *task->simulation()->data();
        EXPECT_EQ(std::memcmp(drawn.buffer, alone->simulation()->data()->buffer, drawn.nbuffer), 0);
        Drive(task.get(), 10);
        Drive(alone.get(), 10);
        EXPECT_EQ(std::memcmp(drawn.qpos, alone->simulation()->data()->qpos, sizeof(mjtNum) * model.nq), 0);
      }
      EXPECT_EQ(pictures[0], pictures[1]);
    }
  }
}

TEST(Renderer, ListsTheCamerasWhenOneIsUnknown) {
  const std::unique_ptr<Task> task = StartedTask("cartpole", 0);
  const auto renderer = Renderer::WithRays(task->simulation()->model(), "moon", kWidth, kHeight);
  EXPECT_THAT(std::string(renderer.status().message()), AllOf(HasSubstr("\"moon\""), HasSubstr("side, goal_view")));
}

TEST(Renderer, DrawsTheSamePixelsByRaysOnOneThreadAndOnThree) {
  Team team(3);
  for (const std::string& name : TaskNames()) {
    const std::unique_ptr<Task> task = StartedTask(name, 3);
    Drive(task.get(), 10);
    const mjModel& model = task->simulation()->model();
    const auto alone = Renderer::WithRays(model, "", kWidth, kHeight).value();
    const auto shared = Renderer::WithRays(model, "", kWidth, kHeight, &team).value();
    EXPECT_EQ(Draw(alone.get(), *task), Draw(shared.get(), *task)) << name;
  }
}

TEST(Overlay, ShowsNumbersAndMarksAViolationRed) {
  const std::unique_ptr<Task> task = StartedTask("cartpole", 0);
  actor::EpisodeState state;
  state.task = task.get();
  std::optional<NearestName> nearest;
  const auto draw = [&](double cost) {
    state.reached.cost = cost;
    Picture picture(480, 270);
    DrawNumbers(state, nearest, &picture);
    return Bytes(picture);
  };
  const std::string black(3 * 480 * 270, '\0');
  const std::string safe = draw(-0.5), unsafe = draw(0.5);
  EXPECT_GT(DifferentPixels(safe, black), 1000);
  EXPECT_EQ(safe.substr(0, 3), black.substr(0, 3));  // the corner
  const auto red = static_cast<uint8_t>(unsafe[2]), green = static_cast<uint8_t>(unsafe[1]);
  EXPECT_GT(red, green + 100);
  state.judgement = actor::EpisodeState::Judgement{0.2, 1.0, 0.1};
  const std::string judged = draw(-0.5);
  EXPECT_GT(DifferentPixels(judged, safe), 500);  // the constraint's lines
  nearest = NearestName{"wall_tip", 0.25};
  const std::string near = draw(-0.5);
  EXPECT_GT(DifferentPixels(near, judged), 500);  // the line of the nearest known row
  nearest->distance = -0.25;
  EXPECT_GT(DifferentPixels(draw(-0.5), near), 20);  // red when it is violated
}

TEST(Overlay, CurvesGrowWithTheEpisode) {
  const std::vector<HistoryPoint> history(50, HistoryPoint{0.3, 0.2, std::nullopt});
  std::string before(3 * 480 * 270, '\0');
  for (const uint32_t step : {1u, 25u, 49u}) {
    Picture picture(480, 270);
    DrawCurves(history, step, &picture);
    EXPECT_GT(DifferentPixels(Bytes(picture), before), 100) << step;
    before = Bytes(picture);
  }
}

TEST(Pace, IsRealTimeInWholeStridesAndEndsWithTheLastState) {
  const Pace cartpole = RealTimePace(21, 1.0 / 120, 30);
  EXPECT_DOUBLE_EQ(cartpole.frames_per_second, 30);
  EXPECT_EQ(cartpole.steps, (std::vector<uint32_t>{0, 4, 8, 12, 16, 20, 21}));
  const Pace hockey = RealTimePace(4, 0.02, 30);  // 50 steps per second: every second one
  EXPECT_DOUBLE_EQ(hockey.frames_per_second, 25);
  EXPECT_EQ(hockey.steps, (std::vector<uint32_t>{0, 2, 4}));
  EXPECT_DOUBLE_EQ(RealTimePace(4, 1.0 / 30, 60).frames_per_second, 30);  // at most one frame per state
  EXPECT_EQ(RealTimePace(4, 0.02, 1e-300).steps, (std::vector<uint32_t>{0, 4})) << "a stride beyond 32 bits";
  EXPECT_EQ(EvenSteps(10, 3), (std::vector<uint32_t>{0, 5, 10}));
  EXPECT_EQ(EvenSteps(10, 1), (std::vector<uint32_t>{10}));
  EXPECT_EQ(EvenSteps(1, 5), (std::vector<uint32_t>{0, 1}));
}

TEST(FilmProgress, IsALineThatIsDrawnAgainEverySecondAndErasedAtTheEnd) {
  ManualClock clock;
  FilmProgress progress(251, &clock);
  EXPECT_EQ(progress.Add(), "");
  EXPECT_EQ(progress.End(), "") << "a film that is made at once shows nothing";
  clock.Advance(std::chrono::seconds(1));
  EXPECT_EQ(progress.Add(), "\rframe 2 of 251");
  EXPECT_EQ(progress.Add(), "");
  clock.Advance(std::chrono::milliseconds(1500));
  EXPECT_EQ(progress.Add(), "\rframe 4 of 251");
  EXPECT_EQ(progress.End(), "\r\x1b[K");
}

TEST(Watching, ShowsTheEvaluatedEpisode) {
  const std::string folder = testing::MakeRunFolder("watched_run", "cartpole", {3}, 60);
  const v1::Experiment experiment = ReadRunExperiment(folder, {}).value();
  const std::vector<MemberPolicy> policies = ReadPolicies(folder, "last").value();
  const auto player = actor::MakeEpisodePlayer(experiment, policies[1].snapshot, 3).value();
  const actor::EpisodePlayer::Seeds seeds = {5, 41, 3};
  const auto evaluated = player->Play(seeds, 3, [] { return absl::OkStatus(); }).value();
  PlaybackOptions options;
  options.what = folder;
  options.member = 1;
  options.episode = 2;
  const Playback playback = MakePlayback(options).value();
  EXPECT_EQ(playback.note, "");
  options.episode = experiment.run().eval_episodes();
  EXPECT_THAT(MakePlayback(options)->note, HasSubstr("that the run was evaluated with"));
  for (int time = 0; time < 2; ++time) {
    uint32_t count = 0;
    double sum = 0, violation = 0;
    bool ended = false;
    const absl::Status played = playback.play([&](const actor::EpisodeState& state) {
      EXPECT_EQ(state.step, count++);
      EXPECT_TRUE(state.judgement.has_value());
      EXPECT_NEAR(state.judgement->cvar - state.judgement->constraint, 0.8, 1e-12);
      EXPECT_EQ(state.reached.cost, state.task->Cost());
      sum = state.sum_reward;
      if (state.step > 0) violation = std::max(violation, state.reached.cost);
      ended = state.last;
      return absl::OkStatus();
    });
    ASSERT_THAT(played, IsOk());
    EXPECT_TRUE(ended);
    EXPECT_EQ(count, evaluated[2].length() + 1);
    EXPECT_EQ(sum, evaluated[2].return_());
    EXPECT_EQ(violation, evaluated[2].max_violation());
  }
}

TEST(Watching, ATaskIsPlayedByTheControllersThatEvalPlays) {
  PlaybackOptions options;
  options.what = "air_hockey";
  options.policy = "strike";
  const absl::StatusOr<Playback> playback = MakePlayback(options);
  ASSERT_THAT(playback.status(), IsOk());
  EXPECT_EQ(playback->title, "air_hockey   strike, seed 0");
  bool scores = false;
  ASSERT_THAT(playback->play([&scores](const actor::EpisodeState& state) {
    scores = state.task->Success();
    return absl::OkStatus();
  }),
              IsOk());
  EXPECT_TRUE(scores);
  options.policy = "zero";
  EXPECT_THAT(MakePlayback(options).status().ToString(),
              HasSubstr("--policy zero: task air_hockey has no such policy"));
}

TEST(Watching, ActionsThatAreNoFileAreThePolicyOfThatName) {
  PlaybackOptions options;
  options.what = "cartpole";
  const std::pair<const char*, const char*> names[] = {{"zero", "zeros"}, {"zeros", "zeros"}, {"random", "random"}};
  for (const auto& [actions, policy] : names) {
    options.actions = actions;
    const absl::StatusOr<Playback> playback = MakePlayback(options);
    ASSERT_THAT(playback.status(), IsOk());
    EXPECT_EQ(playback->title, absl::StrCat("cartpole   ", policy, ", seed 0"));
  }
}

TEST(Watching, ARunIsPlayedFromAStartThatIsNamed) {
  PlaybackOptions options;
  options.what = testing::MakeRunFolder("started_run", "cartpole", {3}, 20);
  options.init = "theta=0.5";
  const absl::StatusOr<Playback> playback = MakePlayback(options);
  ASSERT_THAT(playback.status(), IsOk());
  EXPECT_THAT(playback->title, HasSubstr("episode 0   theta=0.5"));
  std::vector<double> sines;
  ASSERT_THAT(playback->play([&sines](const actor::EpisodeState& state) {
    sines.push_back(state.observation[1]);
    return absl::OkStatus();
  }),
              IsOk());
  ASSERT_FALSE(sines.empty());
  EXPECT_EQ(sines.front(), std::sin(0.5));
  options.init = "angle=0.5";
  EXPECT_THAT(MakePlayback(options).status().ToString(),
              HasSubstr("cartpole has no start value \"angle\"; there are: x, theta"));
}

class RenderCommandTest : public ::testing::Test {
 protected:
  RenderCommandTest() {
    command_.playback.what = "cartpole";
    command_.playback.set = {"task_options.horizon=20"};
    command_.width = kWidth;
    command_.height = kHeight;
  }
  std::string Error() {
    std::ostringstream out;
    const absl::Status status = RunRenderCommand(command_, &out);
    EXPECT_FALSE(status.ok());
    EXPECT_EQ(out.str(), "");
    return std::string(status.message());
  }
  std::string Write(const std::string& name) {
    command_.out = Temporary(name);
    fs::remove(command_.out);
    std::ostringstream out;
    const absl::Status status = RunRenderCommand(command_, &out);
    EXPECT_THAT(status, IsOk());
    EXPECT_THAT(out.str(), HasSubstr(name));
    return ReadFile(command_.out).value();
  }
  RenderCommand command_;
};

// Width and height of a PNG file.
std::pair<int, int> PngSize(const std::string& png) {
  const auto number = [&](size_t at) {
    int value = 0;
    for (size_t i = at; i < at + 4; ++i) value = value << 8 | static_cast<uint8_t>(png[i]);
    return value;
  };
  EXPECT_EQ(png.substr(0, 8), "\x89PNG\r\n\x1a\n");
  return {number(16), number(20)};
}

TEST_F(RenderCommandTest, WritesAFrameAndASheetTheSameEveryTime) {
  { NEEDS_GL(gl); }
  const std::string frame = Write("frame.png");
  EXPECT_EQ(PngSize(frame), std::make_pair(kWidth, kHeight));
  EXPECT_EQ(Write("frame2.png"), frame);
  command_.step = 10;
  EXPECT_NE(Write("earlier.png"), frame);
  command_.step = 21;
  EXPECT_THAT(Error(), HasSubstr("--step: 21 is past the episode's last, 20"));
  command_.step.reset();
  command_.playback.seed = 1;
  EXPECT_NE(Write("other.png"), frame);
  command_.frames = 6;
  EXPECT_EQ(PngSize(Write("sheet.png")), std::make_pair(3 * kWidth + 8, 2 * kHeight + 4));
  command_.playback = PlaybackOptions();
  command_.playback.what = testing::MakeRunFolder("rendered_run", "cartpole", {0, 2}, 20);
  const std::string last = Write("run.png");
  command_.playback.epoch = "0";
  EXPECT_NE(Write("run0.png"), last);
}

TEST_F(RenderCommandTest, AFilmHasOneFramePerStrideAndTheLastState) {
  { NEEDS_GL(gl); }
  const std::string beside = Temporary("film.mp4.partial");
  ASSERT_THAT(WriteFileAtomically(beside, "a user's own file"), IsOk());
  Write("film.mp4");  // 20 steps of 1/120 s at 30 frames per second: 0, 4, ..., 20
  const std::string ask =
      "ffprobe -v error -count_frames -show_entries stream=width,height,r_frame_rate,nb_read_frames -of csv=p=0 ";
  FILE* const probe = ::popen((ask + command_.out).c_str(), "r");
  char answer[100] = "";
  EXPECT_NE(std::fgets(answer, sizeof answer, probe), nullptr);
  ::pclose(probe);
  EXPECT_STREQ(answer, "192,108,30/1,6\n");
  EXPECT_EQ(ReadFile(beside).value(), "a user's own file");
}

TEST_F(RenderCommandTest, AFilmHasAtMostTheFramesThatWereAskedFor) {
  command_.width.reset();
  command_.height.reset();
  const auto frames = [this](int most) {
    command_.out = Temporary("film.html");
    command_.max_frames = most;
    std::ostringstream out;
    EXPECT_THAT(RunRenderCommand(command_, &out), IsOk());
    return out.str().substr(command_.out.size());
  };
  EXPECT_EQ(frames(2), ": 2 frames of 20 steps; open it in a browser\n");
  EXPECT_EQ(frames(4), ": 4 frames of 20 steps; open it in a browser\n") << "0, 7, 14, 20";
  EXPECT_EQ(frames(100), ": 6 frames of 20 steps; open it in a browser\n") << "every fourth, as without";
  command_.step = 9;
  EXPECT_EQ(frames(2), ": 2 frames of 20 steps; open it in a browser\n") << "0 and 9";
  command_.width = kWidth;
  EXPECT_THAT(Error(), HasSubstr("--width: a page is as large as the browser's window"));
}

TEST_F(RenderCommandTest, AFilmForABrowserHoldsItsSceneAndItsFrames) {
  command_.width.reset();
  command_.height.reset();
  const std::string page = Write("data.html"), begin = "id=\"data\">";
  const size_t from = page.find(begin) + begin.size();
  const auto film = nlohmann::json::parse(page.substr(from, page.find("</script>", from) - from));
  EXPECT_EQ(film.at("title"), "cartpole   random, seed 0");
  EXPECT_EQ(film.at("every"), 4);
  EXPECT_FALSE(film.at("scene").at("shapes").empty());
  ASSERT_EQ(film.at("frames").size(), 6u);
  EXPECT_EQ(film.at("frames").front().at("step"), 0);
  EXPECT_EQ(film.at("frames").back().at("step"), 20);
  EXPECT_THAT(page, HasSubstr("</html>"));
}

TEST_F(RenderCommandTest, WithoutFfmpegTheMissingPackageIsNamed) {
  const auto video = [] {
    const testing::EnvironmentVariable nowhere("PATH", "/nonexistent");
    return Video::Make(Temporary("none.mp4"), kWidth, kHeight, 30);
  }();
  EXPECT_THAT(std::string(video.status().message()), HasSubstr("package ffmpeg"));
  EXPECT_THAT(std::string(Video::Make("x.mp4", 191, 108, 30).status().message()), HasSubstr("191x108"));
}

TEST_F(RenderCommandTest, AFailureOfFfmpegGivesItsMessageAndLeavesNoFile) {
  const testing::EnvironmentVariable other("DATACOM_FFMPEG", "ls");  // it has no option -e
  const std::string path = Temporary("no_film.mp4");
  fs::remove(path);
  const auto video = Video::Make(path, kWidth, kHeight, 30).value();
  const Picture frame(kWidth, kHeight);
  absl::Status status;
  for (int i = 0; i < 100 && status.ok(); ++i) status = video->Add(frame);
  if (status.ok()) status = video->Finish();
  EXPECT_THAT(std::string(status.message()), HasSubstr("ffmpeg could not write " + path + ": ls: invalid option"));
  EXPECT_FALSE(fs::exists(path));
}

TEST_F(RenderCommandTest, NamesTheWrongArgument) {
  command_.out = Temporary("x.gif");
  EXPECT_THAT(Error(), HasSubstr("x.gif ends in none of .html, .mp4, .png"));
  command_.out = Temporary("absent_folder/x.png");
  EXPECT_THAT(Error(), HasSubstr("absent_folder"));
  command_.out = Temporary("x.png");
  command_.frames = 0;
  EXPECT_THAT(Error(), HasSubstr("--frames: 0"));
  command_.frames.reset();
  command_.width = 10;
  EXPECT_THAT(Error(), HasSubstr("--width: 10"));
  command_.width = kWidth;
  command_.playback.episode = 1;
  EXPECT_THAT(Error(), HasSubstr("cartpole is a task"));
  command_.playback = PlaybackOptions();
  command_.playback.what = "absent_run";
  EXPECT_THAT(Error(), AllOf(HasSubstr("absent_run"), HasSubstr("cartpole")));
  command_.map = true;
  EXPECT_THAT(Error(), HasSubstr("absent_run is not a run folder"));
  command_.map = false;
  command_.playback.what = testing::MakeRunFolder("wrong_run", "cartpole", {0}, 20);
  command_.playback.actions = "zeros.csv";
  EXPECT_THAT(Error(), HasSubstr("--actions"));
  command_.playback.actions.reset();
  command_.playback.epoch = "4";
  EXPECT_THAT(Error(), HasSubstr("no policy of epoch 4"));
}

}  // namespace
}  // namespace datacom::tools
// SPDX-License-Identifier: Apache-2.0

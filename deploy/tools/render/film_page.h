// A film as a page: one file that plays an episode in any browser, without ffmpeg. It has no pictures; the page draws
// the shapes itself, so it is made in the time that the episode takes to simulate.
#ifndef DATACOM_DEPLOY_TOOLS_RENDER_FILM_PAGE_H_
#define DATACOM_DEPLOY_TOOLS_RENDER_FILM_PAGE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "deploy/tools/render/playback.h"

namespace datacom::tools {

struct FilmPage {
  std::string html;
  uint32_t frames = 0, steps = 0;
};

// Plays the episode. camera: as for SceneView::Make. last: the last step to show; default the episode's last. Errors of
// the playback and of the camera; INVALID_ARGUMENT for a step past the episode's last, or for a task without a
// simulator.
absl::StatusOr<FilmPage> MakeFilmPage(const Playback& playback, const std::string& camera, double frames_per_second,
                                      std::optional<uint32_t> last);

}  // namespace datacom::tools

#endif  // DATACOM_DEPLOY_TOOLS_RENDER_FILM_PAGE_H_
// SPDX-License-Identifier: Apache-2.0

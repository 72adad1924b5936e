// What a plug-in and a program must share: the version and the public headers of datacom, the standard library, the
// alignment that the instruction set gives, and the libraries whose types are in those headers. A plug-in carries its
// stamp after DATACOM_PLUGIN_MARK, in every one of its files.
#ifndef DATACOM_COMMON_BASE_PLUGIN_STAMP_H_
#define DATACOM_COMMON_BASE_PLUGIN_STAMP_H_

#include <string>  // defines _GLIBCXX_RELEASE

#include "absl/base/config.h"
#include "datacom_api.h"
#include "google/protobuf/stubs/common.h"

#define DATACOM_TEXT_INNER_(x) #x
#define DATACOM_TEXT_(x) DATACOM_TEXT_INNER_(x)

#define DATACOM_STAMP_LIBRARY_ ", libstdc++ " DATACOM_TEXT_(_GLIBCXX_RELEASE)
#define DATACOM_STAMP_ALIGNMENT_ ", alignment " DATACOM_TEXT_(__BIGGEST_ALIGNMENT__)
#define DATACOM_STAMP_ABSEIL_ ", Abseil " DATACOM_TEXT_(ABSL_LTS_RELEASE_VERSION)
#define DATACOM_STAMP_PROTOBUF_ ", Protocol Buffers " DATACOM_TEXT_(GOOGLE_PROTOBUF_VERSION)

#define DATACOM_PLUGIN_MARK "datacom plug-in for: "
// "0.1.0 3f9c2a77b1e0 MuJoCo 4.0.0, libstdc++ 12, alignment 32, Abseil 20220623, Protocol Buffers 3021012"
#define DATACOM_PLUGIN_STAMP \
  DATACOM_API DATACOM_STAMP_LIBRARY_ DATACOM_STAMP_ALIGNMENT_ DATACOM_STAMP_ABSEIL_ DATACOM_STAMP_PROTOBUF_

#endif  // DATACOM_COMMON_BASE_PLUGIN_STAMP_H_
// SPDX-License-Identifier: Apache-2.0

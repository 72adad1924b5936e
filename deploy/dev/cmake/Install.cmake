# What `cmake --install` and pip (pyproject.toml) install below a prefix, which can be moved: programs, libraries with their headers, the
# shipped files, and packages for CMake and pkg-config. Programs find shared files and libraries from their own folder.
include_guard(GLOBAL)
include(CMakePackageConfigHelpers)

install(TARGETS datacom datacom-actor datacom-replay datacom-tools RUNTIME DESTINATION bin)
if(DATACOM_LEARNER)
  install(TARGETS datacom-learner RUNTIME DESTINATION bin)
endif()
if(DATACOM_LIBTORCH)
  install(TARGETS datacom_torch LIBRARY DESTINATION lib)
endif()
install(TARGETS datacom_policy LIBRARY DESTINATION lib)
install(TARGETS datacom_python LIBRARY DESTINATION lib)
if(NOT DATACOM_MUJOCO_FOLDER STREQUAL "system")
  install(IMPORTED_RUNTIME_ARTIFACTS mujoco::mujoco LIBRARY DESTINATION lib)
  install(DIRECTORY "${DATACOM_MUJOCO_FOLDER}/include/mujoco" DESTINATION include/datacom)
  install(DIRECTORY "${DATACOM_MUJOCO_FOLDER}/licenses/" DESTINATION share/datacom/licenses/mujoco OPTIONAL)
endif()

# The header of the policy library, and what plug-ins include.
install(FILES deploy/robot/datacom_policy.h DESTINATION include)
foreach(header ${DATACOM_PUBLIC_HEADERS})
  cmake_path(GET header PARENT_PATH folder)
  install(FILES "${header}" DESTINATION "include/datacom/${folder}")
endforeach()
foreach(name ${DATACOM_PUBLIC_MESSAGES})
  install(FILES "${CMAKE_BINARY_DIR}/proto/gen/datacom/v1/${name}.pb.h" DESTINATION include/datacom/datacom/v1)
endforeach()
install(FILES "${CMAKE_BINARY_DIR}/generated/datacom_api.h" DESTINATION include/datacom)

set(generated "${CMAKE_BINARY_DIR}/generated")
configure_file(deploy/dev/cmake/datacomConfig.cmake.in "${generated}/datacomConfig.cmake" @ONLY)
write_basic_package_version_file("${generated}/datacomConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${generated}/datacomConfig.cmake" "${generated}/datacomConfigVersion.cmake" DESTINATION lib/cmake/datacom)
configure_file(deploy/robot/datacom_policy.pc.in "${generated}/datacom_policy.pc" @ONLY)
install(FILES "${generated}/datacom_policy.pc" DESTINATION lib/pkgconfig)

foreach(folder experiments sweeps examples compose grafana kubernetes prometheus slurm)
  install(DIRECTORY deploy/${folder} DESTINATION share/datacom USE_SOURCE_PERMISSIONS PATTERN __pycache__ EXCLUDE)
endforeach()
install(PROGRAMS deploy/dev/make_tls.sh DESTINATION share/datacom/dev)
install(FILES LICENSE DESTINATION share/datacom)
# Pictures are labelled with these fonts, and reports embed Chart.js.
install(FILES /usr/share/fonts/truetype/dejavu/DejaVuSans.ttf /usr/share/fonts/truetype/dejavu/DejaVuSans-Bold.ttf
        DESTINATION share/datacom/fonts OPTIONAL)
install(FILES /usr/share/javascript/chart.js/chart.min.js DESTINATION share/datacom OPTIONAL)
install(FILES /usr/share/doc/libjs-chart.js/copyright DESTINATION share/datacom/licenses RENAME libjs-chart.js OPTIONAL)
# SPDX-License-Identifier: Apache-2.0

# Generates learner/algorithms/hyper.inc: one line DATACOM_HYPER(name, default) for each double of message Hyper in
# proto/datacom/v1/experiment.proto. So a hyper-parameter's name and default are written in the proto alone. Used by the project's build
# and by learner/standalone, which has no protobuf. Other fields (uint64, string) are left out; learner/setup.cc reads them.

# Writes `output` when its content changes, and configures again when `proto` changes. Fails on a statement that it cannot read.
function(datacom_generate_hyper proto output)
  file(READ "${proto}" text)
  string(FIND "${text}" "\nmessage Hyper {" begin)
  if(begin EQUAL -1)
    message(FATAL_ERROR "${proto} has no message Hyper")
  endif()
  string(SUBSTRING "${text}" ${begin} -1 text)
  string(FIND "${text}" "\n}" end)
  string(SUBSTRING "${text}" 0 ${end} text)
  string(REGEX REPLACE "^\nmessage Hyper {" "" text "${text}")
  string(REGEX REPLACE "//[^\n]*" "" text "${text}")
  string(REGEX REPLACE "[ \n]+" " " text "${text}")
  set(lines "// Generated from message Hyper of proto/datacom/v1/experiment.proto by learner/core_hyper.cmake.\n")
  foreach(statement IN LISTS text)  # a statement ends with a semicolon, the separator of CMake's lists
    string(STRIP "${statement}" statement)
    if(statement MATCHES "^optional double ([a-z0-9_]+) = [0-9]+ \\[default = ([-+.0-9e]+)(,.*)?\\]$")
      string(APPEND lines "DATACOM_HYPER(${CMAKE_MATCH_1}, ${CMAKE_MATCH_2})\n")
    elseif(NOT statement STREQUAL "" AND NOT statement MATCHES "^optional (uint64|string) [a-z0-9_]+ = ")
      message(FATAL_ERROR "${proto}: message Hyper has a statement that is not 'optional double NAME = NUMBER [default = VALUE, ...]': ${statement}")
    endif()
  endforeach()
  file(CONFIGURE OUTPUT "${output}" CONTENT "${lines}" @ONLY)
  if(NOT CMAKE_SCRIPT_MODE_FILE)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${proto}")
  endif()
endfunction()

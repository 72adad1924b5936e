# cmake -P core_hyper_test.cmake: what datacom_generate_hyper writes, and that it fails on what it cannot read.
include("${CMAKE_CURRENT_LIST_DIR}/../../learner/core_hyper.cmake")
set(folder "${FOLDER}/core_hyper_test")
if(DEFINED BODY)  # one message Hyper, in a process of its own: a failure ends the process
  file(WRITE "${folder}/a.proto" "syntax = \"proto2\";\n\nmessage Hyper {\n${BODY}\n}\n\nmessage Member {\n  repeated int32 x = 1;\n}\n")
  datacom_generate_hyper("${folder}/a.proto" "${folder}/hyper.inc")
  return()
endif()

function(generate body result message)
  execute_process(COMMAND "${CMAKE_COMMAND}" "-DFOLDER=${FOLDER}" "-DBODY=${body}" -P "${CMAKE_CURRENT_LIST_FILE}"
                  RESULT_VARIABLE code ERROR_VARIABLE error)
  string(REGEX REPLACE "[ \n]+" " " error "${error}")
  set(${result} ${code} PARENT_SCOPE)
  set(${message} "${error}" PARENT_SCOPE)
endfunction()

generate([[
  optional double rate = 1 [default = 5e-4, (rule) = {min: 0, max: 1}];  // one; [two
  optional uint64 warmup = 2 [default = 50000];
  optional string mode = 3 [default = "learned", (rule) = {one_of: "learned" one_of: "fixed"}];
  optional double floor = 4
      [default = -1e9];]] code message)
if(NOT code EQUAL 0)
  message(FATAL_ERROR "a good message is refused: ${message}")
endif()
file(STRINGS "${folder}/hyper.inc" lines REGEX "^DATACOM_HYPER")
if(NOT "${lines}" STREQUAL "DATACOM_HYPER(rate, 5e-4);DATACOM_HYPER(floor, -1e9)")
  message(FATAL_ERROR "wrong lines: ${lines}")
endif()

foreach(bad "optional double rate = 1;" "optional float rate = 1 [default = 1];" "repeated double rate = 1 [default = 1];"
            "optional double rate = 1 [default = inf];")
  generate("${bad}" code message)
  string(REPLACE ";" "" statement "${bad}")
  string(FIND "${message}" "${statement}" place)
  if(code EQUAL 0 OR place EQUAL -1)
    message(FATAL_ERROR "'${bad}' is accepted or not named: ${message}")
  endif()
endforeach()

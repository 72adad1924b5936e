# Writes OUTPUT, a header that defines DATACOM_API: VERSION, a digest of FILES (separated by "|"), and MUJOCO, the simulator's version.
string(REPLACE "|" ";" files "${FILES}")
set(all "")
foreach(file ${files})
  file(SHA256 "${file}" digest)
  string(APPEND all "${digest}")
endforeach()
string(SHA256 digest "${all}")
string(SUBSTRING "${digest}" 0 12 digest)
file(CONFIGURE OUTPUT "${OUTPUT}" CONTENT "#define DATACOM_API \"@VERSION@ @digest@ MuJoCo @MUJOCO@\"\n" @ONLY)
# SPDX-License-Identifier: Apache-2.0

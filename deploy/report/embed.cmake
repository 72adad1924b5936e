# Writes OUT: a C++ file that defines string literals in NAMESPACE. PARTS: "kName=file ...", files of FOLDER.
set(code "namespace ${NAMESPACE} {\n")
string(REPLACE " " ";" pairs "${PARTS}")
foreach(pair IN LISTS pairs)
  string(REPLACE "=" ";" parts "${pair}")
  list(GET parts 0 name)
  list(GET parts 1 file)
  file(READ "${FOLDER}/${file}" text)
  string(APPEND code "extern const char ${name}[];\nconst char ${name}[] = R\"~~~(${text})~~~\";\n")
endforeach()
string(APPEND code "}  // namespace ${NAMESPACE}\n")
file(WRITE "${OUT}" "${code}")
# SPDX-License-Identifier: Apache-2.0

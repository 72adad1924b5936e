# Writes OUT: a C++ file that defines string literals in NAMESPACE. PARTS: a list of kName=file, files of FOLDER.
set(code "namespace ${NAMESPACE} {\n")
foreach(pair IN LISTS PARTS)
  string(REPLACE "=" ";" parts "${pair}")
  list(GET parts 0 name)
  list(GET parts 1 file)
  file(READ "${FOLDER}/${file}" text)
  string(APPEND code "extern const char ${name}[] = R\"~~~(${text})~~~\";\n")
endforeach()
string(APPEND code "}  // namespace ${NAMESPACE}\n")
file(WRITE "${OUT}" "${code}")
# SPDX-License-Identifier: Apache-2.0

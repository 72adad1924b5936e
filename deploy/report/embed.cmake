# Writes OUT: a C++ file holding the parts of the pages in FOLDER as string literals.
set(code "#include \"deploy/report/template.h\"\n\nnamespace datacom::report {\n")
foreach(pair "kPageTemplate=page.html" "kStyle=style.css" "kMapScript=maps.js" "kVerdictScript=verdict.js"
             "kScript=page.js" "kLiveTemplate=live.html" "kLiveScript=live.js")
  string(REPLACE "=" ";" parts "${pair}")
  list(GET parts 0 name)
  list(GET parts 1 file)
  file(READ "${FOLDER}/${file}" text)
  string(APPEND code "const char ${name}[] = R\"~~~(${text})~~~\";\n")
endforeach()
string(APPEND code "}  // namespace datacom::report\n")
file(WRITE "${OUT}" "${code}")
# SPDX-License-Identifier: Apache-2.0

# Writes OUT: a C++ file with the bytes of FILE (explain.cc).
file(READ "${FILE}" bytes HEX)
string(LENGTH "${bytes}" digits)
math(EXPR size "${digits} / 2")
string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
file(WRITE "${OUT}" "#include <cstddef>\n\nnamespace datacom {\nextern const unsigned char kCommentedFiles[];\nextern const size_t kCommentedFilesSize;\n"
  "const unsigned char kCommentedFiles[] = {${bytes}};\nconst size_t kCommentedFilesSize = ${size};\n}  // namespace datacom\n")
# SPDX-License-Identifier: Apache-2.0

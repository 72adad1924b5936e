# Writes OUT: a C++ file with the bytes of FILE (comments.h).
file(READ "${FILE}" bytes HEX)
string(LENGTH "${bytes}" digits)
math(EXPR size "${digits} / 2")
string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
file(WRITE "${OUT}" "#include \"common/config/comments.h\"\n\nnamespace datacom {\nconst unsigned char kCommentedFiles[] = {${bytes}};\n"
  "const size_t kCommentedFilesSize = ${size};\n}  // namespace datacom\n")
# SPDX-License-Identifier: Apache-2.0

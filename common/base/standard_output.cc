#include "common/base/standard_output.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <streambuf>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/status.h"

namespace datacom {
namespace {

int first_error = 0;    // of std::cout, which forgets it
bool terminal = false;  // whether standard output is one

// A terminal gets no control characters: what verbs print may come from a stranger's files.
class KeepsError : public std::streambuf {
 protected:
  int overflow(int c) override {
    const char byte = static_cast<char>(c);
    return xsputn(&byte, 1) == 1 ? traits_type::not_eof(c) : traits_type::eof();
  }
  std::streamsize xsputn(const char* text, std::streamsize size) override {
    const absl::string_view given(text, static_cast<size_t>(size));
    const std::string shown = terminal ? ForTerminal(given) : "";
    const absl::string_view out = terminal ? absl::string_view(shown) : given;
    if (std::fwrite(out.data(), 1, out.size(), stdout) == out.size()) return size;
    if (first_error == 0) first_error = errno;
    return 0;
  }
  int sync() override {
    if (std::fflush(stdout) == 0) return 0;
    if (first_error == 0) first_error = errno;
    return -1;
  }
};

// Whether standard output is a pipe without a reader.
bool ReaderIsGone() {
  pollfd entry = {STDOUT_FILENO, POLLOUT, 0};
  return ::poll(&entry, 1, 0) > 0 && (entry.revents & POLLERR) != 0;
}

// Where the second column of a line begins, or its first if there is no room for the second.
size_t HangingIndent(absl::string_view line, size_t width) {
  const size_t first = std::min(line.find_first_not_of(' '), line.size());
  const size_t gap = line.find("  ", first);
  const size_t second = gap == absl::string_view::npos ? gap : line.find_first_not_of(' ', gap);
  return second == absl::string_view::npos || second > width / 2 ? std::min(first, width / 2) : second;
}

// How many bytes the code point has with which the text begins; 0 where it begins with none.
size_t CodePointBytes(absl::string_view text) {
  const auto byte = [text](size_t at) { return at < text.size() ? static_cast<unsigned char>(text[at]) : 0; };
  const int first = byte(0), second = byte(1);
  if (text.empty() || (first >= 0x80 && first < 0xc2) || first > 0xf4) return 0;
  const size_t size = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  for (size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  const bool long_form = (first == 0xe0 && second < 0xa0) || (first == 0xf0 && second < 0x90);
  const bool surrogate = first == 0xed && second > 0x9f, beyond = first == 0xf4 && second > 0x8f;
  return long_form || surrogate || beyond ? 0 : size;
}

}  // namespace

void PrepareOutput() {
  ::signal(SIGXFSZ, SIG_IGN);
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) >= 0) continue;
    const int other_direction = stream == STDIN_FILENO ? O_WRONLY : O_RDONLY;
    [[maybe_unused]] const int lowest = ::open("/dev/null", other_direction);  // `stream`, as those below it are open
  }
}

absl::Status FlushStandardOutput() {
  const bool failed_before = std::ferror(stdout) != 0 || first_error != 0;
  int error = std::fflush(stdout) == 0 ? 0 : errno;
  if (first_error != 0) error = first_error;
  if (error == EPIPE || ((failed_before || error != 0) && ReaderIsGone())) return absl::OkStatus();
  if (error != 0) return ErrnoStatus(error, "standard output");
  return failed_before ? absl::DataLossError("standard output: not all of it could be written") : absl::OkStatus();
}

int RunWatched(const std::function<int()>& command) {
  PrepareOutput();
  terminal = ::isatty(STDOUT_FILENO) == 1;
  static auto* const buffer = new KeepsError;  // std::cout is used until the process ends
  std::cout.rdbuf(buffer);
  try {
    const int code = command();
    const absl::Status status = FlushStandardOutput();
    if (code != kExitOk || status.ok()) return code;
    std::fprintf(stderr, "datacom: %s\n", std::string(status.message()).c_str());
    return kExitFailure;
  } catch (const std::exception& error) {
    std::fflush(stdout);
    std::fprintf(stderr, "datacom: %s\n", ForTerminal(error.what()).c_str());
    return kExitFailure;
  }
}

bool IsUtf8(absl::string_view text) {
  for (size_t size = 1; !text.empty() && size > 0; text.remove_prefix(size)) size = CodePointBytes(text);
  return text.empty();
}

std::string ForTerminal(absl::string_view text) {
  std::string shown;
  while (!text.empty()) {
    const size_t size = CodePointBytes(text);
    const auto first = static_cast<unsigned char>(text[0]);
    if (size == 2 && first == 0xc2 && static_cast<unsigned char>(text[1]) < 0xa0) {  // the control characters C1
      absl::StrAppend(&shown, "\\u00", absl::Hex(static_cast<unsigned char>(text[1])));
    } else if (size == 0 || (first < 0x20 && first != '\n' && first != '\t') || first == 0x7f) {
      absl::StrAppend(&shown, "\\x", absl::Hex(first, absl::kZeroPad2));
    } else {
      absl::StrAppend(&shown, text.substr(0, size));
    }
    text.remove_prefix(std::max<size_t>(1, size));
  }
  return shown;
}

bool IsLiveTerminal() {
  const char* const kind = std::getenv("TERM");
  return kind != nullptr && *kind != '\0' && std::string(kind) != "dumb" && ::isatty(STDOUT_FILENO) == 1;
}

int TerminalWidth(int otherwise) {
  winsize size = {};
  return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : otherwise;
}

std::string WrapLines(absl::string_view text, int width) {
  const size_t columns = static_cast<size_t>(width);
  std::vector<std::string> wrapped;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::string indent(HangingIndent(line, columns), ' ');
    std::string begin;
    while (width > 0 && begin.size() + line.size() > columns) {
      const size_t words = std::min(line.find_first_not_of(' '), line.size());
      const size_t room = columns - begin.size();
      size_t space = line.rfind(' ', room);
      if (space == absl::string_view::npos || space < words) space = line.find(' ', words);
      if (space == absl::string_view::npos) break;  // one long word
      const size_t end = line.find_last_not_of(' ', space);
      wrapped.push_back(absl::StrCat(begin, line.substr(0, end + 1)));
      line.remove_prefix(std::min(line.find_first_not_of(' ', space), line.size()));
      begin = indent;
    }
    if (!line.empty() || begin.empty()) wrapped.push_back(absl::StrCat(begin, line));
  }
  std::string all;
  for (const std::string& line : wrapped) absl::StrAppend(&all, &line == &wrapped.front() ? "" : "\n", line);
  return all;
}

std::string JoinColumns(const std::vector<TableColumn>& columns, int width) {
  const auto wide = [&](size_t column) {
    size_t most = 0;
    for (const std::string& cell : columns[column]) most = std::max(most, cell.size());
    return most;
  };
  std::string text;
  for (size_t begin = 1, end = 1; begin < columns.size(); begin = end) {
    size_t used = wide(0);
    do {
      used += wide(end++);
    } while (end < columns.size() && (width == 0 || used + wide(end) <= static_cast<size_t>(width)));
    for (size_t row = 0; row < columns[0].size(); ++row) {
      std::string line = columns[0][row];
      for (size_t column = begin; column < end; ++column) {
        line += row < columns[column].size() ? columns[column][row] : "";
        used = column == begin ? wide(0) + wide(column) : used + wide(column);
        line.resize(std::max(line.size(), used), ' ');
      }
      absl::StrAppend(&text, absl::StripTrailingAsciiWhitespace(line), "\n");
    }
  }
  return text;
}

}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0

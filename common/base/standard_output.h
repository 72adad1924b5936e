// Standard output of a command: whether all of it was written, and the terminal that shows it.
// Call these on the main thread. They block on what reads standard output.
#ifndef DATACOM_COMMON_BASE_STANDARD_OUTPUT_H_
#define DATACOM_COMMON_BASE_STANDARD_OUTPUT_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace datacom {

// At the beginning of main. Reading and writing a standard stream that is closed fails from now on: else the next file
// that is opened would become the stream, and get the messages. So does a write beyond the limit of file sizes, which
// would end the process.
void PrepareOutput();
// Writes what is buffered. "standard output: No space left on device" if this write or one before it failed; OK for a
// reader that is gone, like `head`.
absl::Status FlushStandardOutput();
// All of main: prepares output and runs the command. An exit code of 0 becomes kExitFailure, with a message, when
// output is missing, also when only std::cout knows that a write failed. What the command throws becomes a message and
// kExitFailure. A terminal gets what std::cout is given as ForTerminal shows it.
int RunWatched(const std::function<int()>& command);

// Whether the text is UTF-8, in the shortest form and without surrogates (RFC 3629).
bool IsUtf8(absl::string_view text);
// A text of which parts may be a stranger's: what would steer a terminal, also one that reads no UTF-8, is shown as
// \xNN or \u00NN. Lines and tabs stay.
std::string ForTerminal(absl::string_view text);
// Whether standard output is a terminal that can go back to earlier lines: $TERM says so.
bool IsLiveTerminal();
// Columns of the terminal that standard output is; `otherwise` when it is none.
int TerminalWidth(int otherwise);
// Breaks lines at spaces where they exceed the width, and indents what follows like the line's second column, which
// begins after two spaces or more, if there is room. A width of 0 breaks nothing.
std::string WrapLines(absl::string_view text, int width);
// The lines of a table. Where they exceed the width, the other columns follow below, beside the first one again. A
// width of 0 is none. REQUIRES that no column has more cells than the first.
using TableColumn = std::vector<std::string>;  // its heading and its cells
std::string JoinColumns(const std::vector<TableColumn>& columns, int width);

}  // namespace datacom

#endif  // DATACOM_COMMON_BASE_STANDARD_OUTPUT_H_
// SPDX-License-Identifier: Apache-2.0

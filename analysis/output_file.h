// Files that appear whole or not at all, also when the program is interrupted.
#pragma once

#include <string>

namespace gradwire {

/// Writes a temporary file beside `path` and renames it; writes straight to what is no regular
/// file (a pipe, /dev/stdout).  Throws std::runtime_error naming the file and the reason.
void write_file(const std::string& path, const std::string& text);

/// Adds `text` to the end of a file that is there.  Throws as write_file() does; then a part of the
/// text may be in the file.
void append_to_file(const std::string& path, const std::string& text);

/// Throws std::invalid_argument if `path` surely cannot be written later: no such folder, a folder,
/// no permission.
void check_writable(const std::string& path);

/// On SIGINT and SIGTERM: removes the temporary file, if one is being written, and ends the process
/// at once with status 128 + signal.
void exit_on_interrupt();

}  // namespace gradwire

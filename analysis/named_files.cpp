#include "analysis/named_files.h"

#include <filesystem>

#include "analysis/text.h"

namespace gradwire {

namespace {

namespace fs = std::filesystem;

struct NamedFile {
  std::string name;
  fs::path path;  // canonical
};
using NamedFiles = std::vector<NamedFile>;

// Devices and pipes are written to, not overwritten.
void add(NamedFiles& files, const std::string& name, const std::string& path) {
  std::error_code ignored;
  if (path.empty() || (fs::exists(path, ignored) && !fs::is_regular_file(path, ignored))) return;
  files.push_back({name, fs::weakly_canonical(fs::absolute(path, ignored), ignored)});
}

// `PATH`, `FORMAT:PATH,key=PATH`.
void add_spec(NamedFiles& files, const std::string& name, const std::string& spec) {
  add(files, name, spec);
  if (const auto colon = spec.find(':'); colon != std::string::npos)
    for (const std::string& part : split(spec.substr(colon + 1), ','))
      add(files, name, part.substr(part.find('=') + 1));
}

NamedFiles files_read(const Arguments& arguments, const Grid& grid) {
  NamedFiles files;
  for (const std::string& path : arguments.positional()) add(files, "the input", path);
  for (const char* key : {"scenario", "merge", "calibration"})
    for (const std::string& path : arguments.values(key))
      add(files, std::string("--").append(key), path);
  for (const char* key : {"platform", "network-model", "model", "dataset"})
    if (grid.has(key))
      for (const std::string& spec : grid.values(find_field(key)))
        add_spec(files, std::string("--").append(key), spec);
  return files;
}

}  // namespace

void check_files_differ(const Arguments& arguments, const Grid& grid, const std::string& output) {
  NamedFiles others = files_read(arguments, grid);
  for (const char* key :
       {"output", "csv", "learning", "html", "plot", "results", "trace", "record"}) {
    NamedFiles written;
    const std::string name = std::string("--").append(key);
    add(written, name, arguments.value(key, key == std::string("output") ? output : ""));
    for (const NamedFile& file : written)
      for (const NamedFile& other : others)
        if (file.path == other.path)
          throw UsageError(name + " and " + other.name + " name the same file, " +
                           file.path.string());
    others.insert(others.end(), written.begin(), written.end());
  }
}

}  // namespace gradwire

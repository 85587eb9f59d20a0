// Rehearsals in files: all that a report needs but the network, so that a run can be replayed on
// other networks, later and elsewhere, without its mathematics.
//
// Format, little-endian: the line "gradwire recording", version (4 bytes), CRC-32 of the rest
// (4 bytes), length of the content (8 bytes), the content deflated by zlib.  The content, in the
// order of the struct below: numbers as in memory, lists and texts after their length (8 bytes);
// each lane as its distinct events and one, two or four bytes for each event.
#pragma once

#include <string>

#include "algorithms/training.h"

namespace gradwire {

struct RecordingFile {
  std::string scenario;  ///< what was run, for whoever wrote the file (JSON)
  std::string inputs;    ///< of which data set and model, likewise
  Rehearsal rehearsal;
};

inline constexpr std::uint32_t kRecordingVersion = 3;

/// The file's bytes.
std::string encode_recording(const RecordingFile& recording);
/// Throws std::invalid_argument "NAME: ..." for what is no recording, has another version or is
/// damaged.
RecordingFile decode_recording(const std::string& name, const std::string& bytes);

/// Reads a file.  Throws std::invalid_argument, also if it cannot be read.
RecordingFile load_recording(const std::string& path);

}  // namespace gradwire

#include "algorithms/recording_file.h"

#include <zlib.h>

#include <bit>
#include <cstring>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "algorithms/serial.h"
#include "models/input_file.h"

namespace gradwire {

namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::string_view kMagic = "gradwire recording\n";

struct Header {
  std::uint32_t version;
  std::uint32_t checksum;  // of what follows the header
  std::uint64_t content_bytes;
};

std::uint32_t checksum(std::string_view bytes, std::uint64_t content_bytes) {
  uLong sum = crc32_z(0, reinterpret_cast<const Bytef*>(&content_bytes), sizeof content_bytes);
  sum = crc32_z(sum, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
  return static_cast<std::uint32_t>(sum);
}

void put_lane(ByteWriter& out, const LaneRecording& lane) {
  std::vector<std::uint8_t> kinds, phases;
  std::vector<std::int32_t> peers;
  std::vector<std::uint64_t> values;
  for (const Event& event : lane.events.distinct()) {
    kinds.push_back(static_cast<std::uint8_t>(event.kind));
    phases.push_back(static_cast<std::uint8_t>(event.phase));
    peers.push_back(event.peer);
    values.push_back(event.value);
  }
  out.put_array(kinds);
  out.put_array(phases);
  out.put_array(peers);
  out.put_array(values);
  out.put(lane.events.symbol_bytes());
  out.put_array(lane.events.symbols());
  out.put_array(lane.charges);
}

void require(bool legal) {
  if (!legal) throw std::logic_error("the content contradicts itself");
}

LaneRecording get_lane(ByteReader& in, std::size_t workers) {
  const auto kinds = in.get_array<std::uint8_t>();
  const auto phases = in.get_array<std::uint8_t>();
  const auto peers = in.get_array<std::int32_t>();
  const auto values = in.get_array<std::uint64_t>();
  const auto width = in.get<unsigned>();
  const auto symbols = in.get_array<std::uint8_t>();
  const auto charges = in.get_array<Charge>();
  require(phases.size() == kinds.size() && peers.size() == kinds.size() &&
          values.size() == kinds.size());
  require((width == 1 || width == 2 || width == 4) && symbols.size() % width == 0);
  std::vector<Event> distinct;
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    require(kinds[i] < kEventKinds && phases[i] < kPhases && peers[i] >= 0 &&
            static_cast<std::size_t>(peers[i]) < workers);
    distinct.push_back(
        {static_cast<Event::Kind>(kinds[i]), static_cast<Phase>(phases[i]), peers[i], values[i]});
    require(distinct.back().kind != Event::Kind::kCharge || values[i] < charges.size());
  }
  LaneRecording lane;
  lane.charges = charges;
  for (std::size_t i = 0; i < symbols.size(); i += width) {
    std::uint32_t symbol = 0;
    std::memcpy(&symbol, symbols.data() + i, width);
    require(symbol < distinct.size());
    lane.add(distinct[symbol]);
  }
  return lane;
}

void put_outcome(ByteWriter& out, const WorkerOutcome& outcome) {
  out.put_array(outcome.loss);
  out.put<std::uint64_t>(outcome.metrics.size());
  for (const auto& [name, series] : outcome.metrics) {
    out.put_string(name);
    out.put_array(series);
  }
  out.put_array(outcome.evaluations);
  out.put(outcome.parameter_hash);
  out.put(outcome.memory);
}

WorkerOutcome get_outcome(ByteReader& in) {
  WorkerOutcome outcome;
  outcome.loss = in.get_array<double>();
  for (auto metrics = in.get<std::uint64_t>(); metrics > 0; --metrics) {
    const std::string name = in.get_string();
    outcome.metrics[name] = in.get_array<double>();
  }
  outcome.evaluations = in.get_array<EvaluationPoint>();
  outcome.parameter_hash = in.get<std::uint64_t>();
  outcome.memory = in.get<WorkerMemory>();
  return outcome;
}

RecordingFile parse(const std::string& content) {
  ByteReader in(content);
  RecordingFile file;
  file.scenario = in.get_string();
  file.inputs = in.get_string();
  Rehearsal& rehearsal = file.rehearsal;
  const auto workers = in.get<std::uint64_t>();
  require(workers > 0);
  for (std::uint64_t w = 0; w < workers; ++w) rehearsal.workers.push_back(get_outcome(in));
  rehearsal.recording.batch_work = in.get<BatchWork>();
  for (std::uint64_t w = 0; w < workers; ++w) {
    WorkerRecording& worker = rehearsal.recording.workers.emplace_back();
    for (LaneRecording& lane : worker.lanes) lane = get_lane(in, workers);
  }
  rehearsal.gradient_relative_error = in.get_array<double>();
  require(in.at_end());
  return file;
}

std::string deflated(const std::string& content) {
  std::string bytes(compressBound(content.size()), '\0');
  uLongf size = bytes.size();
  if (compress2(reinterpret_cast<Bytef*>(bytes.data()), &size,
                reinterpret_cast<const Bytef*>(content.data()), content.size(),
                Z_DEFAULT_COMPRESSION) != Z_OK)
    throw std::bad_alloc();
  bytes.resize(size);
  return bytes;
}

std::string inflated(std::string_view bytes, std::uint64_t content_bytes) {
  constexpr std::uint64_t kMostCompressed = 1032;  // deflate's best ratio
  require(content_bytes / kMostCompressed <= bytes.size());
  std::string content(content_bytes, '\0');
  uLongf size = content.size();
  require(uncompress(reinterpret_cast<Bytef*>(content.data()), &size,
                     reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()) == Z_OK &&
          size == content.size());
  return content;
}

}  // namespace

std::string encode_recording(const RecordingFile& recording) {
  const Rehearsal& rehearsal = recording.rehearsal;
  ByteWriter out;
  out.put_string(recording.scenario);
  out.put_string(recording.inputs);
  out.put<std::uint64_t>(rehearsal.workers.size());
  for (const WorkerOutcome& outcome : rehearsal.workers) put_outcome(out, outcome);
  out.put(rehearsal.recording.batch_work);
  for (const WorkerRecording& worker : rehearsal.recording.workers)
    for (const LaneRecording& lane : worker.lanes) put_lane(out, lane);
  out.put_array(rehearsal.gradient_relative_error);
  const std::string content = out.take();
  const std::string body = deflated(content);
  const Header header{kRecordingVersion, checksum(body, content.size()), content.size()};
  std::string bytes(kMagic);
  bytes.append(reinterpret_cast<const char*>(&header), sizeof header);
  return bytes += body;
}

RecordingFile decode_recording(const std::string& name, const std::string& bytes) {
  const auto refuse = [&](const std::string& what) {
    throw std::invalid_argument(std::string(name).append(": ").append(what));
  };
  if (!bytes.starts_with(kMagic)) refuse("is no recording; write one with gradwire run --record");
  Header header{};
  if (bytes.size() < kMagic.size() + sizeof header) refuse("is a recording cut short");
  std::memcpy(&header, bytes.data() + kMagic.size(), sizeof header);
  if (header.version != kRecordingVersion)
    refuse("is a recording of version " + std::to_string(header.version) +
           "; this gradwire reads version " + std::to_string(kRecordingVersion) +
           "; record it again");
  const std::string_view body = std::string_view(bytes).substr(kMagic.size() + sizeof header);
  if (checksum(body, header.content_bytes) != header.checksum)
    refuse("is a damaged recording (its checksum is wrong); record it again");
  try {
    return parse(inflated(body, header.content_bytes));
  } catch (const std::logic_error& error) {
    refuse(std::string("is a damaged recording (").append(error.what()).append(")"));
  }
  return {};
}

RecordingFile load_recording(const std::string& path) {
  constexpr std::size_t kMost = std::size_t{1} << 36U;
  return decode_recording(path, read_input(path + ":", path, {.most_bytes = kMost}));
}

}  // namespace gradwire

#include "analysis/replay_command.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <ostream>
#include <utility>

#include "analysis/command_line.h"
#include "analysis/named_files.h"
#include "analysis/output_file.h"
#include "analysis/progress.h"
#include "analysis/publish.h"
#include "analysis/report.h"
#include "analysis/text.h"
#include "models/input_file.h"

namespace gradwire {

namespace {

using nlohmann::ordered_json;

// A lane's calls as SMPI reads them.
class TraceWriter {
 public:
  TraceWriter(int rank, const LaneRecording& lane) : rank_(std::to_string(rank)), lane_(lane) {}

  std::string text() {
    line({"init"});
    for (const Event& event : lane_.events) write(event);
    line({"finalize"});
    return std::move(text_);
  }

 private:
  struct Message {
    bool is_send;
    int peer;
    std::uint64_t tag;
  };

  void line(const std::vector<std::string>& words) {
    text_ += rank_ + " " + join(words, " ") + "\n";
  }

  void write(const Event& event) {
    if (event.kind == Event::Kind::kSend || event.kind == Event::Kind::kReceive) {
      const bool is_send = event.kind == Event::Kind::kSend;
      const std::uint64_t tag = next_tag_[{is_send, event.peer}]++;
      line({is_send ? "isend" : "irecv", std::to_string(event.peer), std::to_string(tag),
            std::to_string(event.value)});
      open({is_send, event.peer, tag});
    } else if (event.kind == Event::Kind::kWait) {
      const Message& message = messages_.at(event.value);
      const std::string peer = std::to_string(message.peer);
      line({"wait", message.is_send ? rank_ : peer, message.is_send ? peer : rank_,
            std::to_string(message.tag)});
      free_.push_back(event.value);
    } else if (event.kind == Event::Kind::kCharge) {
      const double flops = lane_.charges[event.value].work.flops;
      if (flops > 0) line({"compute", shortest(flops)});
    }
  }

  // Numbers are given as Communicator gives them: the one freed last is the next.
  void open(const Message& message) {
    if (free_.empty()) {
      free_.push_back(messages_.size());
      messages_.emplace_back();
    }
    messages_[free_.back()] = message;
    free_.pop_back();
  }

  std::string rank_;
  const LaneRecording& lane_;
  std::string text_;
  std::vector<Message> messages_;  // by request number
  std::vector<std::uint64_t> free_;
  std::map<std::pair<bool, int>, std::uint64_t> next_tag_;
};

// The fields of a scenario that the recording fixes, by key.
ordered_json fields_json(const Scenario& scenario) {
  ordered_json fields = ordered_json::object();
  for (const Field& field : scenario_fields()) fields[field.key] = field.get(scenario);
  return fields;
}

// Fields that the command line leaves open are as they were recorded.
void complete(Grid& grid, const ordered_json& recorded) {
  for (const auto& [key, value] : recorded.items())
    if (!grid.has(key)) grid.set(find_field(key), {value.get<std::string>()});
}

void read_inputs(const ordered_json& inputs, Study& study) {
  const ordered_json& dataset = inputs.at("dataset");
  study.dataset.name = dataset.at("name");
  study.dataset.synthetic = dataset.at("kind") == "synthetic";
  study.dataset.shape.features = dataset.at("features");
  DataShape& shape = study.dataset.shape;
  shape.classes = dataset.at("classes");
  shape.steps = dataset.value("steps", Index{1});
  shape.channels = dataset.value("channels", Index{1});
  shape.height = dataset.value("height", Index{1});
  shape.width = dataset.value("width", Index{1});
  shape.vocabulary = dataset.value("vocabulary", Index{0});
  study.dataset.train_examples = dataset.at("train_examples");
  study.dataset.test_examples = dataset.at("test_examples");
  const ordered_json& model = inputs.at("model");
  study.model.name = model.at("name");
  study.model.parameters = model.at("parameters");
  for (const ordered_json& map : model.at("linear_maps"))
    study.model.maps.push_back({.name = map.at("name"),
                                .bias = map.at("bias").get<bool>() ? 0 : -1,
                                .in = map.at("in"),
                                .out = map.at("out")});
}

// What the file describes, as far as the command line does not.
void read_recording(const std::string& path, const RecordingFile& file, Grid& grid, Study& study) {
  try {
    const std::string subject = path + ": is a damaged recording:";
    complete(grid, parse_input(subject, file.scenario));
    read_inputs(parse_input(subject, file.inputs), study);
  } catch (const nlohmann::json::exception& error) {
    throw std::invalid_argument(path + ": is a damaged recording (" + error.what() + ")");
  }
}

void check_replayable(const std::string& path, const RecordingFile& file,
                      const std::vector<Scenario>& scenarios) {
  const auto& workers = file.rehearsal.recording.workers;
  const bool measured = std::any_of(workers.begin(), workers.end(), [](const auto& worker) {
    return std::any_of(worker.lanes[0].charges.begin(), worker.lanes[0].charges.end(),
                       [](const Charge& charge) { return charge.cpu_s > 0; });
  });
  for (const Scenario& s : scenarios) {
    if (static_cast<std::size_t>(s.workers) != workers.size())
      throw std::invalid_argument(path + ": is a damaged recording (of " +
                                  std::to_string(workers.size()) + " workers, not " +
                                  std::to_string(s.workers) + ")");
    if (s.compute.mode == ComputeSpec::Mode::kMeasured && !measured)
      throw std::invalid_argument("compute: " + path +
                                  " has no measured times; record it with --compute measured");
  }
}

int replay_recording(const Arguments& arguments, const std::string& command_line,
                     const Streams& streams) {
  if (arguments.positional().size() != 1)
    throw UsageError("replay needs one recording: gradwire replay FILE [OPTION...]");
  const std::string& path = arguments.positional().front();
  check_publishable(arguments);
  Grid grid;
  arguments.apply_to(grid);
  check_files_differ(arguments, grid);
  const RecordingFile file = load_recording(path);
  if (arguments.has("export-ti"))
    export_time_independent(file.rehearsal.recording, arguments.value("export-ti"));
  Study inputs;
  read_recording(path, file, grid, inputs);
  const std::vector<Scenario> scenarios = grid.points();
  check_replayable(path, file, scenarios);
  const int jobs = arguments.has("jobs")
                       ? static_cast<int>(parse_integer("jobs", arguments.value("jobs"), 1, 1024))
                       : 0;
  Study study = replay_study(scenarios, file.rehearsal, jobs);
  study.dataset = inputs.dataset;
  study.model = inputs.model;
  publish(study, grid, arguments, command_line, streams);
  return 0;
}

}  // namespace

void check_recordable(const std::vector<Scenario>& scenarios) {
  const Scenario& first = scenarios.front();
  for (const Scenario& s : scenarios) {
    if (!find_algorithm(s.algorithm.name).synchronous)
      throw std::invalid_argument("record: the numbers of " + s.algorithm.name +
                                  " depend on the network; it cannot be replayed");
    if (mathematics_key(s) != mathematics_key(first))
      throw UsageError(
          "--record: a recording holds one algorithm on one number of workers; give lists of "
          "bandwidths and latencies only, or record each to a file of its own");
  }
}

RecordingFile recording_of(const Study& study, const Rehearsal& rehearsal) {
  const ordered_json inputs{{"dataset", dataset_json(study.dataset)},
                            {"model", model_json(study.model)}};
  return {fields_json(study.results.front().scenario).dump(), inputs.dump(), rehearsal};
}

void export_time_independent(const Recording& recording, const std::string& folder) {
  for (const WorkerRecording& worker : recording.workers)
    if (!worker.lanes[1].events.empty())
      throw std::invalid_argument(
          "export-ti: the recording overlaps communication with computation, which "
          "time-independent traces cannot express; record with overlap=off");
  namespace fs = std::filesystem;
  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    throw std::invalid_argument("export-ti: cannot make folder " + folder + ": " + error.message());
  std::string list;
  for (std::size_t rank = 0; rank < recording.workers.size(); ++rank) {
    const std::string path = fs::path(folder) / ("rank-" + std::to_string(rank) + ".txt");
    check_writable(path);
    write_file(path, TraceWriter(static_cast<int>(rank), recording.workers[rank].lanes[0]).text());
    list += fs::absolute(path).string() + "\n";
  }
  write_file(fs::path(folder) / "ti.list", list);
}

Command replay_command() {
  Command command{
      .name = "replay",
      .summary = "Times a recorded training (`run --record`) on other networks and devices.",
      .usage = "FILE [OPTION...]",
      .examples =
          R"(  gradwire run --platform star-1g --workers 8 --algorithm powersgd:overlap=off --record p8.rec
  gradwire replay p8.rec --bandwidth 100Mbps,1Gbps,10Gbps --latency 50us,20ms
  gradwire replay p8.rec --platform fat-tree-64 --compute 10ms,20ms --json
  gradwire replay p8.rec --export-ti traces   # for smpirun; not for overlapped recordings
)",
      .flags = {},
      .run = replay_recording};
  for (const Field& field : scenario_fields())
    if (field.timing_only) command.flags.push_back(field_flag(field));
  for (Flag& flag : publishing_flags()) command.flags.push_back(std::move(flag));
  command.flags.insert(
      command.flags.end(),
      {{"export-ti", "FOLDER", "also write SimGrid SMPI time-independent traces there"},
       {"jobs", "N", "replays at the same time (default one per processor); changes no result"}});
  return command;
}

}  // namespace gradwire

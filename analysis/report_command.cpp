// `gradwire report`: what the files of a sweep say, as a table, JSON, CSV and HTML.
#include <ostream>

#include "analysis/command_line.h"
#include "analysis/html_report.h"
#include "analysis/named_files.h"
#include "analysis/output_file.h"
#include "analysis/report.h"
#include "analysis/scaling_report.h"
#include "analysis/scaling_text.h"

namespace gradwire {

namespace {

int report(const Arguments& arguments, const std::string& /*command_line*/,
           const Streams& streams) {
  std::vector<std::string> files = arguments.positional();
  for (const std::string& file : arguments.values("merge")) files.push_back(file);
  if (files.empty()) throw UsageError("report needs a sweep's file; see gradwire report --help");
  std::vector<Target> targets;
  for (const std::string& target : arguments.values("target"))
    targets.push_back(parse_target(target));
  for (const char* key : {"output", "csv", "learning", "html"})
    if (arguments.has(key)) check_writable(arguments.value(key));
  check_files_differ(arguments);

  const SweepResults results = load_sweep_results(files);
  const ScalingReport report = analyse_sweep(results, arguments.value("baseline"), targets);
  if (report.missing_points > 0 && !arguments.has("quiet"))
    streams.err << "gradwire: warning: " << report.missing_points << " of " << results.plan.size()
                << " points are missing: the sweep is not complete\n";
  const std::string json = dump(scaling_json(report, results));
  if (arguments.has("output")) write_file(arguments.value("output"), json);
  if (arguments.has("csv")) write_file(arguments.value("csv"), scaling_csv(report));
  if (arguments.has("learning")) write_file(arguments.value("learning"), learning_csv(report));
  if (arguments.has("html")) write_file(arguments.value("html"), scaling_html(report, results));
  streams.out << (arguments.has("json") ? json : scaling_table(report));
  return 0;
}

}  // namespace

Command report_command() {
  return {
      .name = "report",
      .summary = "Reports on a sweep: scaling, best algorithms, crossovers, time to accuracy.",
      .usage = "FILE.jsonl... [OPTION...]",
      .examples = R"(  gradwire report sweep.jsonl --html sweep.html --csv sweep.csv
  gradwire report sweep.jsonl --baseline dsgd:form=authors --target auc=0.9 loss=0.5
  gradwire report --merge part-*.jsonl --output report.json
)",
      .flags = {{"merge", "FILE...", "files of one sweep's shards", "Output", true},
                {"baseline", "ALGORITHM",
                 "what speed-ups are also measured against (default the first plain dSGD)"},
                {"target", "METRIC=VALUE...",
                 "time to reach it: auc, accuracy or loss (needs evaluate-every)", "Output", true},
                {"json", "", "print the JSON report instead of the table"},
                {"output", "FILE", "write the JSON report to FILE as well"},
                {"csv", "FILE", "write one line per point"},
                {"learning", "FILE", "write one line per evaluation, as CSV"},
                {"html", "FILE", "write one self-contained page with pictures"},
                {"quiet", "", "no warnings"}},
      .run = report};
}

}  // namespace gradwire

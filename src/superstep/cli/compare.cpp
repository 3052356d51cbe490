// superstep compare: two sets of results side by side.
#include "superstep/lab/compare/compare.h"

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/cli/command.h"
#include "superstep/record/named_results.h"

namespace superstep::cli {
namespace {

struct Arguments {
  std::string before, after;
  lab::CompareOptions options;
  bool fail_if_worse = false;
};

nlohmann::json to_json(const lab::Comparison& comparison) {
  nlohmann::json rows = nlohmann::json::array();
  for (const lab::ComparedRow& row : comparison.rows)
    rows.push_back({{"result", row.result},
                    {"metric", row.metric},
                    {"unit", row.unit},
                    {"before", row.before},
                    {"after", row.after},
                    {"ratio", row.ratio},
                    {"low", row.low ? nlohmann::json(*row.low) : nlohmann::json(nullptr)},
                    {"high", row.high ? nlohmann::json(*row.high) : nlohmann::json(nullptr)},
                    {"verdict", lab::name_of(row.verdict)},
                    {"differences", row.differences}});
  return {{"schema", "superstep-comparison/1"},
          {"rows", rows},
          {"only_before", comparison.only_before},
          {"only_after", comparison.only_after}};
}

void compare(const Arguments& arguments) {
  const lab::Comparison comparison = lab::compare(record::load_results(arguments.before),
                                                  record::load_results(arguments.after), arguments.options);
  if (!common().json.empty()) write_file_atomically(common().json, to_json(comparison).dump(2) + "\n");
  if (!common().quiet) fmt::print("{}", lab::comparison_table(comparison));
  int worse = 0;
  for (const lab::ComparedRow& row : comparison.rows) worse += row.verdict == lab::Verdict::worse ? 1 : 0;
  if (arguments.fail_if_worse && worse > 0)
    throw Error(ErrorCode::diverged, fmt::format("{} metrics are worse beyond the noise", worse),
                arguments.after);
}

}  // namespace

void declare_compare(CLI::App& command) {
  const auto a = std::make_shared<Arguments>();
  command.add_option("before", a->before, "a file that --json wrote, a record's number, or last")->required();
  command.add_option("after", a->after, "the same")->required();
  command.add_option("--metric", a->options.metrics, "compare these (default: times, rates and latencies)")
      ->type_name("NAME,...")
      ->delimiter(',');
  command.add_flag("--fail-if-worse", a->fail_if_worse, "end with 1 when a metric is worse beyond the noise");
  command.footer(
      "Examples:\n"
      "  superstep compare old.json new.json\n"
      "  superstep compare 41 42 --metric step_time\n"
      "The interval of a ratio is a bootstrap of both medians from all samples, 95 %. A difference whose "
      "interval\n"
      "holds 1 is within the noise.");
  command.callback([a] { compare(*a); });
}

}  // namespace superstep::cli

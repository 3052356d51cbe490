// superstep account FOLDER...: the accounts of servers that shared a stream, as one.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "superstep/base/error.h"
#include "superstep/base/text.h"
#include "superstep/cli/command.h"
#include "superstep/cli/shared/outcome.h"
#include "superstep/edge/stream/joint.h"

namespace superstep::cli {
namespace {

constexpr const char* examples =
    "Examples:\n"
    "  superstep serve run/ --pull tcp://detector:31001 --write one/ --shared      two servers of one "
    "stream:\n"
    "  superstep serve run/ --pull tcp://detector:31001 --write two/ --shared      frames go round\n"
    "  superstep account one/ two/                                  what became of all of them\n"
    "A server that was killed is in it with the frames whose answers are in its files. The status is 1 where "
    "counts do not add up.";

std::string count(std::uint64_t value) { return format_count(static_cast<double>(value)); }

std::string servers_table(const edge::JointAccount& joint) {
  TextTable table({"server", "series", "received", "duplicate", "served", "not served", "in files", "ended"});
  for (const edge::ServerShare& server : joint.servers) {
    if (server.series.empty())
      table.add_row({server.folder.string(), "-", "0", "0", "0", "0", "0", server.ended ? "yes" : "no"});
    for (const auto& [name, share] : server.series) {
      const std::uint64_t served = share.account.of(edge::Outcome::served);
      const auto answers = static_cast<std::uint64_t>(std::ranges::count(share.answered, true));
      table.add_row({server.folder.string(), name, count(share.account.received),
                     count(share.account.duplicate), count(served),
                     count(share.account.received - share.account.duplicate - served), count(answers),
                     share.closed ? "yes" : "no"});
    }
  }
  return table.to_string();
}

std::string series_table(const edge::JointAccount& joint) {
  TextTable table(
      {"series", "announced", "in an account", "in two", "duplicate", "served", "in files", "missing"});
  for (const edge::JointSeries& series : joint.series)
    table.add_row({series.name, series.announced > 0 ? count(series.announced) : "-", count(series.seen),
                   count(series.again), count(series.account.duplicate),
                   count(series.account.of(edge::Outcome::served)), count(series.answered),
                   count(series.missing)});
  return table.to_string();
}

std::string missing_lines(const edge::JointAccount& joint) {
  constexpr std::size_t most_shown = 8;
  std::string text;
  for (const edge::JointSeries& series : joint.series) {
    std::vector<std::string> ranges;
    for (const auto& [first, last] : series.missing_ranges) {
      if (ranges.size() == most_shown) {
        ranges.emplace_back("...");
        break;
      }
      ranges.push_back(first == last ? count(first) : fmt::format("{} to {}", count(first), count(last)));
    }
    if (!ranges.empty()) text += fmt::format("missing of {}: {}\n", series.name, join(ranges, "; "));
  }
  return text;
}

std::vector<Metric> metrics_of(const edge::JointAccount& joint) {
  std::vector<Metric> metrics;
  const auto add = [&](const std::string& name, std::uint64_t value) {
    metrics.push_back({.name = name, .value = static_cast<double>(value), .unit = ""});
  };
  for (const edge::JointSeries& series : joint.series) {
    add(series.name + "_announced", series.announced);
    add(series.name + "_seen", series.seen);
    add(series.name + "_again", series.again);
    add(series.name + "_duplicate", series.account.duplicate);
    add(series.name + "_served", series.account.of(edge::Outcome::served));
    add(series.name + "_answered", series.answered);
    add(series.name + "_missing", series.missing);
  }
  add("corrupt", joint.account.corrupt);
  add("late", joint.account.late);
  add("received", joint.account.received);
  return metrics;
}

void account(const std::vector<std::string>& folders) {
  const edge::JointAccount joint = edge::join_accounts({folders.begin(), folders.end()});
  if (!common().quiet) {
    fmt::print("{}\n{}{}", servers_table(joint), series_table(joint), missing_lines(joint));
    if (joint.account.corrupt + joint.account.late > 0)
      fmt::print("of no series: corrupt {}, late {}\n", count(joint.account.corrupt),
                 count(joint.account.late));
  }
  nlohmann::json ranges = nlohmann::json::object();
  for (const edge::JointSeries& series : joint.series) ranges[series.name] = series.missing_ranges;
  write_result(
      command_result("account", join(folders, ","), {{"missing_ranges", ranges}}, metrics_of(joint)));
  if (!joint.contradictions.empty())
    throw Error(ErrorCode::bad_file, join(joint.contradictions, "; "), "the accounts");
}

}  // namespace

void declare_account(CLI::App& command) {
  const auto folders = std::make_shared<std::vector<std::string>>();
  command.add_option("folder", *folders, "folder in which a server keeps its answers (its --write)")
      ->required();
  command.footer(examples);
  command.callback([folders] { account(*folders); });
}

}  // namespace superstep::cli

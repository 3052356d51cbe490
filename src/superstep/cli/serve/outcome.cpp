#include "superstep/cli/serve/outcome.h"

#include <fmt/format.h>

#include "superstep/base/error.h"
#include "superstep/base/system/standard_streams.h"
#include "superstep/base/text.h"
#include "superstep/cli/command.h"

namespace superstep::cli {
namespace {

std::string account_table(const edge::ServeReport& report) {
  std::vector<std::string> header{"model", "received"};
  for (const edge::Outcome outcome : edge::all_outcomes) header.push_back(name_of(outcome));
  TextTable table(header);
  for (const edge::ServedModel& model : report.models) {
    std::vector<std::string> row{model.name,
                                 format_count(static_cast<double>(model.account.received.requests))};
    for (const edge::Outcome outcome : edge::all_outcomes)
      row.push_back(format_count(static_cast<double>(model.account.of(outcome).requests)));
    table.add_row(row);
  }
  return table.to_string();
}

std::uint64_t refused_of(const edge::DoorAccount& account) {
  return account.requests - account.under_way - account.of(edge::RequestEnd::answered) - account.unanswered();
}

// What came to the doors, whether or not a model heard of it.
std::string door_table(const edge::ServeSettings& settings, const edge::ServeReport& report) {
  const auto number = [](std::uint64_t count) { return format_count(static_cast<double>(count)); };
  TextTable table({"door", "connections", "requests", "answered", "refused", "slow", "lost", "unsent"});
  std::string reasons;
  for (const auto& [name, account] : {std::pair("http", &report.http), {"grpc", &report.grpc}}) {
    if (account == &report.grpc && !settings.grpc) continue;
    const auto of = [&](edge::RequestEnd end) { return number(account->of(end)); };
    table.add_row({name, number(account->connections), number(account->requests),
                   of(edge::RequestEnd::answered), number(refused_of(*account)), of(edge::RequestEnd::slow),
                   of(edge::RequestEnd::lost), of(edge::RequestEnd::unsent)});
    for (const auto& [key, count] : account->request_ends)
      if (key.first != edge::RequestEnd::answered || key.second >= 400)
        reasons +=
            fmt::format("{}: {} {} with status {}\n", name, number(count), name_of(key.first), key.second);
    for (const edge::ConnectionEnd end : edge::all_connection_ends)
      if (account->of(end) > 0 && end != edge::ConnectionEnd::closed && end != edge::ConnectionEnd::idle &&
          end != edge::ConnectionEnd::stopped)
        reasons +=
            fmt::format("{}: {} connections ended as {}\n", name, number(account->of(end)), name_of(end));
  }
  return table.to_string() + reasons;
}

// Only what is true of every request that came.
std::string closing_words(const edge::ServeReport& report) {
  if (!report.drained) return "";
  const std::uint64_t unanswered =
      report.http.unanswered() + report.grpc.unanswered() + report.http.under_way + report.grpc.under_way;
  if (unanswered > 0)
    return fmt::format(
        "{} requests have no answer: who asked left, was too slow, or sent more than is taken\n",
        format_count(static_cast<double>(unanswered)));
  const std::uint64_t refused = refused_of(report.http) + refused_of(report.grpc);
  if (refused > 0)
    return fmt::format("all that was taken in was answered; {} requests were refused at the door\n",
                       format_count(static_cast<double>(refused)));
  return "all that was taken in was answered\n";
}

std::vector<std::pair<const char*, std::uint64_t>> stream_counts(const edge::StreamAccount& account) {
  std::vector<std::pair<const char*, std::uint64_t>> counts{{"received", account.received}};
  for (const edge::Outcome outcome : edge::all_outcomes)
    if (outcome != edge::Outcome::invalid) counts.emplace_back(name_of(outcome), account.of(outcome));
  counts.insert(counts.end(), {{"corrupt", account.corrupt},
                               {"unread", account.unread},
                               {"duplicate", account.duplicate},
                               {"unfitting", account.unfitting},
                               {"late", account.late},
                               {"missing", account.missing}});
  return counts;
}

std::string stream_table(const edge::ServeReport& report) {
  std::vector<std::string> header{"stream"}, row{"frames"};
  for (const auto& [name, count] : stream_counts(report.stream)) {
    header.push_back(name);
    row.push_back(format_count(static_cast<double>(count)));
  }
  TextTable table(header);
  table.add_row(row);
  std::string text = table.to_string();
  for (const auto& [why, many] : report.stream.reasons)
    text += fmt::format("not used, {} of frames: {}\n", many, why);
  for (const std::string& file : report.files) text += fmt::format("written to {}\n", file);
  if (report.stream.refused_connections > 0)
    text += fmt::format("{} connections to streams had no key that is known\n",
                        format_count(static_cast<double>(report.stream.refused_connections)));
  if (report.stream.unwritten_bytes > 0)
    text += fmt::format("{} of answers are in no file: there was no room for them\n",
                        format_bytes(static_cast<double>(report.stream.unwritten_bytes)));
  return text;
}

// Frames that were taken in and have no answer where it was to be, though nobody allowed that.
void require_no_loss(const ServeArguments& a, const edge::ServeReport& report) {
  if (!report.drained)
    throw Error(ErrorCode::io, "not all that waited could be answered in time", "--drain",
                "those who asked were told so");
  if (!report.stream_failure.empty())
    throw Error(ErrorCode::io, report.stream_failure, "the stream",
                "frames after it have no answer, or none in a file");
  const edge::StreamAccount& stream = report.stream;
  const std::uint64_t allowed =
      a.queue_full == "block" ? 0 : stream.of(edge::Outcome::refused) + stream.of(edge::Outcome::dropped);
  const std::uint64_t lost = stream.of(edge::Outcome::refused) + stream.of(edge::Outcome::dropped) +
                             stream.of(edge::Outcome::failed) + stream.of(edge::Outcome::closed) - allowed;
  if (lost > 0)
    throw Error(ErrorCode::io, fmt::format("{} frames have no answer", lost), "the stream",
                "the table says what became of them");
  if (const std::uint64_t lost_here = stream.lost_here(); lost_here > 0)
    throw Error(ErrorCode::io, fmt::format("{} of the frames that came could not be used", lost_here),
                "the stream", "each reason is said above, and in .account.json beside the answers");
}

// Answers that are no numbers, of inputs that are: the model is broken, or asked what it cannot compute.
void require_finite(const ServeArguments& a, const edge::ServeReport& report) {
  for (const edge::ServedModel& model : report.models) {
    if (model.outside_of_training > 0)
      tell(fmt::format(
          "superstep: warning: {}: {} rows had inputs outside of the range that the training had\n",
          model.name, format_count(static_cast<double>(model.outside_of_training))));
    if (model.not_finite.inputs > 0)
      tell(fmt::format("superstep: warning: {}: {} rows had NaN or infinity in, and out\n", model.name,
                       format_count(static_cast<double>(model.not_finite.inputs))));
    if (model.not_finite.outputs == 0) continue;
    const std::string what = fmt::format("{} rows of answers are not finite though their inputs are",
                                         format_count(static_cast<double>(model.not_finite.outputs)));
    if (!a.allow_not_finite)
      throw Error(ErrorCode::diverged, what, model.name,
                  "look at the model's weights; --allow-not-finite takes such answers as they are");
    tell(fmt::format("superstep: warning: {}: {}\n", model.name, what));
  }
}

}  // namespace

std::string tables_of(const edge::ServeSettings& settings, const edge::ServeReport& report) {
  return account_table(report) + door_table(settings, report) + closing_words(report) +
         (settings.stream.pull.empty() ? "" : stream_table(report));
}

std::vector<Metric> metrics_of(const edge::ServeReport& report) {
  std::vector<Metric> metrics{{.name = "served_for", .value = report.seconds, .unit = "s"}};
  for (const edge::ServedModel& model : report.models) {
    const auto add = [&](std::string_view what, const edge::Tally& tally) {
      metrics.push_back({.name = fmt::format("{}_requests_{}", model.name, what),
                         .value = static_cast<double>(tally.requests),
                         .unit = ""});
      metrics.push_back({.name = fmt::format("{}_rows_{}", model.name, what),
                         .value = static_cast<double>(tally.rows),
                         .unit = ""});
    };
    add("received", model.account.received);
    for (const edge::Outcome outcome : edge::all_outcomes) add(name_of(outcome), model.account.of(outcome));
  }
  for (const auto& [name, account] : {std::pair("http", &report.http), {"grpc", &report.grpc}})
    for (const auto& [what, count] : {std::pair("requests", account->requests),
                                      {"answered", account->of(edge::RequestEnd::answered)},
                                      {"refused", refused_of(*account)},
                                      {"unanswered", account->unanswered()}})
      metrics.push_back(
          {.name = fmt::format("{}_{}", name, what), .value = static_cast<double>(count), .unit = ""});
  for (const auto& [name, count] : stream_counts(report.stream))
    metrics.push_back(
        {.name = fmt::format("frames_{}", name), .value = static_cast<double>(count), .unit = ""});
  metrics.push_back({.name = "answers_unwritten",
                     .value = static_cast<double>(report.stream.unwritten_bytes),
                     .unit = "B"});
  metrics.push_back({.name = "stream_connections_refused",
                     .value = static_cast<double>(report.stream.refused_connections),
                     .unit = ""});
  return metrics;
}

void require_all_well(const ServeArguments& a, const edge::ServeReport& report) {
  require_no_loss(a, report);
  require_finite(a, report);
}

}  // namespace superstep::cli

#include "superstep/edge/stream/summary.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "superstep/base/encoding/base64.h"
#include "superstep/base/file.h"
#include "superstep/base/json.h"
#include "superstep/edge/stream/frame.h"

namespace superstep::edge {
namespace {

using nlohmann::json;

// A bit a frame, the first in the lowest of the first byte.
std::string packed(const Series& series) {
  std::vector<std::byte> bytes((series.end() + 7) / 8);
  for (std::uint64_t frame = 0; frame < series.end(); ++frame)
    if (series.has(frame)) bytes[frame / 8] |= std::byte{1} << (frame % 8);
  return base64_encode(bytes);
}

std::vector<bool> unpacked(const std::string& text, const std::filesystem::path& file) {
  const auto bytes = base64_decode(text);
  if (!bytes || bytes->size() > most_frames / 8)
    throw Error(ErrorCode::bad_file, "'seen_bits' are no bits of frames", file.string());
  std::vector<bool> seen(bytes->size() * 8);
  for (std::size_t i = 0; i < seen.size(); ++i)
    seen[i] = ((*bytes)[i / 8] & (std::byte{1} << (i % 8))) != std::byte{0};
  return seen;
}

json outcomes_json(const StreamAccount& account) {
  json outcomes = json::object();
  for (const Outcome outcome : all_outcomes)
    if (account.of(outcome) > 0) outcomes[name_of(outcome)] = account.of(outcome);
  return outcomes;
}

void read_outcomes(const json& outcomes, StreamAccount& account) {
  for (const Outcome outcome : all_outcomes) account.of(outcome) = outcomes.value(name_of(outcome), 0ULL);
}

template <class Read>
auto read_file(const std::filesystem::path& file, const Read& read) {
  try {
    return read(parse_json_or_throw(read_text_file(file)));
  } catch (const json::exception& error) {
    throw Error(ErrorCode::bad_file, fmt::format("is no account of a server: {}", error.what()),
                file.string());
  }
}

}  // namespace

void write_series_summary(const std::filesystem::path& folder, const Series& series,
                          const StreamAccount& account, const std::string& model,
                          const std::vector<std::string>& files, bool shared) {
  constexpr std::size_t most_ranges = 10'000;
  json names = json::array();
  for (const std::string& file : files) names.push_back(std::filesystem::path(file).filename().string());
  json summary{{"series", series.name()},
               {"announced", series.announced()},
               {"seen", series.seen()},
               {"received", account.received},
               {"duplicate", account.duplicate},
               {"unfitting", account.unfitting},
               {"reasons", account.reasons},
               {"outcomes", outcomes_json(account)},
               {"model", model},
               {"files", names}};
  if (shared)
    summary["seen_bits"] = packed(series);
  else
    summary.update({{"missing", series.missing()}, {"missing_ranges", series.missing_ranges(most_ranges)}});
  write_file_atomically(folder / (series.name() + ".json"), summary.dump(1) + "\n");
}

void write_stream_account(const std::filesystem::path& folder, const StreamAccount& account) {
  const json text{{"received", account.received},   {"waiting", account.waiting},
                  {"corrupt", account.corrupt},     {"duplicate", account.duplicate},
                  {"unread", account.unread},       {"reasons", account.reasons},
                  {"unfitting", account.unfitting}, {"late", account.late},
                  {"series", account.series},       {"outcomes", outcomes_json(account)}};
  write_file_atomically(folder / stream_account_file, text.dump(1) + "\n");
}

SeriesSummary read_series_summary(const std::filesystem::path& file) {
  return read_file(file, [&](const json& text) {
    SeriesSummary summary{
        .name = text.at("series"), .model = text.at("model"), .announced = text.at("announced")};
    if (!text.contains("seen_bits"))
      throw Error(ErrorCode::invalid_argument, "is of a server that had the stream for itself", file.string(),
                  "servers that share one are started with --shared");
    summary.seen = unpacked(text.at("seen_bits"), file);
    summary.account.received = text.at("received");
    summary.account.duplicate = text.at("duplicate");
    summary.account.unfitting = text.at("unfitting");
    read_outcomes(text.at("outcomes"), summary.account);
    summary.files = text.at("files").get<std::vector<std::string>>();
    return summary;
  });
}

StreamAccount read_stream_account(const std::filesystem::path& file) {
  return read_file(file, [](const json& text) {
    StreamAccount account;
    account.received = text.at("received");
    account.waiting = text.at("waiting");
    account.corrupt = text.at("corrupt");
    account.unread = text.value("unread", std::uint64_t{0});  // older servers have no such count
    account.reasons = text.value("reasons", std::map<std::string, std::uint64_t>());
    account.duplicate = text.at("duplicate");
    account.unfitting = text.at("unfitting");
    account.late = text.at("late");
    account.series = text.at("series");
    read_outcomes(text.at("outcomes"), account);
    return account;
  });
}

}  // namespace superstep::edge

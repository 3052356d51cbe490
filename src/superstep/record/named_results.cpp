#include "superstep/record/named_results.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <set>

#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/record/records.h"
#include "superstep/record/result_json.h"

namespace superstep::record {
namespace {

constexpr std::uintmax_t most_file_bytes = std::uintmax_t{64} << 20;

std::optional<std::int64_t> number_in(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failure != std::errc() || end != text.data() + text.size() || number < 1) return std::nullopt;
  return number;
}

std::optional<std::int64_t> record_number(std::string_view name) {
  if (name.starts_with("record:")) name.remove_prefix(7);
  return number_in(name);
}

Result newest(const std::string& workload) {
  auto found = Records().list({.workload = workload, .command = {}, .most = 1});
  if (found.empty())
    throw Error(ErrorCode::not_found,
                workload.empty() ? "there are no records yet" : "no record is of that workload",
                workload.empty() ? "last" : workload, "superstep records list shows what there is");
  return std::move(found.front());
}

// Of results that were measured again the newest; in the order of the records.
std::vector<Result> newest_of_each() {
  constexpr int most = 2000;
  std::vector<Result> results;
  std::set<std::pair<std::string, std::string>> seen;
  const Records all;
  for (const char* command : {"bench", "scale"})
    for (Result& result : all.list({.workload = {}, .command = command, .most = most}))
      if (seen.emplace(command, result.id).second) results.push_back(std::move(result));
  if (results.empty())
    throw Error(ErrorCode::not_found, "the records hold no benchmark", "all", "measure with superstep bench");
  std::ranges::sort(results, {}, &Result::number);
  return results;
}

}  // namespace

std::vector<Result> load_results(const std::string& name) {
  if (std::filesystem::exists(name)) {
    std::error_code failure;
    const std::uintmax_t bytes = std::filesystem::file_size(name, failure);
    if (!failure && bytes > most_file_bytes) throw Error(ErrorCode::bad_file, "is larger than 64 MB", name);
    return read_results(read_text_file(name), name);
  }
  if (name == "all") return newest_of_each();
  if (name == "last" || name.starts_with("last:")) return {newest(name.size() > 5 ? name.substr(5) : "")};
  const auto number = record_number(name);
  if (!number)
    throw Error(ErrorCode::not_found, "there is no such file, and it is not the number of a record", name,
                "name a file that --json wrote, or a number that superstep records list shows");
  auto found = Records().find(*number);
  if (!found)
    throw Error(ErrorCode::not_found, "there is no such record", name,
                "superstep records list shows what there is");
  return {std::move(*found)};
}

}  // namespace superstep::record

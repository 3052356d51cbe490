#include "superstep/machine/rates/kept.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "superstep/base/error.h"
#include "superstep/base/text.h"
#include "superstep/machine/built_in.h"

namespace superstep::machine {
namespace {

constexpr const char* laws_header =
    "# Constants of laws (machine/rates/law.h), fitted over public measurements: seconds, shares of the "
    "data\n"
    "# sheet's peaks, how many were fitted for the key, calls and groups that set them. docs/machines.md\n"
    "key,launch,compute_share,memory_share,collective,fitted,calls,groups\n";

constexpr const char* kernels_header =
    "# Measured kernels and collectives over the law: the logarithm of the ratio, then the logarithms of the "
    "shape.\n"
    "# From XLA's tables, DeepBench and tt-perf-report (Apache-2.0) and NeuSight (MIT). A line \"= KEY\" "
    "begins a\n"
    "# machine's.\n";

double number_in(const std::string& text, const std::string& where) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value))
    throw Error(ErrorCode::bad_file, fmt::format("'{}' is not a number", text), where);
  return value;
}

// Every line that is neither empty nor a comment, with its place.
template <class Do>
void for_each_line(std::string_view text, const std::string& where, Do what) {
  std::size_t number = 0;
  for (const std::string& line : split(text, '\n')) {
    ++number;
    if (!line.empty() && line.front() != '#') what(line, fmt::format("{}:{}", where, number));
  }
}

}  // namespace

std::string laws_text(const std::vector<const FittedLaws*>& laws) {
  std::string text = laws_header;
  for (const FittedLaws* law : laws)
    for (const auto& [key, c] : law->constants())
      text += fmt::format("{},{:.4g},{:.4g},{:.4g},{:.4g},{},{},{}\n", key, c.launch, c.compute_share,
                          c.memory_share, c.collective, c.fitted, c.calls, c.groups);
  return text;
}

std::string kernels_text(const std::vector<const FittedLaws*>& laws) {
  std::string text = kernels_header;
  for (const FittedLaws* law : laws)
    for (const auto& [key, neighbours] : law->neighbours()) {
      std::string lines;
      for (const FittedLaws::Neighbour& one : neighbours) {
        if (!one.may_be_kept) continue;
        lines += fmt::format("{:.3g}", one.residual);
        for (const double place : one.place) lines += fmt::format(" {:.4g}", place);
        lines += "\n";
      }
      if (!lines.empty()) text += fmt::format("= {}\n{}", key, lines);
    }
  return text;
}

void read_laws(std::string_view text, const std::string& where, FittedLaws& to) {
  for_each_line(text, where, [&](const std::string& line, const std::string& place) {
    if (line.starts_with("key,")) return;
    const std::vector<std::string> cells = split(line, ',');
    constexpr std::size_t columns = 8;  // of the header
    if (cells.size() != columns)
      throw Error(ErrorCode::bad_file, fmt::format("has {} cells of {}", cells.size(), columns), place);
    const auto at = [&](std::size_t column) { return number_in(cells[column], place); };
    if (!(at(2) > 0) || !(at(3) > 0) || at(1) < 0 || at(4) < 0)
      throw Error(ErrorCode::bad_file, "shares are above zero, times not below", place);
    to.add(cells[0], {.launch = at(1),
                      .compute_share = at(2),
                      .memory_share = at(3),
                      .collective = at(4),
                      .fitted = static_cast<int>(at(5)),
                      .calls = static_cast<std::size_t>(at(6)),
                      .groups = static_cast<std::size_t>(at(7))});
  });
}

void read_kernels(std::string_view text, const std::string& where, FittedLaws& to) {
  std::string key;
  for_each_line(text, where, [&](const std::string& line, const std::string& place) {
    if (line.starts_with("= ")) {
      key = line.substr(2);
      return;
    }
    if (key.empty()) throw Error(ErrorCode::bad_file, "a kernel stands before the first \"= KEY\"", place);
    const std::vector<std::string> cells = split(line, ' ');
    FittedLaws::Neighbour neighbour{.place = {}, .residual = number_in(cells[0], place)};
    for (std::size_t i = 1; i < cells.size(); ++i) neighbour.place.push_back(number_in(cells[i], place));
    to.add(key, std::move(neighbour));
  });
}

const FittedLaws& kept_laws() {
  static const FittedLaws laws = [] {
    FittedLaws all;
    for (const BuiltIn& file : rate_files()) {
      const std::string where = fmt::format("machines/rates/{}.csv", file.id);
      if (file.id == "laws") read_laws(file.text, where, all);
      if (file.id == "kernels") read_kernels(file.text, where, all);
    }
    return all;
  }();
  return laws;
}

}  // namespace superstep::machine

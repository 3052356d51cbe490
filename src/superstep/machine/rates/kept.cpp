#include "superstep/machine/rates/kept.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <set>

#include "superstep/base/error.h"
#include "superstep/base/text.h"
#include "superstep/machine/built_in.h"

namespace superstep::machine {
namespace {

constexpr const char* laws_header =
    "# Constants of laws (machine/rates/law.h), fitted over public measurements: seconds, shares of the "
    "data\n"
    "# sheet's peaks, how many were fitted for the key, calls and groups that set them. docs/machines.md\n"
    "kind,launch,compute_share,memory_share,vector_share,grouped_share,link_share,collective,fitted,calls,"
    "groups\n";

constexpr const char* factors_header =
    "# By what the calls of a vendor, a generation, a machine or a stack take longer than their kind: "
    "logarithms, "
    "and\n"
    "# the calls that set them.\n"
    "name,log,calls\n";

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
    for (const auto& [kind, c] : law->constants())
      text += fmt::format("{},{:.4g},{:.4g},{:.4g},{:.4g},{:.4g},{:.4g},{:.4g},{},{},{}\n", kind, c.launch,
                          c.compute_share, c.memory_share, c.vector_share, c.grouped_share, c.link_share,
                          c.collective, c.fitted, c.calls, c.groups);
  return text;
}

std::string factors_text(const std::vector<const FittedLaws*>& laws) {
  std::string text = factors_header;
  for (const FittedLaws* law : laws)
    for (const auto& [name, factor] : law->factors())
      text += fmt::format("{},{:.4f},{}\n", name, factor.log, factor.calls);
  return text;
}

std::string kernels_text(const std::vector<const FittedLaws*>& laws) {
  std::string text = kernels_header;
  for (const FittedLaws* law : laws)
    for (const auto& [own, neighbours] : law->neighbours()) {
      std::string lines;
      for (const FittedLaws::Neighbour& one : neighbours.all) {
        if (!one.may_be_kept) continue;
        lines += fmt::format("{:.3g}", one.residual);
        for (const double place : one.place) lines += fmt::format(" {:.4g}", place);
        lines += "\n";
      }
      if (!lines.empty()) text += fmt::format("= {}; {}\n{}", own, join(neighbours.relatives, "; "), lines);
    }
  return text;
}

namespace {

std::vector<std::string> cells_of(const std::string& line, std::size_t columns, const std::string& place) {
  std::vector<std::string> cells = split(line, ',');
  if (cells.size() != columns)
    throw Error(ErrorCode::bad_file, fmt::format("has {} cells of {}", cells.size(), columns), place);
  return cells;
}

}  // namespace

void read_laws(std::string_view text, const std::string& where, FittedLaws& to) {
  for_each_line(text, where, [&](const std::string& line, const std::string& place) {
    if (line.starts_with("kind,")) return;
    constexpr std::size_t columns = 11;  // of the header
    const std::vector<std::string> cells = cells_of(line, columns, place);
    const auto at = [&](std::size_t column) { return number_in(cells[column], place); };
    for (std::size_t share = 2; share <= 6; ++share)
      if (!(at(share) > 0) || at(1) < 0 || at(7) < 0)
        throw Error(ErrorCode::bad_file, "shares are above zero, times not below", place);
    to.add(cells[0], LawConstants{.launch = at(1),
                                  .compute_share = at(2),
                                  .memory_share = at(3),
                                  .vector_share = at(4),
                                  .grouped_share = at(5),
                                  .link_share = at(6),
                                  .collective = at(7),
                                  .fitted = static_cast<int>(at(8)),
                                  .calls = static_cast<std::size_t>(at(9)),
                                  .groups = static_cast<std::size_t>(at(10))});
  });
}

void read_factors(std::string_view text, const std::string& where, FittedLaws& to) {
  for_each_line(text, where, [&](const std::string& line, const std::string& place) {
    if (line.starts_with("name,")) return;
    constexpr std::size_t columns = 3;  // of the header
    const std::vector<std::string> cells = cells_of(line, columns, place);
    to.add(cells[0], FittedLaws::Factor{.log = number_in(cells[1], place),
                                        .calls = static_cast<std::size_t>(number_in(cells[2], place))});
  });
}

void read_kernels(std::string_view text, const std::string& where, FittedLaws& to) {
  std::vector<std::string> names;  // the machine's own, then its relatives
  for_each_line(text, where, [&](const std::string& line, const std::string& place) {
    if (line.starts_with("= ")) {
      names.clear();
      for (const std::string& name : split(line.substr(2), ';'))
        names.push_back(name.starts_with(' ') ? name.substr(1) : name);
      return;
    }
    if (names.empty()) throw Error(ErrorCode::bad_file, "a kernel stands before the first \"= KEY\"", place);
    const std::vector<std::string> cells = split(line, ' ');
    FittedLaws::Neighbour neighbour{.place = {}, .residual = number_in(cells[0], place)};
    for (std::size_t i = 1; i < cells.size(); ++i) neighbour.place.push_back(number_in(cells[i], place));
    to.add(names.front(), {names.begin() + 1, names.end()}, std::move(neighbour));
  });
}

const FittedLaws& kept_laws() {
  static const FittedLaws laws = [] {
    FittedLaws all;
    for (const BuiltIn& file : rate_files()) {
      const std::string where = fmt::format("machines/rates/{}.csv", file.id);
      if (file.id == "laws") read_laws(file.text, where, all);
      if (file.id == "factors") read_factors(file.text, where, all);
      if (file.id == "kernels") read_kernels(file.text, where, all);
    }
    return all;
  }();
  return laws;
}

std::vector<std::string> measured_software(std::string_view law) {
  std::set<std::string> names;
  for (const auto& [kind, constants] : kept_laws().constants()) {
    if (!kind.starts_with(std::string(law) + " ")) continue;
    for (const std::string width : {" 4 bits ", " 8 bits ", " f16 ", " tf32 ", " f32 "}) {
      const std::size_t at = kind.find(width);
      if (at == std::string::npos) continue;
      const std::string behind = kind.substr(at + width.size());
      if (const std::string name = behind.substr(0, behind.find(' ')); name.front() != '(')
        names.insert(name);
    }
  }
  return {names.begin(), names.end()};
}

}  // namespace superstep::machine

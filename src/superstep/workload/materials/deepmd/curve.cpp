// lcurve.out as DeePMD-kit writes it: what was learnt, in columns with names in the first line.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "superstep/workload/materials/deepmd/deepmd.h"

namespace superstep::workload {
namespace {

using nlohmann::json;

constexpr const char* columns[] = {"rmse", "rmse_e", "rmse_f", "rmse_v"};
constexpr const char *validation = "validation_errors", *training = "training_errors";

bool is_point(const json& line) { return line.contains(training) && line[training].is_object(); }

std::string number_text(const json& line, const char* part, const char* column) {
  const json& errors = line.value(part, json::object());
  return fmt::format("   {:11.4e}", errors.is_object() ? errors.value(column, std::nan("")) : std::nan(""));
}

}  // namespace

std::string deepmd_curve(const std::vector<json>& log) {
  const auto any = [&](const char* part, const char* column) {
    return std::ranges::any_of(log, [&](const json& line) {
      return is_point(line) && line.contains(part) && line[part].is_object() && line[part].contains(column);
    });
  };
  std::vector<std::pair<const char*, const char*>> shown;  // column, part
  std::string text = fmt::format("# {:>5}", "step");
  for (const char* column : columns)
    for (const auto& [part, suffix] : {std::pair(validation, "_val"), std::pair(training, "_trn")})
      if (any(part, column)) {
        shown.emplace_back(column, part);
        text += fmt::format("   {:>11}", fmt::format("{}{}", column, suffix));
      }
  text += fmt::format("   {:>8}\n", "lr");
  for (const json& line : log) {
    if (!is_point(line)) continue;
    text += fmt::format("{:7}", line.value("step", std::int64_t{0}));
    for (const auto& [column, part] : shown) text += number_text(line, part, column);
    text += fmt::format("   {:8.1e}\n", line.value("learning_rate", std::nan("")));
  }
  return text;
}

}  // namespace superstep::workload

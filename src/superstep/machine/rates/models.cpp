#include "superstep/machine/rates/models.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

#include "superstep/base/error.h"
#include "superstep/base/text.h"
#include "superstep/machine/built_in.h"

namespace superstep::machine {
namespace {

double attention_weights(const ModelFacts& facts) {
  return facts.layers *
         (2 * facts.width * facts.width + 2 * facts.width * facts.kv_heads * facts.head_width());
}

double expert_weights(const ModelFacts& facts) {
  return facts.layers * (facts.gated ? 3 : 2) * facts.width * facts.ffn;
}

std::string_view text_of_rates(std::string_view id) {
  for (const BuiltIn& file : rate_files())
    if (file.id == id) return file.text;
  return {};
}

double number_in(const std::string& cell, std::string_view where) {
  double value = 0;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  if (error != std::errc() || end != cell.data() + cell.size())
    throw Error(ErrorCode::bad_file, "'" + cell + "' is not a number", std::string(where));
  return value;
}

// Name and numbers of every line of a built-in table.
template <class Do>
void for_each_row(std::string_view id, std::size_t columns, Do what) {
  for (const std::string& line : split(text_of_rates(id), '\n')) {
    if (line.empty() || line.front() == '#' || line.starts_with("name,")) continue;
    const std::vector<std::string> cells = split(line, ',');
    if (cells.size() != columns) throw Error(ErrorCode::bad_file, "has not " + std::to_string(columns), line);
    std::vector<double> values;
    for (std::size_t i = 1; i < columns; ++i) values.push_back(number_in(cells[i], line));
    what(cells[0], values);
  }
}

struct Sized {
  double size;
  NetworkSums sums;
};

// Columns of networks.csv and language.csv, the names among them.
constexpr std::size_t network_columns = 12, language_columns = 11;

const std::map<std::string, std::vector<Sized>, std::less<>>& networks() {
  static const auto all = [] {
    std::map<std::string, std::vector<Sized>, std::less<>> read;
    for_each_row("networks", network_columns, [&](const std::string& name, const std::vector<double>& v) {
      read[name].push_back({v[0], {v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[8], v[9], v[10]}});
    });
    return read;
  }();
  return all;
}

const std::map<std::string, ModelFacts, std::less<>>& language_models() {
  static const auto all = [] {
    std::map<std::string, ModelFacts, std::less<>> read;
    for_each_row("language", language_columns, [&](const std::string& name, const std::vector<double>& v) {
      read[name] = {.kind = "decoder",
                    .sums = {},
                    .layers = v[0],
                    .width = v[1],
                    .heads = v[2],
                    .kv_heads = v[3],
                    .ffn = v[4],
                    .vocabulary = v[5],
                    .sequence = v[6],
                    .experts = v[7],
                    .active_experts = v[8],
                    .gated = v[9] > 0};
    });
    return read;
  }();
  return all;
}

// At another size of the pictures: areas grow with its square, products of two activations with the square
// of that.
NetworkSums scaled(NetworkSums sums, double ratio) {
  const double area = ratio * ratio;
  for (double* grows : {&sums.macs, &sums.padded, &sums.grouped, &sums.product_elements,
                        &sums.grouped_elements, &sums.other_elements})
    *grows *= area;
  sums.attention *= area * area;
  return sums;
}

}  // namespace

double ModelFacts::layer_weights() const {
  return attention_weights(*this) + std::max(1.0, experts) * expert_weights(*this);
}

double ModelFacts::active_weights() const {
  return attention_weights(*this) + std::max(1.0, experts > 0 ? active_experts : 1.0) * expert_weights(*this);
}

NetworkSums typical_sums(double macs, double activations, double parameters) {
  // Medians of networks.csv: kernels and tensors, padding, and what is read and written for each output of a
  // product; a network of known multiply-adds alone has an output for so many of them.
  constexpr double kernels = 190, tensors = 170, padding = 1.15, moved = 2.0, others = 4.0,
                   macs_of_output = 350;
  if (activations <= 0) activations = macs / macs_of_output;
  return {.kernels = kernels,
          .macs = macs,
          .padded = padding * macs,
          .product_elements = moved * activations,
          .other_elements = others * activations,
          .parameters = parameters,
          .tensors = tensors};
}

std::optional<NetworkSums> known_network(std::string_view name) {
  const std::size_t at = name.find('@');
  const auto found = networks().find(name.substr(0, at));
  if (found == networks().end()) return std::nullopt;
  double size = 0;
  if (at != std::string_view::npos) std::from_chars(name.data() + at + 1, name.data() + name.size(), size);
  const Sized* nearest = &found->second.front();
  if (size <= 0) return nearest->sums;
  for (const Sized& one : found->second)
    if (std::abs(std::log(one.size / size)) < std::abs(std::log(nearest->size / size))) nearest = &one;
  return scaled(nearest->sums, size / nearest->size);
}

std::vector<std::string> known_networks() {
  std::vector<std::string> names;
  for (const auto& [name, sizes] : networks()) names.push_back(name);
  return names;
}

const ModelFacts* known_language_model(std::string_view name) {
  const auto found = language_models().find(name);
  return found == language_models().end() ? nullptr : &found->second;
}

std::vector<std::string> known_language_models() {
  std::vector<std::string> names;
  for (const auto& [name, facts] : language_models()) names.push_back(name);
  return names;
}

}  // namespace superstep::machine

#include "superstep/numerics/arithmetic.h"

#include <fmt/format.h>

#include <charconv>

#include "superstep/base/error.h"
#include "superstep/base/text.h"

namespace superstep::numerics {
namespace {

constexpr const char* orders[] = {"in-turn", "tree", "aligned"};
constexpr int most_products = 1024;  // of a chunk; chosen: units that take a few hundred at a time are known
constexpr int most_tree = 64;        // of a tree, which the loops hold in registers
constexpr int most_aligned =
    16;  // with the sum and an extra bit these fit 31 bits: terms have 25, and one more
constexpr int most_extra_bits = 2;

constexpr Setting table[] = {
    {"operands", "type that the factors of products are rounded to"},
    {"operand_rounding", "how they are rounded"},
    {"sums", "type of partial sums"},
    {"sum_rounding", "how partial sums are rounded"},
    {"order", "in-turn, tree or aligned: how a chunk's products are added"},
    {"chunk", "products that are added before the sum is rounded"},
    {"extra_bits", "binary places below f32's that aligned sums keep"},
    {"results", "type that results are kept in"},
    {"result_rounding", "how results are rounded"},
    {"subnormals", "kept, or flushed to zero"},
    {"overflow", "infinity, or saturate: the largest number"},
    {"bias", "in-sum, or after the sum was rounded"},
    {"update", "type that parameters and moments are kept in from step to step"},
    {"update_rounding", "how they are rounded"},
    {"seed", "of stochastic rounding"},
};

[[noreturn]] void refuse(std::string_view name, std::string_view value, std::span<const std::string> known) {
  throw Error(ErrorCode::invalid_argument, fmt::format("'{}' is no value of it", value), std::string(name),
              unknown_name_hint(std::string(value), known));
}

Format read_format(std::string_view name, std::string_view value) {
  if (const auto format = format_from_name(value)) return *format;
  refuse(name, value, format_names());
}

Rounding read_rounding(std::string_view name, std::string_view value) {
  if (const auto rounding = rounding_from_name(value)) return *rounding;
  refuse(name, value, rounding_names());
}

std::uint64_t read_number(std::string_view name, std::string_view value, std::uint64_t low,
                          std::uint64_t high) {
  std::uint64_t number = 0;
  const auto [end, trouble] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (trouble != std::errc() || end != value.data() + value.size() || number < low || number > high)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("'{}' is no whole number from {} to {}", value, low, high), std::string(name));
  return number;
}

// One of two words: whether it is the second.
bool read_choice(std::string_view name, std::string_view value, const char* no, const char* yes) {
  if (value != no && value != yes) refuse(name, value, std::vector<std::string>{no, yes});
  return value == yes;
}

void for_all(Arithmetic& a, bool Narrowing::*member, bool value) {
  for (Narrowing* each : {&a.operands, &a.sums, &a.results}) each->*member = value;
}

struct Plain {
  const char* name;
  Format operands, sums, results;
  int chunk;
};
// With f16 sums sixteen products are added at a time, as the units of an IPU take them (machines/gc200.toml).
constexpr Plain plain[] = {
    {"f32", Format::f32, Format::f32, Format::f32, 1},    {"tf32", Format::tf32, Format::f32, Format::f32, 1},
    {"bf16", Format::bf16, Format::f32, Format::bf16, 1}, {"f16", Format::f16, Format::f32, Format::f16, 1},
    {"16.16", Format::f16, Format::f16, Format::f16, 16}, {"e5m2", Format::e5m2, Format::f32, Format::f16, 1},
    {"e4m3", Format::e4m3, Format::f32, Format::f16, 1},
};

}  // namespace

const char* name_of(Order order) { return orders[static_cast<std::size_t>(order)]; }

std::optional<Order> order_from_name(std::string_view name) {
  for (std::size_t i = 0; i < std::size(orders); ++i)
    if (orders[i] == name) return static_cast<Order>(i);
  return {};
}

bool Arithmetic::draws() const {
  for (const Narrowing* each : {&operands, &sums, &results, &update})
    if (each->rounding == Rounding::stochastic && each->format != Format::f32) return true;
  return false;
}

std::span<const Setting> settings() { return table; }

void set(Arithmetic& a, std::string_view name, std::string_view value) {
  if (name == "operands")
    a.operands.format = read_format(name, value);
  else if (name == "operand_rounding")
    a.operands.rounding = read_rounding(name, value);
  else if (name == "sums")
    a.sums.format = read_format(name, value);
  else if (name == "sum_rounding")
    a.sums.rounding = read_rounding(name, value);
  else if (name == "order") {
    const auto order = order_from_name(value);
    if (!order) refuse(name, value, std::vector<std::string>(std::begin(orders), std::end(orders)));
    a.order = *order;
  } else if (name == "chunk")
    a.chunk = static_cast<int>(read_number(name, value, 1, most_products));
  else if (name == "extra_bits")
    a.extra_bits = static_cast<int>(read_number(name, value, 0, most_extra_bits));
  else if (name == "results")
    a.results.format = read_format(name, value);
  else if (name == "result_rounding")
    a.results.rounding = read_rounding(name, value);
  else if (name == "subnormals")
    for_all(a, &Narrowing::flushes, read_choice(name, value, "kept", "flushed"));
  else if (name == "overflow")
    for_all(a, &Narrowing::saturates, read_choice(name, value, "infinity", "saturate"));
  else if (name == "bias")
    a.bias_in_sum = !read_choice(name, value, "in-sum", "after");
  else if (name == "update")
    a.update.format = read_format(name, value);
  else if (name == "update_rounding")
    a.update.rounding = read_rounding(name, value);
  else if (name == "seed")
    a.seed = read_number(name, value, 0, UINT32_MAX);
  else {
    std::vector<std::string> known;
    for (const Setting& setting : table) known.emplace_back(setting.name);
    throw Error(ErrorCode::invalid_argument, "there is no such setting of an arithmetic", std::string(name),
                unknown_name_hint(std::string(name), known));
  }
}

std::string get(const Arithmetic& a, std::string_view name) {
  if (name == "operands") return name_of(a.operands.format);
  if (name == "operand_rounding") return name_of(a.operands.rounding);
  if (name == "sums") return name_of(a.sums.format);
  if (name == "sum_rounding") return name_of(a.sums.rounding);
  if (name == "order") return name_of(a.order);
  if (name == "chunk") return std::to_string(a.chunk);
  if (name == "extra_bits") return std::to_string(a.extra_bits);
  if (name == "results") return name_of(a.results.format);
  if (name == "result_rounding") return name_of(a.results.rounding);
  if (name == "subnormals") return a.results.flushes ? "flushed" : "kept";
  if (name == "overflow") return a.results.saturates ? "saturate" : "infinity";
  if (name == "bias") return a.bias_in_sum ? "in-sum" : "after";
  if (name == "update") return name_of(a.update.format);
  if (name == "update_rounding") return name_of(a.update.rounding);
  if (name == "seed") return std::to_string(a.seed);
  throw Error(ErrorCode::internal, "there is no such setting of an arithmetic", std::string(name));
}

std::string to_string(const Arithmetic& a) {
  const auto type = [](const Narrowing& n) {
    std::string text = name_of(n.format);
    if (n.format != Format::f32 && n.rounding != Rounding::nearest)
      text += fmt::format(" ({})", name_of(n.rounding));
    return text;
  };
  std::string sums = "sums in " + type(a.sums);
  if (a.order == Order::tree) sums += fmt::format(", trees of {}", a.chunk);
  if (a.order == Order::aligned) sums += fmt::format(", {} aligned at a time", a.chunk);
  if (a.order == Order::in_turn && a.sums.format != Format::f32)
    sums += fmt::format(" after every {} products", a.chunk);
  return fmt::format("{} products, {}, results in {}{}", type(a.operands), sums, type(a.results),
                     a.results.flushes ? ", subnormals flushed" : "");
}

std::optional<Arithmetic> plain_arithmetic(std::string_view name) {
  for (const Plain& each : plain)
    if (each.name == name) {
      Arithmetic a;
      a.operands.format = each.operands;
      a.sums.format = each.sums;
      a.results.format = each.results;
      a.chunk = each.chunk;
      return a;
    }
  return {};
}

std::vector<std::string> plain_names() {
  std::vector<std::string> names;
  for (const Plain& each : plain) names.emplace_back(each.name);
  return names;
}

void check(const Arithmetic& a, const std::string& where) {
  const auto refuse = [&](const std::string& what, const std::string& hint) {
    throw Error(ErrorCode::invalid_argument, what, where, hint);
  };
  if (a.order == Order::tree && (a.chunk > most_tree || (a.chunk & (a.chunk - 1)) != 0))
    refuse(fmt::format("a tree of {} products", a.chunk),
           fmt::format("chunk is a power of two up to {}", most_tree));
  if (a.order != Order::aligned) {
    if (a.extra_bits > 0) refuse("extra_bits are of aligned sums", "order = aligned");
    return;
  }
  if (a.chunk > most_aligned || a.chunk << a.extra_bits > 2 * most_aligned)
    refuse(fmt::format("{} products aligned at a time with {} extra bits", a.chunk, a.extra_bits),
           fmt::format("{} at most, {} with 2 extra bits", most_aligned, most_aligned / 2));
  if (a.operands.format == Format::f32)
    refuse("aligned sums of products of f32", "operands of 11 digits at most");
  if (a.sums.format != Format::f32) refuse("aligned sums are kept in f32", "sums = f32");
}

}  // namespace superstep::numerics

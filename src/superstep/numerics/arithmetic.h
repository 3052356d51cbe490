// The arithmetic of a machine: what products take, how their sums are formed, and what results are kept in.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "superstep/numerics/format.h"

namespace superstep::numerics {

// In which order the products of a result are added. In all of them `chunk` products are taken at a time.
enum class Order : std::uint8_t {
  // One product after the other is added to the sum in f32 (fused multiply-add); after every chunk the sum is
  // rounded to the type of sums.
  in_turn,
  // A chunk's products are added as a tree of pairs in f32 (each product rounded to f32 where it does not
  // fit), then to the sum, which is rounded.
  tree,
  // A chunk's products and the sum are aligned to the largest exponent, cut off below 23 + extra_bits binary
  // places, added exactly, and cut off to f32: tensor cores. The exponent of a product is that of its factors
  // added, and none is below 2^lowest_aligned_exponent; zeros have none.
  aligned,
};
// Far below what models hold, and such that every scaling by a power of two is one of normal numbers of f32.
inline constexpr int lowest_aligned_exponent = -100;
const char* name_of(Order order);  // "in-turn", "tree", "aligned"
std::optional<Order> order_from_name(std::string_view name);

struct Arithmetic {
  Narrowing operands;  // what a product's factors are rounded to
  Narrowing sums;      // what partial sums are kept in between chunks
  Order order = Order::in_turn;
  int chunk = 1;
  int extra_bits = 0;
  Narrowing results;        // what every node's result is kept in
  bool bias_in_sum = true;  // a bias is added before the sum is rounded to `results`, else after
  Narrowing update;         // what parameters and moments are kept in from step to step
  std::uint64_t seed = 1;   // of stochastic rounding

  bool draws() const;  // something is rounded stochastically
  friend bool operator==(const Arithmetic&, const Arithmetic&) = default;
};

// One thing that can be set of an arithmetic, by the name that files and options have.
struct Setting {
  std::string_view name, meaning;
};
std::span<const Setting> settings();
// Throws Error (invalid_argument): no such setting, or no such value, with the names that there are.
void set(Arithmetic& arithmetic, std::string_view name, std::string_view value);
std::string get(const Arithmetic& arithmetic, std::string_view name);

// "f16 products, sums in f32, ...": for people.
std::string to_string(const Arithmetic& arithmetic);

// Arithmetic that is no machine's: f32, tf32, bf16, f16 (f32 sums), 16.16 (f16 sums), e5m2, e4m3. Nothing:
// there is no such.
std::optional<Arithmetic> plain_arithmetic(std::string_view name);
std::vector<std::string> plain_names();

// Throws Error (invalid_argument) on settings that contradict each other.
void check(const Arithmetic& arithmetic, const std::string& where);

}  // namespace superstep::numerics

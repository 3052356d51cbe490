#include "superstep/openmp/region.h"

#include <fmt/format.h>

#include <algorithm>

namespace superstep::openmp {

std::string to_string(const SourcePlace& place) { return fmt::format("{}:{}", place.file, place.line); }

const char* name_of(Operator op) {
  switch (op) {
    case Operator::add: return "+";
    case Operator::multiply: return "*";
    case Operator::minimum: return "min";
    case Operator::maximum: return "max";
    case Operator::bit_and: return "&";
    case Operator::bit_or: return "|";
    case Operator::bit_xor: return "^";
    case Operator::logical_and: return "&&";
    case Operator::logical_or: return "||";
    case Operator::last_value: return "lastprivate";
  }
  return "?";
}

std::string Region::where(const Access& access) const {
  return fmt::format("{} at {}:{}", arrays[static_cast<std::size_t>(access.array)].name, place.file,
                     access.line > 0 ? access.line : place.line);
}

Box Region::iterations() const {
  Box box;
  for (std::size_t k = 0; k < static_cast<std::size_t>(distributed); ++k) {
    box.begin.push_back(loops[k].begin);
    box.end.push_back(std::max(loops[k].begin, loops[k].end));
  }
  return box;
}

bool Region::gathers() const {
  return std::ranges::any_of(accesses, [](const Access& access) { return access.gathered; });
}

bool Region::gathers(std::size_t array) const {
  return std::ranges::any_of(accesses, [&](const Access& access) {
    return access.gathered && access.array == static_cast<int>(array);
  });
}

namespace {

void add(Work& sum, const Work& other) {
  sum.loads += other.loads;
  sum.stores += other.stores;
  sum.integer_operations += other.integer_operations;
  sum.float_operations += other.float_operations;
  sum.divisions += other.divisions;
  sum.square_roots += other.square_roots;
  sum.exponentials += other.exponentials;
  sum.logarithms += other.logarithms;
  sum.sines += other.sines;
  sum.powers += other.powers;
  sum.inner_loops += other.inner_loops;
}

}  // namespace

void Region::receive_whole() {
  for (const Work& turn : turns) add(work, turn);
  turns.clear();
  for (Access& access : accesses) access.gathered = false;
  for (RegionArray& array : arrays) array.steers = false;
}

Box footprint(const Region& region, const Access& access, const Box& iterations) {
  Box result;
  bool none = iterations.empty();
  for (std::size_t k = iterations.rank(); k < region.loops.size(); ++k)
    none = none || region.loops[k].size() == 0;
  for (const Affine& subscript : access.subscripts) {
    std::int64_t low = subscript.constant, high = subscript.constant;
    for (std::size_t k = 0; k < region.loops.size(); ++k) {
      const std::int64_t c = subscript.coefficient(k);
      if (c == 0 || none) continue;
      const bool dealt = k < iterations.rank();
      const std::int64_t first = dealt ? iterations.begin[k] : region.loops[k].begin;
      const std::int64_t last = (dealt ? iterations.end[k] : region.loops[k].end) - 1;
      low += c * (c > 0 ? first : last);
      high += c * (c > 0 ? last : first);
    }
    result.begin.push_back(low);
    result.end.push_back(none ? low : high + 1);
  }
  return result;
}

void refuse(const char* code, const std::string& message, const std::string& where, const std::string& hint) {
  throw Error(ErrorCode::unsupported, fmt::format("{}: {}", code, message), where, hint);
}

}  // namespace superstep::openmp

// The names that other programs write for the arrays of a model, as rules beside the model's own names.
//
// In a rule '#' stands for a number and a '*' at the end for what remains of the name; both sides have as
// many.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "superstep/file/weights/weight_file.h"

namespace superstep::data {

// How the file holds an array, beside the model's own way.
enum class Arrangement : std::uint8_t {
  as_it_is,
  transposed,   // of two axes, the other way round
  query_pairs,  // transposed, and the pairs that rotary positions turn are neighbours in every query head
  key_pairs,    // the same of key heads
};

struct NameRule {
  std::string ours, theirs;
  Arrangement arrangement = Arrangement::as_it_is;
  int part = 0, parts = 1;  // of the file's array, cut into equal parts along `axis`
  int axis = 0;
};

// The name that a rule gives for `ours`; empty where it is not about it.
std::string renamed(const NameRule& rule, std::string_view ours);

// The arrays of a file by name, without what wrappers put in front ("model.", "module.", "bert.", ...).
class NamedWeights {
 public:
  explicit NamedWeights(const WeightFile& file);
  const Weight* find(std::string_view name) const;

 private:
  std::vector<std::pair<std::string, const Weight*>> weights_;  // sorted by name
};

// The array that is `ours`, by the first rule whose name the file has.
struct FoundWeight {
  const Weight* weight = nullptr;  // null: none of them
  const NameRule* rule = nullptr;
  std::vector<std::string> looked_for;
};
FoundWeight find_weight(const NamedWeights& weights, std::span<const NameRule> rules, std::string_view ours);

// Arrays of the file that are not among `used`: neither by a name of `harmless` (rules, without wrappers,
// where a '*' may also be the first letter), nor by being equal to one that is used, which files have under
// two names.
std::vector<const Weight*> unused_weights(const WeightFile& file, const std::set<const Weight*>& used,
                                          std::span<const char* const> harmless);

// Whether a rule has a place for the file's array.
bool is_named_by(std::span<const NameRule> rules, std::string_view theirs);

// Of those the ones that stand among the used ones: in a layer of the same list ("layers.3."), or beside
// another array of the same part ("norm.bias"). What was computed without them would be another model.
std::vector<const Weight*> among_used(std::span<const Weight* const> unused,
                                      const std::set<const Weight*>& used);

// The shape that the model's array has when the file's has `shape`; of a rank that the arrangement does not
// have, `shape` itself.
Shape arranged_shape(const NameRule& rule, const Shape& shape);

// The array in the model's order, in f32: a recipe that reads the file when it is asked. `heads`: of the
// arrangement in pairs.
Tensor arranged(const NameRule& rule, const Weight& weight, std::int64_t heads);

}  // namespace superstep::data

#include "superstep/op/rows/vectorizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "superstep/op/core/checks.h"
#include "superstep/op/core/rules.h"
#include "superstep/op/core/wide.h"

namespace superstep::op {
namespace {

using Extents = std::vector<std::int64_t>;

struct Vectorizer {
  std::map<Extents, std::int64_t> places;  // where in a result row each n-gram is counted
  std::int64_t shortest, longest, skips;
  std::int64_t width;           // of a result row
  std::vector<double> weights;  // one a place; empty: 1
  bool counts;                  // else 1 for any number of occurrences
};

std::vector<double> numbers_of(const Attributes& attributes, const char* name) {
  const graph::Attribute* attribute = attributes.find(name);
  if (!attribute) return {};
  if (const auto* list = std::get_if<std::vector<double>>(attribute)) return *list;
  refuse(fmt::format("attribute '{}' must hold numbers", name));
}

// The pool is all 1-grams, then all 2-grams, and so on; `starts` says where each begins.
void read_pool(Vectorizer& v, const Extents& pool, const Extents& starts, const Extents& indexes) {
  std::size_t gram = 0;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const auto length = static_cast<std::int64_t>(i) + 1;
    const std::int64_t begin = starts[i];
    const std::int64_t end = i + 1 < starts.size() ? starts[i + 1] : static_cast<std::int64_t>(pool.size());
    require(begin >= 0 && begin <= end && end <= static_cast<std::int64_t>(pool.size()) &&
                (end - begin) % length == 0,
            fmt::format("attribute 'ngram_counts' does not divide a pool of {} into {}-grams", pool.size(),
                        length));
    for (std::int64_t at = begin; at < end; at += length, ++gram) {
      require(gram < indexes.size(), "attribute 'ngram_indexes' has fewer elements than the pool n-grams");
      if (length >= v.shortest && length <= v.longest)
        v.places[Extents(pool.begin() + at, pool.begin() + at + length)] = indexes[gram];
    }
  }
}

Vectorizer read(const Attributes& attributes) {
  if (attributes.has("pool_strings"))
    throw Error(ErrorCode::unsupported, "attribute 'pool_strings': text is not supported, only numbers");
  Vectorizer v{.places = {},
               .shortest = attributes.integer("min_gram_length"),
               .longest = attributes.integer("max_gram_length"),
               .skips = attributes.integer("max_skip_count"),
               .width = 0,
               .weights = {},
               .counts = true};
  require(v.shortest >= 1 && v.longest >= v.shortest && v.skips >= 0 && v.skips < 1 << 20,
          "attributes 'min_gram_length', 'max_gram_length' and 'max_skip_count' do not fit together");
  const std::string mode = attributes.text("mode");
  require(mode == "TF" || mode == "IDF" || mode == "TFIDF",
          fmt::format("attribute 'mode' is '{}', expected TF, IDF or TFIDF", mode));
  v.counts = mode != "IDF";
  if (mode != "TF") v.weights = numbers_of(attributes, "weights");
  const Extents indexes = attributes.integers("ngram_indexes");
  for (std::int64_t index : indexes) {
    require(index >= 0 && index < 1 << 28, fmt::format("attribute 'ngram_indexes' holds {}", index));
    v.width = std::max(v.width, index + 1);
  }
  require(v.weights.empty() || static_cast<std::int64_t>(v.weights.size()) >= v.width,
          fmt::format("attribute 'weights' has {} elements, expected {}", v.weights.size(), v.width));
  read_pool(v, attributes.integers("pool_int64s"), attributes.integers("ngram_counts"), indexes);
  return v;
}

std::vector<ValueType> infer_vectorizer(const InferContext& context) {
  require_integer(context, 0, "X");
  const Shape& x = context.input(0).shape;
  require(x.rank() == 1 || x.rank() == 2, fmt::format("input X is {}, expected rank 1 or 2", to_string(x)));
  const std::int64_t width = read(context.attributes).width;
  return {{ElementType::f32, x.rank() == 1 ? Shape{width} : Shape{x[0], width}}};
}

// Elements of an n-gram lie 1 to skips + 1 apart; single elements count once, whatever the skips.
void count(const Vectorizer& v, std::span<const std::int64_t> row, double* result) {
  const auto length = static_cast<std::int64_t>(row.size());
  for (std::int64_t distance = 1; distance <= v.skips + 1; ++distance)
    for (std::int64_t start = 0; start < length; ++start) {
      Extents gram;
      for (std::int64_t at = start; at < length && static_cast<std::int64_t>(gram.size()) < v.longest;
           at += distance) {
        gram.push_back(row[static_cast<std::size_t>(at)]);
        if (gram.size() == 1 && distance > 1) continue;
        const auto found = v.places.find(gram);
        if (found != v.places.end()) result[found->second] += 1;
      }
    }
}

// Weights are those of the places in the result, as ONNX Runtime reads them.
void evaluate_vectorizer(const EvaluateContext& context) {
  const Vectorizer v = read(context.attributes);
  const auto x = widen<std::int64_t>(context.input(0));
  const Shape& shape = context.input(0).shape();
  const std::int64_t rows = shape.rank() == 2 ? shape[0] : 1;
  const auto length = x.size() / static_cast<std::size_t>(std::max<std::int64_t>(1, rows));
  std::vector<double> y(static_cast<std::size_t>(rows * v.width));
  for (std::int64_t row = 0; row < rows; ++row) {
    double* result = y.data() + row * v.width;
    count(v, std::span(x).subspan(static_cast<std::size_t>(row) * length, length), result);
    for (std::int64_t i = 0; i < v.width; ++i) {
      if (!v.counts) result[i] = result[i] > 0;
      if (!v.weights.empty()) result[i] *= v.weights[static_cast<std::size_t>(i)];
    }
  }
  narrow(y, context.output(0));
}

// A look-up for every start, skip and length.
double vectorizer_flops(const Attributes& attributes, std::span<const ValueType> inputs,
                        std::span<const ValueType>) {
  return static_cast<double>(inputs[0].shape.element_count()) *
         static_cast<double>((attributes.integer("max_skip_count") + 1) *
                             attributes.integer("max_gram_length"));
}

}  // namespace

std::span<const Definition> vectorizer_operators() {
  static const Definition definitions[] = {
      {.name = "TfIdfVectorizer",
       .since_opset = 9,
       .traits = {.elements = Elements::integer,
                  .work = WorkKind::elementwise,
                  .attributes = "max_gram_length max_skip_count min_gram_length mode ngram_counts "
                                "ngram_indexes pool_int64s pool_strings weights"},
       .infer = infer_vectorizer,
       .flops = vectorizer_flops,
       .evaluate = evaluate_vectorizer,
       .vjp = zero_vjp,
       .jvp = zero_jvp}};
  return definitions;
}

}  // namespace superstep::op

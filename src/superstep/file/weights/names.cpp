#include "superstep/file/weights/names.h"

#include <algorithm>
#include <cctype>
#include <optional>

namespace superstep::data {
namespace {

constexpr const char* wrappers[] = {"module.",     "_orig_mod.", "model.", "transformer.",
                                    "distilbert.", "bert.",      "vit."};

struct Match {
  std::vector<std::string> numbers;
  std::string rest;
};

std::optional<Match> match(std::string_view pattern, std::string_view text) {
  Match found;
  std::size_t at = 0;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] == '*' && i + 1 == pattern.size()) {
      found.rest = text.substr(at);
      return found;
    }
    if (pattern[i] == '#') {
      const std::size_t first = at;
      while (at < text.size() && std::isdigit(static_cast<unsigned char>(text[at]))) ++at;
      if (at == first) return std::nullopt;
      found.numbers.emplace_back(text.substr(first, at - first));
    } else if (at == text.size() || text[at++] != pattern[i]) {
      return std::nullopt;
    }
  }
  if (at != text.size()) return std::nullopt;
  return found;
}

std::string_view without_wrappers(std::string_view name) {
  for (bool again = true; again;) {
    again = false;
    for (const std::string_view wrapper : wrappers)
      if (name.starts_with(wrapper)) name.remove_prefix(wrapper.size()), again = true;
  }
  return name;
}

// The part of the file's array that a rule takes: rows of axis 0, or columns of axis 1.
struct Part {
  std::int64_t rows, columns;  // of the whole array, as two axes
  std::int64_t first_row, row_count, first_column, column_count;
};

Part part_of(const NameRule& rule, const Shape& shape) {
  const std::int64_t rows = shape.rank() == 0 ? 1 : shape[0];
  const std::int64_t columns = rows == 0 ? 0 : shape.element_count() / rows;
  Part part{rows, columns, 0, rows, 0, columns};
  if (rule.axis == 0)
    part.row_count = rows / rule.parts, part.first_row = rule.part * part.row_count;
  else
    part.column_count = columns / rule.parts, part.first_column = rule.part * part.column_count;
  return part;
}

// The file's row that holds row `row` of heads whose pairs are halves.
std::int64_t row_among_pairs(std::int64_t row, std::int64_t head_size) {
  const std::int64_t head = row / head_size, within = row % head_size, half = head_size / 2;
  return head * head_size + (within < half ? 2 * within : 2 * (within - half) + 1);
}

bool in_pairs(const NameRule& rule) {
  return rule.arrangement == Arrangement::query_pairs || rule.arrangement == Arrangement::key_pairs;
}

// `from`: all of the file's array in f32.
void arrange(const NameRule& rule, const Part& part, std::int64_t head_size, const float* from, float* to) {
  const auto source = [&](std::int64_t row) {
    const std::int64_t in_file = head_size > 0 ? row_among_pairs(row, head_size) : row;
    return from + (part.first_row + in_file) * part.columns + part.first_column;
  };
  if (rule.arrangement == Arrangement::as_it_is) {
    for (std::int64_t row = 0; row < part.row_count; ++row)
      std::copy_n(source(row), part.column_count, to + row * part.column_count);
    return;
  }
  // In squares that stay in the nearest cache.
  constexpr std::int64_t side = 32;
  for (std::int64_t r = 0; r < part.row_count; r += side)
    for (std::int64_t c = 0; c < part.column_count; c += side)
      for (std::int64_t row = r; row < std::min(r + side, part.row_count); ++row)
        for (std::int64_t column = c; column < std::min(c + side, part.column_count); ++column)
          to[column * part.row_count + row] = source(row)[column];
}

bool is_like(std::string_view pattern, std::string_view name) {
  if (pattern.starts_with('*')) return name.ends_with(pattern.substr(1));
  return match(pattern, name).has_value();
}

bool is_equal(const Weight& a, const Weight& b) {
  if (!a.unread.empty() || !b.unread.empty() || a.shape != b.shape || a.element != b.element ||
      a.blocks != b.blocks)
    return false;
  if (!a.bytes.empty() && !b.bytes.empty())
    return a.bytes.data() == b.bytes.data() || std::ranges::equal(a.bytes, b.bytes);
  const Tensor first = a.tensor(), second = b.tensor();
  return std::equal(first.bytes(), first.bytes() + first.byte_count(), second.bytes());
}

// "layers." of "model.layers.3.norm.weight": what precedes its first number; empty: it has none.
std::string_view list_of(std::string_view name) {
  name = without_wrappers(name);
  const std::size_t number = name.find_first_of("0123456789");
  return number == std::string_view::npos ? std::string_view{} : name.substr(0, number);
}

// "norm" of "model.norm.weight".
std::string_view part_of(std::string_view name) {
  name = without_wrappers(name);
  return name.substr(0, name.rfind('.'));
}

}  // namespace

std::string renamed(const NameRule& rule, std::string_view ours) {
  const std::optional<Match> found = match(rule.ours, ours);
  if (!found) return {};
  std::string name;
  std::size_t number = 0;
  for (const char c : rule.theirs)
    if (c == '#')
      name += found->numbers.at(number++);
    else if (c == '*')
      name += found->rest;
    else
      name += c;
  return name;
}

NamedWeights::NamedWeights(const WeightFile& file) {
  for (const Weight& weight : file.weights())
    weights_.emplace_back(std::string(without_wrappers(weight.name)), &weight);
  std::ranges::stable_sort(weights_, {}, &std::pair<std::string, const Weight*>::first);
}

const Weight* NamedWeights::find(std::string_view name) const {
  const auto found =
      std::ranges::lower_bound(weights_, name, {}, &std::pair<std::string, const Weight*>::first);
  return found == weights_.end() || found->first != name ? nullptr : found->second;
}

FoundWeight find_weight(const NamedWeights& weights, std::span<const NameRule> rules, std::string_view ours) {
  FoundWeight found;
  for (const NameRule& rule : rules) {
    const std::string name = renamed(rule, ours);
    if (name.empty()) continue;
    found.weight = weights.find(name);
    found.rule = &rule;
    if (found.weight) return found;
    found.looked_for.push_back(name);
  }
  return found;
}

std::vector<const Weight*> unused_weights(const WeightFile& file, const std::set<const Weight*>& used,
                                          std::span<const char* const> harmless) {
  std::vector<const Weight*> unused;
  for (const Weight& weight : file.weights()) {
    const std::string_view name = without_wrappers(weight.name);
    const bool known =
        used.contains(&weight) ||
        std::ranges::any_of(harmless, [&](const char* pattern) { return is_like(pattern, name); }) ||
        std::ranges::any_of(used, [&](const Weight* each) { return is_equal(*each, weight); });
    if (!known) unused.push_back(&weight);
  }
  return unused;
}

bool is_named_by(std::span<const NameRule> rules, std::string_view theirs) {
  const std::string_view name = without_wrappers(theirs);
  return std::ranges::any_of(rules,
                             [&](const NameRule& rule) { return match(rule.theirs, name).has_value(); });
}

std::vector<const Weight*> among_used(std::span<const Weight* const> unused,
                                      const std::set<const Weight*>& used) {
  std::set<std::string_view> lists, parts;
  for (const Weight* weight : used) {
    if (const std::string_view list = list_of(weight->name); !list.empty()) lists.insert(list);
    parts.insert(part_of(weight->name));
  }
  std::vector<const Weight*> among;
  for (const Weight* weight : unused)
    if (lists.contains(list_of(weight->name)) || parts.contains(part_of(weight->name)))
      among.push_back(weight);
  return among;
}

Shape arranged_shape(const NameRule& rule, const Shape& shape) {
  if (shape.rank() == 0 || rule.axis >= shape.rank() || shape[rule.axis] % rule.parts != 0) return shape;
  std::vector<std::int64_t> extents = shape.extents();
  extents[static_cast<std::size_t>(rule.axis)] /= rule.parts;
  if (rule.arrangement != Arrangement::as_it_is) {
    if (shape.rank() != 2) return shape;
    std::swap(extents[0], extents[1]);
  }
  return Shape(extents);
}

Tensor arranged(const NameRule& rule, const Weight& weight, std::int64_t heads) {
  if (rule.arrangement == Arrangement::as_it_is && rule.parts == 1) {
    const Tensor same = weight.tensor();
    if (same.type() == ElementType::f32) return same;
    return Tensor::generated(ElementType::f32, weight.shape, [weight](std::byte* elements) {
      weight.tensor().converted(ElementType::f32).copy_to(elements);
    });
  }
  return Tensor::generated(ElementType::f32, arranged_shape(rule, weight.shape), [=](std::byte* elements) {
    const Tensor own = weight.tensor();
    const Tensor all = own.type() == ElementType::f32 ? own : own.converted(ElementType::f32);
    const Part part = part_of(rule, weight.shape);
    const std::int64_t head_size = in_pairs(rule) && heads > 0 ? part.row_count / heads : 0;
    arrange(rule, part, head_size, all.as<float>().data(), reinterpret_cast<float*>(elements));
  });
}

}  // namespace superstep::data

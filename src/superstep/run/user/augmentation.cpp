#include "superstep/run/user/augmentation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "superstep/base/error.h"
#include "superstep/base/option_range.h"
#include "superstep/base/random.h"
#include "superstep/base/text.h"

namespace superstep::run {
namespace {

using Step = Augmentation::Step;

struct KnownStep {
  const char* name;
  Step step;
  bool has_amount;
  bool whole;  // an amount in elements
};
constexpr KnownStep known_steps[] = {
    {"flip-horizontal", Step::flip_horizontal, false, false},
    {"flip-vertical", Step::flip_vertical, false, false},
    {"rotate", Step::rotate, false, false},
    {"shift", Step::shift, true, true},
    {"cutout", Step::cutout, true, true},
    {"noise", Step::noise, true, false},
    {"gain", Step::gain, true, false},
};

[[noreturn]] void refuse(const std::string& where, const std::string& what, const std::string& hint = "") {
  throw Error(ErrorCode::invalid_argument, what, "--augment " + where,
              hint.empty() ? "write ARRAY,ARRAY=STEP or ARRAY=STEP:AMOUNT" : hint);
}

const KnownStep& step_named(const std::string& text, const std::string& name) {
  const auto* const found =
      std::ranges::find_if(known_steps, [&](const KnownStep& step) { return name == step.name; });
  if (found != std::end(known_steps)) return *found;
  std::vector<std::string> names;
  for (const KnownStep& step : known_steps) names.emplace_back(step.name);
  refuse(text, fmt::format("there is no step '{}'", name), unknown_name_hint(name, names));
}

double amount_from(const std::string& text, const KnownStep& step, const std::optional<std::string>& amount) {
  if (!step.has_amount) {
    if (amount) refuse(text, fmt::format("'{}' has no amount", step.name));
    return 0;
  }
  if (!amount) refuse(text, fmt::format("'{}' needs an amount", step.name), fmt::format("{}:1", step.name));
  const NumberRange range{.low = step.whole ? 1.0 : 0.0, .open_low = !step.whole, .whole = step.whole};
  const std::string why = why_not(*amount, range);
  if (!why.empty()) refuse(text, why);
  const double value = *finite_number(*amount);
  if (step.step == Step::gain && value >= 1) refuse(text, "a gain of 0 or less leaves nothing of a sample");
  return value;
}

Augmentation augmentation_from(const std::string& text) {
  const std::size_t at = text.rfind('=');
  if (at == std::string::npos || at == 0) refuse(text, "names no array");
  const std::string what = text.substr(at + 1);
  const std::size_t colon = what.find(':');
  const KnownStep& step = step_named(text, what.substr(0, colon));
  Augmentation made{.arrays = split(text.substr(0, at), ','), .step = step.step};
  made.amount = amount_from(
      text, step, colon == std::string::npos ? std::nullopt : std::optional(what.substr(colon + 1)));
  for (std::size_t i = 0; i < made.arrays.size(); ++i) {
    if (made.arrays[i].empty()) refuse(text, "names no array");
    if (std::ranges::count(made.arrays, made.arrays[i]) > 1)
      refuse(text, fmt::format("'{}' is given twice", made.arrays[i]));
  }
  return made;
}

const char* name_of(Step step) { return std::ranges::find(known_steps, step, &KnownStep::step)->name; }

bool draws_on_planes(Step step) { return step != Step::noise && step != Step::gain; }

// The last two axes of a row, and how many such there are.
struct Planes {
  std::int64_t count = 1, height = 1, width = 1;
};
Planes planes_of(const Shape& row) {
  const int rank = row.rank();
  Planes planes{.height = row[rank - 2], .width = row[rank - 1]};
  for (int axis = 0; axis < rank - 2; ++axis) planes.count *= row[axis];
  return planes;
}

void require_fits(const Augmentation& step, const AugmentedArray& array) {
  const std::string& name = array.names.front();
  const std::string where = fmt::format("{}={}", name, name_of(step.step));
  if (!draws_on_planes(step.step)) {
    if (array.labels) refuse(where, fmt::format("'{}' are classes, which have none", name));
    if (array.type != ElementType::f32)
      refuse(where, fmt::format("'{}' are {}, and this is of f32", name, name_of(array.type)));
    return;
  }
  if (array.row.rank() < 2)
    refuse(where, fmt::format("a sample of '{}' is {}, no picture", name, to_string(array.row)));
  const Planes planes = planes_of(array.row);
  if (step.step == Step::rotate && planes.height != planes.width)
    refuse(where,
           fmt::format("a sample of '{}' is {}: a quarter turn needs a square", name, to_string(array.row)));
  if (step.step == Step::cutout && step.amount > static_cast<double>(std::min(planes.height, planes.width)))
    refuse(where, fmt::format("is larger than a sample of '{}', {}", name, to_string(array.row)));
}

// All pictures of a step are of one size: what is drawn is the same for each.
void require_one_size(const Augmentation& step, const Shape& first, const Shape& other) {
  if (!draws_on_planes(step.step)) return;
  const Planes a = planes_of(first), b = planes_of(other);
  if (a.height != b.height || a.width != b.width)
    refuse(fmt::format("{},{}={}", step.arrays[0], step.arrays[1], name_of(step.step)),
           fmt::format("are of different sizes, {} and {}", to_string(first), to_string(other)),
           "give each a step of its own");
}

// Where an element of a plane comes from; -1: it is zero.
template <class From>
void remap(std::span<std::byte> row, const Planes& planes, std::size_t element, const From& from) {
  const std::vector<std::byte> before(row.begin(), row.end());
  const auto area = static_cast<std::size_t>(planes.height * planes.width);
  for (std::size_t plane = 0; plane < static_cast<std::size_t>(planes.count); ++plane)
    for (std::int64_t i = 0; i < planes.height; ++i)
      for (std::int64_t j = 0; j < planes.width; ++j) {
        std::byte* to =
            row.data() + (plane * area + static_cast<std::size_t>(i * planes.width + j)) * element;
        const std::int64_t at = from(i, j);
        if (at < 0)
          std::memset(to, 0, element);
        else
          std::memcpy(to, before.data() + (plane * area + static_cast<std::size_t>(at)) * element, element);
      }
}

// What one step has drawn for a sample.
struct Drawn {
  bool flips = false;
  std::int64_t turns = 0, down = 0, right = 0;  // of a shift, or the corner of what is cut out
  double factor = 1;
};

Drawn draw(const Augmentation& step, const Planes& planes, RandomStream& random) {
  const auto size = static_cast<std::int64_t>(step.amount);
  const auto below = [&](std::int64_t bound) {
    return static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(bound)));
  };
  Drawn drawn;
  switch (step.step) {
    case Step::flip_horizontal:
    case Step::flip_vertical: drawn.flips = below(2) == 1; break;
    case Step::rotate: drawn.turns = below(4); break;
    case Step::shift:
      drawn.down = below(2 * size + 1) - size;
      drawn.right = below(2 * size + 1) - size;
      break;
    case Step::cutout:
      drawn.down = below(planes.height - size + 1);
      drawn.right = below(planes.width - size + 1);
      break;
    case Step::gain: drawn.factor = random.uniform(1 - step.amount, 1 + step.amount); break;
    case Step::noise: break;
  }
  return drawn;
}

std::int64_t place_before(const Augmentation& step, const Drawn& drawn, const Planes& planes, std::int64_t i,
                          std::int64_t j) {
  const std::int64_t height = planes.height, width = planes.width;
  const auto size = static_cast<std::int64_t>(step.amount);
  if (step.step == Step::flip_horizontal && drawn.flips) j = width - 1 - j;
  if (step.step == Step::flip_vertical && drawn.flips) i = height - 1 - i;
  for (std::int64_t turn = 0; turn < drawn.turns; ++turn) {
    const std::int64_t row = i;
    i = j, j = height - 1 - row;
  }
  if (step.step == Step::shift) i -= drawn.down, j -= drawn.right;
  if (i < 0 || i >= height || j < 0 || j >= width) return -1;
  if (step.step == Step::cutout && i >= drawn.down && i < drawn.down + size && j >= drawn.right &&
      j < drawn.right + size)
    return -1;
  return i * width + j;
}

void change(const Augmentation& step, const Drawn& drawn, RandomStream& random, Tensor& tensor,
            std::size_t row) {
  const std::vector<std::int64_t>& extents = tensor.shape().extents();
  const Shape sample(std::vector<std::int64_t>(extents.begin() + 1, extents.end()));
  const auto elements = static_cast<std::size_t>(sample.element_count());
  if (!draws_on_planes(step.step)) {
    for (float& value : tensor.as<float>().subspan(row * elements, elements))
      value = step.step == Step::gain ? static_cast<float>(value * drawn.factor)
                                      : static_cast<float>(value + step.amount * random.normal());
    return;
  }
  const std::size_t element = size_in_bytes(tensor.type());
  const Planes planes = planes_of(sample);
  remap({tensor.bytes() + row * elements * element, elements * element}, planes, element,
        [&](std::int64_t i, std::int64_t j) { return place_before(step, drawn, planes, i, j); });
}

// Streams of the generators of the same samples are numbered below, those of an epoch from here on.
constexpr std::uint32_t augmentation_purpose = 1000;

}  // namespace

std::vector<Augmentation> augmentations_from_text(std::span<const std::string> texts) {
  std::vector<Augmentation> made;
  for (const std::string& text : texts) made.push_back(augmentation_from(text));
  return made;
}

Augmenter::Augmenter(std::vector<Augmentation> steps, std::span<const AugmentedArray> arrays,
                     std::uint64_t seed)
    : seed_(seed) {
  std::vector<std::string> names;
  for (const AugmentedArray& array : arrays)
    if (!array.names.front().empty()) names.push_back(array.names.front());
  for (Augmentation& step : steps) {
    Placed placed;
    for (const std::string& name : step.arrays) {
      const auto found = std::ranges::find_if(arrays, [&](const AugmentedArray& array) {
        return std::ranges::find(array.names, name) != array.names.end();
      });
      if (found == arrays.end())
        refuse(fmt::format("{}={}", name, name_of(step.step)),
               fmt::format("there is no array '{}' with a row for each sample", name),
               unknown_name_hint(name, names));
      require_fits(step, *found);
      placed.positions.push_back(static_cast<std::size_t>(found - arrays.begin()));
      require_one_size(step, arrays[placed.positions.front()].row, found->row);
    }
    placed.step = std::move(step);
    steps_.push_back(std::move(placed));
  }
}

void Augmenter::apply(std::span<const std::int64_t> indices, std::uint64_t epoch,
                      std::span<Tensor> tensors) const {
  for (std::size_t row = 0; row < indices.size(); ++row) {
    RandomStream random(seed_, static_cast<std::uint64_t>(indices[row]),
                        augmentation_purpose + static_cast<std::uint32_t>(epoch));
    for (const Placed& placed : steps_) {
      const std::vector<std::int64_t>& extents = tensors[placed.positions.front()].shape().extents();
      const Shape sample(std::vector<std::int64_t>(extents.begin() + 1, extents.end()));
      const Planes planes = draws_on_planes(placed.step.step) ? planes_of(sample) : Planes{};
      const Drawn drawn = draw(placed.step, planes, random);
      for (const std::size_t position : placed.positions)
        if (position < tensors.size()) change(placed.step, drawn, random, tensors[position], row);
    }
  }
}

}  // namespace superstep::run

#include "superstep/language/decode/decoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "superstep/base/system/free_memory.h"
#include "superstep/base/system/interrupt_check.h"
#include "superstep/base/system/mapped_file.h"
#include "superstep/language/decode/attention.h"
#include "superstep/language/decode/byte_panels.h"
#include "superstep/language/decode/decoder_weights.h"
#include "superstep/language/decode/kept_panels.h"
#include "superstep/language/decode/pair_panels.h"
#include "superstep/language/decode/panels.h"
#include "superstep/language/decode/tiles.h"

namespace superstep::language {
namespace {

// Tokens that go through the model together, whole panels of every width: rows that are unpacked once for so
// many cost little of it.
constexpr std::size_t tokens_at_a_time = 480;
// By matrix registers nothing is unpacked: they multiply faster than memory brings the weights.
constexpr std::size_t tokens_by_tiles = 256;
constexpr std::int64_t fewest_by_tiles = 8;
// Rows that a thread takes at a time: about 64 kB of weights of a width of 4096 in 16 bits.
constexpr std::int64_t rows_at_a_time = 8;

// Eight sums side by side, which compilers make vectors of: one would wait for itself at every number.
template <class Term>
double sum_of(std::span<const float> x, const Term& term) {
  constexpr std::size_t together = 8;
  double sums[together] = {};
  std::size_t i = 0;
  for (; i + together <= x.size(); i += together)
    for (std::size_t k = 0; k < together; ++k) sums[k] += term(x[i + k]);
  for (; i < x.size(); ++i) sums[0] += term(x[i]);
  double sum = 0;
  for (const double each : sums) sum += each;
  return sum;
}

void normalise(const Norm& norm, bool around_mean, double epsilon, std::span<const float> x, float* y) {
  const auto count = static_cast<double>(x.size());
  const double mean =
      around_mean ? sum_of(x, [](float value) { return static_cast<double>(value); }) / count : 0;
  const double square = sum_of(x, [mean](float value) { return (value - mean) * (value - mean); });
  const auto inverse = static_cast<float>(1 / std::sqrt(square / count + epsilon));
  const auto middle = static_cast<float>(mean);
  const float* bias = norm.bias.empty() ? nullptr : norm.bias.data();
  for (std::size_t i = 0; i < x.size(); ++i) y[i] = (x[i] - middle) * inverse * norm.scale[i];
  for (std::size_t i = 0; bias && i < x.size(); ++i) y[i] += bias[i];
}

float gelu(float x) {
  const float inner = std::sqrt(2 / std::numbers::pi_v<float>) * (x + 0.044715f * x * x * x);
  return 0.5f * x * (1 + std::tanh(inner));
}

template <class Visit>
void for_products(const DecoderWeights& weights, const Visit& visit) {
  for (const LayerWeights& layer : weights.layers) {
    for (const Linear& linear : layer.in) visit(linear.matrix);
    visit(layer.out.matrix);
    for (const Linear& linear : layer.inner) visit(linear.matrix);
    visit(layer.outer.matrix);
  }
  visit(weights.head);
}

std::size_t bytes_of(const DecoderWeights& weights) {
  std::size_t bytes = 0;
  for_products(weights, [&](const Matrix& matrix) { bytes += matrix.bytes(); });
  return bytes;
}

}  // namespace

struct Decoder::State {
  ModelConfig config;
  DecoderWeights weights;
  ThreadPool pool;
  KeyValueCache cache;
  std::vector<double> frequencies;
  std::vector<std::pair<float, float>> turns;
  std::int64_t context, position = 0;
  bool exact;
  bool tiles;  // all products suit them
  std::vector<float> scores;
  InterruptCheck stop{};
  Rows text, normal, projected, attended, added, inner, gate;  // of the tokens that go through together
  KeptPanels<BytePanels, BytePanelProduct> byte_panels;
  KeptPanels<PairPanels, PairPanelProduct> pair_panels;
  KeptPanels<TokenPanels, PanelProduct> number_panels;

  State(const data::WeightFile& file, const ModelConfig& c, const DecoderSettings& settings)
      : config(c),
        weights(decoder_weights(file, c)),
        pool(settings.threads),
        cache(c.layers, c.key_heads, c.head_size),
        context(settings.context > 0 ? std::min(settings.context, c.context) : c.context),
        exact(settings.exact),
        tiles(!settings.exact && suit_tiles(weights)),
        scores(static_cast<std::size_t>(weights.head.rows)) {
    if (c.family == Family::llama) frequencies = rotary_frequencies(c.head_size, c.rotary_base, c.scaling);
    bring_weights();
  }

  // A token reads all of them. Where memory does not hold them, the last would push out the first.
  void bring_weights() {
    constexpr std::size_t most = std::size_t{1} << 25;  // bytes of a piece: some milliseconds
    const double available = available_memory();
    if (available > 0 && static_cast<double>(bytes_of(weights)) > available) return;
    std::vector<std::span<const std::byte>> pieces;
    for_products(weights, [&](const Matrix& matrix) {
      const std::span<const std::byte> all(matrix.data, matrix.bytes());
      for (std::size_t first = 0; first < all.size(); first += most)
        pieces.push_back(all.subspan(first, std::min(most, all.size() - first)));
    });
    pool.parallel_for(static_cast<std::int64_t>(pieces.size()), [&](std::int64_t item, int) {
      if (!interrupted()) bring_into_memory(pieces[static_cast<std::size_t>(item)]);
    });
  }

  static bool suit_tiles(const DecoderWeights& weights) {
    const auto suits = [](const Linear& linear) { return suits_tiles(linear.matrix); };
    return std::ranges::all_of(weights.layers, [&](const LayerWeights& layer) {
      return std::ranges::all_of(layer.in, suits) && suits(layer.out) &&
             std::ranges::all_of(layer.inner, suits) && suits(layer.outer);
    });
  }

  // y = x W' + bias for matrices side by side, which share x.
  struct Product {
    const Linear* linear;
    Rows* y;
    std::int64_t first;  // column of y
  };

  // Rows of a product's matrix that one thread takes.
  struct Part {
    const Product* product;
    std::int64_t first, last;
  };

  void multiply(std::span<const Product> products, const Rows& x) {
    const bool in_blocks = std::ranges::any_of(
        products, [](const Product& p) { return is_in_blocks(p.linear->matrix.packing); });
    if (x.count() == 1 && !(exact && in_blocks)) return multiply_one(products, x, in_blocks);
    if (tiles && x.count() >= fewest_by_tiles) return multiply_by_tiles(products, x);
    if (x.count() < fewest_by_panels) return multiply_few(products, x);
    std::vector<Product> as_bytes, as_pairs, as_numbers;
    for (const Product& p : products) {
      const Packing packing = p.linear->matrix.packing;
      (!exact && suits_byte_panels(packing)   ? as_bytes
       : !exact && suits_pair_panels(packing) ? as_pairs
                                              : as_numbers)
          .push_back(p);
    }
    multiply_by_panels(byte_panels, as_bytes, x);
    multiply_by_panels(pair_panels, as_pairs, x);
    multiply_by_panels(number_panels, as_numbers, x);
  }

  template <class Panels, class ProductOfPanels>
  void multiply_by_panels(KeptPanels<Panels, ProductOfPanels>& kept, std::span<const Product> products,
                          const Rows& x) {
    if (products.empty()) return;
    auto& work = kept.of(x, pool.threads());
    pool.parallel_for(work.panels.count(),
                      [&](std::int64_t p, int) { work.panels.set(p, x.row(p * work.panels.width())); });
    const std::vector<Part> parts = parts_of_threads(products, ProductOfPanels::most_rows);
    pool.parallel_for(static_cast<std::int64_t>(parts.size()), [&](std::int64_t item, int worker) {
      const auto& [product, first, last] = parts[static_cast<std::size_t>(item)];
      work.of_threads[static_cast<std::size_t>(worker)].multiply(
          product->linear->matrix, first, last, product->y->row(0) + product->first, product->y->width());
    });
    for (const Product& p : products) add_bias(p);
  }

  void multiply_few(std::span<const Product> products, const Rows& x) {
    const std::vector<Part> parts = parts_of(products, rows_of_a_part);
    const std::int64_t columns = columns_at_a_time(x.width()), stride = columns + apart;
    const Tensor pieces = pieces_of(x, columns);
    std::vector<Tensor> unpacked;
    for (int i = 0; i < pool.threads(); ++i)
      unpacked.emplace_back(ElementType::f32, Shape{panel_rows * stride});
    pool.parallel_for(static_cast<std::int64_t>(parts.size()), [&](std::int64_t item, int worker) {
      const auto& [product, first, last] = parts[static_cast<std::size_t>(item)];
      for (std::int64_t column = 0; column < x.width(); column += columns) {
        const Piece piece{.first = column,
                          .columns = std::min(columns, x.width() - column),
                          .tokens = x.count(),
                          .stride = stride,
                          .values = pieces.as<float>().data() + column / columns * x.count() * stride};
        for (std::int64_t row = first; row < last; row += panel_rows)
          multiply_panel_of(*product, row, piece,
                            unpacked[static_cast<std::size_t>(worker)].as<float>().data());
      }
    });
    for (const Product& p : products) add_bias(p);
  }

  static std::vector<Part> parts_of(std::span<const Product> products, std::int64_t most) {
    std::vector<Part> parts;
    for (const Product& p : products) {
      const std::int64_t rows = p.linear->matrix.rows;
      for (std::int64_t r = 0; r < rows; r += most) parts.push_back({&p, r, std::min(rows, r + most)});
    }
    return parts;
  }

  // Some parts a thread, so that all end together; `most` rows in each.
  std::vector<Part> parts_of_threads(std::span<const Product> products, std::int64_t most) const {
    constexpr std::int64_t parts_of_thread = 4;
    std::int64_t rows = 0;
    for (const Product& p : products) rows += p.linear->matrix.rows;
    return parts_of(products,
                    std::clamp(rows / (parts_of_thread * pool.threads()) / rows_of_a_part * rows_of_a_part,
                               rows_of_a_part, most));
  }

  void multiply_by_tiles(std::span<const Product> products, const Rows& x) {
    TileActivations activations(x.count(), x.width());
    pool.parallel_for(x.count(), [&](std::int64_t t, int) { activations.set(t, x.row(t)); });
    const std::vector<Part> parts = parts_of(products, rows_of_a_part);
    pool.parallel_for(static_cast<std::int64_t>(parts.size()), [&](std::int64_t item, int) {
      const auto& [product, first, last] = parts[static_cast<std::size_t>(item)];
      multiply_tiles(product->linear->matrix, activations, first, last, product->y->row(0) + product->first,
                     product->y->width());
    });
    for (const Product& p : products) add_bias(p);
  }

  // Rows that share the columns of x which the second cache holds; a multiple of panel_rows.
  static constexpr std::int64_t rows_of_a_part = 32;

  // Numbers between rows of what is multiplied: rows a power of two apart would share few places of a cache.
  // With those that precede them they are multiples of its lines, so that no vector lies in two of these.
  static constexpr std::int64_t apart = 16;

  // Columns of all tokens, side by side.
  struct Piece {
    std::int64_t first, columns, tokens, stride;
    const float* values;  // [tokens][stride]
  };

  static Tensor pieces_of(const Rows& x, std::int64_t columns) {
    const std::int64_t stride = columns + apart, count = (x.width() + columns - 1) / columns;
    Tensor pieces(ElementType::f32, Shape{count * x.count() * stride});
    float* to = pieces.as<float>().data();
    for (std::int64_t column = 0; column < x.width(); column += columns)
      for (std::int64_t t = 0; t < x.count(); ++t, to += stride)
        std::copy_n(x.row(t) + column, std::min(columns, x.width() - column), to);
    return pieces;
  }

  static void multiply_panel_of(const Product& p, std::int64_t row, const Piece& x, float* scratch) {
    const Matrix& m = p.linear->matrix;
    Panel panel{.rows = scratch,
                .count = std::min(panel_rows, m.rows - row),
                .columns = x.columns,
                .stride = x.stride,
                .added = x.first > 0};
    if (m.packing == Packing::f32) {
      panel.rows = reinterpret_cast<const float*>(m.row(row)) + x.first;
      panel.stride = m.columns;
    } else {
      for (std::int64_t r = 0; r < panel.count; ++r)
        unpack_part(m, row + r, x.first, x.columns, scratch + r * x.stride);
    }
    for (std::int64_t r = row + panel_rows; r < std::min(row + 2 * panel_rows, m.rows); ++r)
      prefetch_part(m, r, x.first, x.columns);
    multiply_panel(panel, x.values, x.stride, x.tokens, p.y->row(0) + p.first + row, p.y->width());
  }

  void multiply_one(std::span<const Product> products, const Rows& x, bool in_blocks) {
    Activations activations;
    activations.set(x.of(0), in_blocks);
    std::vector<Part> parts;
    for (const Product& p : products) {
      // Large pieces, but enough of them that threads end together.
      const std::int64_t rows = p.linear->matrix.rows;
      const std::int64_t piece =
          std::max(rows_at_a_time, rows / (16 * pool.threads()) / rows_at_a_time * rows_at_a_time);
      for (std::int64_t r = 0; r < rows; r += piece) parts.push_back({&p, r, std::min(rows, r + piece)});
    }
    pool.parallel_for(static_cast<std::int64_t>(parts.size()), [&](std::int64_t item, int) {
      const Part& part = parts[static_cast<std::size_t>(item)];
      multiply_rows(part.product->linear->matrix, activations, part.first, part.last,
                    part.product->y->row(0) + part.product->first);
    });
    for (const Product& p : products) add_bias(p);
  }

  static void add_bias(const Product& p) {
    if (p.linear->bias.empty()) return;
    for (std::int64_t t = 0; t < p.y->count(); ++t)
      add_scaled(1, p.linear->bias.data(), p.y->row(t) + p.first,
                 static_cast<std::int64_t>(p.linear->bias.size()));
  }

  const Rows& normalised(const Norm& norm, const Rows& x) {
    normal.reset(x.count(), x.width());
    pool.parallel_for(x.count(), [&](std::int64_t t, int) {
      normalise(norm, config.family == Family::gpt2, config.epsilon, x.of(t), normal.row(t));
    });
    return normal;
  }

  // Cosines and sines of the angles that pairs are turned by at the places of so many tokens: they are the
  // same for all heads and layers.
  void set_turns(std::int64_t tokens) {
    turns.clear();
    for (std::int64_t t = 0; t < tokens; ++t)
      for (const double frequency : frequencies) {
        const double angle = static_cast<double>(position + t) * frequency;
        turns.emplace_back(static_cast<float>(std::cos(angle)), static_cast<float>(std::sin(angle)));
      }
  }

  void turn(float* head, std::int64_t token) const {
    const std::int64_t half = config.head_size / 2;
    for (std::int64_t i = 0; i < half; ++i) {
      const auto [c, s] = turns[static_cast<std::size_t>(token * half + i)];
      float& a = head[weights.pairs_are_neighbours ? 2 * i : i];
      float& b = head[weights.pairs_are_neighbours ? 2 * i + 1 : i + half];
      const float was = a;
      a = was * c - b * s, b = b * c + was * s;
    }
  }

  // x [tokens, query | key | value]: turned where positions are rotary; keys and values go into the cache.
  void place(std::int64_t layer, Rows& x) {
    const std::int64_t size = config.head_size, keys = config.key_heads;
    pool.parallel_for(x.count(), [&](std::int64_t t, int) {
      float* row = x.row(t);
      if (!frequencies.empty())
        for (std::int64_t h = 0; h < config.heads + keys; ++h) turn(row + h * size, t);
      for (std::int64_t h = 0; h < keys; ++h) {
        std::copy_n(row + (config.heads + h) * size, size, cache.key(layer, h, position + t));
        std::copy_n(row + (config.heads + keys + h) * size, size, cache.value(layer, h, position + t));
      }
    });
  }

  // One head of one token over all positions up to its own.
  void attend(std::int64_t layer, std::int64_t head, std::int64_t last, const float* query, float* mixed,
              std::vector<float>& shares) {
    const std::int64_t size = config.head_size, key_head = head / (config.heads / config.key_heads);
    const float scale = 1 / std::sqrt(static_cast<float>(size));
    shares.resize(static_cast<std::size_t>(last + 1));
    float top = -std::numeric_limits<float>::infinity();
    for (std::int64_t p = 0; p <= last; ++p) {
      const float score = dot(query, cache.key(layer, key_head, p), size) * scale;
      shares[static_cast<std::size_t>(p)] = score;
      top = std::max(top, score);
    }
    float sum = 0;
    for (float& share : shares) sum += share = std::exp(share - top);
    std::fill_n(mixed, size, 0.0f);
    for (std::int64_t p = 0; p <= last; ++p)
      add_scaled(shares[static_cast<std::size_t>(p)] / sum, cache.value(layer, key_head, p), mixed, size);
  }

  const Rows& attention(std::int64_t layer, const Rows& x) {
    attended.reset(x.count(), config.width);
    x.count() < fewest_by_panels ? attend_few(layer, x) : attend_by_panels(layer, x);
    return attended;
  }

  // Tasks of the last panels first: they look at the most positions.
  void attend_by_panels(std::int64_t layer, const Rows& x) {
    const std::int64_t size = config.head_size, width = panel_width();
    const std::int64_t panels = (x.count() + width - 1) / width;
    std::vector<PanelAttention> attend;
    for (int i = 0; i < pool.threads(); ++i) attend.emplace_back(size, position + x.count());
    pool.parallel_for(panels * config.heads, [&](std::int64_t item, int worker) {
      const std::int64_t first = (panels - 1 - item / config.heads) * width, head = item % config.heads;
      const PanelOfQueries queries{.values = x.row(first) + head * size,
                                   .stride = x.width(),
                                   .tokens = std::min(width, x.count() - first),
                                   .position = position + first};
      attend[static_cast<std::size_t>(worker)](cache, layer, head / (config.heads / config.key_heads),
                                               queries, attended.row(first) + head * size, attended.width());
    });
  }

  void attend_few(std::int64_t layer, const Rows& x) {
    std::vector<std::vector<float>> shares(static_cast<std::size_t>(pool.threads()));
    pool.parallel_for(x.count() * config.heads, [&](std::int64_t item, int worker) {
      const std::int64_t t = item / config.heads, head = item % config.heads;
      attend(layer, head, position + t, x.row(t) + head * config.head_size,
             attended.row(t) + head * config.head_size, shares[static_cast<std::size_t>(worker)]);
    });
  }

  void add(Rows& x, const Linear& linear, const Rows& to_multiply) {
    const Product product{&linear, &added.reset(x.count(), x.width()), 0};
    multiply({&product, 1}, to_multiply);
    pool.parallel_for(x.count(),
                      [&](std::int64_t t, int) { add_scaled(1, added.row(t), x.row(t), x.width()); });
  }

  void run_layer(std::int64_t index, Rows& x) {
    const LayerWeights& layer = weights.layers[static_cast<std::size_t>(index)];
    projected.reset(x.count(), (config.heads + 2 * config.key_heads) * config.head_size);
    std::vector<Product> in;
    std::int64_t first = 0;
    for (const Linear& linear : layer.in) {
      in.push_back({&linear, &projected, first});
      first += linear.matrix.rows;
    }
    multiply(in, normalised(layer.before_attention, x));
    place(index, projected);
    add(x, layer.out, attention(index, projected));
    add(x, layer.outer, inner_of(layer, normalised(layer.before_inner, x)));
  }

  const Rows& inner_of(const LayerWeights& layer, const Rows& x) {
    inner.reset(x.count(), config.inner);
    gate.reset(layer.inner.size() > 1 ? x.count() : 0, config.inner);
    std::vector<Product> products{{&layer.inner.back(), &inner, 0}};
    if (gate.count() > 0) products.push_back({&layer.inner.front(), &gate, 0});
    multiply(products, x);
    pool.parallel_for(x.count(), [&](std::int64_t t, int) {
      float* y = inner.row(t);
      const float* g = gate.count() > 0 ? gate.row(t) : nullptr;
      if (g) return multiply_by_silu(g, y, config.inner);
      for (std::int64_t i = 0; i < config.inner; ++i) y[i] = gelu(y[i]);
    });
    return inner;
  }

  void embed(std::span<const std::int32_t> tokens, Rows& x) const {
    x.reset(static_cast<std::int64_t>(tokens.size()), config.width);
    std::vector<float> place(static_cast<std::size_t>(config.width));
    for (std::int64_t t = 0; t < x.count(); ++t) {
      unpack_row(weights.words, tokens[static_cast<std::size_t>(t)], x.row(t));
      if (weights.positions.rows == 0) continue;
      unpack_row(weights.positions, position + t, place.data());
      add_scaled(1, place.data(), x.row(t), config.width);
    }
  }

  // `scored`: the scores after the last of them are wanted.
  void run(std::span<const std::int32_t> tokens, bool scored) {
    Rows& x = text;
    embed(tokens, x);
    set_turns(x.count());
    for (std::int64_t layer = 0; layer < config.layers; ++layer) {
      if (stop.is_due()) throw Error(ErrorCode::interrupted, "stopped while a text was continued");
      run_layer(layer, x);
    }
    position += x.count();
    if (!scored) return;
    Rows last, y;
    last.reset(1, config.width);
    normalise(weights.norm, config.family == Family::gpt2, config.epsilon, x.of(x.count() - 1), last.row(0));
    const Linear head{weights.head, {}};
    const Product product{&head, &y.reset(1, weights.head.rows), 0};
    multiply({&product, 1}, last);
    std::ranges::copy(y.of(0), scores.begin());
  }

  void check(std::span<const std::int32_t> tokens) const {
    if (tokens.empty()) throw Error(ErrorCode::invalid_argument, "there is no token to go on from");
    for (const std::int32_t token : tokens)
      if (token < 0 || token >= weights.words.rows)
        throw Error(ErrorCode::invalid_argument,
                    fmt::format("token {} is not in the model's vocabulary of {}", token, weights.words.rows),
                    {}, "the tokenizer is another model's");
    const auto count = static_cast<std::int64_t>(tokens.size());
    if (count > context - position)
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format("a text of {} tokens is longer than the context of {}", position + count, context), {},
          "shorten it, or take a model of a longer context");
  }
};

Decoder::Decoder(const data::WeightFile& file, const ModelConfig& config, const DecoderSettings& settings)
    : state_(std::make_unique<State>(file, config, settings)) {}
Decoder::~Decoder() = default;

const ModelConfig& Decoder::config() const { return state_->config; }
std::int64_t Decoder::vocabulary() const { return state_->weights.head.rows; }
std::int64_t Decoder::context() const { return state_->context; }
std::int64_t Decoder::position() const { return state_->position; }
std::size_t Decoder::cache_bytes() const { return state_->cache.bytes(); }

std::size_t Decoder::weight_bytes() const { return bytes_of(state_->weights); }

double Decoder::multiply_adds() const {
  double count = 0;
  for_products(state_->weights, [&](const Matrix& matrix) {
    count += static_cast<double>(matrix.rows) * static_cast<double>(matrix.columns);
  });
  return count;
}

std::span<const float> Decoder::feed(std::span<const std::int32_t> tokens) {
  State& s = *state_;
  s.check(tokens);
  const std::int64_t before = s.position;
  s.cache.grow(before + static_cast<std::int64_t>(tokens.size()));
  try {
    const std::size_t most = s.tiles ? tokens_by_tiles : tokens_at_a_time;
    for (std::size_t first = 0; first < tokens.size(); first += most) {
      const std::size_t count = std::min(most, tokens.size() - first);
      s.run(tokens.subspan(first, count), first + count == tokens.size());
    }
  } catch (...) {
    s.position = before;
    throw;
  }
  return s.scores;
}

void Decoder::rewind(std::int64_t position) {
  if (position < 0 || position > state_->position)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("position {} is not among the {} tokens so far", position, state_->position));
  state_->position = position;
}

}  // namespace superstep::language

#include "superstep/target/numerics/convolution_product.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "superstep/op/product/convolution_loop.h"

namespace superstep::target::numerics {
namespace {

using op::ConvGeometry;
using op::Window;

// Where every output reads the input at its own place alone, planes are one line.
std::array<Window, 3> in_one_line(std::array<Window, 3> axes) {
  Window line;
  for (const Window& w : axes) {
    if (w.kernel != 1 || w.stride != 1 || w.pad_begin != 0 || w.input != w.output) return axes;
    line.input *= w.input;
  }
  line.output = line.input;
  return {Window{}, Window{}, line};
}

// The extents of a convolution that all three need.
struct Extents {
  explicit Extents(const ConvGeometry& g)
      : geometry(g),
        axes(in_one_line(op::three_axes(g.windows))),
        x_plane(axes[0].input * axes[1].input * axes[2].input),
        y_plane(axes[0].output * axes[1].output * axes[2].output),
        taps(axes[0].kernel * axes[1].kernel * axes[2].kernel),
        channels(g.group * g.in_per_group),
        maps(g.group * g.out_per_group) {}

  std::array<std::int64_t, 3> tap(std::int64_t index) const {
    return {index / (axes[1].kernel * axes[2].kernel), index / axes[2].kernel % axes[1].kernel,
            index % axes[2].kernel};
  }

  ConvGeometry geometry;
  std::array<Window, 3> axes;
  std::int64_t x_plane, y_plane, taps, channels, maps;
};

// Neighboring positions along the last axis of one line of one sample.
struct Line {
  std::int64_t sample, depth, height, first, count;
};

// Positions [begin, begin + count) of samples' planes of these extents, line by line.
std::vector<Line> lines_of(std::int64_t begin, std::int64_t count,
                           const std::array<std::int64_t, 3>& extents) {
  std::vector<Line> lines;
  const auto [depth, height, width] = extents;
  for (const std::int64_t end = begin + count; begin < end;) {
    const std::int64_t line = begin / width, column = begin % width;
    const std::int64_t length = std::min(width - column, end - begin);
    lines.push_back({line / (depth * height), line / height % depth, line % height, column, length});
    begin += length;
  }
  return lines;
}

// What a tap reads for a line of results: so many elements of a sample's plane from `from` on, behind `skip`
// results that read padding; the rest of `length` results do, too.
struct Span {
  std::int64_t sample, from, skip, copied, length;
};
using Spans = std::vector<Span>;

bool inside(std::int64_t at, std::int64_t extent) { return at >= 0 && at < extent; }

// Of results that are outputs: each reads an input.
void spans_of_outputs(const Extents& e, const std::vector<Line>& lines, std::int64_t tap, Spans& spans) {
  const auto [td, th, tv] = e.tap(tap);
  const auto& [d, h, v] = e.axes;
  const std::int64_t first_output = v.first_output(tv), last_output = v.last_output(tv);
  spans.clear();
  for (const Line& line : lines) {
    const std::int64_t id = line.depth * d.stride - d.pad_begin + td * d.dilation;
    const std::int64_t ih = line.height * h.stride - h.pad_begin + th * h.dilation;
    const std::int64_t end = line.first + line.count;
    const std::int64_t low = std::clamp<std::int64_t>(first_output, line.first, end);
    const std::int64_t high = std::clamp<std::int64_t>(last_output, low, end);
    const bool reads = inside(id, d.input) && inside(ih, h.input);
    spans.push_back({line.sample,
                     (id * h.input + ih) * v.input + low * v.stride - v.pad_begin + tv * v.dilation,
                     low - line.first, reads ? high - low : 0, line.count});
  }
}

// The output that reads input i at this tap; -1: none.
std::int64_t output_of(const Window& w, std::int64_t i, std::int64_t tap) {
  const std::int64_t at = i + w.pad_begin - tap * w.dilation;
  if (at < 0 || at % w.stride != 0 || at / w.stride >= w.output) return -1;
  return at / w.stride;
}

// Of results that are inputs: every stride-th is read by an output.
void spans_of_inputs(const Extents& e, const std::vector<Line>& lines, std::int64_t tap, Spans& spans) {
  const auto [td, th, tv] = e.tap(tap);
  const auto& [d, h, v] = e.axes;
  spans.clear();
  for (const Line& line : lines) {
    const std::int64_t od = output_of(d, line.depth, td), oh = output_of(h, line.height, th);
    const std::int64_t at = line.first + v.pad_begin - tv * v.dilation;  // output * stride of the first
    const std::int64_t low = at <= 0 ? 0 : (at + v.stride - 1) / v.stride;
    const std::int64_t last = at + line.count - 1;
    const std::int64_t high = last < 0 ? 0 : std::min(v.output, last / v.stride + 1);
    const bool reads = od >= 0 && oh >= 0;
    spans.push_back({line.sample, (od * h.output + oh) * v.output + low, low * v.stride - at,
                     reads ? std::max<std::int64_t>(high - low, 0) : 0, line.count});
  }
}

// Lines are short: a call of memcpy, or a loop over their last few elements, would take longer than they do.
// Both write up to `many` - 1 elements too much, which what comes next writes again, and read as many.
constexpr std::int64_t many = 8;
static_assert(2 * many <= Product::slack);
void copy_short(const float* from, std::int64_t n, float* to) {
  for (std::int64_t i = 0; i < n; i += many) std::memcpy(to + i, from + i, many * sizeof(float));
}
void zero_short(std::int64_t n, float* to) {
  for (std::int64_t i = 0; i < n; i += many) std::memset(to + i, 0, many * sizeof(float));
}

// Of an operand: a plane of it, and where its memory ends.
struct Source {
  const float *plane, *end;
  std::int64_t step;  // between the elements of neighboring results
};

// to[skip + i * to_step] = plane[from + i * step], zeros between and around them.
void gather(const Span& span, const Source& source, std::int64_t to_step, float* to) {
  if (span.copied == 0) return zero_short(span.length, to);
  const float* from = source.plane + span.from;
  if (source.step == 1 && to_step == 1) {
    zero_short(span.skip, to);
    if (source.end - from >= span.copied + many)
      copy_short(from, span.copied, to + span.skip);
    else
      std::copy_n(from, span.copied, to + span.skip);
    return zero_short(span.length - span.skip - span.copied, to + span.skip + span.copied);
  }
  zero_short(span.length, to);
  for (std::int64_t i = 0; i < span.copied; ++i) to[span.skip + i * to_step] = from[i * source.step];
}

class WithWeights : public Product {
 public:
  explicit WithWeights(const ConvGeometry& g) : e(g) { groups = g.group; }
  Panel left(std::int64_t group, std::int64_t row, std::int64_t, std::int64_t first, std::int64_t,
             float*) const override {
    return {weights.data() + (group * rows + row) * k + first, k};
  }
  void right(std::int64_t group, std::int64_t first, std::int64_t count, std::int64_t column,
             std::int64_t column_count, float* buffer, std::int64_t pitch) const override {
    const auto lines = lines_of(column, column_count, extents);
    const float* const end = right_ + e.geometry.batch * groups * summed * read_plane;
    Spans spans;
    for (std::int64_t i = first; i < first + count; ++i, buffer += pitch) {
      if (i == first || i % summed == 0) spans_at(lines, i / summed, spans);
      float* to = buffer;
      for (const Span& span : spans) {
        const std::int64_t plane_of = span.sample * groups * summed + group * summed + i % summed;
        gather(span, {right_ + plane_of * read_plane, end, from_step}, to_step, to);
        to += span.length;
      }
      std::fill(to, buffer + pitch, 0.0f);
    }
  }
  Run results(std::int64_t group, std::int64_t row, std::int64_t column) const override {
    const std::int64_t sample = column / plane, at = column % plane;
    return {((sample * groups + group) * rows + row) * plane + at, plane - at};
  }

 protected:
  virtual void spans_at(const std::vector<Line>& lines, std::int64_t tap, Spans& spans) const = 0;

  Extents e;
  std::vector<float> weights;  // rows by products, group by group
  const float* right_ = nullptr;
  std::array<std::int64_t, 3> extents{1, 1, 1};  // of the result
  std::int64_t plane = 1, read_plane = 1;        // of the result, and of what is read
  std::int64_t summed = 1;                       // channels of a group that are summed over
  std::int64_t from_step = 1, to_step = 1;
};

class Forward final : public WithWeights {
 public:
  explicit Forward(const ConvGeometry& g) : WithWeights(g) {
    rows = g.out_per_group, summed = g.in_per_group;
    k = e.taps * summed;
    extents = {e.axes[0].output, e.axes[1].output, e.axes[2].output};
    plane = e.y_plane, read_plane = e.x_plane;
    from_step = e.axes[2].stride;
    columns = g.batch * plane;
    bias_row_stride = 1;
  }
  void begin(const float* a, const float* b) override {
    right_ = b;
    weights.resize(static_cast<std::size_t>(e.maps * k));
    float* to = weights.data();
    for (std::int64_t m = 0; m < e.maps; ++m)
      for (std::int64_t tap = 0; tap < e.taps; ++tap)
        for (std::int64_t i = 0; i < summed; ++i) *to++ = a[(m * summed + i) * e.taps + tap];
  }

 private:
  void spans_at(const std::vector<Line>& lines, std::int64_t tap, Spans& spans) const override {
    spans_of_outputs(e, lines, tap, spans);
  }
};

class Transposed final : public WithWeights {
 public:
  explicit Transposed(const ConvGeometry& g) : WithWeights(g) {
    rows = g.in_per_group, summed = g.out_per_group;
    k = e.taps * summed;
    extents = {e.axes[0].input, e.axes[1].input, e.axes[2].input};
    plane = e.x_plane, read_plane = e.y_plane;
    to_step = e.axes[2].stride;
    columns = g.batch * plane;
    bias_row_stride = 1;
  }
  void begin(const float* a, const float* b) override {
    right_ = b;
    weights.resize(static_cast<std::size_t>(e.channels * k));
    float* to = weights.data();
    for (std::int64_t g = 0; g < groups; ++g)
      for (std::int64_t i = 0; i < rows; ++i)
        for (std::int64_t tap = 0; tap < e.taps; ++tap)
          for (std::int64_t j = 0; j < summed; ++j) *to++ = a[((g * summed + j) * rows + i) * e.taps + tap];
  }

 private:
  void spans_at(const std::vector<Line>& lines, std::int64_t tap, Spans& spans) const override {
    spans_of_inputs(e, lines, tap, spans);
  }
};

class ByWeights final : public Product {
 public:
  explicit ByWeights(const ConvGeometry& g) : e(g) {
    groups = g.group;
    rows = g.out_per_group;
    columns = g.in_per_group * e.taps;
    k = g.batch * e.y_plane;
  }
  void begin(const float* a, const float* b) override { left_ = a, right_ = b; }
  Panel left(std::int64_t group, std::int64_t row, std::int64_t row_count, std::int64_t first,
             std::int64_t count, float* buffer) const override {
    for (std::int64_t i = 0; i < row_count; ++i)
      for (std::int64_t done = 0; done < count;) {
        const std::int64_t sample = (first + done) / e.y_plane, at = (first + done) % e.y_plane;
        const std::int64_t length = std::min(e.y_plane - at, count - done);
        const std::int64_t map = sample * e.maps + group * rows + row + i;
        std::copy_n(left_ + map * e.y_plane + at, length, buffer + i * count + done);
        done += length;
      }
    return {buffer, count};
  }
  void right(std::int64_t group, std::int64_t first, std::int64_t count, std::int64_t column,
             std::int64_t column_count, float* buffer, std::int64_t pitch) const override {
    const auto lines = lines_of(first, count, {e.axes[0].output, e.axes[1].output, e.axes[2].output});
    Spans spans;
    const float* const end = right_ + e.geometry.batch * e.channels * e.x_plane;
    std::vector<float> values(static_cast<std::size_t>(count + slack));
    for (std::int64_t start = 0; start < std::min(e.taps, column_count); ++start) {
      spans_of_outputs(e, lines, (column + start) % e.taps, spans);
      for (std::int64_t j = start; j < column_count; j += e.taps) {
        float* to = values.data();
        for (const Span& span : spans) {
          const std::int64_t channel =
              span.sample * e.channels + group * e.geometry.in_per_group + (column + j) / e.taps;
          gather(span, {right_ + channel * e.x_plane, end, e.axes[2].stride}, 1, to);
          to += span.length;
        }
        for (std::int64_t i = 0; i < count; ++i) buffer[i * pitch + j] = values[static_cast<std::size_t>(i)];
      }
    }
    for (std::int64_t i = 0; i < count; ++i)
      std::fill(buffer + i * pitch + column_count, buffer + (i + 1) * pitch, 0.0f);
  }
  Run results(std::int64_t group, std::int64_t row, std::int64_t column) const override {
    return {(group * rows + row) * columns + column, columns - column};
  }

 private:
  Extents e;
  const float *left_ = nullptr, *right_ = nullptr;
};

}  // namespace

std::unique_ptr<Product> convolution_product(const ConvGeometry& g) { return std::make_unique<Forward>(g); }
std::unique_ptr<Product> transposed_product(const ConvGeometry& g) { return std::make_unique<Transposed>(g); }
std::unique_ptr<Product> weight_product(const ConvGeometry& g) { return std::make_unique<ByWeights>(g); }

}  // namespace superstep::target::numerics

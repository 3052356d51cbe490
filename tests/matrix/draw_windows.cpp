#include "tests/matrix/draw.h"

namespace superstep::matrix {
namespace {

// Windows along some axes, such that every axis has a position.
struct Windows {
  Extents kernel, strides, dilations, pads, input, output;

  op::Attributes attributes() const {
    return {{"strides", strides}, {"dilations", dilations}, {"pads", pads}};
  }
};

Windows windows(Draw& d, int axes, std::int64_t extent = 9, bool dilated = true) {
  Windows w;
  Extents ends;
  for (int i = 0; i < axes; ++i) {
    w.kernel.push_back(d.number(1, 3));
    w.strides.push_back(d.number(1, 3));
    w.dilations.push_back(dilated ? d.number(1, 2) : 1);
    const std::int64_t reach = (w.kernel.back() - 1) * w.dilations.back() + 1;
    w.pads.push_back(d.number(0, w.kernel.back() - 1));
    ends.push_back(d.number(0, w.kernel.back() - 1));
    w.input.push_back(d.number(reach, reach + extent));
    w.output.push_back((w.input.back() + w.pads.back() + ends.back() - reach) / w.strides.back() + 1);
  }
  w.pads.insert(w.pads.end(), ends.begin(), ends.end());
  return w;
}

Shape with(std::int64_t a, std::int64_t b, const Extents& rest) {
  Extents extents{a, b};
  extents.insert(extents.end(), rest.begin(), rest.end());
  return Shape(extents);
}

// Padding as the numbers say, or as what decides it in their place.
void decide_padding(Draw& d, op::Attributes& attributes) {
  if (d.number(0, 2) != 0) return;
  if (d.coin()) attributes.erase("pads");  // beside another rule they count for nothing
  attributes.set("auto_pad", std::string(d.one_of<const char*>({"SAME_UPPER", "SAME_LOWER", "VALID"})));
}

// The extents of the result in the place of padding, or elements behind it.
void decide_result(Draw& d, const Windows& w, op::Attributes& attributes) {
  Extents shape, behind;
  for (std::size_t i = 0; i < w.kernel.size(); ++i) {
    const std::int64_t full = (w.output[i] - 1) * w.strides[i] + (w.kernel[i] - 1) * w.dilations[i] + 1;
    shape.push_back(d.number(std::max<std::int64_t>(1, full - 3), full + d.number(0, w.strides[i] - 1)));
    behind.push_back(d.number(0, w.strides[i]));
  }
  const std::int64_t how = d.number(0, 3);
  if (how == 0) attributes.set("output_padding", behind);
  if (how != 1) return;
  attributes.set("output_shape", shape);
  if (d.coin()) attributes.erase("pads");
  if (d.coin()) attributes.set("auto_pad", std::string(d.coin() ? "SAME_UPPER" : "SAME_LOWER"));
}

// Up to three axes; over volumes short ones.
Windows up_to_volumes(Draw& d, bool dilated = true) {
  const auto axes = static_cast<int>(d.number(1, 3));
  return windows(d, axes, axes == 3 ? 4 : 9, dilated);
}

Case convolution(Draw& d, const char* op) {
  const Windows w = up_to_volumes(d);
  const std::int64_t group = d.number(0, 2) ? 1 : d.number(2, 3);
  const std::int64_t in = group * d.number(1, 9), out = group * d.number(1, 9);
  op::Attributes attributes = w.attributes();
  attributes.set("group", group);
  decide_padding(d, attributes);
  std::vector<Tensor> inputs{d.normal(with(d.number(1, 3), in, w.input)),
                             d.normal(with(out, in / group, w.kernel))};
  if (d.coin()) inputs.push_back(d.normal({out}));
  return node_case(op, inputs, attributes);
}

Case transposed(Draw& d, const char* op) {
  const auto axes = static_cast<int>(d.number(1, 3));
  const Windows w = windows(d, axes, axes == 3 ? 3 : 5);
  const std::int64_t group = d.number(0, 2) ? 1 : 2;
  const std::int64_t in = group * d.number(1, 9), out = d.number(1, 9);
  op::Attributes attributes = w.attributes();
  attributes.set("group", group);
  decide_result(d, w, attributes);
  std::vector<Tensor> inputs{d.normal(with(d.number(1, 3), in, w.output)), d.normal(with(in, out, w.kernel))};
  if (d.coin()) inputs.push_back(d.normal({out * group}));
  return node_case(op, inputs, attributes);
}

Case weight_gradient(Draw& d, const char* op) {
  const Windows w = up_to_volumes(d);
  const std::int64_t group = d.number(0, 2) ? 1 : 2, samples = d.number(1, 3);
  const std::int64_t in = group * d.number(1, 9), out = group * d.number(1, 9);
  op::Attributes attributes = w.attributes();
  attributes.set("group", group);
  attributes.set("kernel_shape", w.kernel);
  return node_case(op, {d.normal(with(samples, in, w.input)), d.normal(with(samples, out, w.output))},
                   attributes);
}

Case deformable(Draw& d, const char* op) {
  const Windows w = windows(d, 2, 4);
  const std::int64_t group = d.number(1, 2), offset_group = d.number(1, 2), samples = d.number(1, 3);
  const std::int64_t in = group * offset_group * d.number(1, 2), out = group * d.number(1, 4);
  const std::int64_t taps = w.kernel[0] * w.kernel[1];
  op::Attributes attributes = w.attributes();
  attributes.set("group", group);
  attributes.set("offset_group", offset_group);
  return node_case(op,
                   {d.normal(with(samples, in, w.input)), d.normal(with(out, in / group, w.kernel)),
                    d.uniform(with(samples, offset_group * taps * 2, w.output), 0.1, 0.9), d.normal({out}),
                    d.uniform(with(samples, offset_group * taps, w.output), 0, 1)},
                   attributes);
}

Case pool(Draw& d, const char* op) {
  const Windows w = up_to_volumes(d, std::string(op) != "LpPool");
  op::Attributes attributes = w.attributes();
  attributes.set("kernel_shape", w.kernel);
  if (std::string(op) == "AveragePool") attributes.set("count_include_pad", d.number(0, 1));
  if (d.number(0, 3) == 0)
    attributes.set("ceil_mode", std::int64_t{1});
  else
    decide_padding(d, attributes);
  const Shape x = with(d.number(1, 3), d.number(1, 9), w.input);
  const bool positive = std::string(op) == "LpPool";
  const bool places = std::string(op) == "MaxPool" && d.coin();
  return node_case(op, {positive ? d.uniform(x, 0.2, 2) : d.normal(x)}, attributes, places ? 2 : 1);
}

// The pooling before it says where the maxima are.
Case max_gradient(Draw& d, const char* op) {
  const auto axes = static_cast<std::size_t>(d.number(2, 3));
  Windows w = windows(d, static_cast<int>(axes), axes == 3 ? 4 : 9, false);
  if (std::string(op) == "MaxUnpool" || d.coin()) {  // side by side
    w.strides = w.kernel;
    w.pads.assign(2 * axes, 0);
    for (std::size_t i = 0; i < axes; ++i) w.input[i] = w.kernel[i] * d.number(1, 5);
  }
  op::Attributes attributes = w.attributes();
  attributes.set("kernel_shape", w.kernel);
  const Shape x = with(d.number(1, 3), d.number(1, 9), w.input);
  const std::string name(op);
  Case result = node_case(op, {d.normal(x)});
  result.function = [=](op::Builder& b, std::span<const op::Var> in) {
    const std::vector<op::Var> pooled = b.node("MaxPool", in, attributes, 2);
    if (name == "MaxUnpool") return b.node(name, pooled, attributes);
    return b.node(name, pooled, {{"input_shape", x.extents()}});
  };
  result.smooth = Smooth::no;  // of the whole function: kinks
  return result;
}

Case average_gradient(Draw& d, const char* op) {
  const auto axes = static_cast<std::size_t>(d.number(2, 3));
  Windows w = windows(d, static_cast<int>(axes), axes == 3 ? 4 : 9, false);
  if (d.coin()) {
    w.strides = w.kernel;
    w.pads.assign(2 * axes, 0);
    for (std::size_t i = 0; i < axes; ++i) {
      w.output[i] = d.number(1, 5);
      w.input[i] = w.kernel[i] * w.output[i];
    }
  }
  op::Attributes attributes = w.attributes();
  const std::int64_t n = d.number(1, 3), c = d.number(1, 9);
  attributes.set("kernel_shape", w.kernel);
  attributes.set("input_shape", with(n, c, w.input).extents());
  return node_case(op, {d.normal(with(n, c, w.output))}, attributes);
}

Case global(Draw& d, const char* op) { return node_case(op, {d.uniform(d.shape(3, 5), 0.2, 2)}); }

Case col2im(Draw& d, const char* op) {
  const Windows w = windows(d, 2, 5);
  const std::int64_t channels = d.number(1, 5);
  return node_case(
      op,
      {d.normal({d.number(1, 3), channels * w.kernel[0] * w.kernel[1], w.output[0] * w.output[1]}),
       op::test::i64({2}, w.input), op::test::i64({2}, w.kernel)},
      w.attributes());
}

Case resize(Draw& d, const char* op) {
  const std::int64_t rank = d.number(3, 5), longest = rank == 5 ? 5 : 9;
  const Extents from{d.number(1, 2), d.number(1, 4), d.number(2, longest), d.number(2, longest),
                     d.number(2, longest)};
  Extents x(from.begin(), from.begin() + rank), y = x;
  for (std::int64_t axis = 2; axis < rank; ++axis)
    y[static_cast<std::size_t>(axis)] = d.coin() ? 2 * x[static_cast<std::size_t>(axis)] : d.number(1, 14);
  const std::string mode = d.one_of<const char*>({"nearest", "linear", "cubic"});
  op::Attributes attributes{{"mode", mode},
                            {"coordinate_transformation_mode",
                             std::string(d.one_of<const char*>(
                                 {"half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"}))}};
  if (mode != "nearest") attributes.set("antialias", d.number(0, 1));
  const bool gradient = std::string(op) != "Resize";
  if (gradient) attributes.set("input_shape", x);
  return node_case(op, {d.normal(Shape(gradient ? y : x)), left_out(), left_out(), op::test::i64({rank}, y)},
                   attributes);
}

Case upsample(Draw& d, const char* op) {
  const Shape x{d.number(1, 2), d.number(1, 4), d.number(2, 9), d.number(2, 9)};
  Case result = node_case(op, {d.normal(x)});
  const Tensor scales =
      op::test::f64({4}, {1, 1, static_cast<double>(d.number(1, 3)), static_cast<double>(d.number(1, 3))});
  const std::string mode = d.coin() ? "nearest" : "linear";
  result.function = [=](op::Builder& b, std::span<const op::Var> in) {
    const op::Var inputs[] = {in[0], b.constant(scales.converted(ElementType::f32))};
    return b.node("Upsample", inputs, {{"mode", mode}});
  };
  return result;
}

Case grid_sample(Draw& d, const char* op) {
  const std::int64_t n = d.number(1, 3);
  return node_case(op,
                   {d.normal({n, d.number(1, 5), d.number(2, 6), d.number(2, 6)}),
                    d.uniform({n, d.number(1, 6), d.number(1, 6), 2}, -0.95, 0.95)},
                   {{"align_corners", d.number(0, 1)}}, 1, Smooth::no);
}

Case affine_grid(Draw& d, const char* op) {
  const std::int64_t n = d.number(1, 5);
  return node_case(op, {d.normal({n, 2, 3}), op::test::i64({4}, {n, 3, d.number(1, 7), d.number(1, 7)})},
                   {{"align_corners", d.number(0, 1)}});
}

Case regions(Draw& d, const char* op) {
  const std::int64_t n = d.number(1, 3), count = d.number(1, 6);
  const Tensor x = d.normal({n, d.number(1, 5), 8, 8});
  const bool align = std::string(op) == "RoiAlign";
  Tensor rois(ElementType::f64, {count, align ? 4 : 5});
  for (std::int64_t r = 0; r < count; ++r) {
    const double left = static_cast<double>(d.number(0, 3)), top = static_cast<double>(d.number(0, 3));
    std::vector<double> row{left, top, left + static_cast<double>(d.number(1, 4)),
                            top + static_cast<double>(d.number(1, 4))};
    if (!align) row.insert(row.begin(), static_cast<double>(d.number(0, n - 1)));
    for (std::size_t i = 0; i < row.size(); ++i)
      rois.set(r * static_cast<std::int64_t>(row.size()) + static_cast<std::int64_t>(i), row[i]);
  }
  if (!align)
    return node_case(op, {x, rois}, {{"pooled_shape", Extents{d.number(1, 3), d.number(1, 3)}}}, 1,
                     Smooth::no);
  return node_case(op, {x, rois, d.whole({count}, 0, n - 1)},
                   {{"output_height", d.number(1, 3)},
                    {"output_width", d.number(1, 3)},
                    {"sampling_ratio", d.number(1, 2)},
                    {"mode", std::string(d.coin() ? "avg" : "max")}},
                   1, Smooth::no);
}

Case causal(Draw& d, const char* op) {
  const std::int64_t n = d.number(1, 4), c = d.number(1, 6), taps = d.number(1, 3);
  return node_case(
      op,
      {d.normal({n, c, d.number(1, 9)}), d.normal({c, 1, taps}), d.normal({c}), d.normal({n, c, taps - 1})},
      {}, 2);
}

}  // namespace

std::vector<Generator> window_generators() {
  return {{{"Conv"}, convolution},
          {{"ConvTranspose"}, transposed},
          {{"superstep.ConvWeightGradient"}, weight_gradient},
          {{"DeformConv"}, deformable},
          {{"MaxPool", "AveragePool", "LpPool"}, pool},
          {{"superstep.MaxPoolGradient", "MaxUnpool"}, max_gradient},
          {{"superstep.AveragePoolGradient"}, average_gradient},
          {{"GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"}, global},
          {{"Col2Im"}, col2im},
          {{"Resize", "superstep.ResizeGradient"}, resize},
          {{"Upsample"}, upsample},
          {{"GridSample"}, grid_sample},
          {{"AffineGrid"}, affine_grid},
          {{"RoiAlign", "MaxRoiPool"}, regions},
          {{"CausalConvWithState"}, causal}};
}

}  // namespace superstep::matrix

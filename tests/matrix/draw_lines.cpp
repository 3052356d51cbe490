#include "tests/matrix/draw.h"

namespace superstep::matrix {
namespace {

Case along(Draw& d, const char* op) {
  const Shape x = d.shape();
  return node_case(op, {d.normal(x)}, {{"axis", d.either(d.axis(x), x)}});
}
Case hard(Draw& d, const char* op) {
  Case result = along(d, op);
  result.smooth = Smooth::no;
  return result;
}

Case reduction(Draw& d, const char* op) {
  const Shape x = d.shape();
  Extents axes;
  for (int axis = 0; axis < x.rank(); ++axis)
    if (d.coin()) axes.push_back(d.either(axis, x));
  std::vector<Tensor> inputs{d.uniform(x, 0.3, 1.5)};
  if (!axes.empty()) inputs.push_back(op::test::i64({static_cast<std::int64_t>(axes.size())}, axes));
  Case result = node_case(op, inputs, {{"keepdims", d.number(0, 1)}});
  if (std::string(op) == "ReduceProd") result.inputs[0] = d.uniform(x, 0.97, 1.03);
  return result;
}

Case batch(Draw& d, const char* op) {
  const Shape x = d.shape(2, 4);
  const std::int64_t c = x[1];
  return node_case(op, {d.normal(x), d.normal({c}), d.normal({c}), d.normal({c}), d.uniform({c}, 0.5, 2)});
}
// Samples enough that no variance is near zero.
Case layer(Draw& d, const char* op) {
  Extents extents = d.extents(d.number(1, 2), 1, 9);
  extents.push_back(d.number(4, 20));
  const Shape x(extents);
  const int axis = static_cast<int>(d.number(0, x.rank() - 1));
  const Shape scale(Extents(extents.begin() + axis, extents.end()));
  const bool rms = std::string(op) == "RMSNormalization";
  const op::Attributes attributes{{"axis", d.either(axis, x)}};
  if (std::string(op) == "superstep.LayerNormalizationGradient")
    return node_case(op, {d.normal(x), d.normal(x), d.normal(scale)}, attributes, 3);
  std::vector<Tensor> inputs{d.normal(x), d.normal(scale)};
  if (!rms && d.coin()) inputs.push_back(d.normal(scale));
  return node_case(op, inputs, attributes);
}
Case instance(Draw& d, const char* op) {
  const std::int64_t c = d.number(1, 9);
  return node_case(
      op, {d.normal({d.number(1, 4), c, d.number(3, 6), d.number(2, 6)}), d.normal({c}), d.normal({c})});
}
Case group(Draw& d, const char* op) {
  const std::int64_t groups = d.number(1, 4), c = groups * d.number(1, 4), scales = d.coin() ? c : groups;
  return node_case(
      op,
      {d.normal({d.number(1, 4), c, d.number(3, 6), d.number(2, 6)}), d.normal({scales}), d.normal({scales})},
      {{"num_groups", groups}});
}
Case moments(Draw& d, const char* op) { return node_case(op, {d.normal(d.shape(2, 4))}, {}, 2); }
Case sums(Draw& d, const char* op) {
  const Shape x = d.shape(2, 4);
  return node_case(op, {d.normal(x), d.normal(x), d.normal({x[1]})}, {}, 2);
}
Case mean_variance(Draw& d, const char* op) {
  const Shape x{d.number(2, 5), d.number(1, 6), d.number(2, 5), d.number(2, 5)};
  if (d.coin()) return node_case(op, {d.normal(x)});
  return node_case(op, {d.normal(x)}, {{"axes", Extents{0, -1}}});
}
Case local(Draw& d, const char* op) {
  return node_case(op, {d.normal(d.shape(3, 4))}, {{"size", d.number(1, 4)}, {"alpha", 0.3}});
}

Case cumulative(Draw& d, const char* op) {
  const Shape x = d.shape();
  const bool product = std::string(op) == "CumProd";
  return node_case(op, {product ? d.uniform(x, 0.97, 1.03) : d.normal(x), op::test::i64({}, {d.axis(x)})},
                   {{"exclusive", d.number(0, 1)}, {"reverse", d.number(0, 1)}});
}
// Numbers that all differ, so that no rounding changes their order.
Tensor distinct(Draw& d, const Shape& shape) {
  Tensor result(ElementType::f64, shape);
  std::int64_t next = d.number(0, 100);
  for (std::int64_t i = 0; i < result.element_count(); ++i, next = (next + 619) % 2003)
    result.set(i, static_cast<double>(next) - 1000);
  return result;
}
Case top_k(Draw& d, const char* op) {
  const Shape x = d.shape();
  const int axis = d.axis(x);
  return node_case(op, {distinct(d, x), op::test::i64({1}, {d.number(1, x[axis])})},
                   {{"axis", d.either(axis, x)}, {"largest", d.number(0, 1)}}, 2, Smooth::no);
}
Case arg(Draw& d, const char* op) {
  const Shape x = d.shape();
  return node_case(op, {distinct(d, x)}, {{"axis", d.either(d.axis(x), x)}, {"keepdims", d.number(0, 1)}}, 1,
                   Smooth::no);
}
Case triangle(Draw& d, const char* op) {
  const Tensor x = d.normal(d.shape(2, 4));
  return node_case(op, {x, d.coin() ? op::test::i64({}, {d.number(-3, 3)}) : left_out()},
                   {{"upper", d.number(0, 1)}});
}
Case eye(Draw& d, const char* op) {
  return node_case(op, {d.normal(d.shape(2, 2))}, {{"k", d.number(-3, 3)}}, 1, Smooth::no);
}
Case reverse(Draw& d, const char* op) {
  const std::int64_t batch = d.number(0, 1);
  const Shape x = d.shape(2, 4);
  return node_case(op,
                   {d.normal(x), d.whole({x[static_cast<int>(batch)]}, 0, x[static_cast<int>(1 - batch)])},
                   {{"batch_axis", batch}, {"time_axis", 1 - batch}});
}
Case compress(Draw& d, const char* op) {
  const Shape x = d.shape();
  const int axis = d.axis(x);
  Tensor condition = d.whole({x[axis]}, 0, 1, ElementType::boolean);
  condition.set(0, 1);
  return node_case(op, {d.normal(x), condition}, {{"axis", d.either(axis, x)}});
}
Case fourier(Draw& d, const char* op) {
  const Shape x{d.number(1, 4), d.number(2, 9), d.coin() ? d.number(2, 9) : d.number(10, 40), d.number(1, 2)};
  const std::int64_t axis = d.number(0, 2), inverse = d.number(0, 1), onesided = d.number(0, 1);
  const Tensor length = d.coin() ? op::test::i64({}, {d.number(2, 30)}) : left_out();
  return node_case(op, {d.normal(x), length, op::test::i64({}, {axis})},
                   {{"inverse", inverse}, {"onesided", onesided}});
}
// Numbers whose parts lie apart, along some of their axes; lengths of small and of large prime factors.
Case volume(Draw& d, const char* op) {
  Extents extents = d.extents(d.number(1, 4), 1, 9);
  if (d.coin()) extents.back() = d.one_of<std::int64_t>({16, 17, 24, 25, 37, 64, 77});
  const Shape x(extents);
  Extents axes;
  for (int axis = 0; axis < x.rank(); ++axis)
    if (d.coin()) axes.push_back(d.either(axis, x));
  if (axes.empty()) axes = {d.axis(x)};
  std::vector<Tensor> inputs{d.normal(x)};
  if (d.coin()) inputs.push_back(d.normal(x));
  return node_case(op, inputs,
                   {{"axes", axes}, {"inverse", d.number(0, 1)}, {"scale", d.coin() ? 1.0 : 0.125}}, 2);
}
Case frames(Draw& d, const char* op) {
  const std::int64_t length = d.number(2, 8);
  return node_case(op, {d.normal({d.number(1, 4), d.number(length, 40), 1}),
                        op::test::i64({}, {d.number(1, 5)}), d.normal({length})});
}
Case features(Draw& d, const char* op) {
  const std::int64_t n = d.number(1, 60), width = d.number(1, 6);
  op::Attributes attributes;
  const std::string name(op);
  if (name == "Scaler")
    attributes = {{"offset", std::vector<double>(static_cast<std::size_t>(width), 0.5)},
                  {"scale", std::vector<double>{2}}};
  if (name == "LinearRegressor")
    attributes = {{"coefficients", std::vector<double>(static_cast<std::size_t>(2 * width), 0.5)},
                  {"targets", std::int64_t{2}}};
  if (name == "Normalizer") attributes = {{"norm", std::string(d.one_of<const char*>({"MAX", "L1", "L2"}))}};
  return node_case(op, {d.uniform({n, width}, 0.5, 2)}, attributes, 1, Smooth::no);
}
Case grams(Draw& d, const char* op) {
  return node_case(op, {d.whole({d.number(1, 30), d.number(2, 6)}, 2, 6)},
                   {{"mode", std::string("TFIDF")},
                    {"min_gram_length", std::int64_t{1}},
                    {"max_gram_length", std::int64_t{2}},
                    {"max_skip_count", std::int64_t{1}},
                    {"ngram_counts", Extents{0, 2}},
                    {"ngram_indexes", Extents{0, 1, 2, 3}},
                    {"pool_int64s", Extents{2, 3, 5, 4, 6, 2}},
                    {"weights", std::vector<double>{1, 2, 0.5, 4}}},
                   1, Smooth::no);
}

}  // namespace

std::vector<Generator> line_generators() {
  return {{{"Softmax", "LogSoftmax", "LpNormalization"}, along},
          {{"Hardmax"}, hard},
          {{"ReduceSum", "ReduceMean", "ReduceProd", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2",
            "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare"},
           reduction},
          {{"BatchNormalization"}, batch},
          {{"LayerNormalization", "RMSNormalization", "superstep.LayerNormalizationGradient"}, layer},
          {{"InstanceNormalization"}, instance},
          {{"GroupNormalization"}, group},
          {{"superstep.ChannelMoments"}, moments},
          {{"superstep.ChannelSums"}, sums},
          {{"MeanVarianceNormalization"}, mean_variance},
          {{"LRN"}, local},
          {{"CumSum", "CumProd"}, cumulative},
          {{"TopK"}, top_k},
          {{"ArgMax", "ArgMin"}, arg},
          {{"Trilu"}, triangle},
          {{"EyeLike"}, eye},
          {{"ReverseSequence"}, reverse},
          {{"Compress"}, compress},
          {{"DFT"}, fourier},
          {{"superstep.Fourier"}, volume},
          {{"STFT"}, frames},
          {{"Normalizer", "Scaler", "LinearRegressor"}, features},
          {{"TfIdfVectorizer"}, grams}};
}

}  // namespace superstep::matrix

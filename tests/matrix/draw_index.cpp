#include "tests/matrix/draw.h"

namespace superstep::matrix {
namespace {

Case gather(Draw& d, const char* op) {
  const Shape data = d.shape(1, 3);
  const int axis = d.coin() ? 0 : d.axis(data);
  return node_case(op, {d.normal(data), d.whole(d.shape(0, 2), -data[axis], data[axis] - 1)},
                   {{"axis", d.either(axis, data)}});
}

// Indices as long as the data, or shorter.
Shape shorter(Draw& d, const Shape& data, int axis) {
  Extents extents = data.extents();
  for (std::size_t i = 0; i < extents.size(); ++i)
    extents[i] = d.coin() ? extents[i] : d.number(1, extents[i]);
  extents[static_cast<std::size_t>(axis)] = d.number(1, 12);
  return Shape(extents);
}
Case gather_elements(Draw& d, const char* op) {
  const Shape data = d.shape(1, 3);
  const int axis = d.axis(data);
  return node_case(op, {d.normal(data), d.whole(shorter(d, data, axis), -data[axis], data[axis] - 1)},
                   {{"axis", d.either(axis, data)}});
}

// Index vectors into the axes of data from `first` on.
Tensor vectors(Draw& d, const Shape& data, int first, Extents lead, std::int64_t depth) {
  lead.push_back(depth);
  Tensor result(ElementType::i64, Shape(lead));
  for (std::int64_t i = 0; i < result.element_count(); ++i) {
    const std::int64_t extent = data[first + static_cast<int>(i % depth)];
    result.set(i, static_cast<double>(d.number(-extent, extent - 1)));
  }
  return result;
}
Case gather_nd(Draw& d, const char* op) {
  const Shape data = d.shape(2, 4);
  const auto batch = static_cast<int>(d.number(0, 1));
  Extents lead(data.begin(), data.begin() + batch);
  lead.push_back(d.number(1, 9));
  return node_case(op, {d.normal(data), vectors(d, data, batch, lead, d.number(1, data.rank() - batch))},
                   {{"batch_dims", std::int64_t{batch}}});
}

// Sums in any order; overwriting only where no place is named twice.
Case scatter_nd(Draw& d, const char* op) {
  const Shape data = d.shape(1, 3);
  const std::int64_t depth = d.number(1, data.rank());
  const bool adds = d.number(0, 3) != 0;
  const Tensor indices = vectors(d, data, 0, adds ? d.extents(d.number(1, 2), 1, 9) : Extents{1}, depth);
  Extents updates(indices.shape().begin(), indices.shape().end() - 1);
  updates.insert(updates.end(), data.begin() + depth, data.end());
  return node_case(op, {d.normal(data), indices, d.normal(Shape(updates))},
                   {{"reduction", std::string(adds ? "add" : "none")}});
}
Case scatter_elements(Draw& d, const char* op) {
  const Shape data = d.shape(1, 3);
  const int axis = d.axis(data);
  const std::string reduction = d.one_of<const char*>({"none", "add", "add", "max", "min"});
  Shape places = shorter(d, data, axis);
  if (reduction == "none") {
    Extents extents = places.extents();
    extents[static_cast<std::size_t>(axis)] = 1;
    places = Shape(extents);
  }
  return node_case(op, {d.normal(data), d.whole(places, -data[axis], data[axis] - 1), d.normal(places)},
                   {{"axis", d.either(axis, data)}, {"reduction", reduction}}, 1,
                   reduction == "none" || reduction == "add" ? Smooth::once : Smooth::no);
}
Case tensor_scatter(Draw& d, const char* op) {
  const std::int64_t n = d.number(1, 4), length = d.number(2, 8), width = d.number(1, 6),
                     more = d.number(1, length);
  const bool circular = d.coin();
  return node_case(op,
                   {d.normal({n, length, width}), d.normal({n, more, width}),
                    d.whole({n}, 0, circular ? 9 : length - more)},
                   {{"mode", std::string(circular ? "circular" : "linear")}});
}
// Packs of rows with indices of their own, some of them none.
struct Packs {
  Shape data, index;
  std::int64_t rows, entries;
};
Packs packs(Draw& d) {
  Extents lead = d.extents(d.number(0, 2), 1, 4), index = lead;
  const std::int64_t rows = d.number(1, 20), entries = d.number(1, 30);
  lead.push_back(rows);
  lead.push_back(d.number(1, 40));
  index.push_back(entries);
  return {Shape(lead), Shape(index), rows, entries};
}
Case gather_rows(Draw& d, const char* op) {
  const Packs p = packs(d);
  return node_case(op, {d.normal(p.data), d.whole(p.index, -1, p.rows - 1)});
}
Case segment_sum(Draw& d, const char* op) {
  const Packs p = packs(d);
  const std::int64_t count = d.number(1, 9);
  Extents index = p.data.extents();
  index.pop_back();
  return node_case(op, {d.normal(p.data), d.whole(Shape(index), -1, count - 1)}, {{"count", count}});
}
Case sparse_product(Draw& d, const char* op) {
  const Packs p = packs(d);
  const std::int64_t count = d.number(1, 20);
  return node_case(op,
                   {d.normal(p.data), d.whole(p.index, -1, p.rows - 1), d.whole(p.index, -1, count - 1),
                    d.normal(p.index)},
                   {{"count", count}}, 1, Smooth::twice);
}
Case extractor(Draw& d, const char* op) {
  const Shape x = d.shape(1, 3);
  return node_case(op, {d.normal(x), d.whole(d.coin() ? Shape{1, 3} : Shape{5}, 0, x[x.rank() - 1] - 1)}, {},
                   1, Smooth::no);
}
Case one_hot(Draw& d, const char* op) {
  const Shape labels = d.shape(1, 3);
  const std::int64_t depth = d.number(2, 9);
  Case result = node_case(op, {d.whole(labels, -depth - 1, depth), d.normal({2})});
  const std::int64_t axis = d.number(-labels.rank() - 1, labels.rank());
  result.function = [=](op::Builder& b, std::span<const op::Var> x) {
    const op::Var inputs[] = {x[0], b.constant(Tensor::scalar(depth)), x[1]};
    return b.node("OneHot", inputs, {{"axis", axis}});
  };
  result.smooth = Smooth::no;
  return result;
}

Case within(Draw& d, const char* op) {
  const std::int64_t count = d.number(1, 50), first = d.number(-9, 9);
  return node_case(op, {d.whole(d.shape(0, 4), first, first + count - 1)},
                   {{"first", first}, {"count", count}, {"what", std::string("input indices")}}, 1,
                   Smooth::no);
}

Case transpose(Draw& d, const char* op) {
  const Shape x = d.shape();
  Extents order;
  for (int axis = 0; axis < x.rank(); ++axis) order.insert(order.begin() + d.number(0, axis), axis);
  return node_case(op, {d.normal(x)}, {{"perm", order}});
}
Case reshape(Draw& d, const char* op) {
  const Shape x = d.shape(2, 4);
  return node_case(op, {d.normal(x), op::test::i64({2}, {-1, x[x.rank() - 1]})});
}
Case flatten(Draw& d, const char* op) {
  const Shape x = d.shape();
  return node_case(op, {d.normal(x)}, {{"axis", d.number(0, x.rank())}});
}
Case squeeze(Draw& d, const char* op) {
  const Shape x{d.number(1, 9), 1, d.number(1, 9)};
  return node_case(op, {d.normal(x), op::test::i64({1}, {1})});
}
Case expand(Draw& d, const char* op) {
  const std::int64_t n = d.number(1, 9), m = d.number(1, 9);
  return node_case(op, {d.normal({n, 1, m}), op::test::i64({4}, {2, 1, d.number(1, 9), m})});
}
Case concat(Draw& d, const char* op) {
  const Shape x = d.shape();
  const int axis = d.axis(x);
  std::vector<Tensor> inputs{d.normal(x)};
  for (std::int64_t i = d.number(0, 2); i > 0; --i) {
    Extents extents = x.extents();
    extents[static_cast<std::size_t>(axis)] = d.number(1, 5);
    inputs.push_back(d.normal(Shape(extents)));
  }
  return node_case(op, inputs, {{"axis", d.either(axis, x)}});
}
Case split(Draw& d, const char* op) {
  const std::int64_t parts = d.number(1, 3), part = d.number(1, 5), n = d.number(1, 20);
  return node_case(op, {d.normal({n, parts * part})}, {{"axis", std::int64_t{1}}, {"num_outputs", parts}},
                   static_cast<int>(parts));
}
Case tile(Draw& d, const char* op) {
  const Shape x = d.shape(1, 5);
  return node_case(op, {d.normal(x), d.whole({x.rank()}, 1, 3)});
}
Case slice(Draw& d, const char* op) {
  const Shape x = d.shape();
  const int axis = d.axis(x);
  const bool back = d.coin();
  const std::int64_t begin = d.number(0, x[axis] - 1), step = d.number(1, 3);
  const auto one = [](std::int64_t value) { return op::test::i64({1}, {value}); };
  return node_case(
      op, {d.normal(x), one(begin), one(back ? -x[axis] - 1 : x[axis]), one(axis), one(back ? -step : step)});
}
Case pad(Draw& d, const char* op) {
  const Shape x = d.shape(1, 3);
  const Tensor widths = d.whole({2 * x.rank()}, 0, 2);
  const bool constant = d.coin();
  const Shape safe(Extents(static_cast<std::size_t>(x.rank()), 5));
  return node_case(
      op, {d.normal(constant ? x : safe), widths},
      {{"mode", std::string(constant ? "constant" : d.one_of<const char*>({"edge", "reflect", "wrap"}))}});
}
Case center(Draw& d, const char* op) {
  const Shape x = d.shape(1, 3);
  return node_case(op, {d.normal(x), d.whole({x.rank()}, 1, 9)});
}
Case space(Draw& d, const char* op) {
  const std::int64_t b = d.number(1, 3), n = d.number(1, 2), c = d.number(1, 4), h = d.number(1, 5),
                     w = d.number(1, 5);
  const bool to_depth = std::string(op) == "SpaceToDepth";
  return node_case(op, {d.normal(to_depth ? Shape{n, c, h * b, w * b} : Shape{n, c * b * b, h, w})},
                   {{"blocksize", b}, {"mode", std::string(d.coin() ? "DCR" : "CRD")}});
}

}  // namespace

std::vector<Generator> index_generators() {
  return {{{"Gather"}, gather},
          {{"GatherElements"}, gather_elements},
          {{"GatherND"}, gather_nd},
          {{"ScatterND"}, scatter_nd},
          {{"ScatterElements"}, scatter_elements},
          {{"TensorScatter"}, tensor_scatter},
          {{"superstep.IndicesWithin"}, within},
          {{"superstep.GatherRows"}, gather_rows},
          {{"superstep.SegmentSum"}, segment_sum},
          {{"superstep.SparseProduct"}, sparse_product},
          {{"ArrayFeatureExtractor"}, extractor},
          {{"OneHot"}, one_hot},
          {{"Transpose"}, transpose},
          {{"Reshape"}, reshape},
          {{"Flatten"}, flatten},
          {{"Squeeze", "Unsqueeze"}, squeeze},
          {{"Expand"}, expand},
          {{"Concat"}, concat},
          {{"Split"}, split},
          {{"Tile"}, tile},
          {{"Slice"}, slice},
          {{"Pad"}, pad},
          {{"CenterCropPad"}, center},
          {{"SpaceToDepth", "DepthToSpace"}, space}};
}

}  // namespace superstep::matrix

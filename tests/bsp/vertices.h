// Small vertices for tests, with cycle counts that are easy to add up.
#pragma once

#include "superstep/bsp/graph/vertex.h"

namespace superstep::bsp {

// out = a + b; 10 cycles and 2 an element.
struct AddVertex : Vertex {
  Input<Vector<float>> a, b;
  Output<Vector<float>> out;
  void fields(FieldList& list) { list("a", a)("b", b)("out", out); }
  void compute() {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = a[i] + b[i];
  }
  static PerfEstimate cycles(const VertexFields& f, const Device&) {
    return {10 + 2 * f.size("out"), static_cast<std::uint64_t>(f.size("out"))};
  }
};

// data = scale x data + its own place; state in and out.
struct ScaleVertex : Vertex {
  InOut<Vector<float>> data;
  float scale;
  void fields(FieldList& list) { list("data", data)("scale", scale); }
  bool compute() {
    for (std::size_t i = 0; i < data.size(); ++i) data[i] = scale * data[i] + static_cast<float>(i);
    return true;
  }
};

// out = sum of all rows; every worker takes its share of the columns.
struct ColumnSumVertex : MultiVertex {
  Vector<Input<Vector<float>>> rows;
  Output<Vector<float>> out;
  void fields(FieldList& list) { list("rows", rows)("out", out); }
  void compute(unsigned worker) {
    for (std::size_t i = worker; i < out.size(); i += num_workers()) {
      float sum = 0;
      for (const auto& row : rows) sum += row[i];
      out[i] = sum;
    }
  }
  static PerfEstimate cycles(const VertexFields& f, const Device& device) {
    return 20 + device.workers * static_cast<std::uint64_t>(f.size("rows"));
  }
};

// flag = counter < limit; counter counts up.
struct CountVertex : Vertex {
  InOut<int> counter;
  Output<bool> flag;
  int limit;
  void fields(FieldList& list) { list("counter", counter)("flag", flag)("limit", limit); }
  void compute() {
    counter = counter + 1;
    flag = counter < limit;
  }
  static PerfEstimate cycles(const VertexFields&, const Device&) { return 10; }
};

inline std::vector<VertexClass> test_vertices() {
  return {vertex_class<AddVertex>("Add"), vertex_class<ScaleVertex>("Scale"),
          vertex_class<ColumnSumVertex>("ColumnSum"), vertex_class<CountVertex>("Count")};
}

}  // namespace superstep::bsp

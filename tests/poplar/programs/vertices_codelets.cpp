// Codelets of vertices.cpp: one of each kind of field.
#include <poplar/Vertex.hpp>

using namespace poplar;

class Total : public Vertex {
 public:
  Input<Vector<float>> values;
  Output<float> total;

  bool compute() {
    *total = 0;
    for (const auto& value : values) *total += value;
    return true;
  }
};

class Scale : public Vertex {
 public:
  InOut<Vector<float>> data;
  Input<float> offset;
  float factor;

  bool compute() {
    for (unsigned i = 0; i < data.size(); ++i) data[i] = factor * data[i] + offset;
    return true;
  }
};

// The row of a list that has the largest sum.
class LongestRow : public Vertex {
 public:
  Vector<Input<Vector<int>>> rows;
  Output<unsigned> row;

  bool compute() {
    int most = -1;
    for (unsigned i = 0; i < rows.size(); ++i) {
      int sum = 0;
      for (unsigned j = 0; j < rows[i]->size(); ++j) sum += rows[i][j];
      if (sum > most) {
        most = sum;
        *row = i;
      }
    }
    return true;
  }
};

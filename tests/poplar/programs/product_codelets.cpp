// Codelets of product.cpp.
#include <poplar/Vertex.hpp>

using namespace poplar;

class PartOfRow : public Vertex {
 public:
  Input<Vector<float>> row, vector;
  Output<float> part;

  bool compute() {
    float sum = 0;
    for (unsigned i = 0; i < row.size(); ++i) sum += row[i] * vector[i];
    *part = sum;
    return true;
  }
};

class AddParts : public Vertex {
 public:
  Input<Vector<float>> parts;
  Output<float> sum;

  bool compute() {
    float all = 0;
    for (const float part : parts) all += part;
    *sum = all;
    return true;
  }
};

#include <poplar/Vertex.hpp>

class Double : public poplar::Vertex {
 public:
  poplar::InOut<poplar::Vector<float>> x;
  void compute() {
    for (float& value : x) value *= 2;
  }
};

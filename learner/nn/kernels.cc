#include "learner/nn/kernels.h"

namespace datacom::learner {
namespace {

// Members start on cache lines, so that every member runs through the same instructions.
int64_t MemberStride(int rows, int cols, size_t width) {
  const int64_t line = static_cast<int64_t>(64 / width);
  return (static_cast<int64_t>(rows) * cols + line - 1) / line * line;
}

template <class T>
View<T> NewView(Kernels* kernels, int members, int rows, int cols) {
  const int64_t stride = MemberStride(rows, cols, sizeof(T));
  T* data = static_cast<T*>(kernels->Allocate(sizeof(T) * stride * members));
  return {data, members, rows, cols, stride, cols};
}

}  // namespace

FloatView Kernels::NewFloats(int members, int rows, int cols) { return NewView<float>(this, members, rows, cols); }
DoubleView Kernels::NewDoubles(int members, int rows, int cols) { return NewView<double>(this, members, rows, cols); }

MlpTape Kernels::NewTape(const Mlp& net, int members, int rows) {
  MlpTape tape;
  for (size_t i = 0; i + 1 < net.layers.size(); ++i) {
    tape.hidden.push_back(NewFloats(members, rows, net.layers[i + 1].in));
    tape.adjoint.push_back(NewFloats(members, rows, net.layers[i].out));
  }
  tape.out = NewFloats(members, rows, net.out());
  return tape;
}

}  // namespace datacom::learner
